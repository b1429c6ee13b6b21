#pragma once

#include <cstddef>

// Limits that the kernel enforces on the whole process, whatever its script or a library does:
// the second fence after limits.h, whose checks need an interpreter that still runs. Only for
// programs whose one business is the script; a host program that embeds a Runtime has neither.

namespace trinity::lua {

/// While one of these lives, the process ends with exit status 1 and one line on standard error
/// once `limit_s` + kGrace_s have passed: also inside a hostile pattern of string.find, a finaliser
/// that loops, or one long call of LibTorch. A timer of the kernel and a signal handler; nothing of
/// Lua takes part. `limit_s` 0: never. One at a time per process. Not thread-safe.
class HardTimeLimit {
 public:
  /// Seconds that a script has to end by itself after its time limit.
  static constexpr double kGrace_s = 2;

  explicit HardTimeLimit(double limit_s);
  ~HardTimeLimit();
  HardTimeLimit(const HardTimeLimit&) = delete;
  HardTimeLimit& operator=(const HardTimeLimit&) = delete;

 private:
  bool armed_ = false;
  void* timer_ = nullptr;
};

/// From now on the kernel refuses the process private memory (RLIMIT_DATA: heap, anonymous maps,
/// stacks of threads) beyond what it has now, plus 1.5 * `limit_bytes` (allocators take more than
/// they are asked for), plus stacks for the pools of threads. Tensors, graphs and simulators count.
/// An allocation that is refused is an error of the script like any other, "not enough memory";
/// where none can be raised the process ends with that line and exit status 1, also with 0: no limit.
/// Worker processes inherit it, each with as much of its own.
void limit_process_memory(size_t limit_bytes);

}  // namespace trinity::lua
