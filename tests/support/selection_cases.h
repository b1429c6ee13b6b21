#pragma once

#include <limits>
#include <vector>

#include "base/random.h"
#include "selection/selection.h"

// Random strategy-selection problems, and a trivially correct solver: enumeration.

namespace trinity {

struct SelectionCase {
  int32_t nodes = 5, most_states = 3;
  int32_t edges = 6;
  int forbid = 0;      ///< of about ten edge entries
  int bijections = 0;  ///< of ten edges: only permuted diagonals are allowed
  bool memory = false;
  bool whole = true;
};

inline SelectionProblem random_selection(RandomStream& random, const SelectionCase& how) {
  const auto below = [&](int64_t bound) {
    return static_cast<int64_t>(random.below(static_cast<uint64_t>(bound)));
  };
  const auto cost = [&] {
    const auto value = static_cast<double>(below(40)) - 5;  // some are gains
    return how.whole ? value : value + random.uniform();
  };
  SelectionProblem problem;
  for (int32_t v = 0; v < how.nodes; ++v) {
    const int64_t states = 1 + below(how.most_states);
    std::vector<double> costs;
    std::vector<int64_t> usage;
    for (int64_t s = 0; s < states; ++s) {
      costs.push_back(cost());
      usage.push_back(below(10));
    }
    const int64_t start = below(6);
    problem.add_node(costs, usage, {start, start + below(5)});
  }
  for (int32_t e = 0; e < how.edges; ++e) {
    const auto from = static_cast<int32_t>(below(how.nodes));
    const auto to = static_cast<int32_t>(below(how.nodes));
    const int32_t rows = problem.strategies(from), columns = problem.strategies(to);
    const bool bijection = rows == columns && below(10) < how.bijections;
    const int64_t turn = below(columns);
    std::vector<double> table;
    for (int32_t r = 0; r < rows; ++r)
      for (int32_t c = 0; c < columns; ++c) {
        const bool forbidden = bijection ? (r + turn) % columns != c : below(10) < how.forbid;
        table.push_back(forbidden ? 1e18 : cost());
      }
    problem.add_edge(from, to, table);
  }
  if (how.memory) problem.usage_limit = below(5 * how.nodes) + 1;
  return problem;
}

struct BestOfAll {
  bool feasible = false;
  double cost = std::numeric_limits<double>::infinity();
};

/// Enumerates all selections.
inline BestOfAll try_all_selections(const SelectionProblem& problem) {
  BestOfAll best;
  std::vector<int32_t> choice(static_cast<size_t>(problem.nodes()), 0);
  for (;;) {
    const auto score = score_selection(problem, choice);
    if (score.feasible() && score.cost < best.cost) best = {true, score.cost};
    int32_t v = problem.nodes() - 1;
    while (v >= 0 && ++choice[v] == problem.strategies(v)) choice[v--] = 0;
    if (v < 0) return best;
  }
}

}  // namespace trinity
