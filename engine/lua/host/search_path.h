#pragma once

#include <lua.hpp>
#include <string>

// Where `require` looks: the script's folder, the library, then $LUA_PATH and $LUA_CPATH with ';;'
// for the default: ./lua_modules, ~/.luarocks, /usr/local and what LuaJIT was built with.

namespace trinity::lua {

/// Opens Lua's libraries with the search path for modules set; `home` holds lib. Unprotected: call
/// it below lua_pcall.
void open_libraries(lua_State* L, const std::string& home);

/// Puts the folder of a script first ("" and "." are the working directory).
void add_script_folder(lua_State* L, const std::string& folder);

}  // namespace trinity::lua
