#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace trinity {

/// A cluster's devices in equivalence classes of which one device each is simulated
/// (simulator/symmetry.h finds them). A plan with a `Quotient` numbers devices by `devices`, its
/// graph has only their operators, and collectives have only their members.
struct Quotient {
  std::vector<int32_t> devices;  ///< [simulated device]: its number in the cluster
  /// Per device of the cluster: index into `devices` of the device that is simulated on its behalf;
  /// -1 if it is idle.
  std::vector<int32_t> of;
  std::vector<int32_t> copies;  ///< [simulated device]: number of devices that it represents
  /// Per collective of the graph its group of devices, an index into `members`.
  std::vector<int32_t> group;
  /// Per group of equal collectives all devices of one of them, ascending, in the cluster's
  /// numbers: they determine its cost.
  std::vector<std::vector<int32_t>> members;
  std::vector<int32_t> price;  ///< of every group: those of one number cost the same

  /// Equal queues are one: under queue models pair and route the queues that a transfer from one
  /// simulated device to another occupies, and a collective's. Other models have none.
  int32_t queues = 0;
  struct Path {
    int32_t from, to;
    std::vector<int32_t> queues;
    bool operator<(const Path& other) const {
      return from != other.from ? from < other.from : to < other.to;
    }
  };
  std::vector<Path> paths;  ///< ascending
  std::vector<std::vector<int32_t>> group_queues;

  std::span<const int32_t> path(int32_t from, int32_t to) const {
    return std::lower_bound(paths.begin(), paths.end(), Path{from, to, {}})->queues;
  }
};

}  // namespace trinity
