#include "lua/host/safe.h"

#include "lua/host/check.h"

namespace trinity::lua {

void make_safe(lua_State* L) {
  lua_getfield(L, LUA_REGISTRYINDEX, kHomeKey);
  const std::string home = lua_tostring(L, -1);
  lua_pop(L, 1);
  if (luaL_loadfilex(L, (home + "/lib/trinity/command/safe.lua").c_str(), "t") != 0) lua_error(L);
  lua_call(L, 0, 1);
  lua_replace(L, LUA_GLOBALSINDEX);
}

}  // namespace trinity::lua
