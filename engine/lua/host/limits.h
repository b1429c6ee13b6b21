#pragma once

#include <cstddef>
#include <lua.hpp>
#include <memory>

// Limits of a script: memory of Lua values, wall-clock time. Tensors, graphs and other memory of
// the engine are not counted.

namespace trinity::lua {

/// An allocator for Lua that refuses to grow beyond a number of bytes, with a little reserve that
/// is opened for error handling and closed again. For the thread of its Lua state.
class LuaMemory {
 public:
  /// 0: no limit.
  explicit LuaMemory(size_t limit_bytes);
  ~LuaMemory();
  /// A new Lua state that allocates here; nullptr when even that does not fit. The state must be
  /// closed before this dies.
  lua_State* new_state();
  size_t limit_bytes() const;
  /// After "not enough memory": opens the reserve, runs a full collection, closes the reserve.
  void recover(lua_State* L);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// True if RLIMIT_AS or RLIMIT_DATA leave this process less than 4 GiB, which Lua values may fill.
bool is_memory_bounded();

/// Has all of `L` interpreted, for good: LuaJIT does not survive "not enough memory" in compiled
/// code that a pcall catches (its issues 906 and 1004). Unprotected: call it below lua_pcall.
void stop_compiling(lua_State* L);

/// While one of these lives, the script on `L` is stopped with the error "time limit of N s
/// reached" once `seconds` have passed, compiled loops and engine calls included; 0: never. Errors
/// cannot be swallowed with pcall. Created and destroyed by the thread that runs the script.
class TimeLimit {
 public:
  TimeLimit(lua_State* L, double seconds);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trinity::lua
