#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "search/placement/moves.h"
#include "search/placement/step_state.h"

namespace trinity {

/// Ranker input for a move of a set of units to one device. Times t of the set are encoded as
/// sign(t) * log2(1 + 100 |t| / step); fractions are unscaled. Features after kStepFeatureCount
/// describe the reward and memory: bytes are fractions of the largest device peak; moved bytes and
/// gains b are sign(b) * log2(1 + 100 |b|).
inline constexpr std::array<std::string_view, 46> kMoveFeatures = {
    "time_home",
    "time_there",
    "time_gain",  // of the moved units
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
    "wires_net",  // transfers without contention
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
    "is_row",  // Move::Kind::range or group (the name is fixed by files of weights)
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
    "peak_moved",  // memory held by the units at their device's peak
    "peak_gain",   // decrease of the largest peak, if peak times stay the same
    "peak_gain_weighed"};  // x memory_share
inline constexpr int32_t kMoveFeatureCount = static_cast<int32_t>(kMoveFeatures.size());
/// leading features, which describe the step only
inline constexpr int32_t kStepFeatureCount = 40;

/// Computes features of moves of a state. Not thread-safe.
class MoveFeatures {
 public:
  /// memory_share: value of that feature. Without it the features after kStepFeatureCount are not
  /// written; with it `state` must have memory.
  explicit MoveFeatures(const StepState& state, std::optional<double> memory_share = {});

  /// Writes kMoveFeatureCount numbers to `to`. `assignment` may differ slightly from the state's.
  /// temperature_ns: of the annealing. The move must not be a swap. Returns false if it changes
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
  std::vector<double> more_bytes_;  // per device: bytes that a move adds or removes
  int32_t device_ = 0;
  std::vector<uint32_t> moves_in_;  // per unit: number of the last move that contained it
  uint32_t number_ = 0;
};

}  // namespace trinity
