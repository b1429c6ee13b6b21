#pragma once

#include <deque>
#include <memory>
#include <unordered_set>

#include "search/placement/move_features.h"
#include "search/placement/move_ranker.h"

namespace trinity {

/// Maximum number of units of candidate sets: half of all units at first; halved whenever almost
/// none of the last chosen sets was larger than the new limit. As an annealing cools, rankers stop
/// choosing large sets, and a few of these would dominate the cost of generation and scoring. Not
/// thread-safe.
class SetSizes {
 public:
  explicit SetSizes(int32_t units) : units_(units) { widen(); }

  int32_t most() const { return most_; }
  void widen() { most_ = std::max(1, units_ / 2), chosen_ = 0, large_ = 0; }
  /// Records the size of a chosen set.
  void note(size_t units);

 private:
  int32_t units_, most_ = 0;
  // since the last update; large_: sets larger than half of the maximum
  int32_t chosen_ = 0, large_ = 0;
};

/// Ranked moves: the ranker chooses each from a few candidates of Moves. Candidates change
/// something and lead to distinct assignments that were not generated before. Not thread-safe,
/// except look().
class RankedMoves {
 public:
  /// Keeps references to `space` and `moves`.
  RankedMoves(const PlacementSpace& space, Moves& moves, const RankingOptions& options);

  /// Analyses `assignment` by one simulation; other threads may generate moves meanwhile.
  void look(const Assignment& assignment);
  /// Publishes the last look(): from now on features refer to it, and seed units are sampled by its
  /// critical-path attribution.
  void show();
  /// Moves are of `assignment` from now on.
  void begin(const Assignment& assignment);
  /// Applies a move to `trial`, a copy of begin()'s assignment. temperature: of the annealing, as a
  /// fraction of the present value.
  void apply(Assignment& trial, double temperature);
  /// To be called when the annealing starts to cool.
  void begin_cooling() { sizes_.widen(); }
  /// Reports the relative improvements of the oldest unreported trials, in launch order (0.01: the
  /// value fell by 1 %).
  void told(std::span<const double> gains);

  /// Candidates of a trial: `count` rows of features; row `chosen` was taken. An unranked move has
  /// one row, or none for a swap.
  struct Choice {
    std::vector<float> features;
    int32_t count = 0, chosen = 0;
    double gain = 0;  ///< see told()
  };
  std::vector<Choice>& choices() { return choices_; }
  /// The last move did not become a trial.
  void drop() {
    ranked_.pop_back();
    if (options_.record) choices_.pop_back();
  }

  /// Statistics of the moves so far.
  struct Report {
    double seconds = 0;  ///< spent on states, features and scores, not on simulating trials
    int64_t trials = 0, improving = 0;              ///< ranked moves
    int64_t plain_trials = 0, plain_improving = 0;  ///< unranked moves
  };
  const Report& report() const { return report_; }

 private:
  uint64_t key_after(const Move& move, const Assignment& assignment) const;
  int32_t gather(const Assignment& assignment, double temperature);
  int32_t choose(const Assignment& assignment, int32_t count);
  void plain(Assignment& trial, double temperature);
  void ranked(Assignment& trial, double temperature);
  void record(const float* rows, int32_t count, int32_t chosen);

  const PlacementSpace& space_;
  Moves& moves_;
  RankingOptions options_;
  /// An analysed step, and the features of its moves.
  struct View {
    View(const PlacementSpace& space, const RankingOptions& options)
        : state(space, options.ranker->reads_memory_features()),
          writer(state, options.ranker->reads_memory_features()
                            ? std::optional(options.memory_share)
                            : std::nullopt) {}
    StepState state;
    MoveFeatures writer;
    double seconds = 0;  // duration of the analysis
  };
  std::unique_ptr<View> view_, aside_;  // view_: null before the first show()
  std::vector<Move> candidates_;
  std::vector<uint64_t> keys_;
  std::vector<float> features_, scores_;
  std::unordered_set<uint64_t> seen_;  // keys of generated assignments
  std::deque<bool> ranked_;            // per unreported trial: ranked
  SetSizes sizes_;
  Report report_;
  uint64_t key_ = 0;  // of the present assignment
  std::vector<Choice> choices_;
};

}  // namespace trinity
