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
  bool whole = false;  ///< all costs are whole numbers
  /// Asked often, from two threads: how long the search may go on. A round ends early where what
  /// follows it would take longer.
  std::function<double()> seconds_left;
  /// Told the best cost and the bound after every round; the search goes on while it returns
  /// true; by default, always.
  std::function<bool(double cost, double bound)> go_on;
};

struct SelectionFound {
  std::vector<int32_t> states;  ///< the best, or those that break the limit least
  double cost = std::numeric_limits<double>::infinity();  ///< infinite: none found that is feasible
  double bound = -std::numeric_limits<double>::infinity();  ///< infinite: none is feasible, proven
  bool stopped = false;                                     ///< by the user
};

/// The anytime search, for problems that elimination cannot take: SelectionDual and, from what it
/// rounds to, SelectionBlocks and SelectionWindows; once prices have settled, SelectionBranch.
/// Works in rounds of a fixed number of steps, two jobs a round that meet at its end; what is found
/// depends on the seed and the number of rounds only, not on threads. Ends early where the bound
/// proves the best. stop_flag() ends it with the best so far.
///
/// Where the model forbids pairs, these get a finite cost above all others first.
SelectionFound search_selection(SelectionModel& model, const SelectionMemory& memory,
                                const SelectionSearchOptions& options, ThreadPool& pool);

/// Whether a bound proves that nothing costs less than `cost`: to 1e-12 relative, or where all
/// costs of the problem are `whole` numbers, to less than one.
bool proves(double bound, double cost, bool whole);

}  // namespace trinity
