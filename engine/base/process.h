#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// Information about processes (Linux's /proc), terminals and the machine.

namespace trinity {

/// Contents of a system file (/proc), as far as readable. For fixed paths, never chosen by scripts.
std::string system_text(const std::string& path);

/// Start time of a process, in clock ticks since boot; 0 if there is no such process. A pid may be
/// reused; pid and start time together are unique.
int64_t process_start_ticks(int64_t pid);

/// Bytes, at most `max_bytes`, that the limits of this process leave: of private memory, or of
/// address space. Tries mappings, because a confined process (base/confine.h) cannot read /proc.
size_t mappable_bytes(size_t max_bytes, bool is_private);

/// Width of the terminal at a file descriptor in characters; 0 for anything else.
int terminal_columns(int descriptor);

/// The machine, for profiles and records.
struct Machine {
  std::string processor;     ///< as named by the system
  int32_t cores = 0;         ///< available to this process
  int64_t memory_bytes = 0;  ///< total
};
Machine describe_machine();

}  // namespace trinity
