#pragma once

#include <cstddef>
#include <cstdint>

namespace trinity {

/// Converts an index or count to size_t, for multiplications and comparisons.
constexpr size_t at(int64_t i) { return static_cast<size_t>(i); }

}  // namespace trinity
