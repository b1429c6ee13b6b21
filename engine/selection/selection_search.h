#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "selection/selection_memory.h"
#include "selection/selection_model.h"

namespace trinity {

struct SelectionSearchOptions {
  uint64_t seed = 1;
  int64_t rounds = std::numeric_limits<int64_t>::max();
  bool whole = false;  ///< all costs are integers
  /// Called often, from two threads: seconds that the search may still use. A round ends early if
  /// the next steps would take longer.
  std::function<double()> seconds_left;
  /// Called after every round with the best cost and the bound; the search continues while it
  /// returns true. Default: always.
  std::function<bool(double cost, double bound)> go_on;
};

struct SelectionFound {
  std::vector<int32_t> states;  ///< the best, or those that exceed the limit least
  double cost = std::numeric_limits<double>::infinity();  ///< infinite: no feasible selection found
  double bound = -std::numeric_limits<double>::infinity();  ///< infinite: proven infeasible
  bool stopped = false;                                     ///< by the user
};

/// The anytime search, for problems that are too large for elimination: SelectionDual and, from its
/// rounded selections, SelectionBlocks and SelectionWindows; after prices have converged,
/// SelectionBranch. Works in rounds of a fixed number of steps, with two jobs per round that are
/// joined at its end. Results depend only on the seed and the number of rounds, not on threads.
/// Ends early if the bound proves optimality. stop_flag() ends it with the best so far.
///
/// Forbidden pairs of the model first get a finite cost above all others.
SelectionFound search_selection(SelectionModel& model, const SelectionMemory& memory,
                                const SelectionSearchOptions& options, ThreadPool& pool);

/// True if a bound proves that nothing costs less than `cost`: within a relative 1e-12 or, if all
/// costs are integers (`whole`), within less than 1.
bool proves(double bound, double cost, bool whole);

}  // namespace trinity
