#pragma once

#include <lua.hpp>

#include "base/stop.h"

// Ctrl-C. While a search runs, the first one asks it to stop and keep its best; otherwise, and from
// the second on, the script is stopped with an error; the third ends the process.

namespace trinity::lua {

/// Installs the SIGINT handler for scripts on `L`.
void watch_interrupts(lua_State* L);
/// Whether Ctrl-C was pressed since watch_interrupts (the host then exits with status 130).
bool was_interrupted();

/// Brackets a search that stops by itself when stop_flag() is set; end_search() takes the flag back
/// when it is the outermost one. May be nested.
void begin_search();
void end_search();

}  // namespace trinity::lua
