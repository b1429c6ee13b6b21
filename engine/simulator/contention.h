#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "simulator/problem.h"

namespace trinity {

/// How fast devices compute that share the memory of a machine (DeviceType::contention; the rule:
/// simulator.h). All numbers are whole, so that results depend on nothing but the plan: work left
/// is counted in 2^-20 ns of a device alone, a rate in 2^-20 of that device's.
class Contention {
 public:
  explicit Contention(const Problem& problem);

  /// Whether a device contends with any other.
  bool applies(int32_t device) const { return group_of_[device] >= 0; }

  void clear();
  /// A device takes `op`, whose `cost_ns` > 0 begin at `begin_ns`, which is `now_ns` or later.
  void start(int32_t device, int32_t op, int64_t now_ns, int64_t begin_ns, int64_t cost_ns);
  /// The device's operator has ended.
  void stop(int32_t device, int64_t now_ns);
  /// When the device's operator will end if nothing starts or ends before.
  int64_t end_ns(int32_t device) const { return work_[device].end_ns; }
  /// The devices whose end start() or stop() has just changed.
  std::span<const int32_t> moved() const { return moved_; }

 private:
  struct Work {
    bool computes = false;
    int64_t left = 0, rate = 0;
    int64_t from_ns = 0;  // up to when what is left is known
    int64_t end_ns = 0;
    int64_t slowing = 0;  // contention - 1 of the operator, in 2^-20
  };

  void repace(int32_t group, int64_t now_ns);

  const Problem& problem_;
  std::vector<int32_t> group_of_;              // per device, -1: contends with none
  std::vector<std::vector<int32_t>> groups_;   // devices
  std::vector<std::vector<int64_t>> slowing_;  // per group and operator
  std::vector<Work> work_;                     // per device
  std::vector<int32_t> moved_;
};

}  // namespace trinity
