#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/stop.h"

namespace trinity {

/// Completion flags of a step's tasks, shared by workers; also records failure. Thread-safe.
class TaskCompletions {
 public:
  /// has_core: every worker has a core of its own.
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

  /// Returns when the task is done. Throws Interrupted if a worker fails first. Spins for a tenth
  /// of a millisecond, then yields for some milliseconds before it sleeps: waking up takes tens of
  /// microseconds (hundreds in a guest whose idle cores are given away), and other work on the core
  /// would evict its caches. If workers share cores it sleeps at once, because spinning would take
  /// time from workers that compute.
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

/// Decides whether a step can still be abandoned. A user's stop takes effect until the first update
/// of a step has run; afterwards the step completes, so weights always belong to whole steps.
/// Thread-safe.
class StepCommit {
 public:
  void begin() { state_.store(kOpen); }

  /// Throws Interrupted if the user has stopped, unless weights have changed.
  void poll() {
    if (stop_flag().load(std::memory_order_relaxed) && !reach(kGivenUp)) return;
    if (state_.load(std::memory_order_relaxed) == kGivenUp) throw Interrupted();
  }

  /// Marks weights as changing. Throws Interrupted if another worker has abandoned the step.
  void change() {
    if (state_.load(std::memory_order_relaxed) != kChanged && !reach(kChanged)) throw Interrupted();
  }

 private:
  enum : int { kOpen, kChanged, kGivenUp };

  bool reach(int state) {
    int open = kOpen;
    return state_.compare_exchange_strong(open, state) || open == state;
  }

  std::atomic<int> state_{kOpen};
};

}  // namespace trinity
