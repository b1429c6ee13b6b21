#include "search/construct/list_schedule.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>

#include "base/index.h"
#include "base/stop.h"

namespace trinity {
namespace {

constexpr int32_t kPollEvery = 1024;

/// A list schedule in construction.
class Builder {
 public:
  explicit Builder(const TaskGraph& graph)
      : graph_(graph), group_processor_(graph.group_size.size(), -1), slots_(at(graph.processors)) {
    list_.processor.assign(at(graph.tasks), -1);
    list_.start.assign(at(graph.tasks), 0);
    list_.end.assign(at(graph.tasks), 0);
    list_.sequence.reserve(at(graph.tasks));
  }

  /// The processor of the task's group, or -1 if it is not placed.
  int32_t pinned(int32_t task) const { return group_processor_[graph_.group[task]]; }

  /// When all inputs of `task` have arrived on a processor. Unplaced tasks that follow count as
  /// available from the start.
  int64_t arrival(int32_t task, int32_t processor) const {
    int64_t latest = 0, wires = 0;
    const auto inputs = graph_.inputs(task);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto& edge = graph_.edges[inputs[i]];
      const int32_t at_present = list_.processor[edge.from];
      const int32_t from = at_present >= 0 ? at_present : pinned(edge.from);
      if (from >= 0) wires += graph_.wire(from, processor, edge.bytes);
      if (i + 1 < inputs.size() && graph_.edges[inputs[i + 1]].from == edge.from) continue;
      latest = std::max(latest, list_.end[edge.from] + wires);
      wires = 0;
    }
    return latest;
  }

  /// The earliest start at or after `ready` in a gap of a processor that is long enough for `time`.
  int64_t gap(int32_t processor, int64_t ready, int64_t time) const {
    const auto& slots = slots_[processor];
    auto slot = std::upper_bound(slots.begin(), slots.end(), ready,
                                 [](int64_t value, const Slot& s) { return value < s.end; });
    int64_t start = ready;
    for (; slot != slots.end() && start + time > slot->start; ++slot) start = slot->end;
    return start;
  }

  /// Places a task, preceded by inputs that follow it, in the first gap of a processor or, with
  /// `append`, after all its tasks. Returns the start.
  int64_t place(int32_t task, int32_t processor, bool append = false) {
    for (const int32_t follower : missing_followers(graph_, list_.processor, task)) {
      const int32_t own = pinned(follower);
      put(follower, own >= 0 ? own : processor, false);
    }
    return put(task, processor, append);
  }

  /// Places a task where it ends first; only on `only` unless that is -1.
  void place_earliest_end(int32_t task, int32_t only) {
    if (const int32_t own = pinned(task); own >= 0) only = own;
    int64_t best_end = std::numeric_limits<int64_t>::max();
    int32_t best = -1;
    for (int32_t p = 0; p < graph_.processors; ++p) {
      if (only >= 0 && p != only) continue;
      const int64_t time = graph_.cost_of(task, p);
      const int64_t end = gap(p, arrival(task, p), time) + time;
      if (end >= best_end) continue;
      best_end = end;
      best = p;
    }
    place(task, best);
  }

  /// Returns the schedule, after placing tasks that follow without readers.
  ListSchedule take() {
    for (int32_t t = 0; t < graph_.tasks; ++t)
      if (list_.processor[t] < 0) place(t, std::max(pinned(t), 0));
    return std::move(list_);
  }

 private:
  int64_t put(int32_t task, int32_t processor, bool append) {
    const int64_t ready = arrival(task, processor), time = graph_.cost_of(task, processor);
    auto& slots = slots_[processor];
    int64_t start = append && !slots.empty() ? std::max(ready, slots.back().end) : ready;
    if (!append) start = gap(processor, ready, time);
    const Slot slot{start, start + time};
    slots.insert(std::upper_bound(slots.begin(), slots.end(), slot), slot);
    list_.processor[task] = processor;
    list_.start[task] = slot.start;
    list_.end[task] = slot.end;
    list_.makespan = std::max(list_.makespan, slot.end);
    list_.sequence.push_back(task);
    group_processor_[graph_.group[task]] = processor;
    if (list_.sequence.size() % kPollEvery == 0) poll_stop();
    return start;
  }

  struct Slot {
    int64_t start, end;
    bool operator<(const Slot& other) const {
      return std::tie(start, end) < std::tie(other.start, other.end);
    }
  };

  const TaskGraph& graph_;
  std::vector<int32_t> group_processor_;
  std::vector<std::vector<Slot>> slots_;
  ListSchedule list_;
};

/// Tasks of a longest path by rank_u + rank_d, starting at an entry: always the successor of
/// largest rank (ties: the lowest). Sums are not compared for equality, which rounding would
/// decide.
std::vector<bool> critical_path(const TaskGraph& graph, const std::vector<double>& priority) {
  std::vector<bool> entry(at(graph.tasks), true), critical(at(graph.tasks), false);
  for (const auto& edge : graph.edges) entry[edge.to] = false;
  int32_t task = -1;
  for (int32_t t = 0; t < graph.tasks; ++t)
    if (entry[t] && (task < 0 || priority[t] > priority[task])) task = t;
  while (task >= 0) {
    critical[task] = true;
    int32_t next = -1;
    for (const auto& edge : graph.readers(task))
      if (next < 0 || priority[edge.to] > priority[next]) next = edge.to;
    task = next;
  }
  return critical;
}

int32_t critical_processor(const TaskGraph& graph, const std::vector<bool>& critical) {
  int32_t best = 0;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int32_t p = 0; p < graph.processors; ++p) {
    int64_t sum = 0;
    for (int32_t t = 0; t < graph.tasks; ++t)
      if (critical[t]) sum += graph.cost_of(t, p);
    if (sum < least) std::tie(least, best) = std::pair(sum, p);
  }
  return best;
}

/// Ready tasks of ETF. A processor has two queues: tasks whose inputs arrive after it is free, by
/// arrival, and tasks that could start at once, by level. Entries of tasks that have been placed,
/// or whose group went elsewhere, are removed lazily.
class EtfQueues {
 public:
  EtfQueues(const TaskGraph& graph, const std::vector<double>& level, const Builder& builder)
      : graph_(graph),
        level_(level),
        builder_(builder),
        processors_(at(graph.processors)),
        placed_(at(graph.tasks), false) {}

  void add(int32_t task) {
    const int32_t own = builder_.pinned(task);
    for (int32_t p = own >= 0 ? own : 0; p < (own >= 0 ? own + 1 : graph_.processors); ++p)
      processors_[p].later.push({builder_.arrival(task, p), level_[task], task});
  }

  struct Choice {
    int64_t start = 0;
    int32_t task = -1, processor = -1;
  };

  /// Removes and returns the pair that starts first.
  Choice take() {
    Choice best;
    for (int32_t p = 0; p < graph_.processors; ++p) {
      const Entry* entry = top(p);
      if (!entry) continue;
      const int64_t start = std::max(entry->arrival, processors_[p].free);
      if (best.task < 0 || std::tuple(start, -entry->level, entry->task) <
                               std::tuple(best.start, -level_[best.task], best.task))
        best = {start, entry->task, p};
    }
    placed_[best.task] = true;
    return best;
  }

  void set_free(int32_t processor, int64_t time) { processors_[processor].free = time; }

 private:
  struct Entry {
    int64_t arrival;
    double level;
    int32_t task;
  };
  struct ByArrival {
    bool operator()(const Entry& a, const Entry& b) const {
      return std::tuple(a.arrival, -a.level, a.task) > std::tuple(b.arrival, -b.level, b.task);
    }
  };
  struct ByLevel {
    bool operator()(const Entry& a, const Entry& b) const {
      return std::pair(-a.level, a.task) > std::pair(-b.level, b.task);
    }
  };
  struct Processor {
    int64_t free = 0;
    std::priority_queue<Entry, std::vector<Entry>, ByArrival> later;
    std::priority_queue<Entry, std::vector<Entry>, ByLevel> now;
  };

  bool stale(const Entry& entry, int32_t p) const {
    const int32_t own = builder_.pinned(entry.task);
    return placed_[entry.task] || (own >= 0 && own != p);
  }

  /// The task that can start first on a processor, or null.
  const Entry* top(int32_t p) {
    auto& processor = processors_[p];
    while (!processor.later.empty() && processor.later.top().arrival <= processor.free) {
      processor.now.push(processor.later.top());
      processor.later.pop();
    }
    while (!processor.now.empty() && stale(processor.now.top(), p)) processor.now.pop();
    if (!processor.now.empty()) return &processor.now.top();
    while (!processor.later.empty() && stale(processor.later.top(), p)) processor.later.pop();
    return processor.later.empty() ? nullptr : &processor.later.top();
  }

  const TaskGraph& graph_;
  const std::vector<double>& level_;
  const Builder& builder_;
  std::vector<Processor> processors_;
  std::vector<bool> placed_;
};

}  // namespace

ListSchedule heft(const TaskGraph& graph) {
  const auto rank = upward_ranks(graph);
  std::vector<int32_t> order(at(graph.tasks));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return rank[a] > rank[b]; });
  Builder builder(graph);
  for (const int32_t task : order)
    if (!graph.follows[task]) builder.place_earliest_end(task, -1);
  return builder.take();
}

ListSchedule cpop(const TaskGraph& graph) {
  auto priority = upward_ranks(graph);
  const auto down = downward_ranks(graph);
  for (size_t t = 0; t < priority.size(); ++t) priority[t] += down[t];
  const auto critical = critical_path(graph, priority);
  const int32_t processor = critical_processor(graph, critical);
  auto missing = graph.awaited_inputs();
  std::priority_queue<std::pair<double, int32_t>> ready;  // ties: the lower task
  const auto add = [&](int32_t task) { ready.push({priority[task], -task}); };
  for (int32_t t = 0; t < graph.tasks; ++t)
    if (missing[t] == 0 && !graph.follows[t]) add(t);
  Builder builder(graph);
  while (!ready.empty()) {
    const int32_t task = -ready.top().second;
    ready.pop();
    builder.place_earliest_end(task, critical[task] ? processor : -1);
    for (const auto& edge : graph.readers(task))
      if (--missing[edge.to] == 0) add(edge.to);
  }
  return builder.take();
}

ListSchedule etf(const TaskGraph& graph) {
  const auto level = static_levels(graph);
  auto missing = graph.awaited_inputs();
  Builder builder(graph);
  EtfQueues queues(graph, level, builder);
  int32_t left = 0;
  for (int32_t t = 0; t < graph.tasks; ++t) {
    if (graph.follows[t]) continue;
    ++left;
    if (missing[t] == 0) queues.add(t);
  }
  for (; left > 0; --left) {
    const auto choice = queues.take();
    const int64_t start = builder.place(choice.task, choice.processor, true);
    queues.set_free(choice.processor, start + graph.cost_of(choice.task, choice.processor));
    for (const auto& edge : graph.readers(choice.task))
      if (--missing[edge.to] == 0) queues.add(edge.to);
  }
  return builder.take();
}

Schedule order_schedule(const ListSchedule& list, int32_t processors) {
  auto order = list.sequence;
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::tie(list.processor[a], list.start[a]) < std::tie(list.processor[b], list.start[b]);
  });
  Schedule schedule;
  schedule.dispatch = DispatchRule::order;
  schedule.order_first.assign(at(processors) + 1, 0);
  for (const int32_t task : order) ++schedule.order_first[at(list.processor[at(task)]) + 1];
  std::partial_sum(schedule.order_first.begin(), schedule.order_first.end(),
                   schedule.order_first.begin());
  schedule.order = std::move(order);
  return schedule;
}

}  // namespace trinity
