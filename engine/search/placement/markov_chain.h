#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace trinity {

/// The rules of FlexFlow's execution optimiser (Jia, Zaharia and Aiken, MLSys 2019, section 6;
/// papers/notes.md "FlexFlow's chain"): Markov chain Monte Carlo over a choice per node, with what
/// its release of 2019 adds to the paper: every clamp(budget / 100, 1, 1000) proposals the chain
/// goes back to the best. What a proposal changes and what a state costs is the caller's.
struct MarkovChain {
  int64_t budget;         ///< proposals
  double alpha = 0;       ///< per unit of cost; see scale()
  int64_t proposals = 0;  ///< begun
  int64_t improved = 0;   ///< proposals when the best was found
  std::vector<int32_t> state = {}, best = {};
  double cost = 0, best_cost = 0;

  /// `given`, or where that is 0 the alpha at which alpha * start = 100.
  static double scale(double given, double start) {
    return given > 0 ? given : start != 0 ? 100 / std::abs(start) : 1;
  }

  /// The paper's own end: half the budget without improvement.
  bool stuck() const { return 2 * (proposals - improved) > budget; }

  void begin_proposal() {
    if (proposals++ % std::clamp<int64_t>(budget / 100, 1, 1000) != 0) return;
    state = best;
    cost = best_cost;
  }

  /// A proposal is accepted with probability exp(-alpha * increase), so up to an increase that a
  /// number `u`, even in (0, 1), gives.
  double most_increase(double u) const { return -std::log(u) / alpha; }

  /// After a change of the state and its cost.
  void changed() {
    if (!best.empty() && cost >= best_cost - 1e-12 * std::abs(best_cost)) return;
    best = state;
    best_cost = cost;
    improved = proposals;
  }
};

}  // namespace trinity
