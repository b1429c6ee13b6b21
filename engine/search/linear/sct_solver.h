#pragma once

#include <cstdint>
#include <vector>

namespace trinity {

/// The linear program of SCT (Hanen and Munier 1995), as Baechi (Jeon et al., SoCC 2020) states
/// it (manual/papers.md "Baechi"). Of all edges out of an operator at most one leads to its
/// favourite child, whose data it need not send; a child is the favourite of at most one parent.
///
///   minimise w:  s_i + p_i + c_ij x_ij <= s_j     for every edge (i, j)
///                s_i + p_i <= w                   for every operator
///                sum_j x_ij >= outdegree(i) - 1,  sum_i x_ij >= indegree(j) - 1,  0 <= x <= 1
///
/// x = 0 means favourite; a fraction is rounded at 0.5.
struct SctProgram {
  struct Edge {
    int32_t from, to;
    double wire;          ///< c_ij
    bool joined = false;  ///< both ends share a device anyway: c = 0, no favourite
  };
  std::vector<double> time;  ///< p_i of every operator, in the unit of the wires
  std::vector<Edge> edges;   ///< from < to, at most one a pair
};

/// When the program is not handed to the solver, so that time is bounded whatever the graph.
/// Counts and not seconds: results must not depend on the machine. Measured: 17,244 edges
/// (InceptionV3 as TensorFlow's operations) 1.4 s and 21,617 iterations, 27,423 (NASNet-Large) 2.5
/// s and 33,280, 1,191 (InceptionV3 by layers) 0.06 s.
struct SctLimits {
  int32_t most_edges = 30000;
  int32_t most_iterations = 60000;
};

struct FavouriteChildren {
  std::vector<int32_t> child;   ///< of every operator, -1 for none
  std::vector<int32_t> parent;  ///< whose favourite it is, -1 for none: the edges form paths
  std::vector<double> x;        ///< of every edge before rounding; 0 or 1 without a solution
  /// Whether the program was solved to its optimum. Otherwise it was beyond the limits, and edges
  /// were taken greedily by the longest path through them with wires (ties: the lower edge).
  bool solved = false;
  double makespan = 0;  ///< w at the optimum, a relaxation's; 0 without a solution
  int32_t iterations = 0;
};

/// Solves the program with Clp; `longest` is the longest path with wires. Fills x, makespan and
/// iterations; false when the solver stopped before the optimum. The library that has it is opened
/// late (base/late.h) and called through favourite_children().
using SctSolver = bool(const SctProgram& program, const SctLimits& limits, double longest,
                       FavouriteChildren& result);

}  // namespace trinity
