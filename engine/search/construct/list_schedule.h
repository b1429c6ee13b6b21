#pragma once

#include <cstdint>
#include <vector>

#include "search/placement/task_graph.h"
#include "strategy/schedule.h"

namespace trinity {

/// Result of a list scheduler: where every task runs, and when, in the scheduler's own model. This
/// model differs from the simulator's, so `makespan` is an estimate, not the simulated step time.
struct ListSchedule {
  std::vector<int32_t> processor;   ///< [task]
  std::vector<int64_t> start, end;  ///< [task], from 0
  int64_t makespan = 0;             ///< the last end
  std::vector<int32_t> sequence;    ///< all tasks in the order in which they were scheduled
};

/// All list schedulers below share a model. A task runs on one processor without interruption. A
/// tensor from a task on another processor arrives wire() after that task's end (several tensors
/// between two tasks one after the other), without contention. There is no memory limit, as in the
/// papers.
///
/// Tasks of one group (a colocation unit) share a processor: the first of them that is scheduled
/// chooses it. Tasks that follow (see TaskGraph) are scheduled just before their first reader. If
/// every group has one task and every task a cost, this is the published algorithm.
///
/// All are deterministic and throw Interrupted on a stop request.

/// HEFT (Topcuoglu, Hariri and Wu, IEEE TPDS 13(3), 2002): tasks by falling upward rank (ties: the
/// lower number) on the processor where they end first (ties: the lower number), in an idle gap
/// between tasks if one is long enough. O(edges * processors + tasks^2) at worst.
ListSchedule heft(const TaskGraph& graph);

/// CPOP of the same paper: the ready task of largest upward plus downward rank first; tasks of the
/// critical path on the one processor with the minimum sum of their costs, others as in HEFT.
ListSchedule cpop(const TaskGraph& graph);

/// ETF (Hwang, Chow, Anger and Lee, SIAM J. Computing 18(2), 1989): of all ready tasks and
/// processors the pair that can start first; ties: the largest static level, then the lower task,
/// then the lower processor. Nothing is inserted before scheduled tasks. O((edges + tasks log
/// tasks) * processors).
ListSchedule etf(const TaskGraph& graph);

/// The order in which a list schedule runs its tasks, for the simulator: on every processor by
/// start, then by position in `sequence`. It cannot deadlock: `sequence` is a topological order.
Schedule order_schedule(const ListSchedule& list, int32_t processors);

}  // namespace trinity
