#include "lua/host/safe.h"

#include "base/door.h"
#include "lua/host/check.h"

namespace trinity::lua {

void make_safe(lua_State* L, const std::vector<std::string>& writable) {
  lua_getfield(L, LUA_REGISTRYINDEX, kHomeKey);
  const std::string home = lua_tostring(L, -1);
  lua_pop(L, 1);
  std::string failure;  // an exception would arrive without its text
  try {
    restrict_files(writable, {home + "/lib", home + "/models", home + "/scripts"});
  } catch (const std::exception& error) {
    failure = error.what();
  }
  if (!failure.empty()) {
    lua_pushlstring(L, failure.data(), failure.size());
    lua_error(L);
  }
  if (luaL_loadfilex(L, (home + "/lib/trinity/command/safe.lua").c_str(), "t") != 0) lua_error(L);
  lua_call(L, 0, 1);
  lua_replace(L, LUA_GLOBALSINDEX);
}

}  // namespace trinity::lua
