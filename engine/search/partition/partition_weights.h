#pragma once

#include <functional>

#include "search/placement/placement_space.h"

namespace trinity {

/// A symmetric graph of units with positive whole weights.
///
/// Work of a unit: the mean over devices of its time. Memory: the fixed bytes of its operators and
/// the outputs of its forward ones, which backward may read (views hold nothing). Bytes of an edge:
/// all that flows between two units, either way. Every kind of weight is scaled so that it adds up
/// to about 10^8, which METIS and Scotch can add in 32 bits; what would be 0 is 1.
struct PartitionGraph {
  std::vector<int32_t> first;      ///< units + 1 positions in `neighbour`
  std::vector<int32_t> neighbour;  ///< ascending within a unit
  std::vector<int32_t> bytes;      ///< of the edge to that neighbour
  std::vector<int32_t> work, memory;
  std::vector<int32_t> combined;  ///< work and, as far as it presses, memory: see PartitionWeights

  int32_t units() const { return static_cast<int32_t>(work.size()); }
  /// The part of it between `units`, which are ascending; unit i of the part is units[i].
  PartitionGraph restricted(std::span<const int32_t> units) const;
};

/// How much of everything a device should get.
struct PartitionShare {
  double work = 0, memory = 0, combined = 0;
};

/// What partitioners see of a problem: the units, and the share of each device (all adding up to
/// 1): of work in proportion to its speed (the inverse of the time that everything takes on it), of
/// memory in proportion to its capacity.
struct PartitionWeights {
  PartitionGraph graph;
  std::vector<PartitionShare> shares;
  /// All memory weights over all capacities, at most 1; 0 where memory is not accounted. Memory
  /// counts this much against 1 of work in `combined`.
  double pressure = 0;

  explicit PartitionWeights(const PlacementSpace& space);
  int32_t devices() const { return static_cast<int32_t>(shares.size()); }
};

/// Whole weights in proportion to `values`, at least 1 each, adding up to about `total`.
std::vector<int32_t> scaled_weights(const std::vector<double>& values, double total);

/// Divides a set of units (ascending; at least 2) among two groups of devices: true for those of
/// the second. `first` is what the first group should get of the set.
using Bisection =
    std::function<std::vector<bool>(std::span<const int32_t> units, const PartitionShare& first)>;

/// Recursive bisection: halves the devices in order of their numbers, and the units accordingly.
/// No more units than devices: the heaviest go to the devices of the largest share, one each.
Assignment bisect_recursively(const PartitionWeights& weights, const Bisection& bisection);

}  // namespace trinity
