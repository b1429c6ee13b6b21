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

#include "cluster/collectives.h"
#include "graph/operator_types.h"
#include "simulator/analysis.h"
#include "simulator/bounds.h"

namespace trinity::test {
namespace {

/// A run under test and what is wrong with it.
struct Trial {
  const Problem& problem;
  const Plan& plan;
  const Schedule& schedule;
  const Metrics& metrics;
  const Timeline& timeline;
  std::vector<std::string> broken = {};

  const SimulationRules& rules() const { return problem.rules(); }
  int32_t tasks() const { return problem.operators() * schedule.micro_batches; }
  int32_t op_of(int32_t task) const { return task % problem.operators(); }
  int32_t micro_of(int32_t task) const { return task / problem.operators(); }
  int32_t device_of(int32_t task) const { return plan.placement[op_of(task)]; }
  bool member(int32_t task) const { return problem.graph().op(op_of(task)).collective >= 0; }
  bool runs(int32_t task) const {
    return !problem.once(op_of(task)) || micro_of(task) + 1 == schedule.micro_batches;
  }
  /// Whether a reader waits for the last of the micro-batches that an operator runs in.
  bool accumulates(int32_t op, int32_t reader) const {
    return schedule.micro_batches > 1 && problem.once(reader) && !problem.once(op);
  }
  std::string name(int32_t task) const {
    return fmt::format("'{}' of micro-batch {}", problem.graph().op(op_of(task)).name,
                       micro_of(task) + 1);
  }
  int64_t pause_after(int32_t task) const {
    const bool costs = problem.cost_ns(device_of(task), op_of(task)) > 0;
    return costs || rules().dead_after_free ? rules().device_dead_ns : 0;
  }

  /// Keeps the first sentences only: one mistake often breaks a thousand laws.
  template <class... Args>
  void demand(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (!holds && broken.size() < 20)
      broken.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
};

// ---- Tasks

void judge_tasks(Trial& trial) {
  const auto& timeline = trial.timeline;
  const auto all = static_cast<size_t>(trial.tasks());
  trial.demand(timeline.micro_batches == trial.schedule.micro_batches, "{} micro-batches",
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

/// Tasks of every device in order of starting; collectives' members are no work of a device.
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

/// One at a time; under a policy that never waits, busy from a task's ready time to its start.
void judge_device(Trial& trial, const std::vector<int32_t>& tasks) {
  int64_t free = 0, busy_since = 0;
  for (const int32_t t : tasks) {
    const int64_t start = trial.timeline.start_ns[t], ready = trial.timeline.ready_ns[t];
    trial.demand(start >= free, "{} starts at {}, but its device is free at {}", trial.name(t),
                 start, free);
    if (start > free) busy_since = start;
    if (trial.schedule.policy != Policy::order)
      trial.demand(busy_since <= ready, "{} is ready at {}, but its device idles before {}",
                   trial.name(t), ready, busy_since);
    free = trial.timeline.end_ns[t] + trial.pause_after(t);
  }
}

/// What a policy takes first has the least key.
std::pair<int64_t, int64_t> preference(const Trial& trial, int32_t task) {
  const int64_t ready = trial.timeline.ready_ns[task];
  switch (trial.schedule.policy) {
    case Policy::lifo:
      return {-ready, -task};
    case Policy::priority:
      return {-trial.schedule.priority[trial.op_of(task)], task};
    default:
      return {ready, task};
  }
}

/// No task starts before one that its policy prefers and that was ready before that instant.
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

/// First in, first out by (ready, number), to the last tie. (A collective that takes no time may
/// hand out within an instant in which later numbers have started.)
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
    if (trial.schedule.policy == Policy::order)
      judge_order(trial, d);
    else
      judge_choices(trial, started[d]);
    if (trial.schedule.policy == Policy::fifo) judge_fifo(trial, started[d]);
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
      const int32_t reading = trial_.problem.once(reader.op)
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

  /// What an operator accumulates goes to readers that run once with the last micro-batch to end;
  /// of several that end together any may be the last.
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

/// analysis.h tells the same story.
void judge_analysis(Trial& trial) {
  Inputs inputs(trial.problem, trial.plan.placement, trial.timeline);
  for (int32_t t = 0; t < trial.tasks(); ++t)
    if (trial.runs(t))
      trial.demand(inputs.latest(t).arrival_ns == trial.timeline.ready_ns[t],
                   "{} is ready at {}, by the analysis at {}", trial.name(t),
                   trial.timeline.ready_ns[t], inputs.latest(t).arrival_ns);
  const auto path = critical_path(trial.problem, trial.plan.placement, trial.timeline);
  trial.demand(path.compute_ns + path.wire_ns + path.collective_ns + path.queue_ns ==
                   trial.metrics.step_time_ns,
               "the critical path's shares do not add up to the step");
}

// ---- Collectives

/// The devices of a collective, ascending, each once.
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
    expected += trial.problem.once(collective.members[0]) ? 1 : trial.schedule.micro_batches;
  trial.demand(seen.size() == expected, "{} collectives run, not {}", seen.size(), expected);
}

// ---- Queues

/// A transfer or collective and the queues that it holds from start to end.
struct Occupation {
  int64_t booked = 0, start = 0, end = 0;
  std::set<std::pair<int32_t, int32_t>> queues = {};  ///< (sender, receiver), (-1, channel), ...
  int64_t free = 0;  ///< when the last of its queues is done with what was booked before
};

void add_queues(const Trial& trial, int32_t from, int32_t to, Occupation& occupation) {
  if (trial.rules().queue == QueueModel::sender) occupation.queues.insert({from, -1});
  if (trial.rules().queue == QueueModel::pair) occupation.queues.insert({from, to});
  if (trial.rules().queue == QueueModel::route)
    for (const int32_t channel : trial.problem.cluster().route(from, to))
      occupation.queues.insert({-1, channel});
}

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
    // Two that take no time and were booked at one instant: either may have been the first.
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

// ---- Metrics

std::vector<DeviceMetrics> sums_of(const Trial& trial) {
  std::vector<DeviceMetrics> sums(static_cast<size_t>(trial.problem.devices()));
  for (int32_t t = 0; t < trial.tasks(); ++t)
    if (trial.runs(t) && !trial.member(t))
      sums[trial.device_of(t)].compute_busy_ns +=
          trial.timeline.end_ns[t] - trial.timeline.start_ns[t];
  for (const Transfer& sent : trial.timeline.transfers) {
    sums[sent.from].send_busy_ns += sent.end_ns - sent.start_ns;
    sums[sent.from].bytes_sent += sent.bytes;
    sums[sent.to].bytes_received += sent.bytes;
  }
  for (const CollectiveRun& run : trial.timeline.collectives) {
    const auto& collective = trial.problem.graph().collectives()[run.collective];
    const int64_t bytes = std::llround(price_of(trial, collective).sent_bytes);
    const auto ring = ring_of(trial, collective);
    for (const int32_t d : ring) {
      if (ring.size() == 1) break;
      sums[d].send_busy_ns += run.end_ns - run.start_ns;
      sums[d].bytes_sent += bytes;
      sums[d].bytes_received += bytes;
    }
  }
  for (int32_t d = 0; d < trial.problem.devices() && !trial.timeline.memory.empty(); ++d)
    for (const MemoryLevel& level : trial.timeline.memory[d])
      sums[d].peak_memory_bytes = std::max(sums[d].peak_memory_bytes, level.bytes);
  return sums;
}

void judge_metrics(Trial& trial) {
  const auto sums = sums_of(trial);
  const auto& metrics = trial.metrics;
  trial.demand(!metrics.rejected, "rejected");
  trial.demand(metrics.devices == sums, "a device's sums or peak are not its timeline's");
  trial.demand(metrics.transfers == static_cast<int32_t>(trial.timeline.transfers.size()),
               "{} transfers counted", metrics.transfers);
  int64_t sent = 0, received = 0, peak = 0, traffic = 0;
  int64_t excess = std::numeric_limits<int64_t>::min();
  for (int32_t d = 0; d < trial.problem.devices(); ++d) {
    sent += sums[d].bytes_sent;
    received += sums[d].bytes_received;
    traffic = std::max(traffic, sums[d].bytes_sent + sums[d].bytes_received);
    peak = std::max(peak, sums[d].peak_memory_bytes);
    excess =
        std::max(excess, sums[d].peak_memory_bytes - trial.problem.cluster().capacity_bytes(d));
  }
  const auto& ends = trial.timeline.end_ns;
  trial.demand(metrics.step_time_ns == *std::max_element(ends.begin(), ends.end()),
               "the step is not the last task's end");
  trial.demand(sent == received && metrics.total_communication_bytes == sent,
               "{} bytes sent, {} received, {} counted", sent, received,
               metrics.total_communication_bytes);
  trial.demand(metrics.peak_communication_bytes == traffic && metrics.peak_memory_bytes == peak &&
                   metrics.excess_memory_bytes == excess,
               "a peak is not its largest device's");
}

// ---- Bounds

/// Something always runs, is on a wire, or pauses.
void judge_bounds(Trial& trial) {
  const int64_t step = trial.metrics.step_time_ns;
  int64_t longest = 0;
  for (int32_t t = 0; t < trial.tasks(); ++t)
    if (trial.runs(t) && !trial.member(t))
      longest += trial.timeline.end_ns[t] - trial.timeline.start_ns[t] + trial.pause_after(t);
  for (const auto& occupation : occupations(trial))
    longest += occupation.end - occupation.start + trial.rules().link_dead_ns;
  trial.demand(step <= longest, "step {} is longer than everything together, {}", step, longest);
  const auto bounds = lower_bounds(trial.problem, trial.schedule.micro_batches);
  trial.demand(bounds.step_time_ns <= step, "step {} beats its bound {}", step,
               bounds.step_time_ns);
  trial.demand(bounds.peak_memory_bytes <= trial.metrics.peak_memory_bytes,
               "peak {} beats its bound {}", trial.metrics.peak_memory_bytes,
               bounds.peak_memory_bytes);
  const bool serial = trial.rules().queue == QueueModel::sender;
  for (const auto& device : trial.metrics.devices)
    trial.demand(device.compute_busy_ns <= step && (!serial || device.send_busy_ns <= step),
                 "a device or its send queue is busy longer than the step");
}

// ---- Memory

/// Bytes that a task surely holds at once. A view and what it views are one. What a collective writes
/// is left out: an instant falls into the slot of the latest task started by then, so where tasks
/// take no time it can begin in a later slot than that of its reader.
int64_t needed_bytes(const Trial& trial, int32_t op) {
  const auto& graph = trial.problem.graph();
  int64_t bytes = trial.member(op) ? 0 : trial.problem.workspace_bytes(op);
  const auto& inputs = graph.op(op).inputs;
  for (const int32_t input : std::set<int32_t>(inputs.begin(), inputs.end())) {
    const int32_t producer = graph.tensor(input).producer;
    const bool viewed = trial.problem.alias(producer) >= 0 &&
                        input == graph.op(producer).outputs[0] &&
                        trial.plan.placement[producer] == trial.plan.placement[op];
    const bool weights = is_variable(graph.op(producer)) &&
                         trial.plan.placement[producer] == trial.plan.placement[op];
    if (!viewed && !weights && !trial.member(producer)) bytes += graph.tensor(input).bytes;
  }
  for (const int32_t output : graph.op(op).outputs)
    if (!is_variable(graph.op(op)) &&
        (trial.problem.alias(op) < 0 || output != graph.op(op).outputs[0]))
      bytes += graph.tensor(output).bytes;
  return bytes;
}

/// Levels begin with the device's tasks.
void judge_levels(Trial& trial, int32_t device, const std::vector<int32_t>& tasks) {
  const auto& levels = trial.timeline.memory[device];
  trial.demand(levels.size() == std::max<size_t>(1, tasks.size()), "{} levels on device {}",
               levels.size(), device);
  for (size_t i = 0; i < std::min(levels.size(), tasks.size()); ++i)
    trial.demand(levels[i].time_ns == trial.timeline.start_ns[tasks[i]],
                 "a level of device {} begins at {}", device, levels[i].time_ns);
}

void judge_memory(Trial& trial) {
  if (trial.rules().memory == MemoryModel::none) return;
  const auto devices = static_cast<size_t>(trial.problem.devices());
  if (trial.timeline.memory.size() != devices) throw std::logic_error("no memory levels");
  std::vector<int64_t> fixed(devices, 0), at_once(devices, 0), most(devices, 0), work(devices, 0);
  for (int32_t op = 0; op < trial.problem.operators(); ++op) {
    const int32_t d = trial.plan.placement[op];
    fixed[d] += trial.problem.fixed_bytes(op);
    at_once[d] = std::max(at_once[d], needed_bytes(trial, op));
    work[d] = std::max(work[d], trial.problem.workspace_bytes(op));
    const auto runs = trial.problem.once(op) ? 1 : trial.schedule.micro_batches;
    for (const int32_t output : trial.problem.graph().op(op).outputs)
      most[d] += runs * trial.problem.graph().tensor(output).bytes;
  }
  for (const Transfer& sent : trial.timeline.transfers) most[sent.to] += sent.bytes;
  const auto started = tasks_by_start(trial);
  for (size_t d = 0; d < devices; ++d) {
    const int64_t peak = trial.metrics.devices[d].peak_memory_bytes - fixed[d];
    trial.demand(at_once[d] <= peak, "device {} holds {} bytes at most, a task needs {}", d, peak,
                 at_once[d]);
    trial.demand(peak <= most[d] + work[d], "device {} holds {} bytes, more than everything, {}", d,
                 peak, most[d] + work[d]);
    judge_levels(trial, static_cast<int32_t>(d), started[d]);
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
