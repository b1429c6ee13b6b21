#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/units.h"
#include "simulator/problem.h"

namespace trinity {

/// Device (from 0) per colocation unit. A placement has one per operator.
using Assignment = std::vector<int32_t>;

/// The search space of placement methods: one device per colocation unit. Keeps a reference to the
/// problem. Immutable and thread-safe.
class PlacementSpace {
 public:
  explicit PlacementSpace(const Problem& problem);

  const Problem& problem() const { return problem_; }
  const UnitGraph& graph() const { return graph_; }
  int32_t units() const { return graph_.size(); }
  int32_t devices() const { return problem_.devices(); }

  /// A neighbouring unit, and the bytes that flow between the two in both directions.
  struct Neighbour {
    int32_t unit;
    int64_t bytes;
  };
  /// Ascending by unit.
  std::span<const Neighbour> neighbours(int32_t unit) const {
    const auto first = static_cast<size_t>(first_neighbour_[unit]);
    const auto last = static_cast<size_t>(first_neighbour_[static_cast<size_t>(unit) + 1]);
    return {neighbours_.data() + first, last - first};
  }

  /// Time of all operators of `unit` on `device`.
  int64_t cost_ns(int32_t unit, int32_t device) const {
    const auto row = static_cast<size_t>(problem_.cost_class(device));
    return cost_ns_[row * static_cast<size_t>(units()) + static_cast<size_t>(unit)];
  }

  /// True if exchanging two devices never changes the result of a placement: equal times,
  /// capacities and links, and no rule that depends on device numbers (channels of routes, rings of
  /// collectives, SimulationRules::event_order).
  bool interchangeable() const { return interchangeable_; }

  /// Number of distinct placements, as a double: devices ^ units or, if devices are
  /// interchangeable, the number of partitions of the units into at most that many sets.
  double choices() const;

  std::vector<int32_t> placement(const Assignment& assignment) const;
  /// Throws ArgumentError unless the placement fits the problem and keeps units together.
  Assignment assignment(std::span<const int32_t> placement) const;

  /// Throws ArgumentError unless `assignment` has a device of the cluster for every unit.
  void check(const Assignment& assignment) const;

  /// A hash of the assignment; equal for assignments that differ only by names of interchangeable
  /// devices.
  uint64_t key(const Assignment& assignment) const;

 private:
  void bind_neighbours();
  void bind_costs();

  const Problem& problem_;
  UnitGraph graph_;
  std::vector<Neighbour> neighbours_;
  std::vector<int32_t> first_neighbour_;
  std::vector<int64_t> cost_ns_;  // [cost class][unit]
  bool interchangeable_ = false;
};

}  // namespace trinity
