#pragma once

#include <memory>
#include <span>

#include "search/placement/moves.h"

namespace trinity {

/// Says which of several moves is worth a simulation.
class MoveRanker {
 public:
  virtual ~MoveRanker() = default;
  /// The moves of `assignment` that score() is asked for next, for who looks at more than features.
  virtual void show(std::span<const Move>, const Assignment&) {}
  /// Whether it reads the features behind kStepFeatureCount (move_features.h), which else are 0.
  virtual bool is_told() const { return true; }
  /// The larger, the better. `features`: `count` rows of kMoveFeatureCount (move_features.h).
  virtual void score(const float* features, int32_t count, float* scores) = 0;
};

struct RankingOptions {
  std::shared_ptr<MoveRanker> ranker;  ///< null: moves are drawn as they come
  int32_t candidates = 10;             ///< drawn for each move
  double sharpness = 1.5;              ///< one is drawn with odds exp(sharpness x score)
  int32_t plain_one_in = 10;           ///< one move in so many is drawn as it comes
  bool record = false;                 ///< keep what was drawn (RankedMoves::choices)
  bool fit_sizes = false;              ///< candidates are as large as SetSizes says
  double memory_share = 0;  ///< of the reward, 0 to 1: what a ranker is told (move_features.h)
};

}  // namespace trinity
