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
  int32_t batch = 8;               ///< trials of the same state, see Annealing
  int32_t look_every = 20;         ///< evaluations between two looks at the state, at the least
  MoveMix mix;                     ///< of the moves
  RankingOptions ranking;          ///< who chooses among them
  std::shared_ptr<Acceptance> accept;  ///< null: by temperature
  std::vector<Assignment> starts;  ///< scored first, the best is the start
};

/// Simulated annealing (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983) with the moves of
/// moves.h. A trial that is worse by x is accepted with probability exp(-x / T). T falls
/// geometrically from first_temperature to last_temperature, both as multiples of the start's value
/// per unit, over `evaluations`; after that it cools again from the best. With AnnealingOptions::accept
/// that says what is accepted instead.
///
/// A batch holds a few trials from the same state; they are judged in order, the first accepted one
/// becomes the state, and a later one only if it is better still. At equal evaluations a batch of 8
/// costs nothing measurable on the reference graphs, where 4 chains side by side lose 3 to 10 %.
///
/// Whether a trial will be accepted is drawn before its simulation, which makes the threshold its
/// limit. With a ranker every trial is a move that it chose (ranked_moves.h), beside the step of
/// the state of the last look. Placements with a known score are walked through without asking
/// again; the temperature doubles with every 64 of them until there is a new one. Where memory is
/// exceeded, the excess alone decides, without temperature.
class Annealing : public MovingSearch {
 public:
  /// Throws ArgumentError for options out of range and starts that do not fit the space.
  Annealing(const PlacementSpace& space, const AnnealingOptions& options);

  /// The temperature falls by the share of evaluations or by this, whichever is further.
  void set_progress(double share) override { progress_ = share; }

  /// A trial whose score is open, or a look at the state. Those of several threads are drawn one by
  /// one (in_flight.h), after the starts were told, instead of ask() and tell().
  struct Flight {
    bool is_look = false;  ///< only the assignment counts
    Assignment assignment;
    uint64_t key = 0;      ///< PlacementSpace::key
    double threshold = 0;  ///< up to which it is accepted where the state is still the one it is of
    double limit = 0;      ///< as Searcher::Trials has it
    Score from;            ///< of the state that it is of
    int64_t taken = 0;     ///< states before that
  };
  /// most: evaluations that are left, at least 1.
  Flight launch(int64_t most);
  /// Makes a look; another thread may launch and land others meanwhile.
  void look(const Flight& flight);
  /// Flights land in the order in which they were launched. Where the state has changed since, it
  /// is accepted if it is better than the one that it is of, and no worse than the present
  /// one: what moves nothing would else undo every step uphill.
  void land(const Flight& flight, const Score& score);

  /// With RankingOptions::record, what the trials told so far were chosen from, in their order;
  /// they are gone then.
  std::vector<RankedMoves::Choice> take_choices();

  const AnnealingOptions& options() const { return options_; }
  /// What came of the ranker's moves; null without one.
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
  int64_t ranked_of_ = -1;  // taken_ of the state that its moves are of
  Assignment next_;         // a known state to take unless a trial is accepted
  Score next_score_;
  std::vector<double> thresholds_;  // of the trials; empty for starts
  std::vector<uint64_t> keys_;      // of them: PlacementSpace::key
  int64_t first_evaluation_ = 0;
  double scale_ = 0, progress_ = 0;
  bool cooling_ = false;
  bool looking_ = false;  // one is in flight
  std::optional<Blame> seen_;  // by it, without a ranker
};

}  // namespace trinity
