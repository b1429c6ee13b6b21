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
/// several sources, so this is a traversal of our own.
LongestPath longest_path(const Graph& graph, std::span<const double> operator_time_s,
                         std::span<const double> edge_time_s = {});

}  // namespace trinity
