#pragma once

#include <atomic>

#include "base/error.h"
#include "base/stop.h"

namespace trinity {

/// Whether the weights of a step may still be left as they were. A user stops a step as long as none
/// of its updates has run; then it runs to its end, so that weights are always those of whole steps.
class StepCommit {
 public:
  void begin() { state_.store(kOpen); }

  /// Throws Interrupted where the user stops, unless weights have changed.
  void poll() {
    if (stop_flag().load(std::memory_order_relaxed) && !reach(kGivenUp)) return;
    if (state_.load(std::memory_order_relaxed) == kGivenUp) throw Interrupted();
  }

  /// Weights change from now on. Throws Interrupted where another worker has given the step up.
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
