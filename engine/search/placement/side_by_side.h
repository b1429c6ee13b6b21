#pragma once

#include <span>

#include "base/thread_pool.h"
#include "search/placement/searcher.h"
#include "simulator/simulator.h"

namespace trinity {

/// Searcher::Trials::limit for a simulator, plus one nanosecond so that rounding does not exclude
/// the limit itself.
int64_t limit_ns_of(double limit_s);

/// A search on step times, with the simulator of its thread.
struct SideSearch {
  Searcher* searcher;
  Simulator* simulator;
};

/// Runs each search on step times for `evaluations` more, or until its end; each in one thread of
/// the pool. Results depend on neither the threads nor the other searches. Throws Interrupted on a
/// stop request; the searches are then in a valid state and have their best placements.
void run_side_by_side(std::span<const SideSearch> searches, int64_t evaluations, ThreadPool& pool);

}  // namespace trinity
