#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace trinity {

/// A fixed set of threads that share the items of one loop at a time. Which thread runs which item
/// is open; callers write result i to slot i, so that results never depend on it.
class ThreadPool {
 public:
  /// `threads` counts the calling thread: 1 runs everything in the caller. 0 takes one per core.
  /// `start` runs on every worker before this returns (thread-local settings).
  explicit ThreadPool(int threads = 0, std::function<void()> start = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(item, thread) for every item in [0, count), thread in [0, threads()). Returns when
  /// all have ended. The exception of the lowest failing item is thrown again, so that errors too
  /// are the same for any thread count.
  void parallel_for(int count, const std::function<void(int item, int thread)>& body);

 private:
  void work(int thread);
  void drain(int thread);
  void finish();

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(int, int)>* body_ = nullptr;
  int count_ = 0, next_ = 0, running_ = 0, failed_item_ = -1;
  uint64_t round_ = 0;
  std::exception_ptr failure_;
  bool closing_ = false;
};

}  // namespace trinity
