#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace trinity {

struct RecomputeOptions {
  /// Whether a stage may run its forward operators again before the gradient that it waits for has
  /// come: idle time is used, and activations live longer.
  bool eager = false;
  /// Of every operator, or empty: copies wait for what comes in to their own device.
  std::span<const int32_t> device = {};
};

/// A training graph whose forward operators run again before the backward ones.
struct Recomputed {
  Graph graph;
  std::vector<int32_t>
      origin;  ///< per operator: the one of the original graph that it is or repeats
};

/// Recomputation (GPipe, Huang et al. 2019; engine/strategy/README.md): between forward and
/// backward only the inputs from other stages stay in memory, and backward costs one forward more.
/// stage[o] numbers the stage of operator o from 0; operators of stage -1 are left as
/// they are.
///
/// Every forward operator of a stage with backward operators, except sources (those without inputs:
/// data, variables), gets a copy "<name>/recompute" of phase backward in its colocation unit, with
/// the same costs and without weights of its own. Copies read each other, and from other stages and
/// sources what the originals read; backward operators of the stage read them instead of the
/// originals, whose outputs may go once the forward pass has read them. Copies that read no other
/// copy also wait for the first gradient that comes into the stage, unless `eager`. A collective
/// within stages is repeated as "<name>/recompute".
///
/// Throws ArgumentError for a graph without backward operators or with such copies already, a list
/// of another length, a collective of which only some members are repeated, and stages that depend
/// on each other both ways, whose copies would wait for themselves (it names a cycle); LimitError
/// for more than kMaxOperators operators.
Recomputed recompute(const Graph& graph, std::span<const int32_t> stage,
                     const RecomputeOptions& options = {});

/// Whether an operator is such a copy, or a part or replica of one.
bool is_recomputed(const Operator& op);

}  // namespace trinity
