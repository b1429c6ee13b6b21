#pragma once

#include <lua.hpp>

#include "base/stop.h"

// Ctrl-C and requests to end. While a search runs, the first one asks it to stop and keep its best,
// with which the script has five seconds to finish; otherwise, and from the second Ctrl-C on, the
// script is stopped with an error; the third ends the process. SIGTERM, which Slurm and Kubernetes
// send, and SIGUSR1 by option do what a first Ctrl-C does; a second one ends the process at once,
// with status 143, but for one that comes within a second: launchers pass on what every process of
// a job got. Compiled Lua loops are stopped too: LuaJIT's profiler makes them look at their hooks.

namespace trinity::lua {

/// SIGTERM, and SIGUSR1 where `and_usr1`, are to be handled, too: for a process that lives for
/// scripts alone. Call before watch_interrupts.
void take_requests_to_end(bool and_usr1);
/// Installs the handler of signals for scripts on `L`, and what makes compiled loops stop. One state at
/// a time is watched, the latest.
void watch_interrupts(lua_State* L);
/// Ends the watch when `L` is the watched state. Call before lua_close.
void unwatch_interrupts(lua_State* L);
/// The handler of signals, for processes that are notified by another signal.
void (*interrupt_handler())(int);
/// True if Ctrl-C was pressed, or a request to end came, since watch_interrupts or forget_interrupt
/// (the host then exits with stop_status()).
bool was_interrupted();
/// Exit statuses of the host: after Ctrl-C, and after a request to end.
inline constexpr int kInterruptedStatus = 130, kEndedStatus = 143;
/// The status of the signal that came first.
int stop_status();
/// "Ctrl-C", "SIGTERM" or "SIGUSR1": what came first.
const char* stop_name();
/// True if Ctrl-C or a time limit has ended any script of this process.
bool was_stopped();
/// Makes the next script start afresh: the REPL after an interrupted line.
void forget_interrupt(lua_State* L);

/// The script has ended, and its files record how: from now on signals end the process at once with
/// its `status`.
void leave_on_interrupt(int status);

/// Brackets a search that stops by itself when stop_flag() is set; end_search() takes the flag back
/// when it is the outermost one, so that the script can go on with the best so far. A search that
/// begins after that is asked to stop at once. May be nested.
void begin_search();
void end_search();

/// Brackets consecutive searches whose caller continues with the results so far: Ctrl-C between two
/// of them, too, does not stop the script. Each of them takes the flag back at its end.
void begin_series();
void end_series();

/// From now on, until the watch ends, a first signal that comes after a search and while none runs is
/// taken as if it had come at that search's end: the script has its five seconds to keep and tell what
/// was found. Without this the script is stopped, and what it had not kept yet is lost.
void keep_what_is_found();
/// True if a first signal would be taken so now.
bool keeps_what_is_found();

/// Brackets a search that ranks of a job share, who have to agree on a stop: the first signal is
/// only noted, for ten seconds; then, or at the next, the script is stopped as usual. May be nested.
void begin_agreement();
void end_agreement();
/// The stop_status() of a signal that was noted, else 0.
int noted_status();
/// The ranks agreed to stop: as by a signal of that status.
void accept_stop(int status);

/// Brackets work that must end within the given seconds: then stop_flag() is set, as by Ctrl-C, so
/// that whatever polls it ends; end_limit() takes the flag back, unless a limit around this one has
/// passed or the user or a time limit of the script asked to stop, and says whether its own has
/// passed. May be nested. Without effect where the system has no thread for it.
void begin_limit(double seconds);
bool end_limit();
/// True if the user or a time limit of the script asked to stop: stop_flag() without such limits.
bool stop_requested();

}  // namespace trinity::lua
