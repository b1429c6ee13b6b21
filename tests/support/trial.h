#pragma once

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/collectives.h"
#include "simulator/simulator.h"

/// Shared by the files of the invariants (laws.h).
namespace trinity::test {

/// A run under test and its violations.
struct Trial {
  const Problem& problem;
  const Plan& plan;
  const Schedule& schedule;
  const Metrics& metrics;
  const Timeline& timeline;
  std::vector<std::string> broken = {};

  const SimulationRules& rules() const { return problem.rules(); }
  int32_t tasks() const { return problem.operators() * schedule.runs(); }
  bool stream() const { return schedule.stream > 0; }
  bool once(int32_t op) const { return !stream() && problem.once(op); }
  int32_t op_of(int32_t task) const { return task % problem.operators(); }
  int32_t micro_of(int32_t task) const { return task / problem.operators(); }
  int32_t device_of(int32_t task) const { return plan.placement[op_of(task)]; }
  bool member(int32_t task) const { return problem.graph().op(op_of(task)).collective >= 0; }
  bool runs(int32_t task) const {
    return !once(op_of(task)) || micro_of(task) + 1 == schedule.runs();
  }
  /// True if a reader waits for the last micro-batch of an operator.
  bool accumulates(int32_t op, int32_t reader) const {
    return schedule.runs() > 1 && once(reader) && !once(op);
  }
  std::string name(int32_t task) const {
    return fmt::format("'{}' of micro-batch {}", problem.graph().op(op_of(task)).name,
                       micro_of(task) + 1);
  }
  int64_t pause_after(int32_t task) const {
    const bool costs = problem.cost_ns(device_of(task), op_of(task)) > 0;
    return costs || rules().dead_after_free ? rules().device_dead_ns : 0;
  }

  /// Keeps only the first sentences: one error often violates a thousand invariants.
  template <class... Args>
  void demand(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (!holds && broken.size() < 20)
      broken.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
};

/// Tasks of every device in order of start; members of collectives occupy no device.
std::vector<std::vector<int32_t>> tasks_by_start(const Trial& trial);

/// The distinct devices of a collective, ascending.
std::vector<int32_t> ring_of(const Trial& trial, const Collective& collective);
CollectiveCost price_of(const Trial& trial, const Collective& collective);

/// A transfer or collective and the queues that it occupies from start to end.
struct Occupation {
  int64_t booked = 0, start = 0, end = 0;
  std::set<std::pair<int32_t, int32_t>> queues = {};  ///< (sender, receiver), (-1, channel), ...
  int64_t free = 0;  ///< when the last of its queues is free of earlier bookings
};
std::vector<Occupation> occupations(const Trial& trial);

/// Invariants of sums and peaks, of bounds, and of memory.
void judge_metrics(Trial& trial);
void judge_bounds(Trial& trial);
void judge_memory(Trial& trial);

}  // namespace trinity::test
