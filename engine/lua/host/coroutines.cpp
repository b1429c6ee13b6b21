#include "lua/host/coroutines.h"

#include <pthread.h>

#include <cstddef>

namespace trinity::lua {
namespace {

/// The middle of this thread's stack, which grows downwards; nullptr where it is not known.
const char* middle_of_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return nullptr;
  void* lowest = nullptr;
  size_t size = 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  pthread_attr_destroy(&attributes);
  return known ? static_cast<const char*>(lowest) + size / 2 : nullptr;
}

/// Calls the function in upvalue 1 with all arguments, unless the stack is half used.
int call_guarded(lua_State* L) {
  thread_local const char* const middle = middle_of_stack();
  const char here = 0;
  if (&here < middle) return luaL_error(L, "stack overflow (coroutines within coroutines)");
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

/// coroutine.wrap: upvalue 1 is LuaJIT's.
int wrap(lua_State* L) {
  lua_settop(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, 1, 1);
  lua_pushcclosure(L, call_guarded, 1);
  return 1;
}

void replace(lua_State* L, const char* name, lua_CFunction function) {
  lua_getfield(L, -1, name);
  lua_pushcclosure(L, function, 1);
  lua_setfield(L, -2, name);
}

}  // namespace

void install_coroutine_guard(lua_State* L) {
  lua_getglobal(L, "coroutine");
  replace(L, "resume", call_guarded);
  replace(L, "wrap", wrap);
  lua_pop(L, 1);
}

}  // namespace trinity::lua
