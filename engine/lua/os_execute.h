#pragma once

#include <lua.hpp>

namespace trinity::lua {

/// Replaces os.execute with one that Ctrl-C and time limits end, together with the command; C's
/// system() ignores Ctrl-C. It returns what system() would: 0, or how the command ended as
/// waitpid() tells it. Unprotected: call it below lua_pcall.
void install_execute(lua_State* L);

}  // namespace trinity::lua
