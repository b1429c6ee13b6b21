#pragma once

#include <lua.hpp>

namespace trinity::lua {

/// Makes `L` fit for scripts of strangers, after all libraries are open and before any script runs.
/// Their global table is an allow-list (lib/trinity/safe.lua): no io, os (but clock, time, date,
/// difftime, exit), ffi, jit, debug, package, bytecode, string.dump, getfenv, setfenv, newproxy,
/// loadfile, dofile; `require` finds only the library's public modules and gives copies of their
/// tables. The library itself keeps what it needs. Files are opened only through trinity's
/// functions: reading below the working directory and of the library, writing below the working
/// directory but no hidden files (base/file.h; holds for the calling thread from now on).
///
/// Not bounded: time and memory (limits.h bounds both, but not engine memory, a hostile pattern in
/// string.find, or what one call of the engine allocates), processor and disk use, what the script
/// prints, and overwriting of files below the working directory. Bugs of LuaJIT stay possible: who
/// needs certainty runs the process in a container, or as a user without rights.
///
/// Unprotected: call it below lua_pcall.
void make_safe(lua_State* L);

}  // namespace trinity::lua
