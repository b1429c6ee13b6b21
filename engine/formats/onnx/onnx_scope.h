#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace trinity::onnx_import {

/// The module of PyTorch that a node was exported from, as `model.named_modules()` calls it, or "".
/// PyTorch's exporter of today writes the path into the node's metadata (NodeProto.metadata_props,
/// field 9, newer than the installed ONNX), under "pkg.torch.onnx.name_scopes": a Python list like
/// ['', 'layer1', 'layer1.0', 'layer1.0.conv1', 'conv2d_5'], whose last entry is the operation's.
std::string module_scope(const onnx::NodeProto& node);

}  // namespace trinity::onnx_import
