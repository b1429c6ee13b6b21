#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace trinity {

// The head of a strategy file, which strategy.cpp reads and strategy_text.cpp writes.

inline constexpr const char* kStrategyFormat = "trinity-strategy";
inline constexpr int kStrategyVersion = 3;  ///< earlier ones: strategy.h

inline std::string fingerprint_text(uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace trinity
