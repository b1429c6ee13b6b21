#pragma once

#include <span>
#include <vector>

#include "search/placement/placement_space.h"

namespace trinity {

/// Groups of units with much traffic between them, at several sizes: from layers with their
/// weights, gradients and updates (coarse) down to a few operators (fine). They allow moves of a
/// whole layer, which random growth around a unit rarely produces.
///
/// Built bottom-up, as multilevel partitioners coarsen (Karypis and Kumar, SIAM J. Sci. Comput. 20,
/// 1998): in every round each group, smallest work first, joins the neighbour with the most traffic
/// among those with which it stays below a fraction of all work. The fraction doubles per round,
/// from 1/512 to 1/4. Rounds that leave fewer than two groups, or more than an eighth of the units,
/// are not a level.
///
/// Deterministic; linear in the number of edges. Immutable.
class UnitGroups {
 public:
  explicit UnitGroups(const PlacementSpace& space);

  int32_t levels() const { return static_cast<int32_t>(levels_.size()); }
  /// The units, ascending, of the group that contains `unit`; level 0 is the finest.
  std::span<const int32_t> around(int32_t level, int32_t unit) const;

 private:
  struct Level {
    std::vector<int32_t> group;    // per unit
    std::vector<int32_t> first;    // groups + 1 positions in `members`
    std::vector<int32_t> members;  // units by group
  };
  void add_level(const std::vector<int32_t>& group, int32_t groups);

  std::vector<Level> levels_;
};

}  // namespace trinity
