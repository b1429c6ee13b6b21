#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace trinity {

/// Maximum pause or latency: 1e6 s.
inline constexpr int64_t kLongestNs = 1'000'000'000'000'000;

/// Cost classes and links of a cluster's devices in whole nanoseconds: they depend on no graph, and the problems of one
/// cluster share them. Immutable and thread-safe.
class DeviceTables {
 public:
  /// own_costs: the cost model may distinguish device types by name.
  DeviceTables(std::shared_ptr<const Cluster> cluster, bool own_costs);

  /// Devices of one type and speed share a cost class.
  int32_t cost_class(int32_t device) const { return cost_class_[device]; }
  /// [cost class]: its first device.
  const std::vector<int32_t>& first() const { return first_; }
  /// True if devices of a node slow each other down (see Contention).
  bool contends() const { return contends_; }

  struct Wire {
    int64_t latency_ns = 0;
    double bytes_per_ns = std::numeric_limits<double>::infinity();
  };
  Wire wire(int32_t from, int32_t to) const {
    if (wires_.empty()) return found_wire(from, to);
    return wires_[static_cast<size_t>(from) * devices_ + static_cast<size_t>(to)];
  }
  /// [from][to], or null if there are too many devices for a table.
  const Wire* wire_table() const { return wires_.empty() ? nullptr : wires_.data(); }
  int64_t latency_ns(int32_t from, int32_t to) const { return wire(from, to).latency_ns; }
  /// True if every pair of devices has the same latency and bandwidth.
  bool uniform() const { return uniform_; }
  /// True if a transfer of this many bytes takes 0 ns between some two devices.
  bool takes_no_time(int64_t bytes) const {
    return shortest_latency_ns_ == 0 && static_cast<double>(bytes) / most_bytes_per_ns_ < 0.5;
  }
  int64_t longest_latency_ns() const { return longest_latency_ns_; }
  double least_bytes_per_ns() const { return least_bytes_per_ns_; }
  /// Throws LimitError for a latency beyond the clock's range.
  void check_latencies() const;

 private:
  void find_classes(bool own_costs);
  void find_contention();
  void find_wires();
  /// Latency and rate of a route; 0 and infinity from a device to itself.
  Wire found_wire(int32_t from, int32_t to) const;

  std::shared_ptr<const Cluster> cluster_;
  size_t devices_;
  std::vector<int32_t> cost_class_;  // [device]
  std::vector<int32_t> first_;
  bool contends_ = false;
  /// [from][to]; empty for more than kTabledDevices devices, whose routes are looked up on demand.
  std::vector<Wire> wires_;
  bool uniform_ = false;
  int64_t longest_latency_ns_ = 0;
  int64_t shortest_latency_ns_ = std::numeric_limits<int64_t>::max();
  double least_bytes_per_ns_ = std::numeric_limits<double>::infinity();
  double most_bytes_per_ns_ = 0;
};

}  // namespace trinity
