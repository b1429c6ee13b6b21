#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// The graph of colocation units, which is what placement policies see. Unit u represents all
/// operators that must share a device.
struct UnitGraph {
  struct Edge {
    int32_t from, to;
    int64_t bytes;  ///< sum over the distinct tensors that flow
  };
  std::vector<Edge> edges;                       ///< sorted by (from, to); no self edges
  std::vector<std::vector<int32_t>> neighbours;  ///< in both directions, ascending, distinct
  std::vector<int32_t> type;                     ///< index into `types`, of the first operator
  std::vector<std::string> types;                ///< in order of first appearance
  std::vector<int64_t> output_bytes;             ///< summed over the unit's forward operators
  std::vector<int32_t> depth;                    ///< of the first operator
  std::vector<int32_t> first_operator;           ///< its number in the graph
  std::vector<int32_t> unit_of;                  ///< [operator]

  int32_t size() const { return static_cast<int32_t>(type.size()); }
};

UnitGraph make_unit_graph(const Graph& graph);

/// The same with every operator as a unit of its own, ignoring colocation.
UnitGraph make_operator_graph(const Graph& graph);

}  // namespace trinity
