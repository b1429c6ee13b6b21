#pragma once

#include <memory>
#include <span>

#include "search/placement/moves.h"

namespace trinity {

/// Scores candidate moves, to choose those worth a simulation. Called by one thread at a time.
class MoveRanker {
 public:
  virtual ~MoveRanker() = default;
  /// Shows the moves of `assignment` that the next score() is about, to rankers that use more than
  /// features.
  virtual void show(std::span<const Move>, const Assignment&) {}
  /// True if it reads the features after kStepFeatureCount (move_features.h), which are 0
  /// otherwise.
  virtual bool reads_memory_features() const { return true; }
  /// Larger is better. features: [count][kMoveFeatureCount] (move_features.h).
  virtual void score(const float* features, int32_t count, float* scores) = 0;
};

struct RankingOptions {
  std::shared_ptr<MoveRanker> ranker;  ///< null: random moves, unranked
  int32_t candidates = 10;             ///< generated per move
  /// inverse temperature: one is chosen with probability ~ exp(sharpness * score)
  double sharpness = 1.5;
  int32_t plain_one_in = 10;           ///< one move in this many is random, unranked
  bool record = false;                 ///< keep the candidates (RankedMoves::choices)
  bool fit_sizes = false;              ///< limit the size of candidates, see SetSizes
  double memory_share = 0;  ///< weight of memory in the reward, 0 to 1 (see move_features.h)
};

}  // namespace trinity
