#pragma once

#include <atomic>

#include "base/error.h"
#include "base/stop.h"

namespace trinity {

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
