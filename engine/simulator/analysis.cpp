#include "simulator/analysis.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/index.h"

namespace trinity {
namespace {

/// True if devices copy inputs themselves after they take a ready task.
bool makes_copies(const Problem& problem) { return problem.rules().queue == QueueModel::receiver; }

/// [micro-batch * collectives + collective]: its run, as an index in Timeline::collectives; -1: it
/// did not run.
std::vector<int32_t> collective_runs(const Problem& problem, const Timeline& timeline) {
  const size_t count = problem.graph().collectives().size();
  std::vector<int32_t> runs(count * at(timeline.micro_batches), -1);
  for (size_t i = 0; i < timeline.collectives.size(); ++i) {
    const auto& run = timeline.collectives[i];
    runs[at(run.micro_batch) * count + at(run.collective)] = static_cast<int32_t>(i);
  }
  return runs;
}

}  // namespace

Inputs::Inputs(const Problem& problem, std::span<const int32_t> placement, const Timeline& timeline)
    : problem_(problem), placement_(placement), timeline_(timeline) {
  TRINITY_CHECK_EQ(placement.size(), at(problem.operators()));
  TRINITY_CHECK_EQ(timeline.end_ns.size(), placement.size() * at(timeline.micro_batches));
  first_.assign(timeline.end_ns.size() + 1, 0);
  for (const auto& sent : timeline.transfers) ++first_[at(sent.task) + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  by_task_.resize(timeline.transfers.size());
  auto next = first_;
  for (size_t i = 0; i < by_task_.size(); ++i)
    by_task_[at(next[timeline.transfers[i].task]++)] = static_cast<int32_t>(i);
  for (size_t task = 0; task + 1 < first_.size(); ++task)
    std::sort(by_task_.begin() + first_[task], by_task_.begin() + first_[task + 1],
              [&](int32_t a, int32_t b) { return std::pair(key(a), a) < std::pair(key(b), b); });
}

/// With broadcast one transfer serves all receivers.
Inputs::Key Inputs::key(int32_t transfer) const {
  const auto& t = timeline_.transfers[transfer];
  return {t.output, problem_.rules().broadcast ? -1 : t.to};
}

const std::vector<Inputs::Source>& Inputs::of(int32_t task) {
  sources_.clear();
  for (const int32_t tensor : problem_.graph().op(task % problem_.operators()).inputs)
    sources_.push_back(source(task, tensor));
  return sources_;
}

Inputs::Source Inputs::latest(int32_t task) {
  Source latest;
  for (const auto& source : of(task))
    if (latest.task < 0 || source.arrival_ns > latest.arrival_ns ||
        (source.arrival_ns == latest.arrival_ns && source.task < latest.task))
      latest = source;
  return latest;
}

Inputs::Source Inputs::source(int32_t task, int32_t tensor) const {
  const auto& graph = problem_.graph();
  const int32_t reader = task % problem_.operators();
  const int32_t producer = graph.tensor(tensor).producer;
  const int32_t output = tensor - graph.op(producer).outputs.front();
  if (!timeline_.stream && problem_.once(reader) && !problem_.once(producer))
    return accumulated(reader, producer, output);
  const int32_t writing = task - reader + producer;
  if (placement_[reader] == placement_[producer]) return {timeline_.end_ns[writing], writing, -1};
  const int32_t sent = transfer(writing, output, placement_[reader]);
  TRINITY_CHECK_LE(0, sent);
  const auto& transfer = timeline_.transfers[sent];
  return {makes_copies(problem_) ? transfer.enqueued_ns : transfer.end_ns, writing, sent};
}

/// The producer's task that ended last, over all micro-batches. Ties: on another device the one
/// whose transfer was booked last, on the same device the lowest.
Inputs::Source Inputs::accumulated(int32_t reader, int32_t producer, int32_t output) const {
  const int32_t n = problem_.operators();
  Source last;
  if (placement_[reader] == placement_[producer]) {
    for (int32_t task = producer; task < n * timeline_.micro_batches; task += n)
      if (last.task < 0 || timeline_.end_ns[task] > last.arrival_ns)
        last = {timeline_.end_ns[task], task, -1};
    return last;
  }
  std::pair<int64_t, int64_t> booked{-1, -1};  // enqueued, start
  for (int32_t task = producer; task < n * timeline_.micro_batches; task += n) {
    const int32_t found = transfer(task, output, placement_[reader]);
    if (found < 0) continue;  // no reader in every micro-batch there
    const auto& sent = timeline_.transfers[found];
    if (std::pair(sent.enqueued_ns, sent.start_ns) < booked) continue;
    booked = {sent.enqueued_ns, sent.start_ns};
    last = {makes_copies(problem_) ? sent.enqueued_ns : sent.end_ns, task, found};
  }
  TRINITY_CHECK_LE(0, last.transfer);
  return last;
}

/// The transfer of an output of a task to a receiver, or -1.
int32_t Inputs::transfer(int32_t task, int32_t output, int32_t to) const {
  const Key wanted{output, problem_.rules().broadcast ? -1 : to};
  const auto last = by_task_.begin() + first_[at(task) + 1];
  const auto found = std::partition_point(by_task_.begin() + first_[task], last,
                                          [&](int32_t sent) { return key(sent) < wanted; });
  return found != last && key(*found) == wanted ? *found : -1;
}

namespace {

/// Follows the chain back from its end.
class PathWalk {
 public:
  PathWalk(const Problem& problem, std::span<const int32_t> placement, const Timeline& timeline)
      : problem_(problem),
        timeline_(timeline),
        inputs_(problem, placement, timeline),
        runs_(collective_runs(problem, timeline)) {}

  CriticalPath walk() {
    const auto last = std::max_element(timeline_.end_ns.begin(), timeline_.end_ns.end());
    for (auto task = static_cast<int32_t>(last - timeline_.end_ns.begin()); task >= 0;)
      task = back(task);
    std::reverse(path_.steps.begin(), path_.steps.end());
    TRINITY_CHECK_EQ(path_.compute_ns + path_.wire_ns + path_.collective_ns + path_.queue_ns,
                     *last);
    return std::move(path_);
  }

 private:
  /// Adds the links that end with `task`; returns the previous task, or -1.
  int32_t back(int32_t task) {
    const auto& op = problem_.graph().op(task % problem_.operators());
    if (op.collective >= 0) task = add_collective(op.collective, task / problem_.operators());
    const auto source = inputs_.latest(task);
    if (op.collective < 0) {
      // A device's own copy lies between the task's ready time and its start.
      const bool copied = makes_copies(problem_) && source.transfer >= 0;
      path_.compute_ns +=
          add(PathStep::Kind::compute, task,
              copied ? timeline_.transfers[source.transfer].end_ns : timeline_.ready_ns[task],
              timeline_.start_ns[task], timeline_.end_ns[task]);
    }
    TRINITY_CHECK_EQ(source.arrival_ns, timeline_.ready_ns[task]);
    const bool copied = op.collective < 0 || !makes_copies(problem_);
    if (source.transfer >= 0 && copied) {
      const auto& sent = timeline_.transfers[source.transfer];
      path_.wire_ns += add(PathStep::Kind::transfer, source.transfer, sent.enqueued_ns,
                           sent.start_ns, sent.end_ns);
    }
    return source.task;
  }

  /// Returns the member that was ready last.
  int32_t add_collective(int32_t collective, int32_t micro_batch) {
    const auto& collectives = problem_.graph().collectives();
    const int32_t run = runs_[at(micro_batch) * collectives.size() + at(collective)];
    TRINITY_CHECK_LE(0, run);
    int32_t last = -1;
    for (const int32_t member : collectives[collective].members) {
      const int32_t task = micro_batch * problem_.operators() + member;
      if (last < 0 || timeline_.ready_ns[task] > timeline_.ready_ns[last]) last = task;
    }
    const auto& ran = timeline_.collectives[run];
    path_.collective_ns +=
        add(PathStep::Kind::collective, run, timeline_.ready_ns[last], ran.start_ns, ran.end_ns);
    return last;
  }

  /// Counts the waiting time, and returns `ready`.
  int64_t add(PathStep::Kind kind, int32_t index, int64_t ready, int64_t start, int64_t end) {
    path_.steps.push_back({kind, index, ready, start, end});
    path_.queue_ns += start - ready;
    return end - start;
  }

  const Problem& problem_;
  const Timeline& timeline_;
  Inputs inputs_;
  std::vector<int32_t> runs_;
  CriticalPath path_;
};

/// The half-open interval [from, to).
struct Interval {
  int64_t from, to;
};

/// The union, as disjoint intervals in ascending order.
std::vector<Interval> merged(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.from < b.from; });
  std::vector<Interval> result;
  for (const auto& interval : intervals) {
    if (interval.to <= interval.from) continue;
    if (!result.empty() && interval.from <= result.back().to)
      result.back().to = std::max(result.back().to, interval.to);
    else
      result.push_back(interval);
  }
  return result;
}

/// `intervals` minus `holes`; both merged.
std::vector<Interval> without(const std::vector<Interval>& intervals,
                              const std::vector<Interval>& holes) {
  std::vector<Interval> result;
  size_t hole = 0;
  for (auto interval : intervals) {
    while (hole < holes.size() && holes[hole].to <= interval.from) ++hole;
    for (size_t h = hole; h < holes.size() && holes[h].from < interval.to; ++h) {
      if (holes[h].from > interval.from) result.push_back({interval.from, holes[h].from});
      interval.from = holes[h].to;
    }
    if (interval.from < interval.to) result.push_back(interval);
  }
  return result;
}

int64_t length(const std::vector<Interval>& intervals) {
  int64_t sum = 0;
  for (const auto& interval : intervals) sum += interval.to - interval.from;
  return sum;
}

using PerDevice = std::vector<std::vector<Interval>>;

bool is_read_by_updates(const Graph& graph, int32_t op) {
  return std::ranges::any_of(graph.readers(op),
                             [&](int32_t reader) { return graph.op(reader).phase == Phase::update; });
}

MessagePurpose purpose_of_send(const Operator& op) {
  if (op.type == "WeightGather") return MessagePurpose::weights;
  return op.phase == Phase::update ? MessagePurpose::gradients : MessagePurpose::activations;
}

MessagePurpose purpose_of_collective(const Graph& graph, const Collective& collective) {
  const int32_t member = collective.members[0];
  const auto& op = graph.op(member);
  const bool updates = op.phase == Phase::update;
  if (op.type == "WeightGather" || (updates && collective.kind == CollectiveKind::all_gather))
    return MessagePurpose::weights;
  const bool sums = updates || is_read_by_updates(graph, member);
  return sums ? MessagePurpose::gradients : MessagePurpose::splits;
}

/// [purpose][device]: intervals with incoming communication.
std::array<PerDevice, kPurposes> incoming(const Problem& problem,
                                          std::span<const int32_t> placement,
                                          const Timeline& timeline) {
  const auto& graph = problem.graph();
  std::array<PerDevice, kPurposes> incoming;
  incoming.fill(PerDevice(at(problem.devices())));
  for (const auto& sent : timeline.transfers) {
    const Interval interval{sent.enqueued_ns, sent.end_ns};
    const int32_t op = sent.task % problem.operators();
    auto& these = incoming[static_cast<size_t>(purpose_of_send(graph.op(op)))];
    these[sent.to].push_back(interval);
    if (!problem.rules().broadcast) continue;
    for (const auto& reader : problem.readers(op)) {
      const int32_t to = placement[reader.op];
      if (reader.output == sent.output && to != sent.from) these[to].push_back(interval);
    }
  }
  for (const auto& run : timeline.collectives) {
    const auto& collective = graph.collectives()[run.collective];
    auto& these = incoming[static_cast<size_t>(purpose_of_collective(graph, collective))];
    for (const int32_t member : collective.members) {
      const int32_t task = run.micro_batch * problem.operators() + member;
      these[placement[member]].push_back({timeline.ready_ns[task], run.end_ns});
    }
  }
  return incoming;
}

PerDevice computing(const Problem& problem, std::span<const int32_t> placement,
                    const Timeline& timeline) {
  PerDevice computing(at(problem.devices()));
  for (size_t task = 0; task < timeline.end_ns.size(); ++task) {
    const size_t op = task % placement.size();
    if (problem.graph().operators()[op].collective < 0)
      computing[placement[op]].push_back({timeline.start_ns[task], timeline.end_ns[task]});
  }
  return computing;
}

}  // namespace

CriticalPath critical_path(const Problem& problem, std::span<const int32_t> placement,
                           const Timeline& timeline) {
  return PathWalk(problem, placement, timeline).walk();
}

Exposure exposed_communication(const Problem& problem, std::span<const int32_t> placement,
                               const Timeline& timeline) {
  auto under_way = incoming(problem, placement, timeline);
  auto busy = computing(problem, placement, timeline);
  Exposure exposure;
  std::vector<Interval> any;
  for (size_t d = 0; d < busy.size(); ++d) {
    auto hidden = merged(std::move(busy[d]));
    auto& of_purpose = exposure.purpose_ns.emplace_back();
    for (size_t p = 0; p < kPurposes; ++p) {
      const auto exposed = without(merged(std::move(under_way[p][d])), hidden);
      of_purpose[p] = length(exposed);
      any.insert(any.end(), exposed.begin(), exposed.end());
      hidden.insert(hidden.end(), exposed.begin(), exposed.end());
      hidden = merged(std::move(hidden));
    }
    exposure.device_ns.push_back(
        std::accumulate(of_purpose.begin(), of_purpose.end(), int64_t{0}));
  }
  exposure.any_ns = length(merged(std::move(any)));
  return exposure;
}

std::vector<KindShare> by_type(const Problem& problem, const Timeline& timeline) {
  std::map<std::string_view, KindShare> shares;
  const auto n = at(problem.operators());
  for (size_t o = 0; o < n; ++o) {
    auto& share = shares[problem.graph().operators()[o].type];
    for (size_t task = o; task < timeline.end_ns.size(); task += n) {
      if (timeline.end_ns[task] < 0) continue;
      ++share.tasks;
      share.total_ns += timeline.end_ns[task] - timeline.start_ns[task];
    }
  }
  std::vector<KindShare> sorted;
  for (auto& [type, share] : shares) {
    share.type = type;
    sorted.push_back(std::move(share));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const KindShare& a, const KindShare& b) { return a.total_ns > b.total_ns; });
  return sorted;
}

}  // namespace trinity
