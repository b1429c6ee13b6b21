#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/index.h"

namespace trinity {

/// The strategy-selection problem of PaSE (papers/notes.md "PaSE: formulation") and of the IOPDDL
/// contest (ASPLOS 2025): choose a strategy s_v for every node v to minimise
///
///     sum over nodes of node_cost(v)[s_v] + sum over edges of edge_cost(u, v)[s_u][s_v]
///
/// such that at every time t the usages of the nodes with start <= t < end sum to at most the
/// limit. All indices count from 0.
///
/// Costs have any unit and are doubles: sums of integers below 2^53 are exact. They may be negative
/// (a gain). A cost of kForbidden or more, infinity included, forbids its strategy or pair: a
/// selection that contains one is infeasible. Several edges may join two nodes, in either
/// direction, and an edge may join a node with itself (then its diagonal counts); their costs add
/// up. A node has at least one strategy; a problem may have no node. Read-only use is thread-safe.
struct SelectionProblem {
  static constexpr double kForbidden = 1e17;
  static constexpr double kLowestCost = -1e17;
  /// Limit on the sum over nodes of their largest usage, so that sums of usages cannot overflow.
  static constexpr int64_t kMostUsage = int64_t{1} << 61;
  static constexpr int32_t kMostNodes = 10'000'000;

  /// Lifetime of a node's usage: start <= t < end; none if both are equal.
  struct Interval {
    int64_t start, end;
  };
  struct Edge {
    int32_t from, to;
  };

  std::string name;
  std::optional<int64_t> usage_limit;  ///< none: usages do not matter

  std::vector<int64_t> node_offset{0};  ///< start of each node's strategies below, then the total
  std::vector<double> node_costs;
  std::vector<int64_t> usages;  ///< by strategy
  std::vector<Interval> live;   ///< by node

  std::vector<Edge> edges;
  std::vector<int64_t> edge_offset{0};  ///< start of each edge's pairs below, then the total
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

  /// Adds a node and returns its index. `usage` has one entry per strategy, or none (no usage).
  /// Throws ArgumentError ("nodes.costs[3]: expected ...") for no costs, a wrong number of usages,
  /// a cost that is NaN or below kLowestCost, a negative usage, or an interval that ends before it
  /// starts.
  int32_t add_node(std::span<const double> costs, std::span<const int64_t> usage = {},
                   Interval interval = {});
  /// Adds an edge. Throws ArgumentError ("edges.costs[7]: expected ...") for nodes that do not
  /// exist, a table of the wrong size, or a cost as above.
  void add_edge(int32_t from, int32_t to, std::span<const double> table);

  /// Throws ArgumentError for anything that add_node and add_edge refuse, if the tables were filled
  /// directly. Messages count nodes, edges and strategies from `first`.
  void check(int first = 0) const;
};

/// Value of a selection.
struct SelectionScore {
  double cost = 0;  ///< with forbidden costs unmodified, infinity included
  int64_t peak_usage = 0;
  bool forbidden = false;  ///< contains a forbidden strategy or pair
  bool fits = true;        ///< peak usage is within the limit

  bool feasible() const { return fits && !forbidden; }
};

/// Computes the score from the tables. Throws ArgumentError for a wrong number of entries or a
/// strategy that does not exist.
SelectionScore score_selection(const SelectionProblem& problem, std::span<const int32_t> choice);

}  // namespace trinity
