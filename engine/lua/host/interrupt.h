#pragma once

#include <lua.hpp>

#include "base/stop.h"

// Ctrl-C. While a search runs, the first one asks it to stop and keep its best, with which the
// script has five seconds to finish; otherwise, and from the second on, the script is stopped with
// an error; the third ends the process. Compiled Lua loops are stopped too: LuaJIT's profiler makes
// them look at their hooks.

namespace trinity::lua {

/// Installs the SIGINT handler for scripts on `L`, and what makes compiled loops stop. One state at
/// a time is watched, the latest.
void watch_interrupts(lua_State* L);
/// Ends the watch when `L` is the watched state. Call before lua_close.
void unwatch_interrupts(lua_State* L);
/// What handles SIGINT, for processes that are told of it by another signal.
void (*interrupt_handler())(int);
/// Whether Ctrl-C was pressed since watch_interrupts or forget_interrupt (the host then exits with
/// status 130).
bool was_interrupted();
/// Whether Ctrl-C or a time limit has ended any script of this process.
bool was_stopped();
/// Makes the next script start afresh: the REPL after an interrupted line.
void forget_interrupt(lua_State* L);

/// The script has ended, and what it kept says how: from now on Ctrl-C ends the process at once
/// with its `status`.
void leave_on_interrupt(int status);

/// Brackets a search that stops by itself when stop_flag() is set; end_search() takes the flag back
/// when it is the outermost one, so that the script can go on with the best so far. A search that
/// begins after that is asked to stop at once. May be nested.
void begin_search();
void end_search();

/// Brackets searches one after the other whose caller goes on with the results so far: Ctrl-C
/// between two of them, too, does not stop the script. Each of them takes the flag back at its end.
void begin_series();
void end_series();

/// Brackets work that must end in so many seconds: then stop_flag() is set, as by Ctrl-C, so that
/// whatever polls it ends; end_limit() takes the flag back, unless a limit around this one has
/// passed or the user or a time limit of the script asked to stop, and says whether its own has
/// passed. May be nested. Without effect where the system has no thread for it.
void begin_limit(double seconds);
bool end_limit();
/// Whether the user or a time limit of the script asked to stop: stop_flag() without such limits.
bool stop_requested();

}  // namespace trinity::lua
