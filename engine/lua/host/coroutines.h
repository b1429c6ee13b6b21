#pragma once

#include <lua.hpp>

namespace trinity::lua {

/// Coroutines that resume coroutines nest on the stack of C, where LuaJIT counts nothing: a few
/// thousand end the process. From now on coroutine.resume and the functions of coroutine.wrap raise
/// "stack overflow (coroutines within coroutines)" once half of the thread's stack is used.
void install_coroutine_guard(lua_State* L);

}  // namespace trinity::lua
