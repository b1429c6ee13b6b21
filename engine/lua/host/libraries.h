#pragma once

#include <lua.hpp>
#include <string>

// Lua's own libraries as scripts have them. All is unprotected: call it below lua_pcall.

namespace trinity::lua {

/// Opens Lua's libraries. `require` then looks in the script's folder, the library (`home` holds lib),
/// then $LUA_PATH and $LUA_CPATH with ';;' for the default: ./lua_modules, ~/.luarocks, /usr/local and
/// what LuaJIT was built with.
void open_libraries(lua_State* L, const std::string& home);

/// Puts the folder of a script first ("" and "." are the working directory).
void add_script_folder(lua_State* L, const std::string& folder);

/// Replaces os.execute and io.popen with ones that Ctrl-C and time limits end, together with the
/// command; C's system() ignores Ctrl-C, and pclose(), which closing or collecting a handle of
/// popen() calls, waits for the command whatever comes. os.execute returns what system() would: 0,
/// or how the command ended as waitpid() reports.
void install_execute(lua_State* L);

/// Coroutines that resume coroutines nest on the stack of C, where LuaJIT counts nothing: a few
/// thousand end the process. From now on coroutine.resume and the functions of coroutine.wrap raise
/// "stack overflow (coroutines within coroutines)" once half of the thread's stack is used.
void install_coroutine_guard(lua_State* L);

/// Makes `L` fit for untrusted scripts, after all libraries are open and before any script runs.
/// Their global table is an allow-list (lib/trinity/command/safe.lua): no io, os (but clock, time,
/// date, difftime, exit), ffi, jit, debug, package, bytecode, string.dump, getfenv, setfenv,
/// newproxy, loadfile, dofile; `require` finds only the library's public modules and gives copies
/// of their tables. The library itself keeps what it needs. parallel_map has no more workers than
/// trinity.threads(). System calls that the kernel denies: base/confine.h.
void make_safe(lua_State* L);

}  // namespace trinity::lua
