#include "simulator/simulator.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "simulator/events.h"
#include "simulator/sweep_engine.h"
#include "simulator/memory.h"

namespace trinity {
namespace {

void check_order(const Problem& problem, const Plan& plan) {
  const auto& schedule = *plan.schedule;
  const auto& first = schedule.order_first;
  const auto devices = static_cast<size_t>(plan.devices(problem));
  if ((first.size() != devices + 1 && first.size() != 2 * devices + 1) || first.front() != 0 ||
      first.back() != static_cast<int32_t>(schedule.order.size()) ||
      !std::is_sorted(first.begin(), first.end()))
    throw ArgumentError("an order needs a sequence for each of the {} devices of cluster '{}'", problem.devices(),
                        problem.cluster().name());
  const int64_t tasks = int64_t{problem.operators()} * schedule.runs();
  std::vector<bool> seen(static_cast<size_t>(tasks), false);
  for (const int32_t task : schedule.order) {
    if (task < 0 || task >= tasks)
      throw ArgumentError("an order names task {}, expected 0 to {}", task, tasks - 1);
    if (seen[task])
      throw ArgumentError("an order names operator '{}' of micro-batch {} twice",
                          problem.graph().op(task % problem.operators()).name, task / problem.operators() + 1);
    seen[task] = true;
  }
}

void check_order_devices(const Problem& problem, const Plan& plan) {
  const auto& schedule = *plan.schedule;
  for (size_t list = 0; list + 1 < schedule.order_first.size(); ++list) {
    const auto d = static_cast<int32_t>(list) % plan.devices(problem);
    for (int32_t i = schedule.order_first[list]; i < schedule.order_first[list + 1]; ++i) {
      const int32_t op = schedule.order[i] % problem.operators();
      const int32_t placed = plan.placement[op];
      if (placed != d)
        throw ArgumentError("the order of device '{}' names operator '{}', which is placed on '{}'",
                            problem.cluster().device(plan.cluster_device(d)).name, problem.graph().op(op).name,
                            problem.cluster().device(plan.cluster_device(placed)).name);
    }
  }
}

void check_stream(const Problem& problem, const Schedule& schedule) {
  if (schedule.stream == 0) return;
  if (schedule.measured_from < 0 || schedule.measured_to <= schedule.measured_from ||
      schedule.stream <= schedule.measured_to)
    throw ArgumentError("a stream of {} mini-batches: expected a measured range inside it, got {} to {}",
                        schedule.stream, schedule.measured_from, schedule.measured_to);
  if (schedule.weight_versions.size() != static_cast<size_t>(problem.devices()))
    throw ArgumentError("a stream needs the weight versions of the {} devices of cluster '{}', got {}",
                        problem.devices(), problem.cluster().name(), schedule.weight_versions.size());
}

/// With several micro-batches an operator of every micro-batch must not read from one that runs
/// once.
void check_micro_batches(const Problem& problem, const Schedule& schedule) {
  if (schedule.micro_batches < 1)
    throw ArgumentError("micro_batches must be at least 1, got {}", schedule.micro_batches);
  const int32_t micro_batches = std::max(schedule.micro_batches, schedule.runs());
  if (int64_t{problem.operators()} * micro_batches > (int64_t{1} << 30))
    throw LimitError("{} operators in {} micro-batches are more than 2^30 tasks", problem.operators(), micro_batches);
  if (problem.longest_step_ns() * micro_batches >= std::ldexp(1.0, 62))
    throw LimitError("{} micro-batches of graph '{}' could take longer than the simulator's clock holds; check the "
                     "units of bandwidths and times", micro_batches, problem.graph().name());
  for (int32_t o = 0; o < problem.operators() && micro_batches > 1; ++o)
    if (problem.once(o) && schedule.stream == 0)
      for (const auto& reader : problem.readers(o))
        if (!problem.once(reader.op))
          throw ArgumentError("operator '{}' runs in every micro-batch but reads from '{}', which runs once a step",
                              problem.graph().op(reader.op).name, problem.graph().op(o).name);
}

void check(const Problem& problem, const Plan& plan) {
  const auto& schedule = *plan.schedule;
  check_micro_batches(problem, schedule);
  check_stream(problem, schedule);
  const char* published = problem.rules().published_name();
  if (published && (schedule.dispatch != DispatchRule::fifo || schedule.runs() > 1))
    throw ArgumentError("rules '{}' support only one micro-batch, first in first out", published);
  if (schedule.dispatch == DispatchRule::priority &&
      schedule.priority.size() != static_cast<size_t>(problem.operators()))
    throw ArgumentError("priorities of graph '{}' need {} entries, got {}", problem.graph().name(), problem.operators(),
                        schedule.priority.size());
  if (schedule.dispatch != DispatchRule::order) return;
  check_order(problem, plan);
  check_order_devices(problem, plan);
}

/// Expands metrics of representatives, kept in `simulated`, to all devices.
void spread(const Problem& problem, const Quotient& quotient,
            std::vector<DeviceMetrics>& simulated, Metrics& metrics) {
  simulated.assign(metrics.devices.begin(), metrics.devices.end());
  metrics.devices.assign(static_cast<size_t>(problem.devices()), {});
  metrics.total_communication_bytes = 0;
  for (size_t d = 0; d < metrics.devices.size(); ++d) {
    if (quotient.of[d] < 0) continue;
    metrics.devices[d] = simulated[quotient.of[d]];
    metrics.total_communication_bytes += metrics.devices[d].bytes_sent;
  }
}

}  // namespace

struct Simulator::Scratch {
  explicit Scratch(const Problem& bound) : problem(bound) {}

  const Problem& problem;
  Record record;
  std::unique_ptr<SweepEngine> sweep;  // each made on first use
  std::unique_ptr<Engine> engine;      // of the published rules, or the event loop
  std::unique_ptr<SlotMemory> memory;
  std::vector<DeviceMetrics> simulated;  // with representatives

  void simulate(const Plan& plan, int64_t limit_ns) {
    const auto& rules = problem.rules();
    const bool by_events = rules.event_order || rules.edge_transfers;
    if (!by_events && !plan.quotient && SweepEngine::takes(problem, plan.schedule)) {
      if (!sweep) sweep = std::make_unique<SweepEngine>(problem);
      if (sweep->run(plan, limit_ns, record)) return;  // otherwise the event loop reports the error
    }
    if (!by_events && (rules.broadcast || rules.last_event))
      throw LimitError("graph '{}' is too large or slow for rules 'placeto'", problem.graph().name());
    if (!engine)
      engine = rules.event_order      ? placeto_engine(problem)
               : rules.edge_transfers ? doppler_engine(problem)
                                      : std::make_unique<EventLoop>(problem);
    engine->run(plan, limit_ns, record);
  }

  /// Converts the record of a stream to a record of micro_batches mini-batches in the steady state.
  /// All totals are integer multiples of the stream's length, except the times of flows.
  void settle_stream(const Schedule& schedule) {
    const auto scaled = [&schedule](int64_t value, int64_t of) {
      __extension__ typedef __int128 Wide;
      return static_cast<int64_t>((Wide{value} * schedule.micro_batches + of / 2) / of);
    };
    const auto end = [this](int32_t k) { return record.run_end_ns[k]; };
    record.step_ns = scaled(end(schedule.measured_to) - end(schedule.measured_from),
                            schedule.measured_to - schedule.measured_from);
    const bool one_queue = problem.rules().queue == QueueModel::sender;
    for (auto& device : record.devices) {
      for (int64_t* sum :
           {&device.compute_ns, &device.send_ns, &device.sent_bytes, &device.received_bytes})
        *sum = scaled(*sum, schedule.stream);
      record.step_ns = std::max({record.step_ns, device.compute_ns, one_queue ? device.send_ns : 0});
    }
    record.transfers = static_cast<int32_t>(scaled(record.transfers, schedule.stream));
  }

  void total(Metrics& metrics) const {
    metrics.step_time_ns = record.step_ns;
    metrics.transfers = record.transfers;
    metrics.total_communication_bytes = metrics.peak_communication_bytes = 0;
    for (size_t d = 0; d < record.devices.size(); ++d) {
      const auto& from = record.devices[d];
      auto& to = metrics.devices[d];
      to.compute_busy_ns = from.compute_ns;
      to.send_busy_ns = from.send_ns;
      to.bytes_sent = from.sent_bytes;
      to.bytes_received = from.received_bytes;
      to.peak_memory_bytes = 0;
      metrics.total_communication_bytes += from.sent_bytes;
      metrics.peak_communication_bytes =
          std::max(metrics.peak_communication_bytes, from.sent_bytes + from.received_bytes);
    }
  }

  void account(const Plan& plan, Metrics& metrics, Timeline* timeline) {
    if (problem.rules().memory == MemoryModel::outputs_only) {
      account_outputs_only(problem, plan.placement, record, metrics);
    } else if (problem.rules().memory == MemoryModel::slots) {
      if (!memory) memory = std::make_unique<SlotMemory>(problem);
      const std::span<const int32_t> devices =
          plan.quotient ? std::span<const int32_t>(plan.quotient->devices) : std::span<const int32_t>();
      memory->account(plan.placement, devices, record, metrics, timeline);
    }
    metrics.peak_memory_bytes = 0;
    metrics.excess_memory_bytes = std::numeric_limits<int64_t>::min();
    for (int32_t d = 0; d < problem.devices(); ++d) {
      const int32_t instead = plan.quotient ? plan.quotient->of[d] : d;
      const int64_t peak = instead < 0 ? 0 : metrics.devices[instead].peak_memory_bytes;
      metrics.peak_memory_bytes = std::max(metrics.peak_memory_bytes, peak);
      metrics.excess_memory_bytes =
          std::max(metrics.excess_memory_bytes, peak - problem.cluster().capacity_bytes(d));
    }
  }

  void fill(const Plan& plan, Timeline& timeline) const {
    const int32_t n = problem.operators();
    timeline.micro_batches = record.micro_batches;
    timeline.stream = record.stream;
    timeline.ready_ns = record.ready_ns;
    timeline.end_ns = record.end_ns;
    timeline.start_ns.assign(record.end_ns.size(), -1);
    timeline.device.resize(record.end_ns.size());
    for (size_t t = 0; t < record.end_ns.size(); ++t) {
      const auto op = static_cast<int32_t>(t) % n;
      timeline.device[t] = plan.placement[op];
      if (record.end_ns[t] >= 0 && problem.graph().op(op).collective < 0)
        timeline.start_ns[t] = record.start_at[record.position[t]];
    }
    timeline.collectives = record.collectives;
    for (const auto& run : record.collectives)
      for (const int32_t op : problem.graph().collectives()[run.collective].members)
        timeline.start_ns[run.micro_batch * n + op] = run.start_ns;
    timeline.transfers.clear();
    for (const auto& copy : std::span(record.copies).first(record.copy_count))
      timeline.transfers.push_back({record.end_ns[copy.task], copy.start_ns, copy.end_ns,
                                    problem.output_bytes(copy.task % n, copy.output), copy.task,
                                    copy.output, copy.from, copy.to});
    std::sort(timeline.transfers.begin(), timeline.transfers.end(),
              [](const Transfer& a, const Transfer& b) {
                return std::tie(a.start_ns, a.task, a.output, a.to) <
                       std::tie(b.start_ns, b.task, b.output, b.to);
              });
  }
};

Simulator::Simulator(const Problem& problem) : scratch_(std::make_unique<Scratch>(problem)) {}
Simulator::~Simulator() = default;
Simulator::Simulator(Simulator&&) noexcept = default;

void Simulator::run(const Plan& plan, Metrics& metrics, Timeline* timeline, int64_t limit_ns) {
  const auto& problem = scratch_->problem;
  if (plan.schedule) check(problem, plan);
  auto& record = scratch_->record;
  record.tasks = timeline || problem.rules().memory != MemoryModel::none;
  record.times = timeline || problem.rules().memory == MemoryModel::outputs_only;
  const bool stream = plan.schedule && plan.schedule->stream > 0;
  scratch_->simulate(plan, stream ? kNoLimit : limit_ns);
  if (stream) scratch_->settle_stream(*plan.schedule);
  metrics.devices.resize(record.devices.size());
  if (problem.rules().last_event) record.step_ns = std::max(record.step_ns, record.last_ns);
  metrics.unscheduled = plan.schedule && plan.schedule->contradicts;
  metrics.rejected = record.rejected || record.step_ns > limit_ns;
  if (metrics.rejected) {
    if (plan.quotient) metrics.devices.resize(static_cast<size_t>(problem.devices()));
    metrics.reject(limit_ns);
    return;
  }
  scratch_->total(metrics);
  if (timeline) timeline->memory.clear(), timeline->owners.clear();
  scratch_->account(plan, metrics, timeline);
  if (plan.quotient) spread(problem, *plan.quotient, scratch_->simulated, metrics);
  if (timeline && !plan.quotient) scratch_->fill(plan, *timeline);
}

}  // namespace trinity
