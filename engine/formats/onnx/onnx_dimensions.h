#pragma once

#include <set>

#include "formats/onnx/onnx_model.h"

namespace trinity::onnx_import {

/// Assigns sizes to open dimensions: symbolic names, which may be expressions such as "2*sequence"
/// or "Min(64, s53)", and unnamed ones. Not thread-safe.
class Dimensions {
 public:
  /// Throws ArgumentError for sizes below 1.
  explicit Dimensions(const OnnxOptions& options);

  /// The shape of a graph input with a size for every dimension. Names without an option take
  /// open_dimension from here on. Throws FileError as check_shape does.
  Shape input_shape(const onnx::TensorShapeProto& shape, int32_t element, const std::string& owner);

  /// Size of a dimension of value_info: a number, a known name, or an expression of known names;
  /// none if it is open, -1 if it is negative.
  std::optional<int64_t> known(const onnx::TensorShapeProto::Dimension& dimension);
  /// Size of a dimension that depends on data.
  int64_t open();

  /// Throws ArgumentError, with the nearest name, for options that name a dimension that the file
  /// does not have.
  void check_options(const onnx::GraphProto& graph) const;
  /// One sentence on the dimensions that took open_dimension, or "".
  std::string report() const;

 private:
  int64_t input_size(const onnx::TensorShapeProto::Dimension& dimension);

  const OnnxOptions& options_;
  std::map<std::string, int64_t, std::less<>> sizes_;  // by name
  std::set<std::string> assumed_;                      // names that took open_dimension
  size_t unnamed_ = 0;
};

}  // namespace trinity::onnx_import
