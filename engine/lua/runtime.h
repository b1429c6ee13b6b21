#pragma once

#include <lua.hpp>
#include <memory>
#include <string>
#include <vector>

namespace trinity::lua {

/// A Lua state with all libraries, `trinity.core` and the search path set, and the host's way of
/// running chunks: errors become one message with a short traceback of Lua frames.
class Runtime {
 public:
  /// `home` holds lib, models and scripts. Throws Error when Lua cannot start or `home` lacks
  /// lib/trinity.
  explicit Runtime(const std::string& home);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  lua_State* state() const { return L_; }
  const std::string& home() const { return home_; }

  /// Sets the global `arg`: script at 0, its arguments from 1, the host's words below 0.
  void set_arguments(const std::string& script, const std::vector<std::string>& arguments,
                     const std::vector<std::string>& host);

  /// Runs a file ("-" for standard input) with its folder first on the search path. Returns the
  /// process exit status: 0, 1 after an error (printed to standard error), 2 after a usage error
  /// (an error value with field `usage`), 130 when interrupted, or what the script gave os.exit.
  int run_file(const std::string& path, const std::vector<std::string>& arguments);

  /// Runs text; `name` appears in messages.
  int run_text(const std::string& text, const std::string& name);

 private:
  int run_loaded(int load_status, int arguments);
  void set_path(const std::string& folder);

  lua_State* L_;
  std::string home_;
};

/// The folder with lib, models and scripts: $TRINITY_HOME, else beside or above the executable,
/// else the source tree this program was built from. Throws Error naming the places looked at.
std::string find_home();

}  // namespace trinity::lua
