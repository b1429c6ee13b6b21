#pragma once

#include "base/random.h"
#include "search/placement/markov_chain.h"
#include "search/placement/searcher.h"

namespace trinity {

struct McmcOptions {
  uint64_t seed = 1;
  int64_t evaluations = 2000;  ///< the budget, which sets the restarts
  /// alpha per millisecond; 0 scales it to the workload: alpha * start = 100, which is alpha 1 for
  /// a step of 100 ms.
  double alpha_per_ms = 0;
  double value_per_ms = 1e6;       ///< what scores are in: nanoseconds by default
  std::vector<Assignment> starts;  ///< scored first, the best is the start
};

/// FlexFlow's Markov chain (markov_chain.h), restricted to placements: a proposal moves one random
/// unit to a random other device. As in the released code of 2019, a placement beyond memory costs
/// 1 ms more for every MB (10^6 bytes) of excess. The rewrite of FlexFlow that compares with the
/// best instead of the current state is not followed, nor is the paper's end after half the budget
/// without improvement: searches are compared at equal budgets.
///
/// One trial at a time, as the chain needs. The acceptance threshold is the trial's limit.
class Mcmc : public Searcher {
 public:
  /// Throws ArgumentError for options out of range and starts that do not fit the space.
  Mcmc(const PlacementSpace& space, const McmcOptions& options);

 private:
  void propose(int32_t most, std::vector<Assignment>& trials) override;
  void learn(std::span<const Assignment> trials, std::span<const Score> scores) override;
  double limit() const override;
  double time_ms(const Score& score) const;

  McmcOptions options_;
  RandomStream random_;
  MarkovChain chain_;  // costs in milliseconds
  double threshold_ms_ = 0;
};

}  // namespace trinity
