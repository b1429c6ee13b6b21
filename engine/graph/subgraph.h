#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// Some operators of a graph, in its order, with what they write.
struct Subgraph {
  Graph graph;
  std::vector<int32_t> origin;      ///< per operator: its number in the original
  std::vector<int32_t> collective;  ///< per collective: the same
};

/// The operators for which keep[o] holds. Collectives keep those of their members. Throws
/// ArgumentError where one reads what one that is left out writes, or none is kept.
Subgraph subgraph(const Graph& graph, const std::vector<bool>& keep);

}  // namespace trinity
