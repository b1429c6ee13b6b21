#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace trinity {

// Graph algorithms for heuristics, over Graph::csr(). They use Boost.Graph where its algorithm is
// safe for every graph. Operators are numbered from 0 in the graph's topological order; lists of
// operators are ascending unless stated otherwise. V is the number of operators, E the number of
// edges (one per tensor and reader, so two tensors between the same operators are two edges). Cuts:
// graph/cuts.h. Algorithms that may run for seconds poll the stop flag and throw Interrupted.

/// A topological order by need: depth first, the ancestors of the first operator without readers,
/// then that operator, then the remaining ancestors of the second one, and so on. Operators run
/// shortly before they are needed, which keeps few tensors alive. O(V + E).
std::vector<int32_t> depth_first_order(const Graph& graph);

/// A topological order by depth (Graph::depth()), ties by number. O(V).
std::vector<int32_t> breadth_first_order(const Graph& graph);

/// Longest path of a graph with times of operators and edges.
struct LongestPath {
  std::vector<int32_t> operators;  ///< along the path; ties: lowest number
  double length_s = 0;             ///< sum of the times of its operators and edges
  /// [operator]: longest path that ends at its start (its earliest start with one device per
  /// operator); longest path from its start, including its own time.
  std::vector<double> start_s, tail_s;
};

/// operator_time_s: [operator]; edge_time_s: [edge in the order of Graph::csr()], or empty if edges
/// take no time. Throws ArgumentError for a time that is negative, infinite or not a number. O(V +
/// E). Boost's DAG shortest paths support neither vertex times nor several sources, so this is a
/// traversal of our own.
LongestPath longest_path(const Graph& graph, std::span<const double> operator_time_s,
                         std::span<const double> edge_time_s = {});

/// Disjoint sets of the numbers 0 to n - 1 as a forest (union-find): root[i] is i for the number that names
/// its set, a joined one's smallest, else a number nearer to that. A new forest has root[i] = i. Not thread-safe.
/// find_root() halves the path that it follows.
inline int32_t find_root(std::vector<int32_t>& root, int32_t one) {
  while (root[one] != one) one = root[one] = root[root[one]];
  return one;
}

inline void join_sets(std::vector<int32_t>& root, int32_t a, int32_t b) {
  a = find_root(root, a), b = find_root(root, b);
  root[std::max(a, b)] = std::min(a, b);
}

}  // namespace trinity
