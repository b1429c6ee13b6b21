#include "formats/onnx/onnx_literal.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace trinity::onnx_import {
namespace {

using onnx::TensorProto;

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

template <class T>
bool read_raw(const std::string& bytes, size_t count, std::vector<long double>& numbers) {
  if (bytes.size() != count * sizeof(T)) return false;
  for (size_t i = 0; i < count; ++i) {
    T number;
    std::memcpy(&number, bytes.data() + i * sizeof(T), sizeof(T));
    numbers.push_back(static_cast<long double>(number));
  }
  return true;
}

template <class List>
bool read_list(const List& list, size_t count, std::vector<long double>& numbers) {
  if (static_cast<size_t>(list.size()) != count) return false;
  for (const auto number : list) numbers.push_back(static_cast<long double>(number));
  return true;
}

bool read_numbers(const TensorProto& tensor, size_t count, std::vector<long double>& numbers) {
  const auto& raw = tensor.raw_data();
  const bool packed = tensor.has_raw_data();
  switch (tensor.data_type()) {
    case TensorProto::INT64:
      return packed ? read_raw<int64_t>(raw, count, numbers)
                    : read_list(tensor.int64_data(), count, numbers);
    case TensorProto::INT32:
      return packed ? read_raw<int32_t>(raw, count, numbers)
                    : read_list(tensor.int32_data(), count, numbers);
    case TensorProto::BOOL:
    case TensorProto::UINT8:
      return packed ? read_raw<uint8_t>(raw, count, numbers)
                    : read_list(tensor.int32_data(), count, numbers);
    case TensorProto::FLOAT:
      return packed ? read_raw<float>(raw, count, numbers)
                    : read_list(tensor.float_data(), count, numbers);
    case TensorProto::DOUBLE:
      return packed ? read_raw<double>(raw, count, numbers)
                    : read_list(tensor.double_data(), count, numbers);
    default:
      return false;
  }
}

template <class List>
Constant list_constant(const List& list, int32_t element, bool scalar) {
  Constant constant;
  constant.element = element;
  constant.shape = scalar ? Shape{} : Shape{static_cast<int64_t>(list.size())};
  if (static_cast<size_t>(list.size()) > kMaxLiteral) return constant;
  auto literal = std::make_shared<Literal>();
  read_list(list, static_cast<size_t>(list.size()), literal->numbers);
  constant.literal = std::move(literal);
  return constant;
}

}  // namespace

Shape tensor_shape(const TensorProto& tensor, const std::string& owner) {
  if (static_cast<size_t>(tensor.dims_size()) > kMaxRank)
    throw FileError(
        fmt::format("{} has {} dimensions, more than {}", owner, tensor.dims_size(), kMaxRank));
  Shape shape(tensor.dims().begin(), tensor.dims().end());
  check_shape(shape, tensor.data_type(), owner);
  return shape;
}

std::shared_ptr<const Literal> decode(const TensorProto& tensor) {
  if (tensor.data_location() == TensorProto::EXTERNAL) return nullptr;
  size_t count = 1;
  for (const int64_t extent : tensor.dims()) {
    if (extent < 0 || static_cast<size_t>(extent) > kMaxLiteral) return nullptr;
    count *= static_cast<size_t>(extent);
    if (count > kMaxLiteral) return nullptr;
  }
  auto literal = std::make_shared<Literal>();
  if (!read_numbers(tensor, count, literal->numbers)) return nullptr;
  return literal;
}

Constant constant_value(const Model& model, const Node& node) {
  const auto owner = fmt::format("{}: node '{}' (Constant)", model.source, clip(node.name));
  if (const auto* value = node.attribute("value"))
    return {value->t().data_type(), tensor_shape(value->t(), owner), decode(value->t())};
  if (const auto* value = node.attribute("sparse_value")) {
    const auto& sparse = value->sparse_tensor();
    Shape shape(sparse.dims().begin(), sparse.dims().end());
    check_shape(shape, sparse.values().data_type(), owner);
    return {sparse.values().data_type(), shape, nullptr};
  }
  if (const auto* value = node.attribute("value_int"))
    return list_constant(std::vector<int64_t>{value->i()}, TensorProto::INT64, true);
  if (const auto* value = node.attribute("value_ints"))
    return list_constant(value->ints(), TensorProto::INT64, false);
  if (const auto* value = node.attribute("value_float"))
    return list_constant(std::vector<float>{value->f()}, TensorProto::FLOAT, true);
  if (const auto* value = node.attribute("value_floats"))
    return list_constant(value->floats(), TensorProto::FLOAT, false);
  if (const auto* value = node.attribute("value_strings"))
    return {TensorProto::STRING, Shape{value->strings_size()}, nullptr};
  return {TensorProto::STRING, Shape{}, nullptr};  // value_string
}

std::optional<std::vector<int64_t>> integers_of(const Literal* literal) {
  if (!literal) return std::nullopt;
  std::vector<int64_t> integers;
  for (const long double number : literal->numbers) {
    if (!(number >= -0x1p63L && number < 0x1p63L) || std::trunc(number) != number)
      return std::nullopt;
    integers.push_back(static_cast<int64_t>(number));
  }
  return integers;
}

}  // namespace trinity::onnx_import
