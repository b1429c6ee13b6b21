#include "simulator/bind_schedule.h"

#include <algorithm>

#include "strategy/mesh_schedule.h"
#include "strategy/own_order.h"

namespace trinity {
namespace {

/// Priorities as integers in the same order.
std::vector<int64_t> ranks(const std::vector<double>& values) {
  auto sorted = values;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<int64_t> result;
  result.reserve(values.size());
  for (const double value : values)
    result.push_back(std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin());
  return result;
}

/// Longest path from an operator's start to the end of the step: the critical-path priority.
std::vector<int64_t> critical_path_priority(const Problem& problem) {
  std::vector<int64_t> priority;
  for (int32_t o = 0; o < problem.operators(); ++o)
    priority.push_back(problem.least_cost_ns(o) + problem.tail_ns(o));
  return priority;
}

/// Resolves a schedule description for a placement.
Schedule exact_schedule(const ScheduleSpec& spec, std::span<const int32_t> placement,
                        const Problem& problem) {
  if (is_pipeline(spec.name) || !spec.tasks.empty()) {
    const auto& graph = problem.graph();
    const bool said = !spec.stage.empty();
    const auto stage = said ? spec.stage : stages_by_device(graph, placement);
    std::vector<int32_t> turn;  // used if stages span several devices
    if (said && spec.stage.size() == placement.size())
      turn = turns_inside(problem, placement, stage);
    return pipeline_schedule(graph, placement, problem.devices(), stage, spec.micro_batches,
                             spec.tasks.empty() ? parse_choice<PipelineSchedule>(spec.name) : layout_of(spec.tasks),
                             turn, spec.tasks);
  }
  if (spec.name == kRoundRobin)
    return round_robin_schedule(problem.graph(), placement, problem.devices(), spec.stage,
                                spec.micro_batches);
  Schedule schedule;
  schedule.micro_batches = spec.micro_batches;
  const bool critical_path = spec.name == "critical_path";
  schedule.dispatch = critical_path ? DispatchRule::priority : parse_choice<DispatchRule>(spec.name);
  if (schedule.dispatch == DispatchRule::priority)
    schedule.priority = critical_path ? critical_path_priority(problem) : ranks(spec.priority);
  if (schedule.dispatch == DispatchRule::order) schedule.order_first.push_back(0);
  for (const auto& tasks : spec.order) {
    schedule.order.insert(schedule.order.end(), tasks.begin(), tasks.end());
    schedule.order_first.push_back(static_cast<int32_t>(schedule.order.size()));
  }
  return schedule;
}

}  // namespace

Schedule bind_schedule(const ScheduleSpec& spec, std::span<const int32_t> placement,
                       const Problem& problem, OnContradiction on_contradiction) {
  if (on_contradiction == OnContradiction::fail) return exact_schedule(spec, placement, problem);
  try {
    return exact_schedule(spec, placement, problem);
  } catch (const ScheduleError&) {
    Schedule instead;
    instead.micro_batches = spec.micro_batches;
    instead.contradicts = true;
    return instead;
  }
}

}  // namespace trinity
