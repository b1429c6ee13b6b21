#pragma once

#include <cstddef>
#include <functional>

// Runs one call of a library in a forked process, for libraries that change process-wide state.
// METIS takes over SIGTERM and SIGABRT of all threads while it works and leaves its work by longjmp
// when one arrives: a stop request would be an error of the library, and in another thread a crash.

namespace trinity {

/// Runs `work` in a forked copy of this process and waits for it. Whatever `work` writes to
/// `memory` (`bytes` bytes, which start with their present contents) is there afterwards; nothing
/// else returns. `work` must neither throw nor start threads. Signals to process groups (terminals,
/// launchers, schedulers) do not reach the copy, and it dies with this thread. Thread-safe; a fork
/// takes about a millisecond, longer if much memory is in use.
///
/// Throws Error if the system refuses a process or memory, or if the copy was killed by a signal or
/// ended by itself: "WHAT: ended with signal 11 (Segmentation fault)".
void call_apart(const char* what, void* memory, size_t bytes, const std::function<void()>& work);

}  // namespace trinity
