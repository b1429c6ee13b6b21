#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

// Commands that scripts start (os_execute.h, os_pipe.h): begun with the signals of a fresh program,
// and ended with the script when Ctrl-C or a time limit stops it.

namespace trinity::lua {

/// Where a command reads or writes in place of its standard input (0) or output (1).
struct Redirection {
  int descriptor;  // of this process
  int standard;
};

/// Starts `/bin/sh -c -- command`. Throws Error where the system has no room for it.
pid_t start_shell(const std::string& command, std::optional<Redirection> redirection = {});

/// Waits for a command's end: how it ended, as waitpid() tells it. When the script must stop, the
/// command is asked to end by SIGINT, after 0.1 s by SIGKILL; nullopt then. Safe in destructors:
/// throws nothing. A child that somebody else has waited for has ended with 0.
std::optional<int> await_child(pid_t child) noexcept;

}  // namespace trinity::lua
