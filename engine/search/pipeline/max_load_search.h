#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "search/pipeline/max_load_cut.h"

namespace trinity {

/// The least largest load without the rule that parts are contiguous (the "non-contiguous cuts"
/// of Tarnawski et al. 2020, which their integer program looks for): simulated annealing over the
/// device of every unit, the same load as max_load_cut(). A unit that moves changes the loads of
/// two devices alone, so that a trial costs the nets that the unit touches and nothing else.
///
/// Rounds of several chains, each from the best so far, from a contiguous cut or from anywhere;
/// what a chain draws follows from seed, round and its number, so that results are the same for any
/// number of threads. The energy is the sum of the 12th powers of the loads over the best so far,
/// nearly the largest load, but it also tells cuts apart whose largest load is the same.
struct MaxLoadSearchOptions {
  uint64_t seed = 1;
  int32_t rounds = 6, chains = 4;  ///< chains of a round run side by side
  int32_t first_round = 0;         ///< of this call: a search may go on with its best as a start
  int64_t trials = 2'000'000;      ///< of a chain
  double seconds = 1e9;            ///< wall-clock time; results then depend on the machine
  std::vector<std::vector<int32_t>> starts;  ///< devices of all nodes, each of whole units
};

/// The best found. `exact` says that the work alone allows no better, or that the units that only
/// CPUs support, or the memory of all, cannot fit. Throws as max_load_cut() does, and
/// Interrupted.
MaxLoadCut max_load_search(const LoadInstance& instance, const MaxLoadSearchOptions& options,
                           ThreadPool& pool);

/// Whether every unit is on one device, every node where it is supported and every accelerator
/// within its memory.
bool is_feasible(const LoadInstance& instance, const std::vector<int32_t>& device);

/// What keeps a cut from fitting; -1: that does not.
struct LoadInfeasibility {
  int32_t device = -1;       ///< the accelerator with the most memory, where that is too much
  int64_t needed_bytes = 0;  ///< of that device
  int32_t node = -1;         ///< the first one on an accelerator that only CPUs support
};
LoadInfeasibility infeasibility_of(const LoadInstance& instance,
                                   const std::vector<int32_t>& device);

/// The least largest load that the work alone allows any cut.
double max_load_bound_s(const LoadInstance& instance);

}  // namespace trinity
