#pragma once

#include <lua.hpp>

#include "lua/host/trinity_ffi.h"

// Which cdata are our structs. The first word of a struct says what it is, but a script can write a
// number literal with the same bits (0x74723101ULL is a cdata, too), so the type number that LuaJIT
// gave the struct is compared as well.

namespace trinity::lua {

/// trinity.core.know_structs(types): `types` maps the names of Magic to { sample, type number }.
int know_structs(lua_State* L);

/// Whether `payload`, the bytes of some cdata, is the struct of that kind in this state.
bool is_struct(lua_State* L, const void* payload, Magic magic);

/// Pops a value and keeps it as long as the cdata at `index` lives.
void keep_with(lua_State* L, int index);

}  // namespace trinity::lua
