#pragma once

#include <lua.hpp>
#include <string>
#include <vector>

namespace trinity::lua {

/// Makes `L` fit for scripts of strangers, after all libraries are open and before any script runs.
/// Their global table is an allow-list (lib/trinity/command/safe.lua): no io, os (but clock, time,
/// date, difftime, exit), ffi, jit, debug, package, bytecode, string.dump, getfenv, setfenv,
/// newproxy, loadfile, dofile; `require` finds only the library's public modules and gives copies
/// of their tables. The library itself keeps what it needs. Files are opened only through trinity's
/// functions: reading below the working directory, writing below the folder of the script's run, both
/// below the folders `writable`, but no hidden files, and reading of the library (base/door.h; holds
/// for the calling thread from now on). parallel_map has no more workers than trinity.threads().
///
/// Not bounded: time and memory (limits.h and process_limits.h bound both), disk use, what the
/// script prints, and overwriting of files below those folders. Bugs of LuaJIT stay possible: who
/// needs certainty runs the process in a container, or as a user without rights.
///
/// Unprotected: call it below lua_pcall.
void make_safe(lua_State* L, const std::vector<std::string>& writable = {});

}  // namespace trinity::lua
