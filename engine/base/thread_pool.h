#pragma once

#include <functional>
#include <memory>

namespace trinity {

/// A fixed set of threads that share the items of one loop at a time. Which thread runs which item
/// is open; callers write result i to slot i, so that results never depend on it.
///
/// Any thread may begin a loop: a second one waits for its turn. A loop begun inside an item runs
/// in the thread of that item, all of it, under that thread's number: the others are busy.
/// Two pools must not begin loops of each other from inside: each would wait for the other's turn.
///
/// By hand on purpose, for fork's sake: no pool of a library works on in a forked child.
/// Survives fork(): threads do not cross it, so in a forked child every pool, inherited or new,
/// runs its loops in the calling thread. Fork while no loop runs.
class ThreadPool {
 public:
  /// `threads` counts the calling thread: 1 runs everything in the caller. 0 takes one per core.
  /// `start` runs on every worker before this returns (thread-local settings). Throws LimitError
  /// where the system gives fewer threads.
  explicit ThreadPool(int threads = 0, std::function<void()> start = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The number that body's `thread` stays below; a child keeps that of its parent's pool.
  int threads() const { return threads_; }

  /// Calls body(item, thread) for every item in [0, count), thread in [0, threads()). Returns when
  /// all have ended. The exception of the lowest failing item is thrown again, so that errors too
  /// are the same for any thread count.
  void parallel_for(int count, const std::function<void(int item, int thread)>& body);

  /// Calls body on every thread but the calling one, once (thread-local settings that came later
  /// than `start`). It must not throw; not from inside an item.
  void on_each(const std::function<void()>& body);

 private:
  struct Shared;
  int threads_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace trinity
