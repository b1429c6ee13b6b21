#pragma once

#include <cstdint>
#include <string>

// What the system says of processes (Linux's /proc) and terminals.

namespace trinity {

/// A file of the system's own (/proc), as far as it can be read: no script chooses which.
std::string system_text(const std::string& path);

/// When a process started, in clock ticks since the machine did; 0 where there is no such process.
/// A number of a process comes back some day; number and start together do not.
int64_t process_start_ticks(int64_t pid);

/// The width of the terminal at a file descriptor in characters; 0 for anything else.
int terminal_columns(int descriptor);

}  // namespace trinity
