#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace trinity::onnx_import {

/// The PyTorch module that a node was exported from, as named by `model.named_modules()`, or "".
/// Current PyTorch exporters write the path into the node's metadata (NodeProto.metadata_props,
/// field 9, newer than the installed ONNX) under "pkg.torch.onnx.name_scopes": a Python list like
/// ['', 'layer1', 'layer1.0', 'layer1.0.conv1', 'conv2d_5'], whose last entry is the operation.
std::string module_scope(const onnx::NodeProto& node);

}  // namespace trinity::onnx_import
