#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/stop.h"

namespace trinity {

/// A deadline has passed. Thrown only by Deadline::poll(), and caught by callers that have a
/// partial result. Immutable.
class TimeIsUp : public Error {
 public:
  TimeIsUp() : Error("the time is up") {}
};

/// Time limit of work that can return a partial result. Loops call poll() instead of poll_stop(),
/// which it includes. Default: no limit. Thread-safe.
class Deadline {
 public:
  Deadline() = default;
  /// That many seconds from now; negative: already passed.
  static Deadline in(double seconds) {
    Deadline deadline;
    const std::chrono::duration<double> left(std::clamp(seconds, 0.0, kNever_s));
    if (left.count() < kNever_s)
      deadline.end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(left);
    return deadline;
  }

  bool passed() const { return end_ != Clock::time_point::max() && Clock::now() >= end_; }
  /// Throws Interrupted if the user asked to stop, TimeIsUp if the deadline has passed.
  void poll() const {
    poll_stop();
    if (passed()) throw TimeIsUp();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kNever_s = 1e9;
  Clock::time_point end_ = Clock::time_point::max();
};

/// Polls a deadline about every 10,000th step of a loop whose steps take nanoseconds.
/// One per thread.
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
