#pragma once

#include "base/random.h"
#include "search/placement/markov_chain.h"
#include "search/placement/searcher.h"

namespace trinity {

struct McmcOptions {
  uint64_t seed = 1;
  int64_t evaluations = 2000;  ///< the budget, which determines the restarts
  /// alpha per millisecond; 0 scales it to the workload: alpha * start = 100, i.e. alpha 1 for a
  /// step of 100 ms.
  double alpha_per_ms = 0;
  double value_per_ms = 1e6;       ///< unit of scores; default: nanoseconds
  std::vector<Assignment> starts;  ///< evaluated first; the best is the start
};

/// FlexFlow's Markov chain (markov_chain.h) restricted to placements: a proposal moves one random
/// unit to another random device. As in the code released in 2019, a placement that exceeds memory
/// costs 1 ms per MB (10^6 bytes) of excess. Deviations: the later FlexFlow version that compares
/// with the best state is not followed, nor is the paper's end after half the budget without
/// improvement, because searches are compared at equal budgets. Not thread-safe.
///
/// One trial at a time, as the chain requires. The acceptance threshold is the trial's limit.
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
