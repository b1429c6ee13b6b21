#include "formats/onnx/onnx_literal.h"

#include "base/error.h"

namespace trinity::onnx_import {

using onnx::TensorProto;

Shape tensor_shape(const TensorProto& tensor, const std::string& owner) {
  if (static_cast<size_t>(tensor.dims_size()) > kMaxRank)
    throw FileError("{} has {} dimensions, more than {}", owner, tensor.dims_size(), kMaxRank);
  Shape shape(tensor.dims().begin(), tensor.dims().end());
  check_shape(shape, tensor.data_type(), owner);
  return shape;
}

std::pair<int32_t, Shape> constant_type(const Model& model, const Node& node) {
  const auto owner = fmt::format("{}: node '{}' (Constant)", model.source, clip(node.name));
  if (const auto* value = node.attribute("value"))
    return {value->t().data_type(), tensor_shape(value->t(), owner)};
  if (const auto* value = node.attribute("sparse_value")) {
    const auto& sparse = value->sparse_tensor();
    Shape shape(sparse.dims().begin(), sparse.dims().end());
    check_shape(shape, sparse.values().data_type(), owner);
    return {sparse.values().data_type(), shape};
  }
  if (node.attribute("value_int")) return {TensorProto::INT64, {}};
  if (const auto* value = node.attribute("value_ints"))
    return {TensorProto::INT64, {value->ints_size()}};
  if (node.attribute("value_float")) return {TensorProto::FLOAT, {}};
  if (const auto* value = node.attribute("value_floats"))
    return {TensorProto::FLOAT, {value->floats_size()}};
  if (const auto* value = node.attribute("value_strings"))
    return {TensorProto::STRING, {value->strings_size()}};
  return {TensorProto::STRING, {}};  // value_string
}

}  // namespace trinity::onnx_import
