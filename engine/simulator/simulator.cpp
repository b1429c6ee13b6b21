#include "simulator/simulator.h"

#include <algorithm>

#include "base/error.h"
#include "base/stop.h"

namespace trinity {

Simulator::Simulator(const Problem& problem) : problem_(problem) {
  const auto n = static_cast<size_t>(problem.operators());
  const auto d = static_cast<size_t>(problem.devices());
  ready_.resize(n);
  start_.resize(n);
  end_.resize(n);
  missing_.resize(n);
  slot_.resize(n);
  edge_transfer_.resize(static_cast<size_t>(problem.edges()));
  output_last_slot_.resize(static_cast<size_t>(problem.first_output(problem.operators())));
  device_free_.resize(d);
  queue_free_.resize(problem.rules().queue == QueueModel::pair ? d * d : d);
  device_starts_.resize(d);
  slot_delta_.resize(d);
  arrivals_.resize(static_cast<size_t>(problem.max_outputs()) * d);
}

void Simulator::run(std::span<const int32_t> placement, Metrics& metrics, Timeline* timeline) {
  reset();
  sweep(placement);
  total(placement, metrics);
  if (problem_.rules().outputs_only_memory)
    outputs_only_memory(placement, metrics);
  else
    slot_memory(placement, metrics);
  metrics.peak_memory_bytes = 0;
  metrics.excess_memory_bytes = 0;
  for (int32_t d = 0; d < problem_.devices(); ++d) {
    const int64_t peak = metrics.devices[static_cast<size_t>(d)].peak_memory_bytes;
    metrics.peak_memory_bytes = std::max(metrics.peak_memory_bytes, peak);
    metrics.excess_memory_bytes =
        std::max(metrics.excess_memory_bytes, peak - problem_.cluster().capacity_bytes(d));
  }
  if (timeline) {
    timeline->start_ns = start_;
    timeline->end_ns = end_;
    timeline->transfers = transfers_;
  }
}

void Simulator::reset() {
  heap_.clear();
  transfers_.clear();
  std::fill(ready_.begin(), ready_.end(), 0);
  for (int32_t o = 0; o < problem_.operators(); ++o)
    missing_[static_cast<size_t>(o)] = problem_.missing(o);
  std::fill(device_free_.begin(), device_free_.end(), 0);
  std::fill(queue_free_.begin(), queue_free_.end(), 0);
  for (auto& starts : device_starts_) starts.clear();
  for (auto& arrival : arrivals_) arrival.epoch = -1;
  last_event_ = 0;
}

/// A 4-ary heap of (ready time, operator) packed into one integer.
void Simulator::push(int64_t ready, int32_t op) {
  const uint64_t key =
      (static_cast<uint64_t>(ready) << problem_.key_bits()) | static_cast<uint64_t>(op);
  size_t at = heap_.size();
  heap_.push_back(key);
  while (at > 0) {
    const size_t parent = (at - 1) / 4;
    if (heap_[parent] <= key) break;
    heap_[at] = heap_[parent];
    at = parent;
  }
  heap_[at] = key;
}

uint64_t Simulator::pop() {
  const uint64_t top = heap_.front();
  const uint64_t key = heap_.back();
  heap_.pop_back();
  const size_t size = heap_.size();
  if (size == 0) return top;
  size_t at = 0;
  for (;;) {
    const size_t first = 4 * at + 1;
    if (first >= size) break;
    size_t least = first;
    for (size_t child = first + 1; child < std::min(first + 4, size); ++child)
      if (heap_[child] < heap_[least]) least = child;
    if (heap_[least] >= key) break;
    heap_[at] = heap_[least];
    at = least;
  }
  heap_[at] = key;
  return top;
}

void Simulator::sweep(std::span<const int32_t> placement) {
  const auto& rules = problem_.rules();
  const uint64_t mask = (uint64_t{1} << problem_.key_bits()) - 1;
  for (int32_t o = 0; o < problem_.operators(); ++o)
    if (missing_[static_cast<size_t>(o)] == 0) push(0, o);
  int32_t done = 0;
  while (!heap_.empty()) {
    const uint64_t key = pop();
    const auto op = static_cast<int32_t>(key & mask);
    const auto o = static_cast<size_t>(op);
    const auto ready = static_cast<int64_t>(key >> problem_.key_bits());
    const auto d = static_cast<size_t>(placement[o]);
    const int64_t cost = problem_.cost_ns(placement[o], op);
    const int64_t start = std::max(ready, device_free_[d]);
    const int64_t end = start + cost;
    device_free_[d] = end + (cost > 0 || rules.dead_after_free ? rules.device_dead_ns : 0);
    last_event_ = std::max(last_event_, device_free_[d]);
    start_[o] = start;
    end_[o] = end;
    slot_[o] = static_cast<int32_t>(device_starts_[d].size());
    device_starts_[d].push_back(start);
    deliver(placement, op, end);
    ++done;
  }
  TRINITY_CHECK_EQ(done, problem_.operators());
}

/// Hands an operator's outputs to their readers and pushes those that became ready.
void Simulator::deliver(std::span<const int32_t> placement, int32_t op, int64_t end) {
  const int32_t from = placement[static_cast<size_t>(op)];
  auto edge = static_cast<size_t>(problem_.first_edge(op));
  for (const auto& reader : problem_.readers(op)) {
    const auto r = static_cast<size_t>(reader.op);
    const int32_t to = placement[r];
    int64_t arrival = end;
    edge_transfer_[edge] = -1;
    if (to != from) {
      const auto& sent = send(op, reader.output, from, to, end);
      arrival = sent.time_ns;
      edge_transfer_[edge] = sent.transfer;
    }
    ++edge;
    ready_[r] = std::max(ready_[r], arrival);
    if (--missing_[r] == 0) push(ready_[r], reader.op);
  }
}

/// The arrival of an output on another device; books the transfer when it is the first reader's.
Simulator::Arrival& Simulator::send(int32_t op, int32_t output, int32_t from, int32_t to,
                                    int64_t end) {
  const auto& rules = problem_.rules();
  const auto devices = static_cast<size_t>(problem_.devices());
  const int32_t destination = rules.broadcast ? 0 : to;
  auto& arrival =
      arrivals_[static_cast<size_t>(output) * devices + static_cast<size_t>(destination)];
  if (arrival.epoch == op) return arrival;
  const int64_t bytes = problem_.output_bytes(op, output);
  const int64_t wire = problem_.wire_ns(from, to, bytes);
  const size_t queue = rules.queue == QueueModel::pair
                           ? static_cast<size_t>(from) * devices + static_cast<size_t>(to)
                           : static_cast<size_t>(from);
  const int64_t start = rules.queue == QueueModel::none ? end : std::max(end, queue_free_[queue]);
  queue_free_[queue] = start + wire + rules.link_dead_ns;
  last_event_ = std::max(last_event_, queue_free_[queue]);
  arrival = {start + wire, static_cast<int32_t>(transfers_.size()), op};
  transfers_.push_back({op, output, from, to, bytes, start, start + wire, 0});
  return arrival;
}

void Simulator::total(std::span<const int32_t> placement, Metrics& metrics) const {
  metrics.devices.assign(static_cast<size_t>(problem_.devices()), {});
  metrics.transfers = static_cast<int32_t>(transfers_.size());
  metrics.total_communication_bytes = 0;
  metrics.peak_communication_bytes = 0;
  for (size_t o = 0; o < placement.size(); ++o)
    metrics.devices[static_cast<size_t>(placement[o])].compute_busy_ns += end_[o] - start_[o];
  for (const auto& transfer : transfers_) {
    auto& sender = metrics.devices[static_cast<size_t>(transfer.from)];
    sender.bytes_sent += transfer.bytes;
    sender.send_busy_ns += transfer.end_ns - transfer.start_ns;
    metrics.devices[static_cast<size_t>(transfer.to)].bytes_received += transfer.bytes;
    metrics.total_communication_bytes += transfer.bytes;
  }
  for (const auto& device : metrics.devices)
    metrics.peak_communication_bytes =
        std::max(metrics.peak_communication_bytes, device.bytes_sent + device.bytes_received);
  metrics.step_time_ns =
      problem_.rules().last_event ? last_event_ : *std::max_element(end_.begin(), end_.end());
}

int32_t Simulator::slot_at(int32_t device, int64_t time) const {
  const auto& starts = device_starts_[static_cast<size_t>(device)];
  const auto after = std::upper_bound(starts.begin(), starts.end(), time);
  return std::max(0, static_cast<int32_t>(after - starts.begin()) - 1);
}

void Simulator::hold(int32_t device, int32_t first_slot, int32_t last_slot, int64_t bytes) {
  auto& delta = slot_delta_[static_cast<size_t>(device)];
  delta[static_cast<size_t>(first_slot)] += bytes;
  delta[static_cast<size_t>(last_slot) + 1] -= bytes;
}

void Simulator::slot_memory(std::span<const int32_t> placement, Metrics& metrics) {
  for (size_t d = 0; d < slot_delta_.size(); ++d)
    slot_delta_[d].assign(device_starts_[d].size() + 1, 0);
  for (int32_t op = 0; op < problem_.operators(); ++op) {
    const auto o = static_cast<size_t>(op);
    const int32_t device = placement[o];
    metrics.devices[static_cast<size_t>(device)].peak_memory_bytes += problem_.fixed_bytes(op);
    const auto outputs = static_cast<size_t>(problem_.first_output(op));
    const auto next = static_cast<size_t>(problem_.first_output(op + 1));
    std::fill(output_last_slot_.begin() + static_cast<std::ptrdiff_t>(outputs),
              output_last_slot_.begin() + static_cast<std::ptrdiff_t>(next), slot_[o]);
    auto edge = static_cast<size_t>(problem_.first_edge(op));
    for (const auto& reader : problem_.readers(op)) {
      const int32_t transfer = edge_transfer_[edge++];
      int32_t& last = transfer < 0 ? output_last_slot_[outputs + static_cast<size_t>(reader.output)]
                                   : transfers_[static_cast<size_t>(transfer)].last_reader_slot;
      last = std::max(last, slot_[static_cast<size_t>(reader.op)]);
    }
  }
  for (const auto& transfer : transfers_) {
    hold(transfer.to, slot_at(transfer.to, transfer.start_ns), transfer.last_reader_slot,
         transfer.bytes);
    auto& last = output_last_slot_[static_cast<size_t>(problem_.first_output(transfer.producer) +
                                                       transfer.output)];
    last = std::max(last, slot_at(transfer.from, transfer.end_ns));
  }
  for (int32_t op = 0; op < problem_.operators(); ++op) {
    const auto o = static_cast<size_t>(op);
    for (int32_t at = problem_.first_output(op); at < problem_.first_output(op + 1); ++at)
      hold(placement[o], slot_[o], output_last_slot_[static_cast<size_t>(at)],
           problem_.output_bytes(op, at - problem_.first_output(op)));
  }
  for (size_t d = 0; d < slot_delta_.size(); ++d) {
    int64_t live = 0, peak = 0;
    for (const int64_t delta : slot_delta_[d]) peak = std::max(peak, live += delta);
    metrics.devices[d].peak_memory_bytes += peak;
  }
}

/// papers.md 1.6: all outputs of an operator appear at its start and go one microsecond before its
/// last reader ends (never where nobody reads); allocations come before releases at one instant.
void Simulator::outputs_only_memory(std::span<const int32_t> placement, Metrics& metrics) {
  struct Change {
    int64_t time_ns;
    int64_t bytes;
  };
  std::vector<std::vector<Change>> changes(metrics.devices.size());
  for (int32_t op = 0; op < problem_.operators(); ++op) {
    const auto o = static_cast<size_t>(op);
    int64_t bytes = 0, released = -1;
    for (int32_t i = problem_.first_output(op); i < problem_.first_output(op + 1); ++i)
      bytes += problem_.output_bytes(op, i - problem_.first_output(op));
    for (const auto& reader : problem_.readers(op))
      released = std::max(released, end_[static_cast<size_t>(reader.op)] - 1000);
    auto& device = changes[static_cast<size_t>(placement[o])];
    device.push_back({start_[o], bytes});
    if (released >= 0) device.push_back({released, -bytes});
  }
  for (size_t d = 0; d < changes.size(); ++d) {
    std::sort(changes[d].begin(), changes[d].end(), [](const Change& a, const Change& b) {
      return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.bytes > b.bytes;
    });
    int64_t live = 0;
    for (const auto& change : changes[d])
      metrics.devices[d].peak_memory_bytes =
          std::max(metrics.devices[d].peak_memory_bytes, live += change.bytes);
  }
}

BatchSimulator::BatchSimulator(const Problem& problem, ThreadPool& pool)
    : problem_(problem), pool_(pool) {
  for (int i = 0; i < pool.threads(); ++i) simulators_.emplace_back(problem);
}

void BatchSimulator::run(std::span<const int32_t> placements, int32_t count,
                         std::vector<Metrics>& metrics) {
  const auto n = static_cast<size_t>(problem_.operators());
  metrics.resize(static_cast<size_t>(count));
  pool_.parallel_for(count, [&](int item, int thread) {
    poll_stop();
    const auto i = static_cast<size_t>(item);
    simulators_[static_cast<size_t>(thread)].run(placements.subspan(i * n, n), metrics[i]);
  });
}

}  // namespace trinity
