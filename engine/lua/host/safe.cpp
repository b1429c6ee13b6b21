#include "lua/host/safe.h"

#include "base/file.h"
#include "lua/host/check.h"

namespace trinity::lua {
namespace {

int check_reading(lua_State* L) {
  check_readable(string_arg(L, 1, "path"));
  return 0;
}

int check_writing(lua_State* L) {
  check_writable(string_arg(L, 1, "path"));
  return 0;
}

constexpr luaL_Reg kChecks[] = {
    {"open", guard<check_reading>}, {"write", guard<check_writing>}, {nullptr, nullptr}};

void push_check(lua_State* L, const luaL_Reg& check) {
  lua_pushstring(L, check.name);
  lua_pushboolean(L, 0);
  lua_pushcclosure(L, check.func, 2);
}

}  // namespace

void make_safe(lua_State* L, const std::vector<std::string>& allowed) {
  lua_getfield(L, LUA_REGISTRYINDEX, kHomeKey);
  const std::string home = lua_tostring(L, -1);
  lua_pop(L, 1);
  std::string failure;  // an exception would arrive without its text
  try {
    restrict_files(allowed, {home + "/lib", home + "/models", home + "/scripts"});
  } catch (const std::exception& error) {
    failure = error.what();
  }
  if (!failure.empty()) {
    lua_pushlstring(L, failure.data(), failure.size());
    lua_error(L);
  }
  if (luaL_loadfilex(L, (home + "/lib/trinity/command/safe.lua").c_str(), "t") != 0) lua_error(L);
  push_check(L, kChecks[0]);
  push_check(L, kChecks[1]);
  lua_call(L, 2, 1);
  lua_replace(L, LUA_GLOBALSINDEX);
}

}  // namespace trinity::lua
