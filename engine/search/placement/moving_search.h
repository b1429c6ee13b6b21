#pragma once

#include <unordered_map>

#include "search/placement/moves.h"
#include "search/placement/ranked_moves.h"
#include "search/placement/searcher.h"

namespace trinity {

/// The scores that a search has been told, so that it need not ask twice. Holds at most 2^21
/// entries (about 100 MB); what comes later is not remembered.
class ScoreMemo {
 public:
  explicit ScoreMemo(const PlacementSpace& space) : space_(space) {}

  struct Known {
    Score score;
    bool exact;  ///< otherwise the simulation was cut short: the value is at least `score.value`
  };
  /// Null when the assignment of this key (PlacementSpace::key) has not been scored.
  const Known* find(uint64_t key) const {
    const auto found = known_.find(key);
    return found == known_.end() ? nullptr : &found->second;
  }
  const Known* find(const Assignment& assignment) const { return find(space_.key(assignment)); }
  /// `limit` is what the placement was asked for under.
  void add(uint64_t key, const Score& score, double limit) {
    if (known_.size() < kMost || find(key)) known_[key] = {score, score.value <= limit};
  }
  size_t size() const { return known_.size(); }

 private:
  static constexpr size_t kMost = size_t{1} << 21;
  const PlacementSpace& space_;
  std::unordered_map<uint64_t, Known> known_;
};

/// What annealing and local search share: a state that moves (moves.h) change, batches of 8 trials
/// in flight, and a look at the critical path of a new state now and then.
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

  /// How many trials a batch of at most `batch` has of which the budget allows `most`; its
  /// evaluation counts. ranked: what looks at the state then, or null for the moves alone.
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

  /// Whether a look at the state is due where `most` evaluations are left; counts it then.
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
  int64_t taken_ = 0;        // states so far
  int64_t look_every_ = 20;  // evaluations between two looks, at the least

 private:
  int64_t last_look_ = 0;
  bool stale_ = true;
};

}  // namespace trinity
