#pragma once

#include <lua.hpp>

namespace trinity::lua {

/// Each adds its functions to the table on top of the stack and registers its types.
void open_tensor(lua_State* L);
void open_distribute(lua_State* L);
void open_execute(lua_State* L);
void open_measure(lua_State* L);

}  // namespace trinity::lua
