#pragma once

#include <array>
#include <string_view>

#include "search/placement/moves.h"
#include "search/placement/step_state.h"

namespace trinity {

/// What a ranker is told of a move that gives a set of units to one device. Times t of the set are
/// sign(t) x log2(1 + 100 |t| / step); shares are as they are.
inline constexpr std::array<std::string_view, 40> kMoveFeatures = {
    "time_home",
    "time_there",
    "time_gain",  // of the units that move
    "computation_blame",
    "queue_blame",
    "transfer_blame",  // Blame::Times
    "wait",
    "least_slack",
    "tight_time",  // StepState::Unit
    "collision_there",
    "collision_home",
    "crowd_there",
    "crowd_home",
    "crowd_gain",
    "wires_saved",
    "wires_added",
    "wires_net",  // transfers, each alone on its wire
    "critical_saved",
    "exposed_added",
    "exposed_largest",
    "tight_saved",
    "tight_saved_less_exposed",
    "critical_saved_less_largest",
    "busy_home",
    "busy_there",
    "busy_difference",
    "busy_there_after",
    "busy_mean",
    "units_moved",
    "is_unit",
    "is_cluster",
    "is_chain",
    "is_row",
    "temperature",
    "edges_uncut_less_cut",
    "memory_there",
    "blame_less_collision",
    "collision_per_time",
    "blame_per_time",
    "is_neighbour_device"};
inline constexpr int32_t kMoveFeatureCount = static_cast<int32_t>(kMoveFeatures.size());

/// Writes features of moves beside a state. One a thread.
class MoveFeatures {
 public:
  explicit MoveFeatures(const StepState& state);

  /// `to`: kMoveFeatureCount numbers. `assignment` may differ a little from the one that the state
  /// is of. temperature_ns: of the annealing. The move is no swap. False where it changes nothing.
  bool write(const Move& move, const Assignment& assignment, double temperature_ns, float* to);

 private:
  struct Sums;
  void add_unit(int32_t unit, int32_t home, Sums& sums) const;
  void add_edges(int32_t unit, const Assignment& assignment, Sums& sums) const;

  const StepState& state_;
  int32_t device_ = 0;
  std::vector<uint32_t> moves_in_;  // per unit: the number of the last move that took it along
  uint32_t number_ = 0;
};

}  // namespace trinity
