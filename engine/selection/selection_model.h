#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "selection/selection.h"

namespace trinity {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A selection problem made smaller without losing any feasible selection that could be best
/// (rules in selection_model.cpp). What the solvers work on.
///
/// A node here stands for members, nodes of the problem whose strategies follow from its state; an
/// edge for all edges between two nodes. A cost is finite or infinite (forbidden); every state has
/// a finite pair on every edge.
struct SelectionModel {
  struct Member {
    int32_t node = 0;               ///< of the problem
    std::vector<int32_t> strategy;  ///< by state
  };
  struct Node {
    std::vector<double> cost;  ///< by state, finite
    std::vector<Member> members;
    int32_t states() const { return static_cast<int32_t>(cost.size()); }
  };
  struct Edge {
    int32_t u = 0, v = 0;       ///< u < v, at most one edge a pair
    std::vector<double> table;  ///< row-major: state of u times states of v
  };

  std::vector<Node> nodes;
  std::vector<Edge> edges;
  double constant = 0;      ///< cost of what every selection has
  bool infeasible = false;  ///< proven: every selection has something forbidden

  int32_t size() const { return static_cast<int32_t>(nodes.size()); }
  /// The cost of states, one a node; infinite where something is forbidden.
  double cost(std::span<const int32_t> states) const;
};

/// The model of a problem, which must pass check(). `go_on` is asked every some thousand steps;
/// once it says no, what is left is not made smaller, and pairs may be forbidden that no feasible
/// selection has. Without `fitting`, states stay that no selection within the limit has.
SelectionModel make_selection_model(const SelectionProblem& problem,
                                    const std::function<bool()>& go_on = {}, bool fitting = true);

/// The same without any rule: a node a node, an edge an edge. Forbidden costs, of states too, are
/// infinite.
SelectionModel plain_selection_model(const SelectionProblem& problem);

/// Strategies of all nodes of a problem of `nodes` nodes, from states of its model.
std::vector<int32_t> expand_states(const SelectionModel& model, int32_t nodes,
                                   std::span<const int32_t> states);

}  // namespace trinity
