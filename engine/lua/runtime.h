#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

struct lua_State;

namespace trinity {

/// How a Runtime treats scripts.
struct RuntimeOptions {
  /// The folder with lib, models and scripts; empty: find_home().
  std::string home;
  /// Reading or assigning a global that was never declared is an error that names it.
  bool strict = true;
  /// For untrusted scripts: no io, os, ffi, debug, bytecode (engine/lua/host/libraries.h says what it
  /// does not bound).
  bool safe = false;
  /// Folders that safe scripts read and write, in addition to the folder of their run.
  std::vector<std::string> writable_folders;
  /// Bytes that Lua values may take together (not tensors, graphs or other engine memory, unless
  /// owns_process); 0: any.
  size_t memory_limit_bytes = 0;
  /// Seconds of wall-clock time that one run_file, run_text or execute may take; 0: any.
  double time_limit_s = 0;
  /// The process lives for this runtime alone: both limits then hold for all that it does, and end
  /// it where a script cannot be stopped (engine/lua/host/process_limits.h).
  bool owns_process = false;
  /// Takes over SIGINT, so that Ctrl-C stops scripts, simulations and training. A host program that
  /// has its own handler passes false and calls stop_flag() itself.
  bool handle_interrupts = true;
  /// Scripts of run_file keep the folder of their run, runs/NAME (lib/trinity/runs/init.lua).
  bool keep_runs = false;
};

/// A Lua state with all libraries, `trinity.core` and the search path set, and the host's way of
/// running chunks: errors become one message with the script's position. Use one from one thread;
/// several may live in one process. See tests/embed for a program that embeds it.
class Runtime {
 public:
  /// Throws Error when Lua cannot start or `home` lacks lib/trinity.
  explicit Runtime(const RuntimeOptions& options = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// The state, for Lua's own C interface (lua.hpp).
  lua_State* state() const;
  const std::string& home() const;

  /// Confines this thread, permanently, if the option `safe` is set and it is not confined yet
  /// (base/confine.h). `script`: the file that will run ("-" for standard input, "" for text),
  /// which keeps a run in the folder that its arguments name. Everything below that runs scripts
  /// begins with it. Returns 0, or the exit status after an error, which is printed. Throws Error
  /// if the kernel cannot confine it.
  int confine(const std::string& script);

  /// Sets the global `arg`: script at 0, its arguments from 1, the host's words below 0.
  void set_arguments(const std::string& script, const std::vector<std::string>& arguments,
                     const std::vector<std::string>& host = {});

  /// Runs a file ("-" for standard input) with its folder first on the search path. Returns the
  /// process exit status: 0, 1 after an error (printed to standard error), 2 after a usage error
  /// (an error value with field `usage`), 130 or 143 when interrupted, or what the script gave
  /// os.exit.
  int run_file(const std::string& path, const std::vector<std::string>& arguments = {});

  /// True if the last run ended with os.exit (which ends the script, never the host).
  bool exited() const;

  /// Runs text; `name` appears in messages ("=(command line)").
  int run_text(const std::string& text, const std::string& name);

  /// Requires a module and keeps it as a global of its own name, as -l does. Returns as run_file.
  int run_module(const std::string& name);

  /// Runs text for a host program: throws Error with the message that run_text would print, and
  /// after os.exit. Returns the chunk's results as text, each value as tostring() gives it.
  std::vector<std::string> execute(const std::string& text, const std::string& name = "=(host)");

  /// Passes an option of LuaJIT on: "off", "v", "dump=file" as -j does ("-O3" for -O). Returns as
  /// run_file.
  int configure_jit(const std::string& option);

  /// Reads, runs and prints until end of input: engine/lua/repl.h. Returns as run_file.
  /// `always_prompt` prints prompts also where standard input is no terminal.
  int interact(bool always_prompt = false);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The folder with lib, models and scripts: $TRINITY_HOME, else next to or above the executable,
/// else share/trinity of an installation, else the source tree this program was built from. Throws
/// Error naming the places looked at.
std::string find_home();

}  // namespace trinity
