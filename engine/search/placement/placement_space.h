#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/units.h"
#include "simulator/problem.h"

namespace trinity {

/// The device (from 0) of every colocation unit. A placement has that of every operator.
using Assignment = std::vector<int32_t>;

/// What placement methods search: one free choice of a device for each colocation unit. Keeps a
/// reference to the problem.
class PlacementSpace {
 public:
  explicit PlacementSpace(const Problem& problem);

  const Problem& problem() const { return problem_; }
  const UnitGraph& graph() const { return graph_; }
  int32_t units() const { return graph_.size(); }
  int32_t devices() const { return problem_.devices(); }

  /// A unit beside another one, and the bytes that flow between them in either direction.
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

  /// Whether exchanging two devices never changes what a placement costs: equal times, capacities
  /// and wires, and no rule that looks at device numbers (channels of routes, rings of collectives,
  /// SimulationRules::event_order).
  bool interchangeable() const { return interchangeable_; }

  /// Number of different placements, as a real number: devices ^ units, or, where devices are
  /// interchangeable, the ways to split the units into at most that many sets.
  double choices() const;

  std::vector<int32_t> placement(const Assignment& assignment) const;
  /// Throws ArgumentError unless the placement is one of this problem that keeps units together.
  Assignment assignment(std::span<const int32_t> placement) const;

  /// Throws ArgumentError unless `assignment` has a device of the cluster for every unit.
  void check(const Assignment& assignment) const;

  /// A hash of the assignment; equal for those that differ by names of interchangeable devices.
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
