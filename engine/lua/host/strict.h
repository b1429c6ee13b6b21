#pragma once

#include <lua.hpp>

// Strict globals: reading or assigning a global that nobody declared is an error that names it.
// Held to it are the main script, text from -e, standard input and the prompt, and files below the
// script's folder; not packages (files below lua_modules, .luarocks or share/lua), our library, and
// text given to load(). rawset(_G, name, value) and trinity.global(name, value) declare. Code pays
// nothing for globals that exist.

namespace trinity::lua {

/// Makes the global table of `L` strict. Unprotected: call it below lua_pcall.
void make_strict(lua_State* L);

/// Adds `global` to the table on top of the stack.
void open_strict(lua_State* L);

}  // namespace trinity::lua
