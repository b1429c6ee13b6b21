#pragma once

#include <memory>

#include "search/searcher.h"

namespace trinity {

struct BestOptions {
  uint64_t seed = 1;
  int64_t evaluations = 2000;      ///< the budget, see Searcher::evaluations()
  double scale = 0;                ///< see AnnealingOptions::scale
  std::vector<Assignment> starts;  ///< of the caller: scored beside the house's own
};

/// Placements that cost no simulation, each once: every kind of device alone, the contiguous split,
/// METIS, Scotch and Fiduccia-Mattheyses at two imbalances. Graphs of more than 20,000 units, on
/// which the last takes seconds, get none of it.
std::vector<Assignment> cheap_starts(const PlacementSpace& space, uint64_t seed);

/// The house's recommendation: every placement once where the budget allows it (and there are at
/// most 2^18), so that the result is the optimum; otherwise a search from the best of the caller's
/// starts and cheap_starts(), of which at most a quarter of the budget is scored, the caller's
/// first. The search is iterated local search (local_search.h) for up to 64 units, where it finds
/// the optimum more often, and annealing (annealing.h) beyond, where it ends 1 to 3 % lower on the
/// reference graphs.
std::unique_ptr<Searcher> best_search(const PlacementSpace& space, BestOptions options);

}  // namespace trinity
