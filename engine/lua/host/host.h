#pragma once

#include <lua.hpp>
#include <optional>
#include <set>
#include <string>

// The host's data of one Lua state, and its way of calling a script: every failure becomes one
// message, with a traceback of the script's own frames.

namespace trinity::lua {

/// A failure of a script, as text for a person.
struct ScriptError {
  /// One message, with the script's position where there is one; it may have several lines.
  std::string message;
  /// Lines of the script's frames, innermost first; empty when it has at most one.
  std::string traceback;
  /// An error value with a true field `usage`: the command line was wrong.
  bool usage = false;
};

/// Belongs to a Runtime; the state's registry points to it.
struct HostState {
  /// The folder with lib, models and scripts.
  std::string home;
  /// The running script as its chunk is named, and its folder with a '/' at the end; both empty for
  /// text.
  std::string script, script_folder;
  /// Whether it is a command of the program: lines of its own are in no message.
  bool is_command = false;
  /// Whether a prompt reads the chunks named "=stdin": these may make new globals.
  bool interactive = false;
  /// Whether scripts keep the folder of their run (lib/trinity/runs/init.lua).
  bool keeps_runs = false;
  /// Globals that may be read while they are nil.
  std::set<std::string> declared;
  /// Names that ended with their line at the prompt (`local x = 1`).
  std::set<std::string> ended_locals;
  /// The argument of os.exit, until take_exit().
  std::optional<int> exit_status;
  /// The error that the message handler found, until call_script() returns it.
  ScriptError error;
  /// Whether the state is being closed: what finalisers raise then is nobody's business.
  bool closing = false;
};

/// Ties `host`, which must outlive the state, to `L`.
void set_host_state(lua_State* L, HostState* host);
/// The host's side of `L`; nullptr in a state of another host program.
HostState* host_state(lua_State* L);

/// Calls the function below `arguments` values, as lua_call does. On failure pops all of them and
/// returns the error. Leave out `results` for LUA_MULTRET. May raise a Lua error only when memory
/// ends before the call.
std::optional<ScriptError> call_script(lua_State* L, int arguments, int results = LUA_MULTRET);

/// Calls what trinity.core.at_end was given, if anything, with the exit status of the script that
/// ended and its error's message. Returns the status to exit with. May raise a Lua error.
int call_end(lua_State* L, int status, const std::string& message);

/// LuaJIT of Debian 12 raises the error of a finaliser wherever the collector runs; LuaJIT of
/// Debian 13 continues and only reports it. Has it reported on standard error, with the script's
/// position.
void report_finalisers(lua_State* L);

/// Gives `L` an os.exit that ends the script instead of the process, past any pcall. The status is
/// then in HostState::exit_status.
void install_exit(lua_State* L);
/// Takes the status of an earlier os.exit, and lets the state run again.
std::optional<int> take_exit(lua_State* L);

}  // namespace trinity::lua
