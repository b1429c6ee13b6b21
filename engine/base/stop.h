#pragma once

#include <atomic>
#include <cstdint>

#include "base/error.h"

namespace trinity {

/// Process-wide stop request. Set by the signal handler, polled by every long loop.
inline std::atomic<bool>& stop_flag() {
  static std::atomic<bool> flag{false};
  return flag;
}

/// Throws Interrupted if the user asked to stop.
inline void poll_stop() {
  if (stop_flag().load(std::memory_order_relaxed)) throw Interrupted();
}

/// Polls every 1024th step of a loop whose steps take nanoseconds. One per thread.
class StopPoll {
 public:
  void step() {
    if ((++steps_ & 1023) == 0) poll_stop();
  }

 private:
  uint32_t steps_ = 0;
};

}  // namespace trinity
