#pragma once

#include <span>

#include "base/thread_pool.h"
#include "search/placement/annealing.h"
#include "simulator/simulator.h"

namespace trinity {

/// Runs one annealing by step times on all threads of the pool, for `evaluations` more: a trial is
/// drawn as soon as another one has been judged, so that `in_flight` of them are open at any time,
/// and no thread waits for the others of a batch. Trials are judged in the order in which they were
/// drawn: what it finds depends on `in_flight` alone, not on the threads.
///
/// simulators: one for each thread of the pool. Throws Interrupted where a stop is asked for; the
/// search is at its end then, best and all.
void run_in_flight(Annealing& search, std::span<Simulator> simulators, int32_t in_flight,
                   int64_t evaluations, ThreadPool& pool);

}  // namespace trinity
