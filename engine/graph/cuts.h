#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace trinity {

// Cuts of a graph in two sides. Operators are numbers from 0; lists of them come back ascending.

/// What a dependency costs that runs from the sink's side back to the source's.
enum class BackwardEdges : uint8_t {
  free,      ///< nothing: the textbook's cut of a directed graph
  counted,   ///< as much as a forward one: bytes between two devices, both ways
  forbidden  ///< there may be none: a cut between two stages of a pipeline
};

/// "free", "counted" or "forbidden". Throws ArgumentError with a suggestion for anything else.
BackwardEdges parse_backward_edges(const std::string& name);

struct CutOptions {
  BackwardEdges backward = BackwardEdges::free;
  /// Empty: the bytes of tensors, each counted once in a direction however many readers it has
  /// beyond the cut, as a device sends it. Otherwise an entry an edge in the order of Graph::csr(),
  /// each for itself; infinity: this edge must not be cut.
  std::span<const double> edge_capacity;
};

struct Cut {
  std::vector<int32_t> source_side;  ///< the smallest such set among all least cuts
  double capacity = 0;               ///< of what is cut
  int64_t bytes = 0;                 ///< of distinct tensors from the source's side to the other
};

/// The least cut that has all of `sources` on one side and all of `sinks` on the other; both are
/// not empty. Exact for bytes; given capacities are first rounded to whole units of 2^-59 of their
/// sum, or of one where all are whole and their sum is below that. Goldberg and Tarjan, "A new
/// approach to the maximum-flow problem", 1988, by Boost.Graph's push_relabel_max_flow: at worst
/// V^3 steps, usually near E sqrt(V). Polls the stop flag.
///
/// Throws ArgumentError when an operator is in both sets, when a capacity is negative or no number,
/// and when every cut is forbidden (it names two operators that cannot be parted).
Cut min_cut(const Graph& graph, std::span<const int32_t> sources, std::span<const int32_t> sinks,
            const CutOptions& options = {});

}  // namespace trinity
