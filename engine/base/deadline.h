#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/stop.h"

namespace trinity {

/// A deadline has passed: thrown by Deadline::poll() alone, and caught by what has a result so far.
class TimeIsUp : public Error {
 public:
  TimeIsUp() : Error("the time is up") {}
};

/// When work that may take long ends with what it has. Loops poll it in place of the wish to stop
/// alone, which it looks at, too. Never, unless it is told.
class Deadline {
 public:
  Deadline() = default;
  /// From now on; below 0: at once.
  static Deadline in(double seconds) {
    Deadline deadline;
    const std::chrono::duration<double> left(std::clamp(seconds, 0.0, kNever_s));
    if (left.count() < kNever_s)
      deadline.end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(left);
    return deadline;
  }

  bool passed() const { return end_ != Clock::time_point::max() && Clock::now() >= end_; }
  /// Throws Interrupted when the user asked to stop, TimeIsUp when it has passed.
  void poll() const {
    poll_stop();
    if (passed()) throw TimeIsUp();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kNever_s = 1e9;
  Clock::time_point end_ = Clock::time_point::max();
};

/// Polls a deadline at every 10,000th step or so of a loop whose steps take nanoseconds.
class DeadlinePoll {
 public:
  explicit DeadlinePoll(const Deadline& deadline) : deadline_(deadline) {}
  void step(int64_t steps = 1) {
    if ((left_ -= steps) > 0) return;
    left_ = 10'000;
    deadline_.poll();
  }

 private:
  const Deadline& deadline_;
  int64_t left_ = 10'000;
};

}  // namespace trinity
