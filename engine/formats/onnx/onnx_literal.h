#pragma once

#include "formats/onnx/onnx_model.h"

namespace trinity::onnx_import {

/// Dimensions of a stored tensor, checked (see check_shape). `owner` begins the message.
Shape tensor_shape(const onnx::TensorProto& tensor, const std::string& owner);

/// The numbers of a stored tensor of at most kMaxLiteral elements; null where they are missing, in
/// another file, fewer than the dimensions say, or of a type that no shape is computed from.
std::shared_ptr<const Literal> decode(const onnx::TensorProto& tensor);

/// What a Constant node holds.
struct Constant {
  int32_t element = 0;
  std::optional<Shape> shape;
  std::shared_ptr<const Literal> literal;
};
/// Throws FileError for impossible dimensions.
Constant constant_value(const Model& model, const Node& node);

/// The integers of a literal, or nothing where it is null or a number is no int64.
std::optional<std::vector<int64_t>> integers_of(const Literal* literal);

}  // namespace trinity::onnx_import
