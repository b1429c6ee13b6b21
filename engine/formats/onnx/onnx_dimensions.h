#pragma once

#include <set>

#include "formats/onnx/onnx_model.h"

namespace trinity::onnx_import {

/// Gives sizes to dimensions that a file leaves open: those with a symbolic name, which may be an
/// expression of names such as "2*sequence" or "Min(64, s53)", and those without one.
class Dimensions {
 public:
  /// Throws ArgumentError for sizes below 1.
  explicit Dimensions(const OnnxOptions& options);

  /// The shape of a graph input: every dimension gets a size. Names that the options do not give
  /// stand for open_dimension from here on. Throws FileError as check_shape does.
  Shape input_shape(const onnx::TensorShapeProto& shape, int32_t element, const std::string& owner);

  /// What value_info says of a dimension: its size, that of its name, or of an expression of known
  /// names; nothing where it is open, -1 where it is negative.
  std::optional<int64_t> known(const onnx::TensorShapeProto::Dimension& dimension);
  /// A size that only the data decides.
  int64_t open();

  /// Throws ArgumentError, with the nearest name, for options that name a dimension which the file
  /// does not have.
  void check_options(const onnx::GraphProto& graph) const;
  /// One sentence on the dimensions that took open_dimension, or "".
  std::string report() const;

 private:
  int64_t input_size(const onnx::TensorShapeProto::Dimension& dimension);

  const OnnxOptions& options_;
  std::map<std::string, int64_t, std::less<>> sizes_;  // of names
  std::set<std::string> assumed_;                      // names that took open_dimension
  size_t unnamed_ = 0;
};

}  // namespace trinity::onnx_import
