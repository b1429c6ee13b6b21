#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// Some operators of a graph, in its order, with their outputs.
struct Subgraph {
  Graph graph;
  std::vector<int32_t> origin;      ///< [operator]: its number in the original; -1: a source
  std::vector<int32_t> collective;  ///< [collective]: its number in the original
};

/// The operators with keep[o]. Collectives keep the members among them. With `sources`, tensors of
/// removed operators come from an operator "<name>/outside" of type Input. Throws ArgumentError if
/// such a tensor is read without `sources`, or if no operator is kept.
Subgraph subgraph(const Graph& graph, const std::vector<bool>& keep, bool sources = false);

}  // namespace trinity
