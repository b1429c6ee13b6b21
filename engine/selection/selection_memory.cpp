#include "selection/selection_memory.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/index.h"

namespace trinity {
namespace {

/// Times that can be peaks: each the last before some usage ends.
std::vector<int64_t> peak_times(const SelectionProblem& problem) {
  std::vector<std::pair<int64_t, bool>> events;  // time, is a start; ends come first
  for (int32_t v = 0; v < problem.nodes(); ++v) {
    const auto live = problem.live[at(v)];
    if (live.start == live.end) continue;
    events.emplace_back(live.start, true);
    events.emplace_back(live.end, false);
  }
  std::sort(events.begin(), events.end());
  std::vector<int64_t> times;
  for (size_t i = 0; i + 1 < events.size(); ++i)
    if (events[i].second && !events[i + 1].second) times.push_back(events[i].first);
  return times;
}

/// Minimum and maximum usage of a member over the states of its node.
std::pair<int64_t, int64_t> usage_range(std::span<const int64_t> usage,
                                        const SelectionModel::Member& member) {
  int64_t low = usage[at(member.strategy[0])], high = low;
  for (const int32_t s : member.strategy) {
    low = std::min(low, usage[at(s)]);
    high = std::max(high, usage[at(s)]);
  }
  return {low, high};
}

/// Index of the first of `times` at or after `time`. An interval covers the slots from its start's
/// to its end's.
int32_t slot(const std::vector<int64_t>& times, int64_t time) {
  return static_cast<int32_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
}

}  // namespace

SelectionMemory::SelectionMemory(const SelectionProblem& problem, const SelectionModel& model) {
  first_.assign(model.nodes.size() + 1, 0);
  first_change_.assign(model.nodes.size() + 1, 0);
  if (!problem.usage_limit || model.infeasible) return;
  const auto times = keep_slots(problem, model);
  for (size_t v = 0; v < model.nodes.size(); ++v) {
    add_node(problem, model.nodes[v], times);
    first_[v + 1] = static_cast<int64_t>(breakpoints_.size());
    first_change_[v + 1] = static_cast<int64_t>(changes_.size());
  }
}

/// Fills room_ for slots that can bind; returns their times.
std::vector<int64_t> SelectionMemory::keep_slots(const SelectionProblem& problem,
                                                 const SelectionModel& model) {
  const auto times = peak_times(problem);
  std::vector<int64_t> least(times.size() + 1, 0), most(times.size() + 1, 0), kept;
  for (const auto& node : model.nodes)
    for (const auto& member : node.members) {
      const auto live = problem.live[at(member.node)];
      if (live.start == live.end) continue;
      const auto [low, high] = usage_range(problem.usage(member.node), member);
      const auto begin = at(slot(times, live.start)), end = at(slot(times, live.end));
      least[begin] += low, least[end] -= low;
      most[begin] += high, most[end] -= high;
    }
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    low += least[i], high += most[i];
    if (high <= *problem.usage_limit) continue;
    kept.push_back(times[i]);
    room_.push_back(*problem.usage_limit - low);
  }
  return kept;
}

/// Adds breakpoints and changes of a node: its usages above the minimum, summed over its members.
void SelectionMemory::add_node(const SelectionProblem& problem, const SelectionModel::Node& node,
                               const std::vector<int64_t>& times) {
  const size_t states = node.cost.size();
  std::map<int32_t, std::vector<int64_t>> points;
  for (const auto& member : node.members) {
    const auto live = problem.live[at(member.node)];
    const int32_t begin = slot(times, live.start), end = slot(times, live.end);
    const auto usage = problem.usage(member.node);
    const auto [low, high] = usage_range(usage, member);
    if (live.start == live.end || begin == end || low == high) continue;
    auto& up = points.try_emplace(begin, states, 0).first->second;
    for (size_t s = 0; s < states; ++s) up[s] += usage[at(member.strategy[s])] - low;
    auto& down = points.try_emplace(end, states, 0).first->second;
    for (size_t s = 0; s < states; ++s) down[s] -= usage[at(member.strategy[s])] - low;
  }
  for (const auto& [point, change] : points) breakpoints_.push_back(point);
  for (size_t s = 0; s < states; ++s)
    for (const auto& [point, change] : points) changes_.push_back(change[s]);
}

SelectionMemory::SelectionMemory(const SelectionMemory& whole,
                                 const std::vector<std::vector<int32_t>>& kept)
    : room_(whole.room_), first_{0}, first_change_{0} {
  std::vector<int64_t> least(room_.size() + 1, 0);  // changes of the common usage
  for (size_t v = 0; v < kept.size(); ++v) {
    add_kept(whole, static_cast<int32_t>(v), kept[v], least);
    if (kept[v].size() == 1) continue;
    first_.push_back(static_cast<int64_t>(breakpoints_.size()));
    first_change_.push_back(static_cast<int64_t>(changes_.size()));
  }
  int64_t level = 0;
  for (size_t t = 0; t < room_.size(); ++t) {
    level += least[t];
    room_[t] -= level;
  }
}

/// Adds a node with some states: its usages above their minimum, which goes to `least`.
void SelectionMemory::add_kept(const SelectionMemory& whole, int32_t v,
                               const std::vector<int32_t>& kept, std::vector<int64_t>& least) {
  const auto points = whole.breakpoints(v);
  std::vector<int64_t> level(kept.size(), 0), above(kept.size() * points.size());
  std::vector<int64_t> low(points.size());
  bool any = false;
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t k = 0; k < kept.size(); ++k) level[k] += whole.changes(v, kept[k])[i];
    low[i] = *std::min_element(level.begin(), level.end());
    least[at(points[i])] += low[i] - (i > 0 ? low[i - 1] : 0);
    for (size_t k = 0; k < kept.size(); ++k) {
      above[k * points.size() + i] = level[k] - low[i];
      any |= level[k] != low[i];
    }
  }
  if (!any) return;
  breakpoints_.insert(breakpoints_.end(), points.begin(), points.end());
  for (size_t j = 0; j < above.size(); ++j)
    changes_.push_back(above[j] - (j % points.size() > 0 ? above[j - 1] : 0));
}

std::vector<int32_t> SelectionMemory::fitting(int32_t v, int32_t states) const {
  const auto points = breakpoints(v);
  std::vector<int64_t> tightest;  // minimum free memory between consecutive breakpoints
  for (size_t i = 0; i < points.size(); ++i) {
    const auto end = i + 1 < points.size() ? points[i + 1] : slots();
    tightest.push_back(points[i] < end
                           ? *std::min_element(room_.begin() + points[i], room_.begin() + end)
                           : std::numeric_limits<int64_t>::max());
  }
  std::vector<int32_t> fit;
  for (int32_t s = 0; s < states; ++s) {
    const auto change = changes(v, s);
    int64_t level = 0;
    bool fits = true;
    for (size_t i = 0; i < points.size() && fits; ++i) {
      level += change[i];
      fits = level <= tightest[i];
    }
    if (fits) fit.push_back(s);
  }
  return fit;
}

std::vector<int64_t> SelectionMemory::sum_changes(std::span<const int32_t> states) const {
  std::vector<int64_t> sums(room_.size() + 1, 0);
  for (int32_t v = 0; v + 1 < static_cast<int32_t>(first_.size()); ++v) {
    const auto points = breakpoints(v);
    const auto change = changes(v, states[at(v)]);
    for (size_t i = 0; i < points.size(); ++i) sums[at(points[i])] += change[i];
  }
  return sums;
}

void SelectionMemory::move(std::span<int64_t> sums, int32_t v, int32_t from, int32_t to) const {
  const auto points = breakpoints(v);
  const auto old = changes(v, from), next = changes(v, to);
  for (size_t i = 0; i < points.size(); ++i) sums[at(points[i])] += next[i] - old[i];
}

}  // namespace trinity
