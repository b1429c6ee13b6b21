#pragma once

#include <span>
#include <vector>

#include "search/placement/placement_space.h"

namespace trinity {

/// Groups of units that exchange much, at several sizes: at the coarse end layers with their
/// weights, gradients and updates, at the fine end a few operators. For moves of a whole layer,
/// which random growth around a unit hardly ever gives.
///
/// Made bottom up, as multilevel partitioners coarsen (Karypis and Kumar, SIAM J. Sci. Comput. 20,
/// 1998): in every round each group, the least work first, joins the neighbour that it exchanges
/// the most bytes with among those with which it stays within a share of all work; the share
/// doubles from round to round, from 1/512 to 1/4. Rounds that leave fewer than two groups, or
/// more than an eighth of the units, are no level.
///
/// Deterministic; takes time in proportion to the edges.
class UnitGroups {
 public:
  explicit UnitGroups(const PlacementSpace& space);

  int32_t levels() const { return static_cast<int32_t>(levels_.size()); }
  /// The units, ascending, of the group that `unit` is in; level 0 is the finest.
  std::span<const int32_t> around(int32_t level, int32_t unit) const;

 private:
  struct Level {
    std::vector<int32_t> group;    // of every unit
    std::vector<int32_t> first;    // groups + 1 positions in `members`
    std::vector<int32_t> members;  // units by group
  };
  void add_level(const std::vector<int32_t>& group, int32_t groups);

  std::vector<Level> levels_;
};

}  // namespace trinity
