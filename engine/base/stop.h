#pragma once

#include <atomic>

#include "base/error.h"

namespace trinity {

/// The process-wide wish to stop. Set by the signal handler, polled by every long loop.
inline std::atomic<bool>& stop_flag() {
  static std::atomic<bool> flag{false};
  return flag;
}

/// Throws Interrupted when the user asked to stop.
inline void poll_stop() {
  if (stop_flag().load(std::memory_order_relaxed)) throw Interrupted();
}

}  // namespace trinity
