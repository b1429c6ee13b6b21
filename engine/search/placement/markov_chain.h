#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace trinity {

/// FlexFlow's execution optimiser (Jia, Zaharia and Aiken, MLSys 2019, section 6; papers/notes.md
/// "FlexFlow's chain"): Markov chain Monte Carlo over one choice per node. As in its release of
/// 2019 the chain returns to the best state after every clamp(budget / 100, 1, 1000) proposals.
/// Callers define proposals and costs.
struct MarkovChain {
  int64_t budget;         ///< number of proposals
  double alpha = 0;       ///< per unit of cost; see scale()
  int64_t proposals = 0;  ///< proposals started
  int64_t improved = 0;   ///< value of `proposals` when the best was found
  std::vector<int32_t> state = {}, best = {};
  double cost = 0, best_cost = 0;

  /// `given`, or if that is 0 the alpha with alpha * start = 100.
  static double scale(double given, double start) {
    return given > 0 ? given : start != 0 ? 100 / std::abs(start) : 1;
  }

  /// The paper's termination rule: half the budget without improvement.
  bool stuck() const { return 2 * (proposals - improved) > budget; }

  void begin_proposal() {
    if (proposals++ % std::clamp<int64_t>(budget / 100, 1, 1000) != 0) return;
    state = best;
    cost = best_cost;
  }

  /// Largest accepted increase of cost for a number `u`, uniform in (0, 1): a proposal is accepted
  /// with probability exp(-alpha * increase).
  double most_increase(double u) const { return -std::log(u) / alpha; }

  /// To be called after the state and its cost have changed.
  void changed() {
    if (!best.empty() && cost >= best_cost - 1e-12 * std::abs(best_cost)) return;
    best = state;
    best_cost = cost;
    improved = proposals;
  }
};

}  // namespace trinity
