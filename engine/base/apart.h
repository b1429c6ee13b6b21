#pragma once

#include <cstddef>
#include <functional>

// One call of a library in a forked copy of this process, for libraries that meddle with what is
// the whole process's: METIS takes SIGTERM and SIGABRT over while it works, for every thread, and
// leaves its work by longjmp when one comes. A stop asked for at that moment would be an error of
// the library, and in another thread a crash.

namespace trinity {

/// Runs `work` in a copy of this process and waits for it. Whatever `work` writes to `memory`
/// (`bytes` of it, as they are here at its begin) is there afterwards; nothing else comes back.
/// `work` must neither throw nor start threads. Signals that terminals, launchers and schedulers
/// send to groups of processes do not reach the copy, and it dies with this thread. Any thread may
/// call it; a fork costs a millisecond or so, more where much memory is in use.
///
/// Throws Error where the system gives no process or memory, or where the copy ended by a signal or
/// by itself: "WHAT: ended with signal 11 (Segmentation fault)".
void call_apart(const char* what, void* memory, size_t bytes, const std::function<void()>& work);

}  // namespace trinity
