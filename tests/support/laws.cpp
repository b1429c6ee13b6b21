#include "support/laws.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include "simulator/analysis.h"
#include "support/trial.h"

namespace trinity::test {
namespace {

// ---- Tasks

void judge_tasks(Trial& trial) {
  const auto& timeline = trial.timeline;
  const auto all = static_cast<size_t>(trial.tasks());
  trial.demand(timeline.micro_batches == trial.schedule.runs(), "{} micro-batches",
               timeline.micro_batches);
  for (const auto* times : {&timeline.ready_ns, &timeline.start_ns, &timeline.end_ns})
    if (times->size() != all) throw std::logic_error("a timeline of another plan");
  for (int32_t t = 0; t < trial.tasks(); ++t) {
    const int64_t ready = timeline.ready_ns[t], start = timeline.start_ns[t];
    const int64_t end = timeline.end_ns[t];
    trial.demand(timeline.device[t] == trial.device_of(t), "{} on another device", trial.name(t));
    if (!trial.runs(t)) {
      trial.demand(start == -1 && end == -1, "{} runs though it is absent", trial.name(t));
      continue;
    }
    trial.demand(0 <= ready && ready <= start, "{}: ready {}, start {}", trial.name(t), ready,
                 start);
    const int64_t cost = trial.problem.cost_ns(trial.device_of(t), trial.op_of(t));
    if (!trial.member(t))
      trial.demand(end - start == cost, "{} runs for {} ns, not {}", trial.name(t), end - start,
                   cost);
  }
}

// ---- Devices

}  // namespace

std::vector<std::vector<int32_t>> tasks_by_start(const Trial& trial) {
  std::vector<std::vector<int32_t>> started(static_cast<size_t>(trial.problem.devices()));
  for (int32_t t = 0; t < trial.tasks(); ++t)
    if (trial.runs(t) && !trial.member(t)) started[trial.device_of(t)].push_back(t);
  const auto key = [&](int32_t t) {
    return std::tuple(trial.timeline.start_ns[t], trial.timeline.end_ns[t],
                      trial.timeline.ready_ns[t], t);
  };
  for (auto& tasks : started)
    std::sort(tasks.begin(), tasks.end(), [&](int32_t a, int32_t b) { return key(a) < key(b); });
  return started;
}

namespace {

/// One task at a time; under a rule that never waits, busy from a task's ready time to its start.
void judge_device(Trial& trial, const std::vector<int32_t>& tasks) {
  int64_t free = 0, busy_since = 0;
  for (const int32_t t : tasks) {
    const int64_t start = trial.timeline.start_ns[t], ready = trial.timeline.ready_ns[t];
    trial.demand(start >= free, "{} starts at {}, but its device is free at {}", trial.name(t),
                 start, free);
    if (start > free) busy_since = start;
    if (trial.schedule.dispatch != DispatchRule::order)
      trial.demand(busy_since <= ready, "{} is ready at {}, but its device idles before {}",
                   trial.name(t), ready, busy_since);
    free = trial.timeline.end_ns[t] + trial.pause_after(t);
  }
}

/// The key by which a rule prefers tasks; smaller is better.
std::pair<int64_t, int64_t> preference(const Trial& trial, int32_t task) {
  const int64_t ready = trial.timeline.ready_ns[task];
  switch (trial.schedule.dispatch) {
    case DispatchRule::lifo:
      return {-ready, -task};
    case DispatchRule::priority:
      return {-trial.schedule.priority[trial.op_of(task)], task};
    default:
      return {ready, task};
  }
}

/// No task starts before one that its rule prefers and that was ready earlier.
void judge_choices(Trial& trial, const std::vector<int32_t>& tasks) {
  const auto& start = trial.timeline.start_ns;
  auto by_ready = tasks;
  std::sort(by_ready.begin(), by_ready.end(), [&](int32_t a, int32_t b) {
    return trial.timeline.ready_ns[a] < trial.timeline.ready_ns[b];
  });
  std::set<std::pair<int64_t, int64_t>> waiting, gone;
  size_t next = 0;
  for (size_t i = 0, end = 0; i < tasks.size(); i = end) {
    const int64_t now = start[tasks[i]];
    for (; next < by_ready.size() && trial.timeline.ready_ns[by_ready[next]] < now; ++next)
      waiting.insert(preference(trial, by_ready[next]));
    for (end = i; end < tasks.size() && start[tasks[end]] == now; ++end)
      gone.insert(preference(trial, tasks[end]));
    while (!waiting.empty() && gone.contains(*waiting.begin())) waiting.erase(waiting.begin());
    for (size_t j = i; j < end && !waiting.empty(); ++j)
      trial.demand(preference(trial, tasks[j]) < *waiting.begin(),
                   "{} starts at {} though one that goes before it waits", trial.name(tasks[j]),
                   now);
  }
}

/// First in, first out by (ready, number), including ties. (A collective that takes no time may
/// deliver within an instant in which later numbers have started.)
void judge_fifo(Trial& trial, std::vector<int32_t> tasks) {
  if (!trial.problem.graph().collectives().empty()) return;
  std::sort(tasks.begin(), tasks.end(),
            [&](int32_t a, int32_t b) { return preference(trial, a) < preference(trial, b); });
  for (size_t i = 1; i < tasks.size(); ++i)
    trial.demand(trial.timeline.start_ns[tasks[i - 1]] <= trial.timeline.start_ns[tasks[i]],
                 "{} starts after {}, which was ready later", trial.name(tasks[i - 1]),
                 trial.name(tasks[i]));
}

/// A fixed sequence is kept, and its head starts as soon as it and its device are ready.
void judge_order(Trial& trial, int32_t device) {
  int64_t free = 0;
  const auto& schedule = trial.schedule;
  for (int32_t i = schedule.order_first[device]; i < schedule.order_first[device + 1]; ++i) {
    const int32_t t = schedule.order[i];
    if (!trial.runs(t) || trial.member(t)) continue;
    const int64_t start = std::max(free, trial.timeline.ready_ns[t]);
    trial.demand(trial.timeline.start_ns[t] == start, "{} starts at {}, in its sequence at {}",
                 trial.name(t), trial.timeline.start_ns[t], start);
    free = trial.timeline.end_ns[t] + trial.pause_after(t);
  }
}

void judge_devices(Trial& trial) {
  const auto started = tasks_by_start(trial);
  for (int32_t d = 0; d < trial.problem.devices(); ++d) {
    judge_device(trial, started[d]);
    if (trial.schedule.dispatch == DispatchRule::order)
      judge_order(trial, d);
    else
      judge_choices(trial, started[d]);
    if (trial.schedule.dispatch == DispatchRule::fifo) judge_fifo(trial, started[d]);
  }
}

// ---- Inputs

using CopyKey = std::tuple<int32_t, int32_t, int32_t>;  ///< task, output, receiver

struct Span {
  int64_t least = 0, most = 0;

  void prolong(int64_t a, int64_t b) {
    least = std::max(least, a);
    most = std::max(most, b);
  }
};

class InputLaws {
 public:
  explicit InputLaws(Trial& trial)
      : trial_(trial), timeline_(trial.timeline), ready_(static_cast<size_t>(trial.tasks())) {}

  void judge() {
    note_copies();
    for (int32_t t = 0; t < trial_.tasks(); ++t)
      if (trial_.runs(t)) hand_out(t);
    for (int32_t op = 0; op < trial_.problem.operators(); ++op) hand_out_sums(op);
    for (const auto& [key, copy] : copies_)
      trial_.demand(needed_.contains(key), "{} sends output {} to {} where nobody reads it",
                    trial_.name(std::get<0>(key)), std::get<1>(key), std::get<2>(key));
    for (int32_t t = 0; t < trial_.tasks(); ++t)
      if (trial_.runs(t))
        trial_.demand(
            ready_[t].least <= timeline_.ready_ns[t] && timeline_.ready_ns[t] <= ready_[t].most,
            "{} is ready at {}, its inputs between {} and {}", trial_.name(t),
            timeline_.ready_ns[t], ready_[t].least, ready_[t].most);
  }

 private:
  void note_copies() {
    for (const Transfer& sent : timeline_.transfers) {
      const bool runs = sent.task >= 0 && sent.task < trial_.tasks() && trial_.runs(sent.task);
      if (!runs) throw std::logic_error("a transfer of no task");
      const bool first = copies_.emplace(CopyKey{sent.task, sent.output, sent.to}, &sent).second;
      trial_.demand(first, "{} sends output {} to {} twice", trial_.name(sent.task), sent.output,
                    sent.to);
      trial_.demand(
          sent.enqueued_ns == timeline_.end_ns[sent.task] &&
              sent.from == trial_.device_of(sent.task) && sent.from != sent.to &&
              sent.bytes == trial_.problem.output_bytes(trial_.op_of(sent.task), sent.output),
          "{}: a transfer of something else", trial_.name(sent.task));
    }
  }

  void hand_out(int32_t task) {
    const int32_t op = trial_.op_of(task), n = trial_.problem.operators();
    for (const auto& reader : trial_.problem.readers(op)) {
      if (trial_.accumulates(op, reader.op)) continue;
      const int32_t reading = trial_.once(reader.op)
                                  ? (trial_.schedule.micro_batches - 1) * n + reader.op
                                  : trial_.micro_of(task) * n + reader.op;
      const int32_t to = trial_.device_of(reading);
      int64_t arrival = timeline_.end_ns[task];
      if (to != trial_.device_of(task)) {
        const auto copy = copies_.find({task, reader.output, to});
        trial_.demand(copy != copies_.end(), "{} never sends output {} to {}", trial_.name(task),
                      reader.output, to);
        if (copy == copies_.end()) continue;
        needed_.insert(copy->first);
        arrival = copy->second->end_ns;
      }
      ready_[reading].prolong(arrival, arrival);
    }
  }

  /// Accumulated outputs go to readers that run once with the last micro-batch to end; of several
  /// that end together any may be the last.
  void hand_out_sums(int32_t op) {
    const int32_t n = trial_.problem.operators();
    int64_t last = -1;
    for (int32_t t = op; t < trial_.tasks(); t += n) last = std::max(last, timeline_.end_ns[t]);
    for (const auto& reader : trial_.problem.readers(op)) {
      if (!trial_.accumulates(op, reader.op)) continue;
      const int32_t reading = (trial_.schedule.micro_batches - 1) * n + reader.op;
      const int32_t to = trial_.device_of(reading);
      Span arrival{std::numeric_limits<int64_t>::max(), -1};
      if (to == trial_.device_of(op)) arrival = {last, last};
      bool sent_for_it = to == trial_.device_of(op);
      for (int32_t t = op; t < trial_.tasks() && to != trial_.device_of(op); t += n) {
        const auto copy = copies_.find({t, reader.output, to});
        if (timeline_.end_ns[t] < last || copy == copies_.end()) continue;
        needed_.insert(copy->first);
        sent_for_it = true;
        arrival.least = std::min(arrival.least, copy->second->end_ns);
        arrival.most = std::max(arrival.most, copy->second->end_ns);
      }
      trial_.demand(sent_for_it, "what '{}' accumulates is never sent to {}",
                    trial_.problem.graph().op(op).name, to);
      if (sent_for_it) ready_[reading].prolong(arrival.least, arrival.most);
    }
  }

  Trial& trial_;
  const Timeline& timeline_;
  std::vector<Span> ready_;
  std::map<CopyKey, const Transfer*> copies_;
  std::set<CopyKey> needed_;
};

/// analysis.h must agree with the timeline.
void judge_analysis(Trial& trial) {
  Inputs inputs(trial.problem, trial.plan.placement, trial.timeline);
  for (int32_t t = 0; t < trial.tasks(); ++t)
    if (trial.runs(t))
      trial.demand(inputs.latest(t).arrival_ns == trial.timeline.ready_ns[t],
                   "{} is ready at {}, by the analysis at {}", trial.name(t),
                   trial.timeline.ready_ns[t], inputs.latest(t).arrival_ns);
  const auto path = critical_path(trial.problem, trial.plan.placement, trial.timeline);
  const auto& ends = trial.timeline.end_ns;
  trial.demand(path.compute_ns + path.wire_ns + path.collective_ns + path.queue_ns ==
                   *std::max_element(ends.begin(), ends.end()),
               "the critical path's shares do not add up to the last end");
}

// ---- Collectives

}  // namespace

std::vector<int32_t> ring_of(const Trial& trial, const Collective& collective) {
  std::set<int32_t> devices;
  for (const int32_t op : collective.members) devices.insert(trial.plan.placement[op]);
  return {devices.begin(), devices.end()};
}

CollectiveCost price_of(const Trial& trial, const Collective& collective) {
  const bool fair = trial.rules().queue == QueueModel::fair;
  return collective_cost(trial.problem.cluster(), collective.kind,
                         fair ? CollectiveAlgorithm::ring : collective.algorithm,
                         ring_of(trial, collective), collective.bytes);
}

namespace {

void judge_run(Trial& trial, const CollectiveRun& run) {
  const auto& collective = trial.problem.graph().collectives()[run.collective];
  int64_t ready = 0;
  for (const int32_t op : collective.members) {
    const int32_t t = run.micro_batch * trial.problem.operators() + op;
    ready = std::max(ready, trial.timeline.ready_ns[t]);
    trial.demand(
        trial.timeline.start_ns[t] == run.start_ns && trial.timeline.end_ns[t] == run.end_ns,
        "{} does not run with its collective", trial.name(t));
  }
  const auto cost = price_of(trial, collective);
  const int64_t took = run.end_ns - run.start_ns;
  trial.demand(run.ready_ns == ready && run.start_ns >= ready, "collective '{}' starts too early",
               collective.name);
  if (ring_of(trial, collective).size() == 1)
    trial.demand(took == 0, "collective '{}' takes time on one device", collective.name);
  else if (trial.rules().queue == QueueModel::fair)
    trial.demand(took >= std::llround(cost.latency_s * 1e9), "collective '{}' is too fast",
                 collective.name);
  else
    trial.demand(took == std::llround(cost.time_s() * 1e9), "collective '{}' takes {} ns",
                 collective.name, took);
}

void judge_collectives(Trial& trial) {
  std::set<std::pair<int32_t, int32_t>> seen;
  for (const auto& run : trial.timeline.collectives) {
    trial.demand(seen.insert({run.collective, run.micro_batch}).second, "collective {} runs twice",
                 run.collective);
    judge_run(trial, run);
  }
  size_t expected = 0;
  for (const auto& collective : trial.problem.graph().collectives())
    expected += trial.once(collective.members[0]) ? 1 : trial.schedule.runs();
  trial.demand(seen.size() == expected, "{} collectives run, not {}", seen.size(), expected);
}

// ---- Queues

void add_queues(const Trial& trial, int32_t from, int32_t to, Occupation& occupation) {
  if (trial.rules().queue == QueueModel::sender) occupation.queues.insert({from, -1});
  if (trial.rules().queue == QueueModel::pair) occupation.queues.insert({from, to});
  if (trial.rules().queue == QueueModel::route)
    for (const int32_t channel : trial.problem.cluster().route(from, to))
      occupation.queues.insert({-1, channel});
}

}  // namespace

std::vector<Occupation> occupations(const Trial& trial) {
  std::vector<Occupation> all;
  for (const Transfer& sent : trial.timeline.transfers) {
    all.push_back({sent.enqueued_ns, sent.start_ns, sent.end_ns});
    add_queues(trial, sent.from, sent.to, all.back());
  }
  for (const CollectiveRun& run : trial.timeline.collectives) {
    all.push_back({run.ready_ns, run.start_ns, run.end_ns});
    const auto ring = ring_of(trial, trial.problem.graph().collectives()[run.collective]);
    for (size_t i = 0; i < ring.size() && ring.size() > 1; ++i)
      add_queues(trial, ring[i], ring[(i + 1) % ring.size()], all.back());
  }
  return all;
}

namespace {

/// One after the other, in order of booking.
void judge_queue(Trial& trial, std::vector<Occupation*>& users) {
  std::sort(users.begin(), users.end(), [](const Occupation* a, const Occupation* b) {
    return std::tie(a->start, a->end, a->booked) < std::tie(b->start, b->end, b->booked);
  });
  for (size_t i = 1; i < users.size(); ++i) {
    const int64_t free = users[i - 1]->end + trial.rules().link_dead_ns;
    trial.demand(users[i]->start >= free, "a queue carries two transfers at {}", users[i]->start);
    trial.demand(users[i]->booked >= users[i - 1]->booked, "a queue is no queue at {}",
                 users[i]->start);
    users[i]->free = std::max(users[i]->free, free);
    // If two users without duration were booked at one instant, either may have been the first.
    if (users[i - 1]->start == users[i]->end && users[i - 1]->booked == users[i]->booked)
      users[i - 1]->free = std::max(users[i - 1]->free, users[i]->end);
  }
}

void judge_queues(Trial& trial) {
  auto all = occupations(trial);
  std::map<std::pair<int32_t, int32_t>, std::vector<Occupation*>> queues;
  for (auto& occupation : all)
    for (const auto& queue : occupation.queues) queues[queue].push_back(&occupation);
  for (auto& [queue, users] : queues) judge_queue(trial, users);
  for (const auto& occupation : all)
    trial.demand(occupation.start == std::max(occupation.booked, occupation.free),
                 "a transfer booked at {} starts at {}, its queues are free at {}",
                 occupation.booked, occupation.start, occupation.free);
  const bool fair = trial.rules().queue == QueueModel::fair;
  for (const Transfer& sent : trial.timeline.transfers) {
    const int64_t alone = trial.problem.wire_ns(sent.from, sent.to, sent.bytes);
    const int64_t took = sent.end_ns - sent.start_ns;
    trial.demand(fair ? took >= alone - 1 : took == alone,
                 "a transfer of {} bytes from {} to {} takes {} ns, alone {}", sent.bytes,
                 sent.from, sent.to, took, alone);
  }
}

}  // namespace

std::vector<std::string> broken_laws(const Problem& problem, const Plan& plan,
                                     const Metrics& metrics, const Timeline& timeline) {
  static const Schedule kDefault;
  const auto& rules = problem.rules();
  if (rules.broadcast || rules.last_event || rules.memory == MemoryModel::outputs_only)
    throw std::logic_error("the published rules have other laws");
  Trial trial{problem, plan, plan.schedule ? *plan.schedule : kDefault, metrics, timeline};
  judge_tasks(trial);
  judge_devices(trial);
  InputLaws(trial).judge();
  judge_collectives(trial);
  judge_queues(trial);
  judge_metrics(trial);
  judge_bounds(trial);
  judge_memory(trial);
  if (trial.broken.empty()) judge_analysis(trial);
  return trial.broken;
}

void check_laws(const Problem& problem, const Plan& plan, const Metrics& metrics,
                const Timeline& timeline) {
  const auto broken = broken_laws(problem, plan, metrics, timeline);
  CHECK_MESSAGE(broken.empty(), fmt::format("{}", fmt::join(broken, "\n")));
}

}  // namespace trinity::test
