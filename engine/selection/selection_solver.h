#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "selection/selection.h"

namespace trinity {

/// Where a solver stands, for a line of progress. Numbers are infinite until there are any.
struct SelectionProgress {
  const char* phase = "";  ///< "reducing", "eliminating", "searching"
  double seconds = 0;
  double cost = std::numeric_limits<double>::infinity();  ///< of the best feasible selection so far
  double bound = -std::numeric_limits<double>::infinity();
};

struct SelectionOptions {
  /// From the call on. The anytime search keeps it, reducing takes half of it at most. The exact
  /// solver starts where it should end in this time, by the number of its combinations.
  double seconds = 60;
  uint64_t seed = 1;
  /// Rounds of the anytime search at most: results then do not depend on the machine's speed.
  int64_t rounds = std::numeric_limits<int64_t>::max();
  /// The exact solver does not start when its tables would take more than this at any time.
  int64_t table_bytes = int64_t{2} << 30;
  /// Called from the calling thread, some times a second.
  std::function<void(const SelectionProgress&)> progress;
};

struct SelectionResult {
  /// The strategy of every node. Where nothing feasible was found: the selection of least peak or
  /// excess that was met, with something forbidden only where nothing else is.
  std::vector<int32_t> choice;
  double cost = 0;
  bool feasible = false;
  int64_t peak_usage = 0;
  double bound = -std::numeric_limits<double>::infinity();  ///< no feasible selection costs less
  bool optimal = false;  ///< proven; with feasible == false: proven that none is feasible
  bool stopped = false;  ///< by the user, before the end
  double seconds = 0;
  int64_t table_entries = 0;       ///< of all tables of the exact solver
  int64_t peak_table_entries = 0;  ///< held at one time
  /// Of the graph as given, in GenerateSeq's order: the largest dependent set |D(v)|, and the most
  /// combinations of strategies, of v and D(v), that a node needs; 0 where these pass 1e13.
  int32_t widest_set = 0;
  double largest_table = 0;
};

/// Solves a problem: exactly by elimination where its tables are small and the limit does not bind,
/// or by trying all selections where these are few; else with search_selection().
///
/// Throws what SelectionProblem::check() throws. Ctrl-C (stop_flag()) ends it with the best so far.
/// Results depend on `seconds` alone where that ends the search; else on problem, seed and rounds.
SelectionResult solve_selection(const SelectionProblem& problem, const SelectionOptions& options,
                                ThreadPool& pool);

}  // namespace trinity
