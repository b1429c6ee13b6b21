#pragma once

#include "formats/onnx/onnx_model.h"

namespace trinity::onnx_import {

/// Dimensions of a stored tensor, checked (see check_shape). `owner` begins the message.
Shape tensor_shape(const onnx::TensorProto& tensor, const std::string& owner);

/// Element type and shape of a Constant node's value. Throws FileError for impossible dimensions.
std::pair<int32_t, Shape> constant_type(const Model& model, const Node& node);

}  // namespace trinity::onnx_import
