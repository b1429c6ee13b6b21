#pragma once

#include <deque>
#include <memory>
#include <unordered_set>

#include "search/placement/move_features.h"
#include "search/placement/move_ranker.h"

namespace trinity {

/// How many units sets of candidates have at most: half of all, and half as many whenever next to
/// none of the last choices had more than that. As an annealing cools, the ranker stops choosing
/// large sets, of which a few would take longer to draw and to look at than all others.
class SetSizes {
 public:
  explicit SetSizes(int32_t units) : units_(units) { widen(); }

  int32_t most() const { return most_; }
  void widen() { most_ = std::max(1, units_ / 2), chosen_ = 0, large_ = 0; }
  /// A set was chosen.
  void note(size_t units);

 private:
  int32_t units_, most_ = 0;
  int32_t chosen_ = 0, large_ = 0;  // since the last look; of more units than half of the most
};

/// Moves that a ranker chose, each among a few drawn by Moves. The candidates change something, and
/// lead to different assignments that were not drawn before.
class RankedMoves {
 public:
  /// Keeps references to `space` and `moves`.
  RankedMoves(const PlacementSpace& space, Moves& moves, const RankingOptions& options);

  /// Simulates `assignment` once, aside: another thread may draw moves meanwhile.
  void look(const Assignment& assignment);
  /// Candidates are looked at beside the step last looked at from now on, and seeds drawn by its
  /// blame.
  void show();
  /// Moves are of `assignment` from now on.
  void begin(const Assignment& assignment);
  /// Changes `trial`, which is what begin() was given. temperature: of the annealing, as a share of
  /// the present value.
  void apply(Assignment& trial, double temperature);
  /// The annealing begins to cool.
  void begin_cooling() { sizes_.widen(); }
  /// What the first trials not told were worth, in their order: by how much the value fell, as a
  /// share of it.
  void told(std::span<const double> gains);

  /// What a trial was chosen from: `count` rows of features, those of the choice at `chosen`. A
  /// move drawn as it came has one row, or none where it is a swap.
  struct Choice {
    std::vector<float> features;
    int32_t count = 0, chosen = 0;
    double gain = 0;  ///< see told()
  };
  std::vector<Choice>& choices() { return choices_; }
  /// The last one did not become a trial.
  void drop() {
    ranked_.pop_back();
    if (options_.record) choices_.pop_back();
  }

  /// What came of the moves so far.
  struct Report {
    double seconds = 0;  ///< spent on states, features and scores; no simulation of a trial
    int64_t trials = 0, improving = 0;              ///< of moves that the ranker chose
    int64_t plain_trials = 0, plain_improving = 0;  ///< of those as they came
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
  /// A step, and what writes features of moves beside it.
  struct View {
    View(const PlacementSpace& space, const RankingOptions& options)
        : state(space, options.ranker->is_told()),
          writer(state, options.ranker->is_told() ? std::optional(options.memory_share)
                                                  : std::nullopt) {}
    StepState state;
    MoveFeatures writer;
    double seconds = 0;  // that the look took
  };
  std::unique_ptr<View> view_, aside_;  // view_: null before the first show()
  std::vector<Move> candidates_;
  std::vector<uint64_t> keys_;
  std::vector<float> features_, scores_;
  std::unordered_set<uint64_t> seen_;  // keys of what was drawn
  std::deque<bool> ranked_;            // of the trials not told: whether the ranker chose
  SetSizes sizes_;
  Report report_;
  uint64_t key_ = 0;  // of the present assignment
  std::vector<Choice> choices_;
};

}  // namespace trinity
