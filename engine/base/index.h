#pragma once

#include <cstddef>
#include <cstdint>

namespace trinity {

/// A number of operators, devices or the like as a size: where it is multiplied or compared.
constexpr size_t at(int64_t i) { return static_cast<size_t>(i); }

}  // namespace trinity
