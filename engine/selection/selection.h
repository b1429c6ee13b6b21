#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/index.h"

namespace trinity {

/// The strategy-selection problem of PaSE (papers/notes.md "PaSE: formulation") and of the IOPDDL
/// contest (ASPLOS 2025):
/// choose a strategy s_v for every node v so that
///
///     sum over nodes of node_cost(v)[s_v] + sum over edges of edge_cost(u, v)[s_u][s_v]
///
/// is least while, at every time t, the usages of the nodes with start <= t < end sum to at most
/// the limit. Everything counts from 0.
///
/// Costs are any unit, in doubles: sums of whole numbers below 2^53 are exact. They may be negative
/// (a gain). A cost of kForbidden or more, infinity included, forbids its strategy or pair: a
/// selection with one is not feasible. Several edges may join two nodes, in either direction, and
/// an edge may join a node with itself (then its diagonal counts); their costs add up. A node must
/// have a strategy; the problem may have no node.
struct SelectionProblem {
  static constexpr double kForbidden = 1e17;
  static constexpr double kLowestCost = -1e17;
  /// Of the sum over nodes of their largest usage, so that no sum of usages overflows.
  static constexpr int64_t kMostUsage = int64_t{1} << 61;
  static constexpr int32_t kMostNodes = 10'000'000;

  /// When the usage of a node counts: start <= t < end; never where both are equal.
  struct Interval {
    int64_t start, end;
  };
  struct Edge {
    int32_t from, to;
  };

  std::string name;
  std::optional<int64_t> usage_limit;  ///< none: usages do not matter

  std::vector<int64_t> node_offset{0};  ///< of each node's first strategy below, then the total
  std::vector<double> node_costs;
  std::vector<int64_t> usages;  ///< by strategy
  std::vector<Interval> live;   ///< by node

  std::vector<Edge> edges;
  std::vector<int64_t> edge_offset{0};  ///< of each edge's first pair below, then the total
  std::vector<double> edge_costs;       ///< row-major: s_from * strategies(to) + s_to

  int32_t nodes() const { return static_cast<int32_t>(node_offset.size()) - 1; }
  int32_t strategies(int32_t v) const {
    return static_cast<int32_t>(node_offset[at(v) + 1] - node_offset[at(v)]);
  }
  std::span<const double> costs(int32_t v) const {
    return std::span(node_costs).subspan(at(node_offset[at(v)]), at(strategies(v)));
  }
  std::span<const int64_t> usage(int32_t v) const {
    return std::span(usages).subspan(at(node_offset[at(v)]), at(strategies(v)));
  }
  std::span<const double> edge_table(size_t e) const {
    return std::span(edge_costs)
        .subspan(at(edge_offset[e]), at(edge_offset[e + 1] - edge_offset[e]));
  }

  /// Adds a node and returns its number. `usage` has an entry a strategy, or none (no usage).
  /// Throws ArgumentError ("nodes.costs[3]: expected ...") for no costs, another number of usages,
  /// a cost that is NaN or below kLowestCost, a negative usage, an interval that ends before it
  /// starts.
  int32_t add_node(std::span<const double> costs, std::span<const int64_t> usage = {},
                   Interval interval = {});
  /// Adds an edge. Throws ArgumentError ("edges.costs[7]: expected ...") for nodes that do not
  /// exist, a table of another size, a cost as above.
  void add_edge(int32_t from, int32_t to, std::span<const double> table);

  /// Throws ArgumentError for anything that add_node and add_edge refuse, where the tables were
  /// filled directly. Messages count nodes, edges and strategies from `first`.
  void check(int first = 0) const;
};

/// What a selection is worth.
struct SelectionScore {
  double cost = 0;  ///< with forbidden costs as they stand, infinity included
  int64_t peak_usage = 0;
  bool forbidden = false;  ///< some strategy or pair is
  bool fits = true;        ///< the peak is within the limit

  bool feasible() const { return fits && !forbidden; }
};

/// Adds up a selection from the tables. Throws ArgumentError for another number of entries or a
/// strategy that does not exist.
SelectionScore score_selection(const SelectionProblem& problem, std::span<const int32_t> choice);

}  // namespace trinity
