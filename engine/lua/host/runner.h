#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lua/host/host.h"
#include "lua/host/limits.h"

// Runs chunks for the host: time limit, Ctrl-C, os.exit and running out of memory all end in an
// Outcome. Nothing here raises Lua errors.

namespace trinity::lua {

/// The end of a chunk.
struct Outcome {
  /// 0, 1 after an error, 2 after a usage error, 130 or 143 when interrupted, or what os.exit was given.
  int status = 0;
  std::optional<ScriptError> error;
  /// The script called os.exit.
  bool exited = false;
};

/// Prints the error of `outcome`, if any, to standard error. Returns the status.
int report(const Outcome& outcome);

/// Runs chunks on one Lua state under the host's limits; every end of a chunk becomes an Outcome.
/// The state must outlive it. For the thread of the state.
class ScriptRunner {
 public:
  /// Pushes one function, or a message; returns a status of lua_load.
  using Load = std::function<int(lua_State*)>;
  /// Takes the results of a chunk, which begin at `first`; may raise Lua errors.
  using Use = std::function<void(lua_State*, int first)>;

  /// `hard_limit_s`: see HardTimeLimit; 0 where the process is not ours to end.
  ScriptRunner(lua_State* L, LuaMemory& memory, double time_limit_s, double hard_limit_s,
               bool handle_interrupts)
      : L_(L),
        memory_(memory),
        time_limit_s_(time_limit_s),
        hard_limit_s_(hard_limit_s),
        handle_interrupts_(handle_interrupts) {}

  lua_State* state() const { return L_; }
  /// Loads and calls a chunk with `arguments`, then calls `use`.
  Outcome run(const Load& load, const std::vector<std::string>& arguments = {},
              const Use& use = {});
  /// Calls body(L) in a protected call: what went wrong, if anything did.
  std::optional<ScriptError> protect(const std::function<void(lua_State*)>& body);

 private:
  Outcome finish(std::optional<ScriptError> error);

  lua_State* L_;
  LuaMemory& memory_;
  double time_limit_s_, hard_limit_s_;
  bool handle_interrupts_;
};

}  // namespace trinity::lua
