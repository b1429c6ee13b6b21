#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "selection/selection.h"

namespace trinity {

/// Progress of a solver. Numbers are infinite until known.
struct SelectionProgress {
  const char* phase = "";  ///< "reducing", "eliminating", "searching"
  double seconds = 0;
  double cost = std::numeric_limits<double>::infinity();  ///< of the best feasible selection so far
  double bound = -std::numeric_limits<double>::infinity();
};

struct SelectionOptions {
  /// Time limit, measured from the call. The anytime search respects it; reduction takes at most
  /// half of it. The exact solver starts only if it is estimated to end in time.
  double seconds = 60;
  uint64_t seed = 1;
  /// Maximum rounds of the anytime search: results then do not depend on the machine's speed.
  int64_t rounds = std::numeric_limits<int64_t>::max();
  /// The exact solver does not start if its tables would exceed this at any time.
  int64_t table_bytes = int64_t{2} << 30;
  /// Called from the calling thread, a few times per second.
  std::function<void(const SelectionProgress&)> progress;
};

struct SelectionResult {
  /// [node] strategy. If no feasible selection was found: the one with the smallest peak or excess;
  /// it contains something forbidden only if no other was found.
  std::vector<int32_t> choice;
  double cost = 0;
  bool feasible = false;
  int64_t peak_usage = 0;
  /// lower bound on every feasible selection
  double bound = -std::numeric_limits<double>::infinity();
  bool optimal = false;  ///< proven; with feasible == false: proven infeasible
  bool stopped = false;  ///< by the user, before the end
  double seconds = 0;
  int64_t table_entries = 0;       ///< of all tables of the exact solver
  int64_t peak_table_entries = 0;  ///< held at one time
  /// For the unreduced graph in GenerateSeq's order: size of the largest dependent set |D(v)|, and
  /// the largest number of combinations of strategies of v and D(v); 0 if these exceed 1e13.
  int32_t widest_set = 0;
  double largest_table = 0;
};

/// Solves a problem: exactly by elimination if its tables are small and the limit does not bind, or
/// by enumeration if there are few selections; else with search_selection().
///
/// Throws the errors of SelectionProblem::check(). Ctrl-C (stop_flag()) ends it with the best so
/// far. Results depend on time only if `seconds` ends the search; otherwise on problem, seed and
/// rounds.
SelectionResult solve_selection(const SelectionProblem& problem, const SelectionOptions& options,
                                ThreadPool& pool);

}  // namespace trinity
