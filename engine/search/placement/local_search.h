#pragma once

#include "search/placement/moving_search.h"

namespace trinity {

struct LocalSearchOptions {
  uint64_t seed = 1;
  MoveMix mix;                     ///< of the random moves
  std::vector<Assignment> starts;  ///< scored first, the best is the start
};

/// Iterated local search (Lourenco, Martin and Stuetzle, 2003) over the simulator: descends from
/// the best start by improving trials, half of them moves of one unit (every unit to every device,
/// in an order shuffled anew for each round), half random moves of clusters, chains, ranges and
/// pairs (moves.h); the best of 8 trials is taken when it improves. After as many trials without
/// improvement as there are single-unit moves (at least 50 and at most 1000) the state is a local
/// optimum for its purposes and is kicked: 1 to 4 random moves, from the best local optimum so far.
/// A local optimum as good as the best or better becomes the new best.
///
/// The present value is the limit of a trial. Never asks for the same placement twice as long as a
/// thousand random ones give a new one; ends when all PlacementSpace::choices() are known.
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

  Assignment home_;  // the local optimum that kicks start from
  Score home_score_;
  std::vector<int32_t> round_;  // single moves: unit * devices + device
  size_t next_move_ = 0;
  int32_t patience_, failures_ = 0;
  bool kicked_ = false;
};

}  // namespace trinity
