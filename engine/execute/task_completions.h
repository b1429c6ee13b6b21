#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/error.h"

namespace trinity {

/// What workers tell each other within a step: which tasks are done, and that one has failed.
class TaskCompletions {
 public:
  /// has_core: whether every worker has a core of its own.
  TaskCompletions(int32_t tasks, bool has_core)
      : done_(static_cast<size_t>(tasks)),
        looks_(has_core ? kLooks : 0),
        yields_(has_core ? kYields : 0) {}

  void clear() {
    for (auto& flag : done_) flag.store(kWaiting, std::memory_order_relaxed);
  }

  void finish(int32_t task) {
    auto& flag = done_[task];
    flag.store(kDone, std::memory_order_release);
    flag.notify_all();
  }

  /// Returns when the task is done. Throws Interrupted when a worker fails first. Looks often for
  /// a tenth of a millisecond, then for some milliseconds whenever nobody else wants the core,
  /// before it sleeps: waking up takes tens of microseconds, hundreds in a guest whose idle cores
  /// are given away, and what runs on the core meanwhile empties its caches. Where workers share a
  /// core it sleeps at once: who looks takes the core from who computes.
  void wait_for(int32_t task) const {
    const auto& flag = done_[task];
    int state = flag.load(std::memory_order_acquire);
    for (int look = 0; state == kWaiting && look < looks_ + yields_; ++look) {
      if (look < looks_)
        pause();
      else
        std::this_thread::yield();
      state = flag.load(std::memory_order_acquire);
    }
    while (state == kWaiting) {
      flag.wait(kWaiting, std::memory_order_acquire);
      state = flag.load(std::memory_order_acquire);
    }
    if (state == kFailed) throw Interrupted();
  }

  /// Ends all waiting.
  void fail() {
    for (auto& flag : done_) {
      int waiting = kWaiting;
      if (flag.compare_exchange_strong(waiting, kFailed)) flag.notify_all();
    }
  }

 private:
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  static constexpr int kWaiting = 0, kDone = 1, kFailed = 2;
  static constexpr int kLooks = 4000, kYields = 10000;
  std::vector<std::atomic<int>> done_;
  int looks_, yields_;
};

}  // namespace trinity
