#include <algorithm>
#include <array>
#include <string_view>

#include "base/late.h"
#include "lua/bind/module.h"

// The part of trinity.core that needs LibTorch, opened at its first use.

namespace trinity::lua {
namespace {

/// Names that engine/lua/bind_torch adds to trinity.core (tests/lua/whole/start_spec.lua compares).
constexpr std::array<std::string_view, 9> kTorchNames{
    "agent",          "data_set",      "describe_torch", "dist",  "executor",
    "measure_copies", "measure_rates", "step_together",  "tensor"};

constexpr const char* kWaiting = "trinity.torch_waiting";

/// Adds it to the table at `index`, once, and calls what waits for it.
void open_torch(lua_State* L, int index) {
  static constexpr const char* kOpened = "trinity.torch";
  lua_getfield(L, LUA_REGISTRYINDEX, kOpened);
  const bool opened = lua_toboolean(L, -1);
  lua_pop(L, 1);
  if (opened) return;
  auto* open = late<void(lua_State*)>(kTorchPart, "trinity_open_torch");
  lua_pushvalue(L, index);
  open(L);
  lua_pop(L, 1);
  lua_pushboolean(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, kOpened);
  lua_getfield(L, LUA_REGISTRYINDEX, kWaiting);
  if (lua_isfunction(L, -1))
    lua_call(L, 0, 0);
  else
    lua_pop(L, 1);
}

/// __index of trinity.core: opens LibTorch for names that need it; nil for others.
int late_index(lua_State* L) {
  size_t length = 0;
  const char* name = lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, &length) : "";
  if (std::find(kTorchNames.begin(), kTorchNames.end(), std::string_view(name, length)) ==
      kTorchNames.end())
    return 0;
  open_torch(L, 1);
  lua_pushvalue(L, 2);
  lua_rawget(L, 1);
  return 1;
}

/// when_torch_opens(f): f() is called when LibTorch is opened; of several f the last
void late_when_torch_opens(lua_State* L) {
  function_arg(L, 1, "f");
  lua_settop(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, kWaiting);
}

constexpr luaL_Reg kLateFunctions[] = {
    // Whether something has asked for LibTorch, and whether the part on it was built.
    TRINITY_BIND("torch_is_open", [] { return is_open(kTorchPart); }),
    TRINITY_BIND("has_torch", [] { return is_built(kTorchPart); }),
    TRINITY_BIND("when_torch_opens", late_when_torch_opens)};

}  // namespace

void open_late(lua_State* L) {
  register_functions(L, kLateFunctions);
  lua_newtable(L);
  lua_pushcfunction(L, guard<late_index>);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
}

}  // namespace trinity::lua
