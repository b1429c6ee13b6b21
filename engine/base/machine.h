#pragma once

#include <cstdint>
#include <string>

namespace trinity {

/// The machine that this runs on, as profiles and records say it.
struct Machine {
  std::string processor;     ///< as the system names it
  int32_t cores = 0;         ///< that this process may use
  int64_t memory_bytes = 0;  ///< of all
};
Machine describe_machine();

}  // namespace trinity
