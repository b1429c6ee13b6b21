#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>

#include "simulator/bounds.h"
#include "support/trial.h"

namespace trinity::test {
namespace {

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

/// A value of a stream, scaled to the number of mini-batches per step.
int64_t per_step(const Trial& trial, int64_t value) {
  const double share = static_cast<double>(trial.schedule.micro_batches) / trial.schedule.stream;
  return std::llround(static_cast<double>(value) * share);
}

/// The step: the end of the last task; for a stream, its mini-batches at the measured period, which
/// is at least the work of any device and any sender.
int64_t expected_step(const Trial& trial, const std::vector<DeviceMetrics>& sums) {
  const auto& ends = trial.timeline.end_ns;
  if (!trial.stream()) return *std::max_element(ends.begin(), ends.end());
  const auto end_of = [&](int32_t run) {
    const auto first = ends.begin() + run * trial.problem.operators();
    return *std::max_element(first, first + trial.problem.operators());
  };
  const auto& [from, to] = std::pair(trial.schedule.measured_from, trial.schedule.measured_to);
  int64_t step = std::llround(static_cast<double>(end_of(to) - end_of(from)) *
                              trial.schedule.micro_batches / (to - from));
  for (const auto& device : sums) {
    step = std::max(step, device.compute_busy_ns);
    if (trial.rules().queue == QueueModel::sender) step = std::max(step, device.send_busy_ns);
  }
  return step;
}

}  // namespace

void judge_metrics(Trial& trial) {
  auto sums = sums_of(trial);
  const auto& metrics = trial.metrics;
  auto transfers = static_cast<int64_t>(trial.timeline.transfers.size());
  if (trial.stream()) {
    transfers = per_step(trial, transfers);
    for (auto& device : sums)
      for (int64_t* sum : {&device.compute_busy_ns, &device.send_busy_ns, &device.bytes_sent,
                           &device.bytes_received})
        *sum = per_step(trial, *sum);
  }
  trial.demand(!metrics.rejected, "rejected");
  trial.demand(metrics.devices == sums, "a device's sums or peak are not its timeline's");
  trial.demand(metrics.transfers == transfers, "{} transfers counted", metrics.transfers);
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
  const int64_t step = expected_step(trial, sums);
  trial.demand(metrics.step_time_ns == step, "the step is not the last task's end, or {}: {}", step,
               metrics.step_time_ns);
  trial.demand(sent == received && metrics.total_communication_bytes == sent,
               "{} bytes sent, {} received, {} counted", sent, received,
               metrics.total_communication_bytes);
  trial.demand(metrics.peak_communication_bytes == traffic && metrics.peak_memory_bytes == peak &&
                   metrics.excess_memory_bytes == excess,
               "a peak is not its largest device's");
}

// ---- Bounds

/// Something is always running, being transferred, or pausing.
void judge_bounds(Trial& trial) {
  const int64_t step = trial.metrics.step_time_ns;
  int64_t longest = 0;
  for (int32_t t = 0; t < trial.tasks(); ++t)
    if (trial.runs(t) && !trial.member(t))
      longest += trial.timeline.end_ns[t] - trial.timeline.start_ns[t] + trial.pause_after(t);
  for (const auto& occupation : occupations(trial))
    longest += occupation.end - occupation.start + trial.rules().link_dead_ns;
  if (trial.stream()) longest = per_step(trial, longest) + trial.schedule.micro_batches;
  trial.demand(step <= longest, "step {} is longer than everything together, {}", step, longest);
  const auto bounds = lower_bounds(trial.problem, trial.schedule.micro_batches, trial.stream());
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

namespace {

// ---- Memory

int64_t held_bytes(const Trial& trial, int32_t op, int32_t output) {
  return trial.problem.held_bytes()[static_cast<size_t>(trial.problem.first_output(op) + output)];
}

/// Bytes that a task certainly holds at once. A view and the tensor that it views count once.
/// Outputs of collectives are excluded: an instant falls into the slot of the latest task started
/// by then, so with tasks of no duration they can begin in a later slot than their reader's.
/// Weights of a Variable and resident gradients are fixed bytes of the device that writes them.
int64_t needed_bytes(const Trial& trial, int32_t op) {
  const auto& graph = trial.problem.graph();
  int64_t bytes = trial.member(op) ? 0 : trial.problem.workspace_bytes(op);
  const auto& inputs = graph.op(op).inputs;
  for (const int32_t input : std::set<int32_t>(inputs.begin(), inputs.end())) {
    const int32_t producer = graph.tensor(input).producer;
    const bool viewed = trial.problem.alias(producer) >= 0 &&
                        input == graph.op(producer).outputs[0] &&
                        trial.plan.placement[producer] == trial.plan.placement[op];
    const bool here = trial.plan.placement[producer] == trial.plan.placement[op];
    const int32_t number = input - graph.op(producer).outputs[0];
    const int64_t held = here ? held_bytes(trial, producer, number) : graph.tensor(input).bytes;
    if (!viewed && !trial.member(producer)) bytes += held;
  }
  for (int32_t i = trial.problem.alias(op) < 0 ? 0 : 1; i < std::ssize(graph.op(op).outputs); ++i)
    bytes += held_bytes(trial, op, i);
  return bytes;
}

/// Levels change when the device's tasks start.
void judge_levels(Trial& trial, int32_t device, const std::vector<int32_t>& tasks) {
  const auto& levels = trial.timeline.memory[device];
  trial.demand(levels.size() == std::max<size_t>(1, tasks.size()), "{} levels on device {}",
               levels.size(), device);
  for (size_t i = 0; i < std::min(levels.size(), tasks.size()); ++i)
    trial.demand(levels[i].time_ns == trial.timeline.start_ns[tasks[i]],
                 "a level of device {} begins at {}", device, levels[i].time_ns);
}

}  // namespace

void judge_memory(Trial& trial) {
  if (trial.rules().memory == MemoryModel::none) return;
  const auto devices = static_cast<size_t>(trial.problem.devices());
  if (trial.timeline.memory.size() != devices) throw std::logic_error("no memory levels");
  std::vector<bool> used(devices, false);
  std::vector<int64_t> fixed(devices, 0), at_once(devices, 0), most(devices, 0), work(devices, 0);
  for (int32_t op = 0; op < trial.problem.operators(); ++op) {
    const int32_t d = trial.plan.placement[op];
    if (!used[static_cast<size_t>(d)]) fixed[d] += trial.problem.framework_bytes(d);
    used[static_cast<size_t>(d)] = true;
    fixed[d] += trial.problem.fixed_bytes(op);
    at_once[d] = std::max(at_once[d], needed_bytes(trial, op));
    work[d] = std::max(work[d], trial.problem.workspace_bytes(op));
    const auto runs = trial.once(op) ? 1 : trial.schedule.runs();
    if (trial.stream())
      fixed[d] +=
          (trial.schedule.weight_versions[d] - 1) * trial.problem.graph().op(op).parameter_bytes();
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
    if (!trial.timeline.wants_owners) continue;
    const auto& owned = trial.timeline.owners[d];
    trial.demand(std::accumulate(owned.begin(), owned.end(), int64_t{0}) ==
                     trial.metrics.devices[d].peak_memory_bytes,
                 "owners of device {} do not add up to its peak", d);
    int64_t held = 0;
    for (const PeakTensor& tensor : trial.timeline.at_peak)
      if (tensor.device == static_cast<int32_t>(d) && tensor.owner == MemoryOwner::activations)
        held += tensor.bytes;
    trial.demand(held == owned[static_cast<size_t>(MemoryOwner::activations)],
                 "activations of device {} do not add up to what they own of its peak", d);
  }
}

}  // namespace trinity::test
