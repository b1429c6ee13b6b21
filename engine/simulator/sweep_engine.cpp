#include "simulator/sweep_engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/stop.h"

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

SweepEngine::SweepEngine(const Problem& problem)
    : problem_(problem),
      store_(static_cast<size_t>(problem.operators())),
      state_(static_cast<size_t>(problem.operators())),
      arrivals_(static_cast<size_t>(problem.max_outputs()) *
                static_cast<size_t>(problem.devices())),
      next_position_(static_cast<size_t>(problem.devices())) {
  for (int32_t o = 0; o < problem.operators(); ++o) {
    missing_image_.push_back(static_cast<uint64_t>(problem.missing(o)));
    if (problem.missing(o) == 0) sources_.push_back(o);
  }
  for (int32_t o = 0; o <= problem.operators(); ++o)
    nodes_.push_back({problem.first_edge(o), problem.first_output(o)});
  for (size_t i = 0; i < problem.uniform_wires().size(); ++i)
    wires_.push_back({problem.uniform_wires()[i], problem.all_output_bytes()[i]});
  const auto d = static_cast<size_t>(problem.devices());
  if (problem.rules().queue == QueueModel::pair) pair_free_.resize(d * d);
}

bool SweepEngine::takes(const Problem& problem, const Schedule* schedule) {
  const auto queue = problem.rules().queue;
  if (queue == QueueModel::route || queue == QueueModel::fair || queue == QueueModel::receiver)
    return false;
  if (problem.contends()) return false;
  if (schedule &&
      (schedule->runs() != 1 || schedule->stream > 0 || !schedule->weight_versions.empty()))
    return false;
  return problem.graph().collectives().empty() &&
         (packs(problem, kSmallShift) || packs(problem, kLargeShift));
}

/// Books a transfer under any of this road's rules, from copy.start_ns on at the earliest; returns
/// when it arrives.
int64_t SweepEngine::book(Copy copy, Record& record, int32_t number) {
  const auto& rules = problem_.rules();
  const int64_t bytes = problem_.output_bytes(copy.task, copy.output);
  const int64_t wire = problem_.wire_ns(copy.from, copy.to, bytes);
  auto& sender = record.devices[copy.from];
  int64_t unqueued = 0;
  int64_t& free = rules.queue == QueueModel::pair
                      ? pair_free_[static_cast<size_t>(copy.from) * record.devices.size() +
                                   static_cast<size_t>(copy.to)]
                  : rules.queue == QueueModel::none ? unqueued
                                                    : sender.send_free_ns;
  copy.start_ns = std::max(copy.start_ns, free);
  copy.end_ns = copy.start_ns + wire;
  free = copy.end_ns + rules.link_dead_ns;
  record.last_ns = std::max(record.last_ns, free);
  sender.send_ns += wire;
  sender.sent_bytes += bytes;
  record.devices[copy.to].received_bytes += bytes;
  if (record.tasks) record.copies[number] = copy;
  return copy.end_ns;
}

/// One run with everything that is fixed while it lasts in reach. kPlain: one send queue a device,
/// equal wires, no pauses. kRecord: positions, starts and copies are wanted.
template <int kShift, bool kPlain, bool kRecord, DispatchRule kRule>
class SweepEngine::Run {
 public:
  Run(SweepEngine& engine, const Plan& plan, int64_t limit_ns, Record& record)
      : engine_(engine),
        problem_(engine.problem_),
        placement_(plan.placement.data()),
        schedule_(plan.schedule),
        limit_ns_(limit_ns),
        record_(record),
        queue_(engine.store_),
        devices_(record.devices.data()),
        state_(engine.state_.data()),
        waiting_(engine.waiting_.data()),
        arrivals_(engine.arrivals_.data()),
        device_count_(record.devices.size()),
        outputs_(problem_.outputs()),
        nodes_(engine.nodes_.data()),
        readers_(problem_.all_readers().data()),
        wires_(engine.wires_.data()),
        next_position_(engine.next_position_.data()),
        place_(record.place.data()),
        start_at_(record.start_at.data()),
        copies_(record.copies.data()),
        source_(record.source.data()),
        order_(record.order.data()) {}

  /// Whether every operator has run: an order may contradict the graph.
  bool run() {
    if constexpr (kRule == DispatchRule::fifo)
      run_ready();
    else
      run_turns();
    record_.transfers = transfers_;
    record_.copy_count = kRecord ? static_cast<size_t>(transfers_) : 0;
    record_.rejected = beyond_ns_ > 0;
    if (kPlain)  // a device is free when its last task ends
      for (size_t d = 0; d < device_count_; ++d) step_ns_ = std::max(step_ns_, devices_[d].free_ns);
    record_.step_ns = record_.rejected ? beyond_ns_ : step_ns_;
    return kRule == DispatchRule::fifo || record_.rejected || started_ == problem_.operators();
  }

 private:
  static constexpr uint64_t kMask = (uint64_t{1} << kShift) - 1;
  static constexpr bool kOrdered = kRule == DispatchRule::order;
  /// Of no more devices the next to start is looked for among all.
  static constexpr size_t kScanned = 8;

  /// Sources are ready at 0 in order of number; what operators that take no time make ready at 0
  /// comes in between.
  [[gnu::always_inline]] void run_ready() {
    for (const int32_t source : engine_.sources_) {
      while (beyond_ns_ == 0 && !queue_.empty() && queue_.below(static_cast<uint64_t>(source)))
        next();
      if (beyond_ns_ > 0) break;
      execute(0, source);
    }
    for (StopPoll stop; beyond_ns_ == 0 && !queue_.empty(); stop.step()) next();
  }

  /// The devices' starts in order of time; of those at one instant first that of the least (ready
  /// time, number), for what takes no time may change what the others choose.
  [[gnu::always_inline]] void run_turns() {
    for (size_t d = 0; d < device_count_ && kOrdered; ++d) promise_next(static_cast<int32_t>(d));
    for (const int32_t source : engine_.sources_) wait(source, 0);
    for (StopPoll stop; beyond_ns_ == 0; stop.step()) {
      const int32_t device = device_count_ <= kScanned ? scan() : next_turn();
      if (device < 0) break;
      take_turn(device, waiting_[device].next_ns);
    }
  }

  [[gnu::always_inline]] void take_turn(int32_t device, int64_t time) {
    auto& waiting = waiting_[device];
    const int32_t op = choice(waiting, time);
    if constexpr (kOrdered)
      ++waiting.at;
    else if constexpr (kRule == DispatchRule::lifo)
      waiting.stack.pop_back();
    else
      waiting.chosen.pop();
    waiting.next_ns = EventQueue::kNever;
    ++started_;
    execute(ready_ns(op), op);
    promise_next(device);
  }

  /// The device that starts something next, or -1.
  [[gnu::always_inline]] int32_t scan() {
    int64_t time = EventQueue::kNever;
    int32_t first = -1;
    bool several = false;
    for (size_t d = 0; d < device_count_; ++d) {
      const int64_t next = waiting_[d].next_ns;
      several = next < time ? false : several || (next == time && first >= 0);
      first = next < time ? static_cast<int32_t>(d) : first;
      time = std::min(time, next);
    }
    return several ? first_of_instant(time) : first;
  }

  /// The same by a queue, in which a device may stand with times that are none any more.
  [[gnu::always_inline]] int32_t next_turn() {
    auto& turns = engine_.turns_;
    while (!turns.empty()) {
      const int64_t time = turns.first();
      const auto device = static_cast<int32_t>(turns.pop());
      if (waiting_[device].next_ns != time) continue;  // it starts something earlier, or did
      return turns.first() == time ? first_of_instant(device, time) : device;
    }
    return -1;
  }

  /// Whether of two devices that start something at `time` this one does so first.
  bool earlier(int32_t device, int32_t other, int64_t time) {
    const int32_t a = choice(waiting_[device], time), b = choice(waiting_[other], time);
    return std::pair(ready_ns(a), a) < std::pair(ready_ns(b), b);
  }

  [[gnu::noinline]] int32_t first_of_instant(int64_t time) {
    int32_t first = -1;
    for (int32_t d = 0; d < static_cast<int32_t>(device_count_); ++d)
      if (waiting_[d].next_ns == time && (first < 0 || earlier(d, first, time))) first = d;
    return first;
  }

  /// Of `device` and all others in the queue with `time` the first; the others stay there.
  [[gnu::noinline]] int32_t first_of_instant(int32_t device, int64_t time) {
    auto& turns = engine_.turns_;
    auto& due = engine_.due_;
    due.assign(1, device);
    while (turns.first() == time) {
      const auto other = static_cast<int32_t>(turns.pop());
      if (waiting_[other].next_ns == time && std::find(due.begin(), due.end(), other) == due.end())
        due.push_back(other);
    }
    for (const int32_t other : due)
      if (earlier(other, device, time)) device = other;
    for (const int32_t other : due)
      if (other != device) turns.push({time, other});
    return device;
  }

  int64_t ready_ns(int32_t op) const { return static_cast<int64_t>(state_[op] >> kShift); }

  /// What a device starts at `time`. What becomes known later is not ready before, so that lifo's
  /// stack stays in order.
  [[gnu::always_inline]] int32_t choice(Waiting& waiting, int64_t time) {
    if constexpr (kOrdered) return schedule_->order[waiting.at];
    while (waiting.later.first() <= time) {
      const auto op = static_cast<int32_t>(waiting.later.pop());
      if constexpr (kRule == DispatchRule::lifo)
        stack(waiting.stack, op);
      else
        waiting.chosen.push({~schedule_->priority[op], op});
    }
    if constexpr (kRule == DispatchRule::lifo) return waiting.stack.back();
    return static_cast<int32_t>(waiting.chosen.front().second);
  }

  /// The last to be ready comes on top; of those ready at once, the greatest.
  [[gnu::always_inline]] void stack(std::vector<int32_t>& stack, int32_t op) {
    stack.push_back(op);
    for (size_t at = stack.size() - 1; at > 0; --at) {
      if (stack[at - 1] < op || ready_ns(stack[at - 1]) != ready_ns(op)) break;
      std::swap(stack[at - 1], stack[at]);
    }
  }

  /// An operator misses nothing more from `ready` on.
  [[gnu::always_inline]] void wait(int32_t op, int64_t ready) {
    const int32_t device = placement_[op];
    auto& waiting = waiting_[device];
    if constexpr (!kOrdered)
      waiting.later.push({ready, op});
    else if (waiting.at == waiting.end || schedule_->order[waiting.at] != op)
      return;
    promise(device, ready);
  }

  /// A device starts something when this is ready, or before.
  [[gnu::always_inline]] void promise(int32_t device, int64_t ready) {
    const int64_t time = std::max(ready, devices_[device].free_ns);
    if (time >= waiting_[device].next_ns) return;
    waiting_[device].next_ns = time;
    if (device_count_ > kScanned) engine_.turns_.push({time, device});
  }

  [[gnu::always_inline]] void promise_next(int32_t device) {
    auto& waiting = waiting_[device];
    if constexpr (kOrdered) {
      if (waiting.at == waiting.end) return;
      const int32_t op = schedule_->order[waiting.at];
      if ((state_[op] & kMask) == 0) promise(device, ready_ns(op));
    } else if (!waiting.chosen.empty() || !waiting.stack.empty()) {
      promise(device, 0);
    } else if (!waiting.later.empty()) {
      promise(device, waiting.later.first());
    }
  }

  [[gnu::always_inline]] void next() {
    const uint64_t key = queue_.pop();
    execute(static_cast<int64_t>(key >> kShift), static_cast<int32_t>(key & kMask));
  }

  [[gnu::always_inline]] void execute(int64_t ready, int32_t op) {
    DeviceState& device = devices_[placement_[op]];
    const int64_t cost = device.cost_ns[op];
    const int64_t start = std::max(ready, device.free_ns), end = start + cost;
    device.free_ns = end;
    device.compute_ns += cost;
    if (limit_ns_ != kNoLimit) {
      device.remaining_ns -= cost;
      const int64_t bound = end + std::max(device.remaining_ns, problem_.tail_ns(op));
      if (bound > limit_ns_) {
        beyond_ns_ = bound;
        return;
      }
    }
    if constexpr (!kPlain) {
      const auto& rules = problem_.rules();
      step_ns_ = std::max(step_ns_, end);
      device.free_ns += cost > 0 || rules.dead_after_free ? rules.device_dead_ns : 0;
      record_.last_ns = std::max(record_.last_ns, device.free_ns);
    }
    if constexpr (kRecord) note(op, ready, start, end);
    deliver(op, placement_[op], end);
  }

  [[gnu::always_inline]] void note(int32_t op, int64_t ready, int64_t start, int64_t end) {
    const int32_t device = placement_[op], position = next_position_[device]++;
    place_[op] = {position, device};
    start_at_[position] = start;
    *order_++ = op;
    if (!record_.times) return;
    record_.ready_ns[op] = ready;
    record_.end_ns[op] = end;
  }

  /// Hands an operator's outputs to their readers; those that miss nothing more are ready.
  [[gnu::always_inline]] void deliver(int32_t op, int32_t from, int64_t end) {
    const Node node = nodes_[op];
    const int32_t end_edge = nodes_[op + 1].first_edge;
    for (int32_t e = node.first_edge; e < end_edge; ++e) {
      const Problem::Reader reader = readers_[e];
      const int32_t to = placement_[reader.op];
      int64_t arrival = end;
      if constexpr (kRecord) source_[e] = node.first_output + reader.output;
      if (to != from) {
        const Arrival& sent = send(op, node.first_output, reader.output, from, to, end);
        arrival = sent.time_ns;
        if constexpr (kRecord) source_[e] = outputs_ + sent.copy;
      }
      uint64_t& word = state_[reader.op];
      const uint64_t candidate = static_cast<uint64_t>(arrival) << kShift | (word & kMask);
      word = std::max(word, candidate) - 1;
      if ((word & kMask) != 0) continue;
      if constexpr (kRule == DispatchRule::fifo)
        queue_.push(word | static_cast<uint64_t>(reader.op));
      else
        wait(reader.op, static_cast<int64_t>(word >> kShift));
    }
  }

  /// The transfer of an output to another device; its first reader there books it.
  [[gnu::always_inline]] const Arrival& send(int32_t op, int32_t first_output, int32_t output,
                                             int32_t from, int32_t to, int64_t end) {
    const int32_t receiver = !kPlain && problem_.rules().broadcast ? 0 : to;
    Arrival& sent =
        arrivals_[static_cast<size_t>(output) * device_count_ + static_cast<size_t>(receiver)];
    if (sent.op == op) return sent;
    sent.op = op;
    sent.copy = transfers_++;
    if constexpr (!kPlain) {
      sent.time_ns = engine_.book({end, end, op, output, from, to}, record_, sent.copy);
    } else {
      const Wire wire = wires_[first_output + output];
      DeviceState& sender = devices_[from];
      const int64_t start = std::max(end, sender.send_free_ns);
      sent.time_ns = sender.send_free_ns = start + wire.time_ns;
      sender.send_ns += wire.time_ns;
      sender.sent_bytes += wire.bytes;
      devices_[to].received_bytes += wire.bytes;
      if constexpr (kRecord) copies_[sent.copy] = {start, sent.time_ns, op, output, from, to};
    }
    return sent;
  }

  SweepEngine& engine_;
  const Problem& problem_;
  const int32_t* const placement_;
  const Schedule* const schedule_;
  const int64_t limit_ns_;
  Record& record_;
  ReadyQueue queue_;
  DeviceState* const devices_;
  uint64_t* const state_;
  Waiting* const waiting_;
  Arrival* const arrivals_;
  const size_t device_count_;
  const int32_t outputs_;
  const Node* const nodes_;
  const Problem::Reader* const readers_;
  const Wire* const wires_;
  int32_t* const next_position_;
  Place* const place_;
  int64_t* const start_at_;
  Copy* const copies_;
  int32_t* const source_;
  int32_t* order_;
  int32_t transfers_ = 0, started_ = 0;
  int64_t step_ns_ = 0;
  int64_t beyond_ns_ = 0;  // once the limit is certain to be passed: by how the step is bounded
};

template <int kShift, bool kPlain, DispatchRule kRule>
bool SweepEngine::run_by(const Plan& plan, int64_t limit_ns, Record& record) {
  if (record.tasks) return Run<kShift, kPlain, true, kRule>(*this, plan, limit_ns, record).run();
  return Run<kShift, kPlain, false, kRule>(*this, plan, limit_ns, record).run();
}

template <int kShift, bool kPlain>
bool SweepEngine::choose(const Plan& plan, int64_t limit_ns, Record& record) {
  switch (plan.schedule ? plan.schedule->dispatch : DispatchRule::fifo) {
    case DispatchRule::fifo:
      return run_by<kShift, kPlain, DispatchRule::fifo>(plan, limit_ns, record);
    case DispatchRule::lifo:
      return run_by<kShift, kPlain, DispatchRule::lifo>(plan, limit_ns, record);
    case DispatchRule::priority:
      return run_by<kShift, kPlain, DispatchRule::priority>(plan, limit_ns, record);
    case DispatchRule::order:
      break;
  }
  return run_by<kShift, kPlain, DispatchRule::order>(plan, limit_ns, record);
}

void SweepEngine::begin_turns(const Schedule& schedule, size_t devices) {
  turns_.clear();
  waiting_.resize(devices);
  for (size_t d = 0; d < devices; ++d) {
    auto& waiting = waiting_[d];
    waiting.later.clear();
    waiting.chosen.clear();
    waiting.stack.clear();
    waiting.next_ns = EventQueue::kNever;
    if (schedule.dispatch != DispatchRule::order) continue;
    waiting.at = schedule.order_first[d];
    waiting.end = schedule.order_first[d + 1];
  }
}

bool SweepEngine::run(const Plan& plan, int64_t limit_ns, Record& record) {
  record.begin(problem_, plan, limit_ns != kNoLimit);
  std::memcpy(state_.data(), missing_image_.data(), state_.size() * sizeof(uint64_t));
  for (auto& arrival : arrivals_) arrival.op = -1;
  std::fill(pair_free_.begin(), pair_free_.end(), 0);
  if (plan.schedule) begin_turns(*plan.schedule, record.devices.size());
  if (record.tasks) {
    std::copy(record.first_position.begin(), record.first_position.end() - 1,
              next_position_.begin());
    record.order.resize(state_.size());
    const auto edges = static_cast<size_t>(problem_.edges());
    record.copies.resize(std::max(record.copies.size(), edges));  // each may need its own
    record.source.resize(edges);
    record.swept = true;
  }
  if (packs(problem_, kSmallShift))
    return plain(problem_) ? choose<kSmallShift, true>(plan, limit_ns, record)
                           : choose<kSmallShift, false>(plan, limit_ns, record);
  return plain(problem_) ? choose<kLargeShift, true>(plan, limit_ns, record)
                         : choose<kLargeShift, false>(plan, limit_ns, record);
}

}  // namespace trinity
