#pragma once

#include <unordered_map>

#include "search/placement/moves.h"
#include "search/placement/ranked_moves.h"
#include "search/placement/searcher.h"

namespace trinity {

/// Scores reported to a search, so that it does not evaluate a placement twice. Holds at most 2^21
/// entries (about 100 MB); later scores are not stored. Not thread-safe.
class ScoreMemo {
 public:
  explicit ScoreMemo(const PlacementSpace& space) : space_(space) {}

  struct Known {
    Score score;
    bool exact;  ///< false: the simulation was cut short, and the value is at least `score.value`
  };
  /// Null if the assignment with this key (PlacementSpace::key) has no score.
  const Known* find(uint64_t key) const {
    const auto found = known_.find(key);
    return found == known_.end() ? nullptr : &found->second;
  }
  const Known* find(const Assignment& assignment) const { return find(space_.key(assignment)); }
  /// `limit`: limit under which the placement was evaluated.
  void add(uint64_t key, const Score& score, double limit) {
    if (known_.size() < kMost || find(key)) known_[key] = {score, score.value <= limit};
  }
  size_t size() const { return known_.size(); }

 private:
  static constexpr size_t kMost = size_t{1} << 21;
  const PlacementSpace& space_;
  std::unordered_map<uint64_t, Known> known_;
};

/// Common part of annealing and local search: a state changed by moves (moves.h), batches of
/// trials, and an occasional critical-path analysis of a new state. Not thread-safe.
class MovingSearch : public Searcher {
 public:
  const MoveMix& mix() const { return moves_.mix(); }

 protected:
  MovingSearch(const PlacementSpace& space, std::vector<Assignment> starts, RandomStream random,
               const MoveMix& mix = {})
      : Searcher(space, std::move(starts)), moves_(space, random, mix), memo_(space) {}

  void take(const Assignment& assignment, const Score& score) {
    state_ = assignment;
    score_ = score;
    stale_ = true;
    ++taken_;
  }

  /// Number of trials, at most `batch`, if `most` evaluations remain; an analysis counts as one.
  /// ranked: the analysis to run if due, or null for the moves' own.
  int32_t follow_path(int32_t most, RankedMoves* ranked = nullptr, int32_t batch = kBatch) {
    if (counts_look(most)) {
      if (ranked) {
        ranked->look(state_);
        ranked->show();
      } else {
        moves_.focus(moves_.blame(state_));
      }
      --most;
    }
    return std::min(most, batch);
  }

  /// True if an analysis is due with `most` evaluations left; it is then counted.
  bool counts_look(int64_t most) {
    const bool due = last_look_ == 0 || evaluations() - last_look_ >= look_every_;
    if (most <= 1 || !stale_ || !due) return false;
    count_evaluation();
    stale_ = false;
    last_look_ = evaluations();
    return true;
  }

  void remember(std::span<const Assignment> trials, std::span<const Score> scores) {
    for (size_t i = 0; i < trials.size(); ++i)
      memo_.add(space().key(trials[i]), scores[i], limit());
  }

  static constexpr int32_t kBatch = 8;
  Moves moves_;
  ScoreMemo memo_;
  Assignment state_;
  Score score_;
  int64_t taken_ = 0;        // number of states so far
  int64_t look_every_ = 20;  // minimum evaluations between two analyses

 private:
  int64_t last_look_ = 0;
  bool stale_ = true;
};

}  // namespace trinity
