#pragma once

#include <lua.hpp>

namespace trinity::lua {

/// Makes `L` fit for untrusted scripts, after all libraries are open and before any script runs.
/// Their global table is an allow-list (lib/trinity/command/safe.lua): no io, os (but clock, time,
/// date, difftime, exit), ffi, jit, debug, package, bytecode, string.dump, getfenv, setfenv,
/// newproxy, loadfile, dofile; `require` finds only the library's public modules and gives copies
/// of their tables. The library itself keeps what it needs. parallel_map has no more workers than
/// trinity.threads(). System calls that the kernel denies: base/confine.h.
///
/// Unprotected: call it below lua_pcall.
void make_safe(lua_State* L);

}  // namespace trinity::lua
