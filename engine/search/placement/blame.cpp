#include "search/placement/blame.h"

#include <algorithm>
#include <utility>

namespace trinity {
namespace {

double ns(int64_t time) { return static_cast<double>(time); }

/// [device]: its tasks in order.
std::vector<std::vector<int32_t>> by_device(const Problem& problem,
                                            std::span<const int32_t> placement,
                                            std::span<const int32_t> order) {
  std::vector<std::vector<int32_t>> tasks(static_cast<size_t>(problem.devices()));
  for (const int32_t task : order) tasks[placement[task]].push_back(task);
  return tasks;
}

}  // namespace

std::vector<int32_t> by_start(const Timeline& timeline) {
  std::vector<std::pair<int64_t, int32_t>> keys(timeline.start_ns.size());
  for (size_t task = 0; task < keys.size(); ++task)
    keys[task] = {timeline.start_ns[task], static_cast<int32_t>(task)};
  std::sort(keys.begin(), keys.end());
  std::vector<int32_t> order(keys.size());
  std::transform(keys.begin(), keys.end(), order.begin(), [](const auto& key) { return key.second; });
  return order;
}

Blame::Blame(const Problem& problem, std::span<const int32_t> placement, const Timeline& timeline,
             const CriticalPath& path, std::span<const int32_t> order, int32_t units)
    : times_(static_cast<size_t>(units)) {
  const auto unit_of = problem.graph().units();
  const auto tasks = by_device(problem, placement, order);
  // Attributes the wait of a path's task to the tasks that ran on its device meanwhile.
  const auto add_queue = [&](const PathStep& step) {
    const auto& list = tasks[timeline.device[step.index]];
    auto task = std::partition_point(list.begin(), list.end(), [&](int32_t earlier) {
      return timeline.end_ns[earlier] <= step.ready_ns;
    });
    for (; task != list.end() && timeline.start_ns[*task] < step.start_ns; ++task)
      times_[unit_of[*task]].queue_ns +=
          ns(timeline.end_ns[*task] - std::max(step.ready_ns, timeline.start_ns[*task]));
  };
  int32_t reader = -1;
  for (auto step = path.steps.rbegin(); step != path.steps.rend(); ++step) {
    if (step->kind == PathStep::Kind::collective) continue;
    if (step->kind == PathStep::Kind::compute) {
      reader = step->index;
      times_[unit_of[reader]].computation_ns += ns(step->end_ns - step->start_ns);
      times_[unit_of[reader]].held_ns += ns(step->start_ns - step->ready_ns);
      add_queue(*step);
      continue;
    }
    const double length_ns = ns(step->end_ns - step->ready_ns);
    times_[unit_of[timeline.transfers[step->index].task]].transfer_ns += length_ns;
    if (reader >= 0) times_[unit_of[reader]].transfer_ns += length_ns;
  }
}

}  // namespace trinity
