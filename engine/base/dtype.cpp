#include "base/dtype.h"

#include "base/words.h"

namespace trinity {
namespace {

constexpr const char* kNames[] = {"float32", "float16", "bfloat16", "float64", "int64", "int32",
                                  "int8",    "bool",    "uint8",    "int16",   "float8"};
constexpr int64_t kBytes[] = {4, 2, 2, 8, 8, 4, 1, 1, 1, 2, 1};

}  // namespace

int64_t dtype_bytes(DType dtype) { return kBytes[static_cast<size_t>(dtype)]; }
const char* dtype_name(DType dtype) { return kNames[static_cast<size_t>(dtype)]; }
DType parse_dtype(std::string_view name) { return static_cast<DType>(parse_word("dtype", name, kNames)); }

}  // namespace trinity
