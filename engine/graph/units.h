#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// The graph between colocation units: what a placement policy sees. Unit u stands for all
/// operators that must share a device.
struct UnitGraph {
  struct Edge {
    int32_t from, to;
    int64_t bytes;  ///< sum of the distinct tensors that flow
  };
  std::vector<Edge> edges;                       ///< sorted by (from, to); no self edges
  std::vector<std::vector<int32_t>> neighbours;  ///< either direction, ascending, distinct
  std::vector<int32_t> type;                     ///< index into `types`, of the first operator
  std::vector<std::string> types;                ///< in order of first appearance
  std::vector<int64_t> output_bytes;             ///< summed over the unit's forward operators
  std::vector<int32_t> depth;                    ///< of the first operator
  std::vector<int32_t> first_operator;           ///< its number: the unit's place in the graph
  std::vector<int32_t> unit_of;                  ///< of every operator

  int32_t size() const { return static_cast<int32_t>(type.size()); }
};

UnitGraph make_unit_graph(const Graph& graph);

/// The same with every operator a unit by itself, whatever has to share its device.
UnitGraph make_operator_graph(const Graph& graph);

}  // namespace trinity
