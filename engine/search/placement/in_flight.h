#pragma once

#include <span>

#include "base/thread_pool.h"
#include "search/placement/annealing.h"
#include "simulator/simulator.h"

namespace trinity {

/// Searcher::Trials::limit for a simulator, plus one nanosecond so that rounding does not exclude the limit itself.
int64_t limit_ns_of(double limit_s);

/// Runs one annealing on step times, using all threads of the pool, for `evaluations` more. A new
/// trial starts as soon as one has been judged, so that `in_flight` trials are open at any time and
/// no thread waits for a batch. Trials are judged in launch order: results depend on `in_flight`,
/// not on the number of threads.
///
/// simulators: one per thread of the pool. Throws Interrupted on a stop request; the search is then
/// in a valid state and has its best placement.
void run_in_flight(Annealing& search, std::span<Simulator> simulators, int32_t in_flight,
                   int64_t evaluations, ThreadPool& pool);

}  // namespace trinity
