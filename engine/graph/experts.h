#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// The experts of one layer: networks of which every token goes to a few. Found in two forms:
///   - one operator a product, an Einsum of which an own weight [E, ., .], the input [E, C, .] and
///     the output [E, C, .] begin with the experts, and what is between such products;
///   - a Split of [E, C, .] into its E rows, a branch of operators of its own with weights for
///     each, all alike, and the Concat that stacks what they write.
struct ExpertLayer {
  std::string name;      ///< of its first operator
  int64_t experts = 0;   ///< E
  size_t rank = 0;       ///< of the tensors that come in and go out: [E, C, ...]
  std::vector<int32_t> members;  ///< forward operators, ascending; with both joints
  std::vector<std::vector<int32_t>> branches;  ///< of the second form: by expert, ascending
};

/// In the order of their first operators.
std::vector<ExpertLayer> find_experts(const Graph& graph);

/// One of `ranks` devices that share out the experts of a training graph.
struct SpreadExperts {
  Graph graph;
  /// By rank and operator: the original one that it is there; -1: an exchange.
  std::vector<std::vector<int32_t>> origin;
  std::vector<int32_t> serves;  ///< the original one, of an exchange who reads it
  /// Of every operator over how many ranks its weights are spread: `ranks`, or 1.
  std::vector<int32_t> spread;
};

/// Expert parallelism (GShard, Lepikhin et al. 2021, section 3.2) as one rank sees it: it holds
/// E / ranks experts of every layer, each of which works on the tokens of all ranks, ranks times as
/// many. Between what every rank has of a tensor [E, C, ...] and what its experts take, [E / ranks,
/// C x ranks, ...], stands an operator "<tensor's producer>/all_to_all" of type AllToAll, and one
/// "<that>/grad" for the gradient; replicate() joins those of all ranks. Work and bytes of tensors
/// stay what they are with balanced experts; weights, their gradients and updates are a share.
///
/// Throws ArgumentError for fewer than two ranks, a graph without experts, and ranks that do not
/// divide the experts, with the nearest numbers that do.
SpreadExperts spread_experts(const Graph& graph, int32_t ranks);

/// Whether an operator exchanges tokens with other ranks.
bool is_exchange(const Operator& op);

}  // namespace trinity
