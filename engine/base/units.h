#pragma once

#include <cstdint>
#include <string>

namespace trinity {

/// "11.3 GB", "320 B": powers of 1000, three significant digits.
std::string format_bytes(int64_t bytes);

}  // namespace trinity
