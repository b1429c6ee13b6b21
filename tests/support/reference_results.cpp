// The reference simulator: results of a finished story, queries to the cluster, and the comparison
// with the simulator.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "simulator/analysis.h"
#include "simulator/bounds.h"
#include "support/reference.h"

namespace trinity::test::reference {

/// Distinct devices of a collective's members, ascending.
std::vector<int32_t> member_devices(const Story& story, const Collective& collective) {
  std::vector<int32_t> devices;
  for (const int32_t op : collective.members) devices.push_back(story.tasks[op].device);
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

CollectiveCost price(const Problem& problem, const Story& story, const Collective& collective) {
  const bool fair = problem.rules().queue == QueueModel::fair;
  return collective_cost(problem.cluster(), collective.kind,
                         fair ? CollectiveAlgorithm::ring : collective.algorithm,
                         member_devices(story, collective), collective.bytes);
}

/// Speed of a device for its task, in 2^-20 of its speed alone.
int64_t rate(const Problem& problem, const Story& story, const std::vector<int32_t>& running,
             const Task& task) {
  const auto& cluster = problem.cluster();
  const auto& own = cluster.device(task.device);
  const auto& op = problem.graph().op(task.op);
  const double c = contention(op, cluster.type_of(task.device));
  constexpr int64_t one = int64_t{1} << 20;
  int64_t alike = 0, busy = 0;
  for (int32_t d = 0; d < problem.devices(); ++d) {
    const auto& other = cluster.device(d);
    if (other.node.empty() || other.node != own.node || other.type != own.type) continue;
    ++alike;
    if (running[d] >= 0 && problem.cost_ns(d, story.tasks[running[d]].op) > 0) ++busy;
  }
  if (alike < 2 || busy < 2) return one;
  const int64_t slowing = std::llround((c - 1) * static_cast<double>(one));
  const int64_t slowed = one + slowing * (busy - 1) / (alike - 1);
  return (one * one + slowed / 2) / slowed;
}

void measure_traffic(const Problem& problem, const Story& story, Metrics& metrics) {
  for (const Copy& copy : story.copies) {
    const Transfer& transfer = copy.transfer;
    DeviceMetrics& from = metrics.devices[transfer.from];
    from.send_busy_ns += transfer.end_ns - transfer.start_ns;
    from.bytes_sent += transfer.bytes;
    metrics.devices[transfer.to].bytes_received += transfer.bytes;
  }
  for (const CollectiveRun& run : story.runs) {
    const Collective& collective = problem.graph().collectives()[run.collective];
    const auto devices = member_devices(story, collective);
    if (devices.size() < 2) continue;
    const int64_t bytes = std::llround(price(problem, story, collective).sent_bytes);
    for (const int32_t d : devices) {
      metrics.devices[d].send_busy_ns += run.end_ns - run.start_ns;
      metrics.devices[d].bytes_sent += bytes;
      metrics.devices[d].bytes_received += bytes;
    }
  }
}

void measure_tasks(const Story& story, Metrics& metrics) {
  metrics.transfers = static_cast<int32_t>(story.copies.size());
  for (const Task& task : story.tasks) {
    metrics.step_time_ns = std::max(metrics.step_time_ns, task.end_ns);
    if (task.state == State::ended && !task.member)
      metrics.devices[task.device].compute_busy_ns += task.end_ns - task.start_ns;
  }
}

/// Replaces totals of the whole stream by totals of a step's mini-batches.
void measure_stream(const Problem& problem, const Story& story, const Schedule& schedule,
                    Metrics& metrics) {
  const auto per_step = [&](int64_t value, int64_t mini_batches) {
    return (value * schedule.micro_batches + mini_batches / 2) / mini_batches;
  };
  const auto end_of = [&](int32_t mini_batch) {
    int64_t end = 0;
    for (const Task& task : story.tasks)
      if (task.micro == mini_batch) end = std::max(end, task.end_ns);
    return end;
  };
  const auto& [from, to] = std::pair(schedule.measured_from, schedule.measured_to);
  metrics.step_time_ns = per_step(end_of(to) - end_of(from), to - from);
  metrics.transfers = static_cast<int32_t>(per_step(metrics.transfers, schedule.stream));
  for (DeviceMetrics& device : metrics.devices) {
    for (int64_t* sum : {&device.compute_busy_ns, &device.send_busy_ns, &device.bytes_sent,
                         &device.bytes_received})
      *sum = per_step(*sum, schedule.stream);
    metrics.step_time_ns = std::max(metrics.step_time_ns, device.compute_busy_ns);
    if (problem.rules().queue == QueueModel::sender)
      metrics.step_time_ns = std::max(metrics.step_time_ns, device.send_busy_ns);
  }
}

void measure_memory(const Problem& problem, const Story& story,
                    std::span<const int32_t> weight_versions, Metrics& metrics,
                    Timeline& timeline) {
  if (problem.rules().memory == MemoryModel::none) return;
  const Memory memory(problem, story, weight_versions);
  for (int32_t d = 0; d < problem.devices(); ++d) {
    timeline.memory.push_back(memory.levels(d));
    int64_t& peak = metrics.devices[d].peak_memory_bytes;
    for (const MemoryLevel& level : timeline.memory.back()) peak = std::max(peak, level.bytes);
  }
}

void measure_peaks(const Problem& problem, Metrics& metrics) {
  metrics.excess_memory_bytes = std::numeric_limits<int64_t>::min();
  for (int32_t d = 0; d < problem.devices(); ++d) {
    const DeviceMetrics& device = metrics.devices[d];
    metrics.peak_memory_bytes = std::max(metrics.peak_memory_bytes, device.peak_memory_bytes);
    metrics.peak_communication_bytes =
        std::max(metrics.peak_communication_bytes, device.bytes_sent + device.bytes_received);
    metrics.total_communication_bytes += device.bytes_sent;
    metrics.excess_memory_bytes =
        std::max(metrics.excess_memory_bytes,
                 device.peak_memory_bytes - problem.cluster().capacity_bytes(d));
  }
}

void tell(const Story& story, Timeline& timeline) {
  timeline.micro_batches = story.micro_batches;
  timeline.stream = story.stream;
  for (const Task& task : story.tasks) {
    timeline.device.push_back(task.device);
    timeline.ready_ns.push_back(task.ready_ns);
    timeline.start_ns.push_back(task.start_ns);
    timeline.end_ns.push_back(task.end_ns);
  }
  for (const Copy& copy : story.copies) timeline.transfers.push_back(copy.transfer);
  std::sort(timeline.transfers.begin(), timeline.transfers.end(),
            [](const Transfer& a, const Transfer& b) {
              return std::tie(a.start_ns, a.task, a.output, a.to) <
                     std::tie(b.start_ns, b.task, b.output, b.to);
            });
  timeline.collectives = story.runs;
}

}  // namespace trinity::test::reference

namespace trinity::test {
namespace {

/// analysis.h agrees with a timeline about when inputs arrive and what the last end waits for.
void check_analysis(const Problem& problem, const Plan& plan, const Timeline& timeline) {
  Inputs inputs(problem, plan.placement, timeline);
  for (int32_t t = 0; t < std::ssize(timeline.end_ns); ++t)
    if (timeline.end_ns[t] >= 0)
      REQUIRE(inputs.latest(t).arrival_ns == timeline.ready_ns[t]);
  const auto path = critical_path(problem, plan.placement, timeline);
  CHECK(path.compute_ns + path.wire_ns + path.collective_ns + path.queue_ns ==
        *std::max_element(timeline.end_ns.begin(), timeline.end_ns.end()));
}

/// The owners of each peak add up to it, and what is held at the peak to what activations own.
void check_owners(const Metrics& metrics, const Timeline& timeline) {
  for (size_t d = 0; d < timeline.owners.size(); ++d) {
    const auto& owned = timeline.owners[d];
    CHECK(std::accumulate(owned.begin(), owned.end(), int64_t{0}) ==
          metrics.devices[d].peak_memory_bytes);
    int64_t held = 0;
    for (const PeakTensor& tensor : timeline.at_peak)
      if (tensor.device == static_cast<int32_t>(d) && tensor.owner == MemoryOwner::activations)
        held += tensor.bytes;
    CHECK(held == owned[static_cast<size_t>(MemoryOwner::activations)]);
  }
}

}  // namespace

void check_reference(const Problem& problem, const Plan& plan, const Metrics& metrics,
                     const Timeline& timeline) {
  Metrics expected;
  Timeline story;
  simulate_reference(problem, plan, expected, story);
  CHECK(timeline.ready_ns == story.ready_ns);
  REQUIRE(timeline.start_ns == story.start_ns);
  CHECK(timeline.end_ns == story.end_ns);
  CHECK(timeline.device == story.device);
  CHECK(timeline.transfers == story.transfers);
  CHECK(timeline.collectives == story.collectives);
  CHECK(timeline.memory == story.memory);
  CHECK(timeline.micro_batches == story.micro_batches);
  CHECK(timeline.stream == story.stream);
  CHECK(metrics == expected);
  const auto bounds = lower_bounds(
      problem, plan.schedule ? plan.schedule->micro_batches : 1, timeline.stream);
  CHECK(bounds.step_time_ns <= metrics.step_time_ns);
  CHECK(bounds.peak_memory_bytes <= metrics.peak_memory_bytes);
  check_analysis(problem, plan, timeline);
  CHECK(timeline.owners.size() == (timeline.wants_owners ? timeline.memory.size() : 0));
  check_owners(metrics, timeline);
}

}  // namespace trinity::test
