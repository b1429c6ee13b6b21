#pragma once

#include <cstdint>
#include <string>

// What the system says of processes (Linux's /proc), terminals and the machine.

namespace trinity {

/// A file of the system's own (/proc), as far as it can be read: no script chooses which.
std::string system_text(const std::string& path);

/// When a process started, in clock ticks since the machine did; 0 where there is no such process.
/// A number of a process comes back some day; number and start together do not.
int64_t process_start_ticks(int64_t pid);

/// The width of the terminal at a file descriptor in characters; 0 for anything else.
int terminal_columns(int descriptor);

/// The machine that this runs on, as profiles and records say it.
struct Machine {
  std::string processor;     ///< as the system names it
  int32_t cores = 0;         ///< that this process may use
  int64_t memory_bytes = 0;  ///< of all
};
Machine describe_machine();

}  // namespace trinity
