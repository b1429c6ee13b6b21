#pragma once

#include <cstdint>
#include <span>

#include "graph/graph.h"

namespace trinity {

struct RecomputeOptions {
  /// Stages may recompute before the gradient that they wait for has arrived. This uses idle time,
  /// but activations live longer.
  bool eager = false;
  /// [operator], or empty: copies wait for the gradient that arrives on their own device.
  std::span<const int32_t> device = {};
};

/// Activation recomputation (GPipe, Huang et al. 2019; manual/strategy_fields.md). Only a
/// stage's inputs from other stages stay in memory between forward and backward; backward costs an
/// additional forward. stage[o] is the stage of operator o, from 0; operators of stage -1 are
/// unchanged.
///
/// Every forward operator of a stage with backward operators, except sources (operators without
/// inputs: data, variables), gets a copy "<name>/recompute" of phase backward in its colocation
/// unit, with the same costs and without weights. Copies read each other, and from other stages and
/// sources the tensors that the originals read. The stage's backward operators read the copies, so
/// the originals' outputs are released after the forward pass. Copies that read no other copy also
/// wait for the first gradient that arrives at the stage, unless `eager`. A collective within
/// stages is repeated as "<name>/recompute".
///
/// Throws ArgumentError for a graph without backward operators or with such copies, a list of the
/// wrong length, a collective of which only some members are repeated, and stages that depend on
/// each other in both directions, whose copies would wait for themselves (it names a cycle);
/// LimitError for more than kMaxOperators operators.
DerivedGraph recompute(Graph graph, std::span<const int32_t> stage, const RecomputeOptions& options = {});

/// True if the operator is such a copy, or a part or replica of one.
bool is_recomputed(const Operator& op);

}  // namespace trinity
