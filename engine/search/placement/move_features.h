#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "search/placement/moves.h"
#include "search/placement/step_state.h"

namespace trinity {

/// What a ranker is told of a move that gives a set of units to one device. Times t of the set are
/// sign(t) x log2(1 + 100 |t| / step); shares are as they are. Those behind kStepFeatureCount are
/// of the reward and of memory: bytes are shares of the largest peak of a device, moved bytes and
/// gains b as sign(b) x log2(1 + 100 |b|).
inline constexpr std::array<std::string_view, 46> kMoveFeatures = {
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
    "is_row",  // Move::Kind::range or group; files of weights have this name
    "temperature",
    "edges_uncut_less_cut",
    "memory_there",
    "blame_less_collision",
    "collision_per_time",
    "blame_per_time",
    "is_neighbour_device",
    "memory_share",  // of the reward: RankingOptions::memory_share
    "peak_home",
    "peak_there",
    "peak_moved",  // what the units hold when their device's memory is at its peak
    "peak_gain",   // by how much the largest peak falls, if peaks stay when they are
    "peak_gain_weighed"};  // x memory_share
inline constexpr int32_t kMoveFeatureCount = static_cast<int32_t>(kMoveFeatures.size());
inline constexpr int32_t kStepFeatureCount = 40;  ///< the leading ones, of the step alone

/// Writes features of moves beside a state. One a thread.
class MoveFeatures {
 public:
  /// memory_share: feature of that name; without it those behind kStepFeatureCount are not written.
  /// With it the state is one with memory.
  explicit MoveFeatures(const StepState& state, std::optional<double> memory_share = {});

  /// `to`: room for kMoveFeatureCount numbers. `assignment` may differ a little from the one that
  /// the state is of. temperature_ns: of the annealing. The move is no swap. False where it changes
  /// nothing.
  bool write(const Move& move, const Assignment& assignment, double temperature_ns, float* to);

 private:
  struct Sums;
  void add_unit(int32_t unit, int32_t home, Sums& sums) const;
  void add_memory(int32_t unit, int32_t home, Sums& sums);
  void write_memory(const Sums& sums, float* to);
  void add_edges(int32_t unit, const Assignment& assignment, Sums& sums) const;

  const StepState& state_;
  std::optional<double> memory_share_;
  std::vector<double> more_bytes_;  // per device: what a move brings or takes
  int32_t device_ = 0;
  std::vector<uint32_t> moves_in_;  // per unit: the number of the last move that took it along
  uint32_t number_ = 0;
};

}  // namespace trinity
