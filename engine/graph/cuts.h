#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace trinity {

// Cuts of a graph into two sides. Operators are numbered from 0; lists of them are ascending.

/// Cost of an edge from the sink's side back to the source's.
enum class BackwardEdges : uint8_t {
  free,      ///< zero: the standard cut of a directed graph
  counted,   ///< as a forward edge: bytes between two devices, both ways
  forbidden  ///< infinite: a cut between two pipeline stages
};

template <>
inline constexpr auto kWords<BackwardEdges> = words("count of backward edges", "free", "counted", "forbidden");

struct CutOptions {
  BackwardEdges backward = BackwardEdges::free;
  /// Empty: bytes of tensors, each counted once per direction, whatever its number of readers on
  /// the other side, as a device sends it. Otherwise [edge in the order of Graph::csr()]; infinity:
  /// the edge must not be cut.
  std::span<const double> edge_capacity;
};

struct Cut {
  std::vector<int32_t> source_side;  ///< the smallest such set among all minimum cuts
  double capacity = 0;               ///< of the cut edges
  int64_t bytes = 0;                 ///< distinct tensors from the source's side to the other
};

/// The minimum cut between `sources` and `sinks`, both non-empty. Exact for bytes; given capacities
/// are rounded to multiples of 2^-59 of their sum, or of 1 if all are integers with a smaller sum.
/// Goldberg and Tarjan, "A new approach to the maximum-flow problem", 1988, by Boost.Graph's
/// push_relabel_max_flow: at worst V^3 steps, usually near E sqrt(V). Polls the stop flag.
///
/// Throws ArgumentError if an operator is in both sets, if a capacity is negative or not a number,
/// and if every cut is forbidden (it names two operators that cannot be separated).
Cut min_cut(const Graph& graph, std::span<const int32_t> sources, std::span<const int32_t> sinks,
            const CutOptions& options = {});

}  // namespace trinity
