#pragma once

#include <lua.hpp>
#include <string>

namespace trinity::lua {

/// The value at `index` as the prompt prints it: strings as they are, tables with sorted
/// keys and at most 64 entries, short ones within them, functions and arrays as
/// lib/trinity/command/prompt.lua says where that is loaded, everything with a __tostring through that. Unprotected:
/// __tostring may raise a Lua error.
std::string show(lua_State* L, int index);

}  // namespace trinity::lua
