#include "base/units.h"

#include <fmt/format.h>

namespace trinity {

std::string format_bytes(int64_t bytes) {
  constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  while ((value >= 999.5 || value <= -999.5) && unit < 5) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", value, units[unit]);
}

}  // namespace trinity
