#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "simulator/problem.h"

namespace trinity {

/// Slowdown of devices that share a machine's memory (DeviceType::contention; rule: simulator.h).
/// All arithmetic is in integers, so results depend on the plan alone: remaining work in 2^-20 ns
/// of a device running alone, rates in 2^-20 of that device's. Not thread-safe.
class Contention {
 public:
  explicit Contention(const Problem& problem)
      : problem_(problem),
        group_of_(static_cast<size_t>(problem.devices()), -1),
        work_(static_cast<size_t>(problem.devices())) {
    if (!problem.tables().contends()) return;
    const auto& cluster = problem.cluster();
    std::map<std::pair<std::string, int32_t>, std::vector<int32_t>> alike;
    for (int32_t d = 0; d < problem.devices(); ++d)
      if (!cluster.device(d).node.empty() && has_contention(cluster.type_of(d)))
        alike[{cluster.device(d).node, cluster.device(d).type}].push_back(d);
    for (auto& [key, devices] : alike) {
      if (devices.size() < 2) continue;
      for (const int32_t d : devices) group_of_[d] = static_cast<int32_t>(groups_.size());
      auto& slowing = slowing_.emplace_back();
      for (const auto& op : problem.graph().operators())
        slowing.push_back(std::llround((contention(op, cluster.type_of(devices[0])) - 1) *
                                       static_cast<double>(kOne)));
      groups_.push_back(std::move(devices));
    }
  }

  /// True if the device contends with any other.
  bool applies(int32_t device) const { return group_of_[device] >= 0; }

  void clear() { std::fill(work_.begin(), work_.end(), Work{}); }

  /// A device starts `op`: `cost_ns` > 0 of work that begins at `begin_ns` >= `now_ns`.
  void start(int32_t device, int32_t op, int64_t now_ns, int64_t begin_ns, int64_t cost_ns) {
    const int32_t group = group_of_[device];
    const int64_t slowing = slowing_[group][op];
    work_[device] = {true, cost_ns << kBits, 0, begin_ns, -1, slowing};
    repace(group, now_ns);
  }

  /// The device's operator has ended.
  void stop(int32_t device, int64_t now_ns) {
    work_[device].computes = false;
    repace(group_of_[device], now_ns);
  }

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

  /// Updates remaining work and sets the current rate of all devices of a group.
  void repace(int32_t group, int64_t now_ns) {
    const auto& devices = groups_[group];
    moved_.clear();
    int64_t others = -1;
    for (const int32_t d : devices) others += work_[d].computes ? 1 : 0;
    const auto most = static_cast<int64_t>(devices.size()) - 1;
    for (const int32_t d : devices) {
      Work& work = work_[d];
      if (!work.computes) continue;
      if (now_ns > work.from_ns) {
        work.left = std::max<int64_t>(0, work.left - work.rate * (now_ns - work.from_ns));
        work.from_ns = now_ns;
      }
      const int64_t slowed = kOne + work.slowing * others / most;
      work.rate = std::max<int64_t>(1, (kOne * kOne + slowed / 2) / slowed);
      const int64_t end = work.from_ns + (work.left + work.rate - 1) / work.rate;
      if (end == work.end_ns) continue;
      work.end_ns = end;
      moved_.push_back(d);
    }
  }

  static constexpr int kBits = 20;
  static constexpr int64_t kOne = int64_t{1} << kBits;

  const Problem& problem_;
  std::vector<int32_t> group_of_;              // per device; -1: no contention
  std::vector<std::vector<int32_t>> groups_;   // devices
  std::vector<std::vector<int64_t>> slowing_;  // per group and operator
  std::vector<Work> work_;                     // per device
  std::vector<int32_t> moved_;
};

}  // namespace trinity
