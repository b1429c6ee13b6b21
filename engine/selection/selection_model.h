#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "selection/selection.h"

namespace trinity {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A selection problem, reduced without losing any feasible selection that could be optimal (rules
/// in selection_model.cpp). Input of the solvers.
///
/// A node of the model has members: nodes of the problem whose strategies follow from its state. An
/// edge represents all edges between two nodes. A cost is finite or infinite (forbidden); every
/// state has a finite pair on every edge.
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
    int32_t u = 0, v = 0;       ///< u < v, at most one edge per pair
    std::vector<double> table;  ///< row-major: [state of u][state of v]
  };

  std::vector<Node> nodes;
  std::vector<Edge> edges;
  double constant = 0;      ///< cost common to all selections
  bool infeasible = false;  ///< proven: every selection contains something forbidden

  int32_t size() const { return static_cast<int32_t>(nodes.size()); }
  /// Cost of one state per node; infinite if something is forbidden.
  double cost(std::span<const int32_t> states) const;
};

/// Reduces a problem that has passed check(). go_on() is called every few thousand steps; once it
/// returns false, the rest is not reduced, and edges may keep pairs that no feasible selection has.
/// fitting: remove states that no selection within the limit has.
SelectionModel make_selection_model(const SelectionProblem& problem,
                                    const std::function<bool()>& go_on = {}, bool fitting = true);

/// The same without reduction: nodes and edges map one to one. Forbidden costs, also of states, are
/// infinite.
SelectionModel plain_selection_model(const SelectionProblem& problem);

/// Strategies of all `nodes` nodes of the problem, from states of its model.
std::vector<int32_t> expand_states(const SelectionModel& model, int32_t nodes,
                                   std::span<const int32_t> states);

}  // namespace trinity
