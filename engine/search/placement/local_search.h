#pragma once

#include "search/placement/moving_search.h"

namespace trinity {

struct LocalSearchOptions {
  uint64_t seed = 1;
  MoveMix mix;                     ///< of the random moves
  std::vector<Assignment> starts;  ///< evaluated first; the best is the start
};

/// Iterated local search (Lourenco, Martin and Stuetzle, 2003) on the simulator. It descends from
/// the best start by improving trials: half are moves of one unit (every unit to every device,
/// shuffled in each round), half random moves of clusters, chains, ranges and pairs (moves.h). The
/// best of 8 trials is taken if it improves. After a number of failed trials equal to the number of
/// single-unit moves (at least 50, at most 1000) the state counts as a local optimum and is
/// perturbed by 1 to 4 random moves, starting from the best local optimum so far. A local optimum
/// at least as good as the best becomes the new best. Not thread-safe.
///
/// The present value is the limit of a trial. Does not repeat a placement as long as a thousand
/// random ones contain a new one; ends when all PlacementSpace::choices() are known.
class LocalSearch : public MovingSearch {
 public:
  /// Throws ArgumentError for starts that do not fit the space.
  LocalSearch(const PlacementSpace& space, const LocalSearchOptions& options);

 private:
  void propose(int32_t most, std::vector<Assignment>& trials) override;
  void learn(std::span<const Assignment> trials, std::span<const Score> scores) override;
  double limit() const override;

  void go_to(const Assignment& assignment, const Score& score);
  void descend(int32_t most, std::vector<Assignment>& trials);
  void kick(std::vector<Assignment>& trials);
  bool add_new(Assignment trial, std::vector<Assignment>& trials);
  bool next_single(Assignment& trial);
  void add_random(std::vector<Assignment>& trials);
  void shuffle();

  Assignment home_;  // the local optimum that perturbations start from
  Score home_score_;
  std::vector<int32_t> round_;  // single-unit moves: unit * devices + device
  size_t next_move_ = 0;
  int32_t patience_, failures_ = 0;
  bool kicked_ = false;
};

}  // namespace trinity
