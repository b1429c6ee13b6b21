#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace trinity {

// Graph algorithms for heuristics: over Graph::csr(), through Boost.Graph where its algorithm is
// safe for every graph. Operators are numbers from 0 in the graph's topological order; lists of
// operators come back ascending unless stated. V is the number of operators, E of edges (one a
// tensor and reader, so that two tensors between the same operators are two edges). Cuts are in
// graph/cuts.h. What may run for seconds polls the stop flag and then throws Interrupted.

/// A topological order by need: what the first operator without readers depends on, depth first,
/// then that operator, then what the second one still lacks, and so on. An operator runs shortly
/// before it is needed, which keeps few tensors waiting. O(V + E).
std::vector<int32_t> depth_first_order(const Graph& graph);

/// A topological order by depth (Graph::depth()), ties by number. O(V).
std::vector<int32_t> breadth_first_order(const Graph& graph);

/// The longest path of a graph whose operators and edges take time.
struct LongestPath {
  std::vector<int32_t> operators;  ///< along the path; ties go to the lowest number
  double length_s = 0;             ///< times of its operators and of the edges between them
  /// Per operator: the longest path that ends where it starts (its earliest start with a device
  /// for every operator), and the longest path from its start on, its own time included.
  std::vector<double> start_s, tail_s;
};

/// `operator_time_s`: an entry an operator; `edge_time_s`: an entry an edge in the order of
/// Graph::csr(), or empty where edges take no time. Throws ArgumentError for a time that is
/// negative, infinite or no number. O(V + E); Boost's DAG paths know neither times of vertices nor
/// several sources, so this is a sweep of our own.
LongestPath longest_path(const Graph& graph, std::span<const double> operator_time_s,
                         std::span<const double> edge_time_s = {});

/// Immediate dominator of every operator: the last operator that all paths from `root` to it run
/// through. -1 for `root` itself and for operators that it does not reach. With root -1 paths
/// start at any operator without inputs, and -1 also says that nothing dominates an operator.
///
/// One sweep in topological order: an operator's immediate dominator is the deepest common
/// ancestor of its predecessors in the tree of dominators so far (Cooper, Harvey and Kennedy, "A
/// simple, fast dominance algorithm", 2001, needs no second sweep without cycles), found with jump
/// pointers (Myers, "An applicative random-access stack", 1983): O((V + E) log V).
/// Boost's Lengauer-Tarjan descends by recursion and overflows the stack on deep graphs.
std::vector<int32_t> dominators(const Graph& graph, int32_t root = -1);

/// The same backwards: the first operator that all paths from an operator to `exit` run through;
/// with exit -1 paths end at any operator without readers.
std::vector<int32_t> post_dominators(const Graph& graph, int32_t exit = -1);

/// Operators that a path leads to from one of `from`, without those of `from` that none leads to.
/// O(V + E).
std::vector<int32_t> descendants(const Graph& graph, std::span<const int32_t> from);

/// Operators that a path leads from to one of `to`.
std::vector<int32_t> ancestors(const Graph& graph, std::span<const int32_t> to);

/// Weakly connected components, numbered from 0 by their first operators.
struct Components {
  int32_t count = 0;
  std::vector<int32_t> component;  ///< per operator
};
Components weak_components(const Graph& graph);

/// Operators whose removal leaves more weakly connected components than before. O(V + E).
std::vector<int32_t> articulation_points(const Graph& graph);

/// Betweenness of every operator: over all ordered pairs of other operators, the share of shortest
/// paths (in edges) between the two that run through it. Brandes, "A faster algorithm for
/// betweenness centrality", 2001: O(V E) time, seconds from about 10^4 operators on; O(V + E)
/// memory. Throws LimitError where two operators have more shortest paths between them than a
/// long double counts.
std::vector<double> betweenness(const Graph& graph);

}  // namespace trinity
