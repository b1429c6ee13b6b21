#pragma once

#include <span>

#include "base/thread_pool.h"
#include "search/placement/searcher.h"
#include "simulator/simulator.h"

namespace trinity {

/// Searcher::Trials::limit for a simulator: a nanosecond more, so that the limit itself is not lost
/// in rounding.
int64_t limit_ns_of(double limit_s);

/// A search whose scores are step times, with the simulator of its thread.
struct SideSearch {
  Searcher* searcher;
  Simulator* simulator;
};

/// Runs each search by step times for `evaluations` more, or until it has nothing left to try; each
/// in one thread of the pool. What it finds depends on neither the threads nor the other searches.
/// Throws Interrupted where a stop is asked for; the searches are at their end then, best and all.
void run_side_by_side(std::span<const SideSearch> searches, int64_t evaluations, ThreadPool& pool);

}  // namespace trinity
