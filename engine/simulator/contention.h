#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/problem.h"

namespace trinity {

/// Slowdown of devices that share a machine's memory (DeviceType::contention; rule: simulator.h).
/// All arithmetic is in integers, so results depend on the plan alone: remaining work in 2^-20 ns
/// of a device running alone, rates in 2^-20 of that device's. Not thread-safe.
class Contention {
 public:
  explicit Contention(const Problem& problem);

  /// True if the device contends with any other.
  bool applies(int32_t device) const { return group_of_[device] >= 0; }

  void clear();
  /// A device starts `op`: `cost_ns` > 0 of work that begins at `begin_ns` >= `now_ns`.
  void start(int32_t device, int32_t op, int64_t now_ns, int64_t begin_ns, int64_t cost_ns);
  /// The device's operator has ended.
  void stop(int32_t device, int64_t now_ns);
  /// When the device's operator will end if nothing else starts or ends before.
  int64_t end_ns(int32_t device) const { return work_[device].end_ns; }
  /// Devices whose end the last start() or stop() changed.
  std::span<const int32_t> moved() const { return moved_; }

 private:
  struct Work {
    bool computes = false;
    int64_t left = 0, rate = 0;
    int64_t from_ns = 0;  // `left` is valid at this time
    int64_t end_ns = 0;
    int64_t slowing = 0;  // contention - 1 of the operator, in 2^-20
  };

  void repace(int32_t group, int64_t now_ns);

  const Problem& problem_;
  std::vector<int32_t> group_of_;              // per device; -1: no contention
  std::vector<std::vector<int32_t>> groups_;   // devices
  std::vector<std::vector<int64_t>> slowing_;  // per group and operator
  std::vector<Work> work_;                     // per device
  std::vector<int32_t> moved_;
};

}  // namespace trinity
