#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "search/pase/pase_costs.h"
#include "strategy/splits.h"

namespace trinity {

// Baselines for PaSE, on the same configurations and costs.

struct WalkOptions {
  std::vector<int32_t> start;  ///< [node] its initial configuration
  uint64_t seed = 1;
  int64_t iterations = 250'000;  ///< the PaSE paper's budget
  /// A worse strategy is accepted with probability exp(-alpha * (new - current)), in milliseconds.
  /// FlexFlow's releases use 0.05 to 1, which depends on the workload; 0 scales it: alpha * start =
  /// 100.
  double alpha_per_ms = 0;
  double flops = 10e12;  ///< per device and second; converts costs to milliseconds
};

struct Walk {
  std::vector<int32_t> choice;  ///< the best found
  double cost = 0;
  int64_t iterations = 0, accepted = 0;
};

/// FlexFlow's Markov chain (markov_chain.h): a random node except the last gets a random strategy;
/// ends after half the budget without improvement. Ctrl-C ends it with the best so far. Throws
/// ArgumentError for a start that score_selection() refuses.
Walk flexflow_walk(const SelectionProblem& problem, const WalkOptions& options);

/// Tofu's recursive partition (Wang, Huang, Li 2019; papers/notes.md "Tofu"): for every prime
/// factor k of the number of devices, largest first, every layer splits exactly one more dimension
/// by k (none if none can be split), chosen for all layers together to minimise communication.
/// Returns one configuration per layer.
std::vector<Configuration> tofu_split(const PaseProblem& problem, ThreadPool& pool);

/// Converts a PaSE strategy to splits of the operators of its layers. The operator that names a
/// layer takes the layer's factors; operators fused with it are split like the tensor between them,
/// in enough copies to make up the layer's parts. Layers of an LSTM stack that are split along l
/// use different devices. `devices` lists the devices to use, from 0. Throws ArgumentError for a
/// configuration that does not fit its layer, or more parts than devices.
Splits pase_splits(const Graph& graph, const PaseProblem& problem,
                   std::span<const Configuration> strategy, std::span<const int32_t> devices);

}  // namespace trinity
