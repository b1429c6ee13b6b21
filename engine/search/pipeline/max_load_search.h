#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "search/pipeline/max_load_cut.h"

namespace trinity {

/// Minimises the largest load without requiring contiguous parts (the "non-contiguous cuts" of
/// Tarnawski et al. 2020, found there by an integer program): simulated annealing over the device
/// of every unit, with the load of max_load_cut(). A moved unit changes the loads of only two
/// devices, so a trial costs only the nets that the unit touches.
///
/// Rounds of several chains, each from the best cut so far, a contiguous cut or a random one.
/// Random numbers depend on seed, round and chain number, so results do not depend on the number of
/// threads. The energy is the sum of the 12th powers of loads / best load, which is close to the
/// largest load but also distinguishes cuts with equal largest loads.
struct MaxLoadSearchOptions {
  uint64_t seed = 1;
  int32_t rounds = 6, chains = 4;  ///< chains of a round run in parallel
  /// number of the first round: a search may continue with its best as a start
  int32_t first_round = 0;
  int64_t trials = 2'000'000;      ///< per chain
  double seconds = 1e9;            ///< wall-clock time; results then depend on the machine
  std::vector<std::vector<int32_t>> starts;  ///< [node] devices, whole units together
};

/// The best cut found. `exact`: proven optimal by the bound on work, or proven infeasible because
/// units that only CPUs support, or the total memory, do not fit. Throws as max_load_cut(), and
/// Interrupted.
MaxLoadCut max_load_search(const LoadInstance& instance, const MaxLoadSearchOptions& options,
                           ThreadPool& pool);

/// True if every unit is on one device, every node is supported there, and every accelerator is
/// within its memory.
bool is_feasible(const LoadInstance& instance, const std::vector<int32_t>& device);

/// Reasons why a cut is infeasible; -1: does not apply.
struct LoadInfeasibility {
  int32_t device = -1;       ///< the accelerator with the most memory, if that is too much
  int64_t needed_bytes = 0;  ///< on that device
  int32_t node = -1;         ///< first node on an accelerator that only CPUs support
};
LoadInfeasibility infeasibility_of(const LoadInstance& instance,
                                   const std::vector<int32_t>& device);

/// Lower bound on the largest load of any cut, from work alone.
double max_load_bound_s(const LoadInstance& instance);

}  // namespace trinity
