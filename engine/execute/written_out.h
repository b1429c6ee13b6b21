#pragma once

#include <cstdint>
#include <vector>

#include "execute/run_layout.h"
#include "graph/graph.h"

namespace trinity {

/// What an executor does, as a graph and an order that a simulator prices: members of collectives
/// are operators like any other, that read what they are handed, so that nothing but operators,
/// copies and their order takes time.
struct WrittenOut {
  Graph graph;
  std::vector<int32_t> origin;              ///< per operator: its number in the executor's graph
  std::vector<std::vector<int32_t>> order;  ///< the tasks of every device, in the new graph's numbers
};

/// `graph` and its `layout`. A tensor of which a device gets a part alone (needs_part()) is written
/// twice, whole and as that part.
WrittenOut write_out(const Graph& graph, const RunLayout& layout);

}  // namespace trinity
