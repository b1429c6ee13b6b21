#include "simulator/sweep.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace trinity {
namespace {

constexpr int kSmallShift = 20, kLargeShift = 24;  // bits of an operator number in a key

bool packs(const Problem& problem, int shift) {
  const int64_t numbers = int64_t{1} << shift;
  return problem.operators() < numbers && problem.most_missing() < numbers &&
         problem.longest_step_ns() < std::ldexp(1.0, 64 - shift) - 1;
}

/// One send queue a device, equal wires, no pauses: what most problems are.
bool plain(const Problem& problem) {
  const auto& rules = problem.rules();
  return rules.queue == QueueModel::sender && !problem.uniform_wires().empty() &&
         rules.device_dead_ns == 0 && rules.link_dead_ns == 0 && !rules.broadcast;
}

}  // namespace

Sweep::Sweep(const Problem& problem)
    : problem_(problem),
      queue_(static_cast<size_t>(problem.operators())),
      state_(static_cast<size_t>(problem.operators())),
      arrivals_(static_cast<size_t>(problem.max_outputs()) *
                static_cast<size_t>(problem.devices())),
      next_position_(static_cast<size_t>(problem.devices())) {
  for (int32_t o = 0; o < problem.operators(); ++o) {
    missing_image_.push_back(static_cast<uint64_t>(problem.missing(o)));
    if (problem.missing(o) == 0) sources_.push_back(o);
  }
  const auto d = static_cast<size_t>(problem.devices());
  if (problem.rules().queue == QueueModel::pair) pair_free_.resize(d * d);
}

bool Sweep::takes(const Problem& problem, const Schedule* schedule) {
  const auto queue = problem.rules().queue;
  if (queue == QueueModel::route || queue == QueueModel::fair) return false;
  if (schedule && (schedule->policy != Policy::fifo || schedule->micro_batches != 1)) return false;
  return problem.graph().collectives().empty() &&
         (packs(problem, kSmallShift) || packs(problem, kLargeShift));
}

void Sweep::run(std::span<const int32_t> placement, int64_t limit_ns, Record& record) {
  record.begin(problem_, placement, 1, limit_ns != kNoLimit);
  queue_.clear();
  std::memcpy(state_.data(), missing_image_.data(), state_.size() * sizeof(uint64_t));
  for (auto& arrival : arrivals_) arrival.op = -1;
  std::fill(pair_free_.begin(), pair_free_.end(), 0);
  if (record.tasks)
    std::copy(record.first_position.begin(), record.first_position.end() - 1,
              next_position_.begin());
  if (packs(problem_, kSmallShift))
    choose<kSmallShift>(placement, limit_ns, record);
  else
    choose<kLargeShift>(placement, limit_ns, record);
}

template <int kShift>
void Sweep::choose(std::span<const int32_t> placement, int64_t limit_ns, Record& record) {
  const int32_t* device = placement.data();
  if (plain(problem_))
    record.tasks ? sweep<kShift, true, true>(device, limit_ns, record)
                 : sweep<kShift, true, false>(device, limit_ns, record);
  else
    record.tasks ? sweep<kShift, false, true>(device, limit_ns, record)
                 : sweep<kShift, false, false>(device, limit_ns, record);
}

/// Books a transfer under any of this road's rules; returns when it arrives.
int64_t Sweep::book(int32_t op, int32_t output, int32_t from, int32_t to, int64_t end,
                    Record& record) {
  const auto& rules = problem_.rules();
  const int64_t bytes = problem_.output_bytes(op, output);
  const int64_t wire = problem_.wire_ns(from, to, bytes);
  auto& sender = record.devices[static_cast<size_t>(from)];
  int64_t unqueued = 0;
  int64_t& free =
      rules.queue == QueueModel::pair
          ? pair_free_[static_cast<size_t>(from) * record.devices.size() + static_cast<size_t>(to)]
      : rules.queue == QueueModel::none ? unqueued
                                        : sender.send_free_ns;
  const int64_t start = std::max(end, free);
  free = start + wire + rules.link_dead_ns;
  record.last_ns = std::max(record.last_ns, free);
  sender.send_ns += wire;
  sender.sent_bytes += bytes;
  record.devices[static_cast<size_t>(to)].received_bytes += bytes;
  ++record.transfers;
  if (record.tasks) record.copies.push_back({start, start + wire, op, output, from, to});
  return start + wire;
}

template <int kShift, bool kPlain, bool kRecord>
void Sweep::sweep(const int32_t* placement, int64_t limit_ns, Record& record) {
  constexpr uint64_t kMask = (uint64_t{1} << kShift) - 1;
  const auto& rules = problem_.rules();
  const auto device_count = static_cast<size_t>(problem_.devices());
  const int64_t* wires = problem_.uniform_wires().data();
  const int64_t* bytes = problem_.all_output_bytes().data();
  DeviceState* const devices = record.devices.data();
  uint64_t* const state = state_.data();
  Arrival* const arrivals = arrivals_.data();
  const bool limited = limit_ns != kNoLimit;
  int64_t step = 0;

  const auto execute = [&](int64_t ready, int32_t op) __attribute__((always_inline)) {
    const int32_t from = placement[op];
    DeviceState& device = devices[from];
    const int64_t cost = device.cost_ns[op];
    const int64_t start = std::max(ready, device.free_ns), end = start + cost;
    device.free_ns = end;
    device.compute_ns += cost;
    step = std::max(step, end);
    if (limited) {
      device.remaining_ns -= cost;
      const int64_t bound = end + std::max(device.remaining_ns, problem_.tail_ns(op));
      if (bound > limit_ns) return bound;
    }
    if constexpr (!kPlain) {
      device.free_ns += cost > 0 || rules.dead_after_free ? rules.device_dead_ns : 0;
      record.last_ns = std::max(record.last_ns, device.free_ns);
    }
    if constexpr (kRecord) {
      const int32_t position = next_position_[static_cast<size_t>(from)]++;
      record.position[static_cast<size_t>(op)] = position;
      record.start_at[static_cast<size_t>(position)] = start;
      record.first_copy[static_cast<size_t>(op)] = static_cast<int32_t>(record.copies.size());
      record.order.push_back(op);
      if (record.times) {
        record.ready_ns[static_cast<size_t>(op)] = ready;
        record.end_ns[static_cast<size_t>(op)] = end;
      }
    }
    for (const auto& reader : problem_.readers(op)) {
      const int32_t to = placement[reader.op];
      int64_t arrival = end;
      if (to != from) {
        const int32_t destination = !kPlain && rules.broadcast ? 0 : to;
        Arrival& sent = arrivals[static_cast<size_t>(reader.output) * device_count +
                                 static_cast<size_t>(destination)];
        if (sent.op != op) {
          sent.op = op;
          if constexpr (kPlain) {
            const int32_t tensor = problem_.first_output(op) + reader.output;
            const int64_t begin = std::max(end, device.send_free_ns);
            sent.time_ns = device.send_free_ns = begin + wires[tensor];
            device.send_ns += wires[tensor];
            device.sent_bytes += bytes[tensor];
            devices[to].received_bytes += bytes[tensor];
            ++record.transfers;
            if constexpr (kRecord)
              record.copies.push_back({begin, sent.time_ns, op, reader.output, from, to});
          } else {
            sent.time_ns = book(op, reader.output, from, to, end, record);
          }
        }
        arrival = sent.time_ns;
      }
      uint64_t& word = state[reader.op];
      const uint64_t candidate = static_cast<uint64_t>(arrival) << kShift | (word & kMask);
      const uint64_t next = std::max(word, candidate) - 1;
      word = next;
      if ((next & kMask) == 0) queue_.push(next | static_cast<uint64_t>(reader.op));
    }
    return int64_t{0};
  };

  // Sources are ready at 0 in order of number; what operators that take no time make ready at 0 is
  // in between.
  int64_t beyond = 0;
  const auto next = [&] {
    const uint64_t key = queue_.pop();
    return execute(static_cast<int64_t>(key >> kShift), static_cast<int32_t>(key & kMask));
  };
  for (size_t i = 0; i < sources_.size() && beyond == 0; ++i) {
    while (beyond == 0 && queue_.below(static_cast<uint64_t>(sources_[i]))) beyond = next();
    if (beyond == 0) beyond = execute(0, sources_[i]);
  }
  while (beyond == 0 && !queue_.empty()) beyond = next();
  record.rejected = beyond > 0;
  record.step_ns = record.rejected ? beyond : step;
}

}  // namespace trinity
