#pragma once

#include "search/placement/acceptance.h"
#include "search/placement/moving_search.h"
#include "search/placement/ranked_moves.h"

namespace trinity {

struct AnnealingOptions {
  uint64_t seed = 1;
  int64_t evaluations = 2000;  ///< length of one cooling, see Annealing
  double first_temperature = 2;
  double last_temperature = 0.01;
  int32_t batch = 8;               ///< trials of one state, see Annealing
  int32_t look_every = 20;         ///< minimum evaluations between two critical-path analyses
  MoveMix mix;                     ///< of moves
  RankingOptions ranking;          ///< how moves are selected
  std::shared_ptr<Acceptance> accept;  ///< null: by temperature
  std::vector<Assignment> starts;  ///< evaluated first; the best is the start
};

/// Simulated annealing (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983) with the moves of
/// moves.h. A trial that is worse by x is accepted with probability exp(-x / T). T falls
/// geometrically over `evaluations` from first_temperature to last_temperature, both fractions of
/// the start's value; then it cools again from the best state. AnnealingOptions::accept replaces
/// this rule. Not thread-safe.
///
/// A batch holds a few trials of one state. They are judged in order: the first accepted one
/// becomes the state, a later one only if it is better still. At equal evaluations a batch of 8 has
/// no measurable cost on the reference graphs, whereas 4 parallel chains lose 3 to 10 %.
///
/// The random number that decides acceptance is sampled before the simulation, so the threshold is
/// the simulation's limit. With a ranker every trial is a ranked move (ranked_moves.h), with
/// features from the last critical-path analysis. Placements with a known score are not evaluated
/// again; the temperature doubles after every 64 of them in a row. If memory is exceeded, only the
/// excess decides, without temperature.
class Annealing : public MovingSearch {
 public:
  /// Throws ArgumentError for options out of range and starts that do not fit the space.
  Annealing(const PlacementSpace& space, const AnnealingOptions& options);

  /// Fraction of the time limit used. The temperature follows this or the fraction of evaluations,
  /// whichever is larger.
  void set_progress(double share) override { progress_ = share; }

  /// A trial without a known score, or a critical-path analysis of the state. With several threads
  /// they are generated one by one (in_flight.h), after the scores of the starts were reported,
  /// instead of by ask() and tell().
  struct Flight {
    bool is_look = false;  ///< only the assignment is used
    Assignment assignment;
    uint64_t key = 0;      ///< PlacementSpace::key
    double threshold = 0;  ///< acceptance threshold if the state is unchanged when it lands
    double limit = 0;      ///< as Searcher::Trials::limit
    Score from;            ///< score of its state
    int64_t taken = 0;     ///< number of states before it
  };
  /// most: remaining evaluations, at least 1.
  Flight launch(int64_t most);
  /// Runs an analysis; other threads may launch and land flights meanwhile.
  void look(const Flight& flight);
  /// Flights must land in launch order. If the state has changed since the launch, a trial is
  /// accepted only if it is better than its own state and no worse than the present one; otherwise
  /// trials of equal value would undo every uphill step.
  void land(const Flight& flight, const Score& score);

  /// With RankingOptions::record: removes and returns the candidate sets of the trials reported so
  /// far, in order.
  std::vector<RankedMoves::Choice> take_choices();

  const AnnealingOptions& options() const { return options_; }
  /// Statistics of the ranker's moves; null without a ranker.
  const RankedMoves::Report* ranking() const { return ranked_ ? &ranked_->report() : nullptr; }

 private:
  void propose(int32_t most, std::vector<Assignment>& trials) override;
  void learn(std::span<const Assignment> trials, std::span<const Score> scores) override;
  double limit() const override;

  void begin_cooling();
  double progress() const;
  double temperature() const;
  double threshold(double hotter);
  void prepare();
  void begin_ranked();
  bool draw(std::vector<Assignment>& trials);
  Assignment moved(double temperature);
  void tell_gains(std::span<const Score> scores);
  bool accepts(const Score& score, double threshold) const;

  AnnealingOptions options_;
  std::optional<RankedMoves> ranked_;
  int64_t ranked_of_ = -1;  // taken_ at the state of its moves
  Assignment next_;         // a known state to take unless a trial is accepted
  Score next_score_;
  std::vector<double> thresholds_;  // per trial; empty for starts
  std::vector<uint64_t> keys_;      // per trial: PlacementSpace::key
  int64_t first_evaluation_ = 0;
  double scale_ = 0, progress_ = 0;
  bool cooling_ = false;
  bool looking_ = false;  // an analysis is in flight
  std::optional<Blame> seen_;  // the last analysis, without a ranker
};

}  // namespace trinity
