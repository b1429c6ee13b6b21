#pragma once

#include <algorithm>
#include <utility>

#include "base/stop.h"
#include "simulator/sweep_engine.h"

namespace trinity {

/// One run, with everything that is constant during it as members. kRecord: positions, starts and
/// copies are wanted. kMicro: several micro-batches; a task is then (micro-batch above the
/// operator's bits), which sorts as task numbers do; otherwise it is its operator.
/// Not thread-safe; one per thread.
template <int kShift, SweepEngine::Wiring kWiring, bool kMicro, bool kRecord, DispatchRule kRule>
class SweepEngine::Run {
 public:
  Run(SweepEngine& engine, const Plan& plan, int64_t limit_ns, Record& record)
      : engine_(engine),
        problem_(engine.problem_),
        placement_(plan.placement.data()),
        schedule_(plan.schedule),
        limit_ns_(limit_ns),
        fair_(problem_.rules().queue == QueueModel::fair),
        record_(record),
        queue_(engine.store_),
        devices_(record.devices.data()),
        state_(engine.state_.data()),
        waiting_(engine.waiting_.data()),
        arrivals_(engine.arrivals_.data()),
        device_count_(record.devices.size()),
        runs_(engine.runs_),
        op_bits_(engine.op_bits_),
        last_run_((runs_ - 1) << op_bits_),
        outputs_(problem_.outputs()),
        nodes_(engine.nodes_.data()),
        readers_(problem_.all_readers().data()),
        wires_(engine.wires_.data()),
        next_position_(engine.next_position_.data()),
        position_(record.position.data()),
        start_at_(record.start_at.data()),
        copies_(record.copies.data()),
        expected_(engine.expected_.data()),
        source_(record.source.data()) {}

  /// False if not every operator has run, because an order contradicts the graph.
  bool run() {
    if constexpr (kRule == DispatchRule::fifo)
      run_ready();
    else
      run_turns();
    if constexpr (kMicro && kRecord)
      for (int32_t i = 0; i < transfers_; ++i) copies_[i].task = number(copies_[i].task);
    record_.transfers = transfers_;
    record_.copy_count = kRecord ? static_cast<size_t>(transfers_) : 0;
    record_.rejected = beyond_ns_ > 0;
    if (kPlain)  // a device is free when its last task ends
      for (size_t d = 0; d < device_count_; ++d) step_ns_ = std::max(step_ns_, devices_[d].free_ns);
    record_.step_ns = record_.rejected ? beyond_ns_ : step_ns_;
    return !kOrdered || record_.rejected || started_ == problem_.operators();
  }

 private:
  static constexpr uint64_t kMask = (uint64_t{1} << kShift) - 1;
  static constexpr bool kPlain = kWiring == Wiring::plain;
  static constexpr bool kChannels = kWiring == Wiring::channels;
  static constexpr int64_t kNever = EventQueue::kNever;
  static constexpr bool kOrdered = kRule == DispatchRule::order;
  static constexpr int32_t kEvent = -2;  // not a device: an event of the channels
  /// Up to this number of devices the next start is found by a linear scan.
  static constexpr size_t kScanned = 8;

  [[gnu::always_inline]] int32_t op_of(int32_t task) const {
    return kMicro ? task & ((1 << op_bits_) - 1) : task;
  }
  [[gnu::always_inline]] int32_t run_of(int32_t task) const {
    return kMicro ? task >> op_bits_ : 0;
  }
  /// Task number as in simulator.h.
  [[gnu::always_inline]] int32_t number(int32_t task) const {
    return kMicro ? run_of(task) * problem_.operators() + op_of(task) : task;
  }
  /// Micro-batches reach an operator in close succession, so their states are contiguous.
  [[gnu::always_inline]] uint64_t& state(int32_t task) const {
    return state_[kMicro ? op_of(task) * runs_ + run_of(task) : task];
  }

  /// Calls take(task) for every task without inputs, in order of number, until the limit is
  /// exceeded.
  template <typename Take>
  [[gnu::always_inline]] void each_source(const Take& take) {
    for (int32_t run = 0; run < (kMicro ? runs_ : 1); ++run)
      for (const int32_t source : engine_.sources_) {
        if (beyond_ns_ > 0) return;
        if (kMicro && run + 1 < runs_ && problem_.once(source)) continue;
        take(kMicro ? run << op_bits_ | source : source);
      }
  }

  /// Sources are ready at 0, in order of number, interleaved with what operators and transfers that
  /// take no time make ready at 0.
  [[gnu::always_inline]] void run_ready() {
    each_source([this](int32_t source) __attribute__((always_inline)) {
      while (beyond_ns_ == 0)
        if (kChannels && event_ns_ == 0)
          follow_channels();
        else if (!queue_.empty() && queue_.below(static_cast<uint64_t>(source)))
          next();
        else
          break;
      if (beyond_ns_ == 0) execute(0, source);
    });
    for (StopPoll stop; beyond_ns_ == 0; stop.step())
      if (!queue_.empty() && (!kChannels || queue_.below(event_key())))
        next();
      else if (!kChannels || event_ns_ == kNever)
        break;
      else
        follow_channels();
  }

  /// Operators with smaller keys are ready before the next event of the channels.
  uint64_t event_key() const {
    return event_ns_ > static_cast<int64_t>(~uint64_t{0} >> kShift)
               ? ~uint64_t{0}
               : static_cast<uint64_t>(event_ns_) << kShift;
  }

  /// Device starts in order of time. At one instant the smallest (ready time, number) comes first,
  /// because a task that takes no time may change the choices of the others.
  [[gnu::always_inline]] void run_turns() {
    for (size_t d = 0; d < device_count_ && kOrdered; ++d) promise_next(static_cast<int32_t>(d));
    each_source([this](int32_t source) { wait(source, 0); });
    for (StopPoll stop; beyond_ns_ == 0; stop.step()) {
      const int32_t device = device_count_ <= kScanned ? scan() : next_turn();
      if (kChannels && device == kEvent) {
        follow_channels();
        continue;
      }
      if (device < 0) break;
      take_turn(device, waiting_[device].next_ns);
    }
  }

  [[gnu::always_inline]] void take_turn(int32_t device, int64_t time) {
    auto& waiting = waiting_[device];
    const int32_t task = choice(waiting, time);
    if constexpr (kOrdered)
      ++waiting.at;
    else if constexpr (kRule == DispatchRule::lifo)
      waiting.stack.pop_back();
    else
      waiting.chosen.pop();
    waiting.next_ns = EventQueue::kNever;
    ++started_;
    execute(ready_ns(task), task);
    promise_next(device);
  }

  /// The device that starts next; kEvent if an event of the channels comes first, which may change
  /// a device's choice; -1 if there is none.
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
    if (event_by(time)) return kEvent;
    return several ? first_of_instant(time) : first;
  }

  /// The same by a queue, which may hold outdated times of a device.
  [[gnu::always_inline]] int32_t next_turn() {
    auto& turns = engine_.turns_;
    while (true) {
      if (event_by(turns.first())) return kEvent;
      if (turns.empty()) return -1;
      const int64_t time = turns.first();
      const auto device = static_cast<int32_t>(turns.pop());
      if (waiting_[device].next_ns != time) continue;  // outdated: it starts earlier, or did
      return turns.first() == time ? first_of_instant(device, time) : device;
    }
  }

  /// True if the channels have an event by then.
  bool event_by(int64_t time) const {
    return kChannels && event_ns_ != kNever && event_ns_ <= time;
  }

  /// True if `device` starts before `other`, both at `time`.
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

  /// First of `device` and all others in the queue at `time`; the others stay queued.
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

  int64_t ready_ns(int32_t task) const { return static_cast<int64_t>(state(task) >> kShift); }

  /// The task that a device starts at `time`. Tasks that become known later are not ready before,
  /// so lifo's stack stays sorted.
  [[gnu::always_inline]] int32_t choice(Waiting& waiting, int64_t time) {
    if constexpr (kOrdered) return schedule_->order[waiting.at];
    while (waiting.later.first() <= time) {
      const auto task = static_cast<int32_t>(waiting.later.pop());
      if constexpr (kRule == DispatchRule::lifo)
        stack(waiting.stack, task);
      else
        waiting.chosen.push({~schedule_->priority[op_of(task)], task});
    }
    if constexpr (kRule == DispatchRule::lifo) return waiting.stack.back();
    return static_cast<int32_t>(waiting.chosen.front().second);
  }

  /// The last to be ready is on top; at a tie the largest number.
  [[gnu::always_inline]] void stack(std::vector<int32_t>& stack, int32_t task) {
    stack.push_back(task);
    for (size_t at = stack.size() - 1; at > 0; --at) {
      if (stack[at - 1] < task || ready_ns(stack[at - 1]) != ready_ns(task)) break;
      std::swap(stack[at - 1], stack[at]);
    }
  }

  /// The task has all its inputs from `ready` on.
  [[gnu::always_inline]] void wait(int32_t task, int64_t ready) {
    const int32_t device = placement_[op_of(task)];
    auto& waiting = waiting_[device];
    if constexpr (!kOrdered)
      waiting.later.push({ready, task});
    else if (waiting.at == waiting.end || schedule_->order[waiting.at] != task)
      return;
    promise(device, ready);
  }

  /// The device starts something at `ready` at the latest.
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

  [[gnu::always_inline]] void execute(int64_t ready, int32_t task) {
    const int32_t op = op_of(task);
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
    if constexpr (kRecord) note(number(task), placement_[op], ready, start, end);
    if (kMicro && engine_.summed_[op])
      deliver_sums(task, op, placement_[op], end, cost == 0);
    else
      deliver(task, op, placement_[op], end, cost == 0);
  }

  [[gnu::always_inline]] void note(int32_t number, int32_t device, int64_t ready, int64_t start,
                                   int64_t end) {
    const int32_t position = next_position_[device]++;
    position_[number] = position;
    start_at_[position] = start;
    if (!record_.times) return;
    record_.ready_ns[number] = ready;
    record_.end_ns[number] = end;
  }

  /// Delivers a task's outputs to their readers.
  [[gnu::always_inline]] void deliver(int32_t task, int32_t op, int32_t from, int64_t end,
                                      bool at_once) {
    const int32_t end_edge = nodes_[op + 1].first_edge;
    for (int32_t e = nodes_[op].first_edge; e < end_edge; ++e)
      hand(task, op, readers_[e], task - op + readers_[e].op, e, from, end, at_once);
  }

  /// The same if readers that run once per step wait for the last of its micro-batches to end,
  /// which is, on one device, the last to start.
  [[gnu::noinline]] void deliver_sums(int32_t task, int32_t op, int32_t from, int64_t end,
                                      bool at_once) {
    const bool last = --engine_.to_run_[op] == 0;
    const int32_t end_edge = nodes_[op + 1].first_edge;
    for (int32_t e = nodes_[op].first_edge; e < end_edge; ++e) {
      const bool sum = problem_.once(readers_[e].op);
      if (sum && !last) continue;
      hand(task, op, readers_[e], (sum ? last_run_ : task - op) + readers_[e].op, e, from, end,
           at_once);
    }
  }

  /// Delivers an output to one reader's task.
  [[gnu::always_inline]] void hand(int32_t task, int32_t op, Problem::Reader reader,
                                   int32_t reading, int32_t edge, int32_t from, int64_t end,
                                   bool at_once) {
    const int32_t output = nodes_[op].first_output + reader.output, to = placement_[reader.op];
    int64_t arrival = end;
    int32_t source = kMicro ? run_of(task) * outputs_ + output : output;
    if (to != from) {
      const Arrival& sent = send(task, output, reader.output, from, to, end, at_once);
      arrival = sent.time_ns;
      source = (kMicro ? runs_ : 1) * outputs_ + sent.copy;
      if (kChannels && arrival == kNever) {
        const int32_t place = kMicro ? run_of(task) * problem_.edges() + edge : edge;
        auto& first = copies_[sent.copy].end_ns;
        expected_[place] = {reading, static_cast<int32_t>(first)};
        first = place;
      }
    }
    if constexpr (kRecord)
      source_[kMicro ? run_of(reading) * problem_.edges() + edge : edge] = source;
    if (!kChannels || arrival != kNever) give(reading, arrival);
  }

  /// An input of a task arrives; without missing inputs it is ready.
  [[gnu::always_inline]] void give(int32_t task, int64_t arrival) {
    uint64_t& word = state(task);
    const uint64_t candidate = static_cast<uint64_t>(arrival) << kShift | (word & kMask);
    word = std::max(word, candidate) - 1;
    if ((word & kMask) != 0) return;
    if constexpr (kRule == DispatchRule::fifo)
      queue_.push(word | static_cast<uint64_t>(task));
    else
      wait(task, static_cast<int64_t>(word >> kShift));
  }

  /// Transfer of an output to another device; its first reader there books it.
  [[gnu::always_inline]] const Arrival& send(int32_t task, int32_t tensor, int32_t output,
                                             int32_t from, int32_t to, int64_t end, bool at_once) {
    const int32_t receiver = !kPlain && problem_.rules().broadcast ? 0 : to;
    Arrival& sent =
        arrivals_[static_cast<size_t>(output) * device_count_ + static_cast<size_t>(receiver)];
    if (sent.task == task) return sent;
    sent.task = task;
    sent.copy = transfers_++;
    if constexpr (kChannels) {
      sent.time_ns = announce({end, -1, task, output, from, to}, sent.copy,
                              problem_.all_output_bytes()[tensor], at_once);
    } else if constexpr (!kPlain) {
      sent.time_ns = engine_.book({end, end, task, output, from, to},
                                  problem_.all_output_bytes()[tensor], record_, sent.copy);
    } else {
      const Wire wire = wires_[tensor];
      DeviceState& sender = devices_[from];
      const int64_t start = std::max(end, sender.send_free_ns);
      sent.time_ns = sender.send_free_ns = start + wire.time_ns;
      sender.send_ns += wire.time_ns;
      sender.sent_bytes += wire.bytes;
      devices_[to].received_bytes += wire.bytes;
      if constexpr (kRecord) copies_[sent.copy] = {start, sent.time_ns, task, output, from, to};
    }
    return sent;
  }

  /// Schedules a transfer on its channels; returns its arrival if that is already known. Transfers
  /// of one instant take their routes in order of task; transfers of tasks that took no time
  /// (`at_once`) come after them, in order of start.
  int64_t announce(const Copy& copy, int32_t number, int64_t bytes, bool at_once) {
    devices_[copy.from].sent_bytes += bytes;
    devices_[copy.to].received_bytes += bytes;
    copies_[number] = copy;
    int64_t begin = copy.start_ns, rank = number;
    if (fair_) {
      begin += problem_.tables().latency_ns(copy.from, copy.to);
      if (bytes == 0) return end_copy(number, begin);
    } else {
      rank |= (at_once ? int64_t{1} << kLargeShift : int64_t{copy.task}) << 32;
    }
    engine_.begins_.push({begin, rank});
    event_ns_ = std::min(event_ns_, begin);
    return kNever;
  }

  int64_t end_copy(int32_t number, int64_t time) {
    auto& copy = copies_[number];
    copy.end_ns = time;
    devices_[copy.from].send_ns += time - copy.start_ns;
    record_.last_ns = std::max(record_.last_ns, time);
    return time;
  }

  /// Processes the channels' next instant.
  [[gnu::noinline]] void follow_channels() {
    const int64_t now = event_ns_;
    auto& begins = engine_.begins_;
    auto& flows = engine_.flows_;
    if (fair_) flows.advance(now, engine_.flowed_);
    for (const int32_t number : engine_.flowed_) arrive(number, now);
    engine_.flowed_.clear();
    while (begins.first() == now) {
      const auto number = static_cast<int32_t>(begins.pop());
      const auto& copy = copies_[number];
      if (fair_)
        flows.begin(copy.from, copy.to, bytes_of(copy), number);
      else
        arrive(number, take_route(number));
    }
    if (fair_) flows.settle();
    event_ns_ = std::min(begins.first(), fair_ ? flows.next_end_ns() : kNever);
  }

  int64_t bytes_of(const Copy& copy) const {
    return problem_.output_bytes(op_of(copy.task), copy.output);
  }

  /// Occupies all channels of a transfer's route at once; returns its arrival.
  int64_t take_route(int32_t number) {
    auto& copy = copies_[number];
    auto& free_ns = engine_.channel_free_;
    const Route route = problem_.cluster().route(copy.from, copy.to);
    for (const int32_t channel : route) copy.start_ns = std::max(copy.start_ns, free_ns[channel]);
    const int64_t bytes = bytes_of(copy);
    const int64_t end = copy.start_ns + problem_.wire_ns(copy.from, copy.to, bytes);
    for (const int32_t channel : route) free_ns[channel] = end;
    return end;
  }

  /// Ends a transfer and delivers it to all that wait. Until now its end_ns held a reader's edge.
  void arrive(int32_t number, int64_t time) {
    auto edge = static_cast<int32_t>(copies_[number].end_ns);
    end_copy(number, time);
    for (; edge >= 0; edge = expected_[edge].next) give(expected_[edge].task, time);
  }

  SweepEngine& engine_;
  const Problem& problem_;
  const int32_t* const placement_;
  const Schedule* const schedule_;
  const int64_t limit_ns_;
  const bool fair_;
  Record& record_;
  ReadyQueue queue_;
  DeviceState* const devices_;
  uint64_t* const state_;
  Waiting* const waiting_;
  Arrival* const arrivals_;
  const size_t device_count_;
  const int32_t runs_, op_bits_, last_run_;
  const int32_t outputs_;
  const Node* const nodes_;
  const Problem::Reader* const readers_;
  const Wire* const wires_;
  int32_t* const next_position_;
  int32_t* const position_;
  int64_t* const start_at_;
  Copy* const copies_;
  Expected* const expected_;
  int32_t* const source_;
  int32_t transfers_ = 0, started_ = 0;
  int64_t step_ns_ = 0;
  int64_t event_ns_ = kNever;  // next event of the channels
  int64_t beyond_ns_ = 0;  // set once the limit is certain to be exceeded: bound on the step
};

template <int kShift, SweepEngine::Wiring kWiring, bool kMicro, DispatchRule kRule>
bool SweepEngine::run_by(const Plan& plan, int64_t limit_ns, Record& record) {
  if (record.tasks)
    return Run<kShift, kWiring, kMicro, true, kRule>(*this, plan, limit_ns, record).run();
  return Run<kShift, kWiring, kMicro, false, kRule>(*this, plan, limit_ns, record).run();
}

template <int kShift, SweepEngine::Wiring kWiring, bool kMicro>
bool SweepEngine::choose(const Plan& plan, int64_t limit_ns, Record& record) {
  switch (plan.schedule ? plan.schedule->dispatch : DispatchRule::fifo) {
    case DispatchRule::fifo:
      return run_by<kShift, kWiring, kMicro, DispatchRule::fifo>(plan, limit_ns, record);
    case DispatchRule::lifo:
      return run_by<kShift, kWiring, kMicro, DispatchRule::lifo>(plan, limit_ns, record);
    case DispatchRule::priority:
      return run_by<kShift, kWiring, kMicro, DispatchRule::priority>(plan, limit_ns, record);
    case DispatchRule::order:
      break;
  }
  if constexpr (kMicro)
    return false;
  else
    return run_by<kShift, kWiring, kMicro, DispatchRule::order>(plan, limit_ns, record);
}

template <int kShift, bool kMicro>
bool SweepEngine::wire(const Plan& plan, int64_t limit_ns, Record& record) {
  switch (wiring(problem_)) {
    case Wiring::plain:
      return choose<kShift, Wiring::plain, kMicro>(plan, limit_ns, record);
    case Wiring::queues:
      return choose<kShift, Wiring::queues, kMicro>(plan, limit_ns, record);
    case Wiring::channels:
      break;
  }
  return choose<kShift, Wiring::channels, kMicro>(plan, limit_ns, record);
}

}  // namespace trinity
