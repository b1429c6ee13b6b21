#pragma once

#include "base/random.h"
#include "search/searcher.h"

namespace trinity {

struct McmcOptions {
  uint64_t seed = 1;
  int64_t evaluations = 2000;  ///< the budget, which sets the restarts
  /// alpha per millisecond; 0 scales it to the workload: alpha * start = 100, which is alpha 1 for
  /// a step of 100 ms.
  double alpha_per_ms = 0;
  double value_per_ms = 1e6;  ///< what scores are in: nanoseconds by default
  /// The paper's own end: exhausted once half of `evaluations` brought no improvement.
  bool stop_early = false;
  std::vector<Assignment> starts;  ///< scored first, the best is the start; default device 1 alone
};

/// The execution optimiser of FlexFlow (Jia, Zaharia and Aiken, MLSys 2019, section 6), restricted
/// to placements: Markov chain Monte Carlo over the simulator. A proposal moves one random unit to
/// a random other device; it is accepted when it is faster, else with probability
/// exp(-alpha * (t_new - t_current)), t in milliseconds. As in the released code of 2019, a
/// placement beyond memory costs 1 ms more for every MB (10^6 bytes) of excess, and every
/// clamp(evaluations / 100, 1, 1000) proposals the chain goes back to the best found. The rewrite
/// of FlexFlow that compares with the best instead of the current state is not followed.
///
/// One trial at a time, as the chain needs. The acceptance threshold is the trial's limit.
class Mcmc : public Searcher {
 public:
  /// Throws ArgumentError for options out of range and starts that do not fit the space.
  Mcmc(const PlacementSpace& space, McmcOptions options);

 private:
  void propose(int32_t most, std::vector<Assignment>& trials) override;
  void learn(std::span<const Assignment> trials, std::span<const Score> scores) override;
  double limit() const override;
  double time_ms(const Score& score) const;

  McmcOptions options_;
  RandomStream random_;
  Assignment state_, fastest_;
  double state_ms_ = 0, fastest_ms_ = 0, threshold_ms_ = 0, alpha_per_ms_ = 0;
  size_t started_ = 0;
  int64_t proposals_ = 0, last_improvement_ = 0;
  bool state_fits_ = false, fastest_fits_ = false;
};

}  // namespace trinity
