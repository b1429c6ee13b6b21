#pragma once

#include <functional>

#include "search/placement/placement_space.h"

namespace trinity {

/// A symmetric graph of units with positive integer weights.
///
/// Work of a unit: its time, averaged over devices. Memory: the fixed bytes of its operators plus
/// the outputs of its forward ones, which backward may read (views count 0). Bytes of an edge: all
/// traffic between two units in both directions. Each type of weight is scaled to a sum of about
/// 10^8, which METIS and Scotch can add in 32 bits; zeros become 1.
struct PartitionGraph {
  std::vector<int32_t> first;      ///< units + 1 positions in `neighbour`
  std::vector<int32_t> neighbour;  ///< ascending within a unit
  std::vector<int32_t> bytes;      ///< of the edge to that neighbour
  std::vector<int32_t> work, memory;
  std::vector<int32_t> combined;  ///< work plus memory weighted by PartitionWeights::pressure

  int32_t units() const { return static_cast<int32_t>(work.size()); }
  /// The subgraph of `units`, which are ascending; unit i of it is units[i].
  PartitionGraph restricted(std::span<const int32_t> units) const;
};

/// Fractions of work and memory for a device.
struct PartitionShare {
  double work = 0, memory = 0, combined = 0;
};

/// Partitioners' view of a problem: the units, and each device's share (sum 1): of work in
/// proportion to its speed (inverse of the time of all operators on it), of memory in proportion to
/// its capacity.
struct PartitionWeights {
  PartitionGraph graph;
  std::vector<PartitionShare> shares;
  /// Total memory weight / total capacity, at most 1; 0 if memory is not modelled. Weight of memory
  /// relative to work in `combined`.
  double pressure = 0;

  explicit PartitionWeights(const PlacementSpace& space);
  int32_t devices() const { return static_cast<int32_t>(shares.size()); }
};

/// Integer weights proportional to `values`, at least 1 each, with a sum of about `total`.
std::vector<int32_t> scaled_weights(const std::vector<double>& values, double total);

/// Divides a set of units (ascending; at least 2) between two groups of devices: true for units of
/// the second. `first`: share of the set for the first group.
using Bisection =
    std::function<std::vector<bool>(std::span<const int32_t> units, const PartitionShare& first)>;

/// Recursive bisection: bisects the devices in order of their numbers, and the units accordingly.
/// If the units are no more than the devices, the heaviest go to the devices with the largest
/// shares, one each.
Assignment bisect_recursively(const PartitionWeights& weights, const Bisection& bisection);

}  // namespace trinity
