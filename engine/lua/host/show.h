#pragma once

#include <lua.hpp>
#include <string>

namespace trinity::lua {

/// The value at `index` as the prompt prints it: strings as they are, tables with sorted keys and
/// at most 64 entries, short tables within them, functions and arrays as the library says
/// (lib/trinity/command/prompt.lua, where it is loaded), everything with a __tostring through that.
/// Unprotected: __tostring may raise a Lua error.
std::string show(lua_State* L, int index);

}  // namespace trinity::lua
