#include "base/dtype.h"

#include <array>

#include "base/error.h"

namespace trinity {
namespace {

struct DTypeInfo {
  const char* name;
  int64_t bytes;
};
constexpr std::array<DTypeInfo, 11> kDTypes = {{{"float32", 4},
                                               {"float16", 2},
                                               {"bfloat16", 2},
                                               {"float64", 8},
                                               {"int64", 8},
                                               {"int32", 4},
                                               {"int8", 1},
                                               {"bool", 1},
                                               {"uint8", 1},
                                               {"int16", 2},
                                               {"float8", 1}}};

}  // namespace

int64_t dtype_bytes(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].bytes; }
const char* dtype_name(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].name; }

DType parse_dtype(std::string_view name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    if (name == kDTypes[i].name) return static_cast<DType>(i);
    names.emplace_back(kDTypes[i].name);
  }
  throw ArgumentError(fmt::format("unknown dtype '{}'{} (known: {})", name, suggestion(name, names),
                                  fmt::join(names, ", ")));
}

}  // namespace trinity
