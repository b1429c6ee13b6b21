#pragma once

#include <lua.hpp>

namespace trinity::lua {

/// Replaces os.execute and io.popen with ones that Ctrl-C and time limits end, together with the
/// command; C's system() ignores Ctrl-C, and pclose(), which closing or collecting a handle of
/// popen() calls, waits for the command whatever comes. os.execute returns what system() would: 0,
/// or how the command ended as waitpid() reports. Unprotected: call it below lua_pcall.
void install_execute(lua_State* L);

}  // namespace trinity::lua
