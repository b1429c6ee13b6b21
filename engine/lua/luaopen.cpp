// `require 'trinity.core'` from a stock luajit: the entry that its loader looks for.

#include "lua/bind/module.h"
#include "lua/runtime.h"

namespace trinity::lua {
namespace {

int open_module(lua_State* L) {
  lua_pushstring(L, find_home().c_str());
  lua_setfield(L, LUA_REGISTRYINDEX, kHomeKey);
  return open_core(L);
}

}  // namespace
}  // namespace trinity::lua

extern "C" int luaopen_trinity_core(lua_State* L) {
  return trinity::lua::guard<trinity::lua::open_module>(L);
}
