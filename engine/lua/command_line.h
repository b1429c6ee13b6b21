#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "lua/runtime.h"

// The parsed arguments of the `trinity` command.

namespace trinity::lua {

/// Something that an option asks for, in the order given.
struct Action {
  enum class Kind { code, module, jit };
  Kind kind;
  /// Lua text (-e), the name of a module (-l), or what Runtime::configure_jit takes (-j, -O).
  std::string text;
};

struct CommandLine {
  RuntimeOptions options;
  std::vector<Action> actions;
  bool interactive = false, version = false, help = false;
  bool stops_on_usr1 = false;  ///< SIGUSR1 stops scripts as SIGTERM does
  /// -1: not given; 0: one per core.
  int threads = -1;
  /// File for folded stacks of where time went (lib/trinity/command/profiler.lua); empty: none.
  std::string profile;
  /// Index of the script among the words; the number of words if there is none.
  size_t script = 0;
};

/// The command line cannot be understood: exit status 2.
struct UsageError : Error {
  using Error::Error;
};

/// Reads words[1...] up to the script. Throws UsageError with a suggestion for unknown options.
CommandLine parse_command_line(const std::vector<std::string>& words);

/// A number of bytes: "64M", "1.5GiB". Suffixes K M G T are powers of 1000, Ki Mi Gi Ti of 1024.
/// Throws UsageError naming `option`.
size_t parse_bytes(const std::string& option, const std::string& text);

/// The text of --help before the names of the scripts.
extern const char* const kUsage;

}  // namespace trinity::lua
