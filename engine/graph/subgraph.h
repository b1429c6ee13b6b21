#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// Some operators of a graph, in its order, with what they write.
struct Subgraph {
  Graph graph;
  std::vector<int32_t> origin;      ///< per operator: its number in the original; -1: a source
  std::vector<int32_t> collective;  ///< per collective: the same
};

/// The operators for which keep[o] holds. Collectives keep those of their members. What one reads
/// of what is left out comes, with `sources`, from an operator "<name>/outside" of type Input in
/// place of its producer. Throws ArgumentError where one does so without, or none is kept.
Subgraph subgraph(const Graph& graph, const std::vector<bool>& keep, bool sources = false);

}  // namespace trinity
