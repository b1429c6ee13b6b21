#pragma once

#include <cstdint>
#include <vector>

#include "search/placement/task_graph.h"
#include "strategy/schedule.h"

namespace trinity {

/// What a list scheduler returns: where every task runs, and when it runs in the scheduler's own
/// model. That model differs from the simulator's, so `makespan` is a prediction, not a price.
struct ListSchedule {
  std::vector<int32_t> processor;   ///< of every task
  std::vector<int64_t> start, end;  ///< of every task, from 0
  int64_t makespan = 0;             ///< the last end
  std::vector<int32_t> sequence;    ///< all tasks in the order in which they were scheduled
};

/// The list schedulers below share a model: a task runs on one processor without pause; what it
/// reads from a task on another processor arrives wire() after that task's end (the wires of
/// several tensors between two tasks one after the other), however much else is under way. No
/// memory limit: none of these papers has one.
///
/// Tasks of one group (a colocation unit) share a processor: the first of them that is scheduled
/// chooses it. Tasks that follow (see TaskGraph) are scheduled just before their first reader.
/// Where every group has one task and every task a cost this is the published algorithm.
///
/// All are deterministic and throw Interrupted on a wish to stop.

/// HEFT (Topcuoglu, Hariri and Wu, IEEE TPDS 13(3), 2002): tasks by falling upward rank (ties: the
/// lower number) on the processor where they end first (ties: the lower number), in an idle gap
/// between tasks where one is long enough. O(edges * processors + tasks^2) at worst.
ListSchedule heft(const TaskGraph& graph);

/// CPOP of the same paper: the ready task of largest upward plus downward rank first; those of
/// the critical path on the one processor where their costs sum to least, others as in HEFT.
ListSchedule cpop(const TaskGraph& graph);

/// ETF (Hwang, Chow, Anger and Lee, SIAM J. Computing 18(2), 1989): of all ready tasks and
/// processors the pair that can start first; ties: the largest static level, then the lower task,
/// then the lower processor. Nothing is inserted before what is already scheduled.
/// O((edges + tasks log tasks) * processors).
ListSchedule etf(const TaskGraph& graph);

/// The order in which a list schedule runs its tasks, for the simulator: on every processor by
/// start, then by place in `sequence`. It cannot deadlock: `sequence` is a topological order.
Schedule order_schedule(const ListSchedule& list, int32_t processors);

}  // namespace trinity
