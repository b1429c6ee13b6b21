#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/token_routing.h"
#include "graph/graph.h"

namespace trinity {

/// The experts of one layer: subnetworks of which every token uses a few. Found in two forms:
///   - one operator per matmul: Einsums whose weight [E, ., .], input [E, C, .] and output [E, C,
///     .] begin with the experts axis, and the operators between them;
///   - a Split of [E, C, .] into E rows, one branch of equal operators with its own weights per
///     expert, and the Concat that stacks the results.
struct ExpertLayer {
  std::string name;      ///< of its first operator
  int64_t experts = 0;   ///< E
  size_t rank = 0;       ///< of the tensors in and out: [E, C, ...]
  std::vector<int32_t> members;  ///< forward operators, ascending; with Split and Concat
  std::vector<std::vector<int32_t>> branches;  ///< of the second form: by expert, ascending
  TokenRouting routing{};  ///< by attributes of its matmuls (experts_per_token)
};

/// In the order of their first operators.
std::vector<ExpertLayer> find_experts(const Graph& graph);

/// Graph of one of `ranks` devices over which the experts of a training graph are sharded.
struct SpreadExperts {
  Graph graph;
  /// [rank][operator]: the original operator on that rank; -1: an exchange.
  std::vector<std::vector<int32_t>> origin;
  std::vector<int32_t> serves;  ///< [exchange]: original operator that reads it
  /// [operator]: number of ranks that its weights are sharded over: `ranks` or 1.
  std::vector<int32_t> spread;
};

/// Expert parallelism (GShard, Lepikhin et al. 2021, section 3.2) from the view of one rank. A rank
/// holds E / ranks experts of every layer, each of which processes the tokens of all ranks. Between
/// a rank's tensor [E, C, ...] and the input of its experts [E / ranks, C x ranks, ...] there is an
/// operator "<tensor's producer>/all_to_all" of type AllToAll, and "<that>/grad" for the gradient;
/// replicate() joins the operators of all ranks. Its attributes have the routing of tokens. With balanced experts work
/// and tensor bytes stay the same; weights, their gradients and updates are sharded.
///
/// Throws ArgumentError for fewer than two ranks, a graph without experts, and ranks that do not
/// divide the experts (it names the nearest numbers that do).
SpreadExperts spread_experts(const Graph& graph, int32_t ranks);

/// True if the operator exchanges tokens with other ranks.
bool is_exchange(const Operator& op);
/// The routing of tokens that an operator states in attributes `experts`, `experts_per_token`, `expert_groups` and
/// `group_topk`; none without them, or with numbers that no router has (TokenRouting::kMost).
TokenRouting routing_of(const Operator& op);
/// The routing of an all-to-all's first member; of another collective none.
TokenRouting routing_of(const Graph& graph, const Collective& collective);

}  // namespace trinity
