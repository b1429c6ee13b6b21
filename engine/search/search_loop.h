#pragma once

#include <functional>

#include "search/searcher.h"
#include "simulator/batch.h"

namespace trinity {

/// What ends a search that does not end by itself.
struct Budget {
  int64_t evaluations = 2000;       ///< see Searcher::evaluations()
  std::function<bool()> stop = {};  ///< asked before every batch; true ends the search
};

/// The best placement of a search.
struct Found {
  std::vector<int32_t> placement;  ///< device of every operator
  Metrics metrics;
  Score score;
  int64_t evaluations = 0;  ///< when it was found
};

/// Runs `searcher` within `budget`, pricing placements (first in first out, one micro-batch) with
/// `simulator`. `score` gives their worth; without it the step time in nanoseconds counts and
/// placements are rejected at the searcher's limit, which changes nothing but the time it takes.
/// `improved` is told every improvement. The result does not depend on the number of threads.
/// Throws ArgumentError when the budget is smaller than 1, Interrupted when the user stops.
Found run_search(Searcher& searcher, BatchSimulator& simulator, const Budget& budget,
                 const std::function<Score(const Metrics&)>& score = {},
                 const std::function<void(const Found&)>& improved = {});

}  // namespace trinity
