#pragma once

#include <cstdint>
#include <string_view>

namespace trinity {

/// Element type of a tensor.
enum class DType : uint8_t {
  float32,
  float16,
  bfloat16,
  float64,
  int64,
  int32,
  int8,
  boolean,
  uint8,
  int16,
  float8  ///< for matmul operands only (E4M3 or E5M2); sums and persistent values have another type
};

/// Bytes of one element.
int64_t dtype_bytes(DType dtype);
const char* dtype_name(DType dtype);
/// The type called `name` ("float32", ...). Throws ArgumentError that names the accepted values.
DType parse_dtype(std::string_view name);

}  // namespace trinity
