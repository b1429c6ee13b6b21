#include "simulator/events.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cluster/collectives.h"
#include "graph/experts.h"

namespace trinity {
namespace {

constexpr int64_t kNever = EventQueue::kNever;

}  // namespace

EventLoop::EventLoop(const Problem& problem)
    : problem_(problem),
      members_(!problem.graph().collectives().empty()),
      operators_(problem.operators()),
      inverse_(((uint64_t{1} << 63) - 1) / static_cast<uint64_t>(std::max(operators_, 1)) + 1),
      flows_(problem.cluster()),
      contention_(problem),
      groups_(problem.cluster()),
      queues_(problem) {}

void EventLoop::run(const Plan& plan, int64_t limit_ns, Record& record) {
  begin(plan, limit_ns, record);
  begin_tasks();
  instant();
  while (unfinished_ > 0 && !record.rejected) {
    const int64_t next = next_instant();
    if (next == kNever) report_deadlock();
    now_ns_ = next;
    instant();
  }
  if (record.times)
    for (size_t t = 0; t < tasks_.size(); ++t) record.ready_ns[t] = tasks_[t].ready_ns;
}

void EventLoop::begin(const Plan& plan, int64_t limit_ns, Record& record) {
  plan_ = plan;
  dispatch_ = plan.schedule ? plan.schedule->dispatch : DispatchRule::fifo;
  micro_batches_ = plan.schedule ? plan.schedule->runs() : 1;
  stream_ = plan.schedule && plan.schedule->stream > 0;
  limit_ns_ = limit_ns;
  now_ns_ = 0;
  record_ = &record;
  record.begin(problem_, plan, limit_ns != kNoLimit);
  const auto n = static_cast<size_t>(problem_.operators());
  const auto d = static_cast<size_t>(plan.devices(problem_));
  tasks_.resize(n * static_cast<size_t>(micro_batches_));
  to_end_.assign(n, micro_batches_);
  last_ended_.assign(n, -1);
  if (waiting_.size() < d) waiting_.resize(d);
  for (auto& heap : waiting_) heap.clear();
  for (auto* heap : {&ends_, &arriving_, &frees_, &begins_, &bookable_, &local_}) heap->clear();
  if (dispatch_ == DispatchRule::order)
    next_in_order_.assign(plan.schedule->order_first.begin(), plan.schedule->order_first.end() - 1);
  running_.assign(d, -1);
  begin_ns_.assign(d, 0);
  contention_.clear();
  if (record.tasks)
    next_position_.assign(record.first_position.begin(), record.first_position.end() - 1);
  touched_.assign(d, false);
  touched_list_.resize(d);
  choices_.resize(d);
  touched_count_ = 0;
  arrivals_.clear();
  sent_.assign(static_cast<size_t>(problem_.max_outputs()) * d, -1);
  queues_.begin(plan.quotient, d);
  if (fair()) flows_.clear();
  if (receiver())
    to_copy_.assign(
        static_cast<size_t>(problem_.outputs()) * d * static_cast<size_t>(micro_batches_), -1);
}

/// Counts the inputs of every task; tasks without inputs are ready at 0.
void EventLoop::begin_tasks() {
  const int32_t n = problem_.operators();
  const auto& collectives = problem_.graph().collectives();
  members_missing_.clear();
  for (int32_t k = 0; k < micro_batches_; ++k)
    for (const auto& collective : collectives)
      members_missing_.push_back(static_cast<int32_t>(collective.members.size()));
  unfinished_ = 0;
  for (int32_t k = 0; k < micro_batches_; ++k) {
    poll_stop();
    for (int32_t o = 0; o < n; ++o) {
      tasks_[k * n + o] = {-1, problem_.missing(o)};
      if (!once(o) || k + 1 == micro_batches_) ++unfinished_;
    }
  }
  for (int32_t k = 0; k < micro_batches_; ++k)
    for (int32_t o = 0; o < n; ++o)
      if (problem_.missing(o) == 0 && !(once(o) && k + 1 < micro_batches_))
        make_ready(k * n + o, o);
}

/// Drops ends that contention has changed since they were queued.
void EventLoop::drop_moved_ends() {
  while (!ends_.empty()) {
    const auto task = static_cast<int32_t>(ends_.front().second);
    const int32_t device = device_of(op_of(task));
    const bool holds = running_[device] == task;
    if (holds && (begin_ns_[device] == ends_.first() || !contention_.applies(device) ||
                  contention_.end_ns(device) == ends_.first()))
      break;
    ends_.pop();
  }
}

/// Processes everything due now, in the order of simulator.h.
void EventLoop::instant() {
  begin_instant();
  for (; !record_->rejected; stop_.step()) {
    if (next_end() == now_ns_)
      end_task(static_cast<int32_t>(ends_.pop()));
    else if (arriving_.first() == now_ns_)
      arrive(static_cast<int32_t>(arriving_.pop()));
    else if (!local_.empty())
      book_first(local_);
    else if (touched_count_ > 0 && start_best())
      continue;
    else if (!bookable_.empty())
      while (!bookable_.empty()) book_first(bookable_);
    else
      break;
  }
  if (fair()) flows_.settle();
}

/// Ended flows arrive, ended pauses free their device, and ended latencies start their flows.
inline void EventLoop::begin_instant() {
  if (fair()) {
    ended_flows_.clear();
    flows_.advance(now_ns_, ended_flows_);
    for (const int32_t arrival : ended_flows_)
      if (--arrivals_[arrival].flows == 0) arriving_.push({now_ns_, arrival});
  }
  while (frees_.first() == now_ns_) touch(static_cast<int32_t>(frees_.pop()));
  while (begins_.first() == now_ns_) begin_flows(static_cast<int32_t>(begins_.pop()));
}

inline bool EventLoop::idle(int32_t device) const {
  return running_[device] < 0 && record_->devices[device].free_ns <= now_ns_;
}

/// The task that a device would run next, or -1.
inline int32_t EventLoop::choice(int32_t device) {
  const auto d = static_cast<size_t>(device);
  if (dispatch_ != DispatchRule::order) {
    if (waiting_[d].empty()) return -1;
    const int64_t second = waiting_[d].front().second;
    return static_cast<int32_t>(second < 0 ? ~second : second);  // lifo: latest first
  }
  const int32_t aside = has_asides() ? head(d + devices()) : -1;
  return aside >= 0 ? aside : head(d);
}

/// The next task of a list of the order if it is ready, or -1.
inline int32_t EventLoop::head(size_t list) {
  int32_t& at = next_in_order_[list];
  for (; at < plan_.schedule->order_first[list + 1]; ++at) {
    const int32_t task = plan_.schedule->order[at];
    const int32_t op = op_of(task);
    const bool absent = once(op) && micro_of(task) + 1 < micro_batches_;
    if (absent || member(op)) continue;
    return tasks_[task].missing == 0 ? task : -1;
  }
  return -1;
}

inline void EventLoop::touch(int32_t device) {
  if (touched_[device]) return;
  touched_[device] = true;
  touched_list_[touched_count_++] = device;
}

/// True if the choice of `a` starts before the choice of `b`; both devices are free.
inline bool EventLoop::earlier(int32_t a, int32_t b) const {
  const auto x = tasks_[a].ready_ns, y = tasks_[b].ready_ns;
  return x != y ? x < y : a < b;
}

/// Starts the free devices' choice with the smallest (ready time, number); all of them if every one
/// takes time, because then none can change another.
bool EventLoop::start_best() {
  int32_t best = -1;
  bool instantaneous = false;
  size_t kept = 0;
  for (size_t i = 0; i < touched_count_; ++i) {
    const int32_t device = touched_list_[i], task = idle(device) ? choice(device) : -1;
    touched_[device] = task >= 0;
    if (task < 0) continue;
    touched_list_[kept] = device;
    choices_[kept++] = task;
    if (best < 0 || earlier(task, best)) best = task;
    instantaneous = instantaneous || record_->devices[device].cost_ns[op_of(task)] == 0;
  }
  touched_count_ = kept;
  if (best < 0) return false;
  if (instantaneous) {
    start(best, device_of(op_of(best)));
    return true;
  }
  touched_count_ = 0;
  for (size_t i = 0; i < kept; ++i) {
    touched_[touched_list_[i]] = false;
    start(choices_[i], touched_list_[i]);
  }
  return true;
}

void EventLoop::start(int32_t task, int32_t device) {
  const auto d = static_cast<size_t>(device);
  const auto t = static_cast<size_t>(task);
  if (dispatch_ == DispatchRule::order)
    ++next_in_order_[d + (has_asides() && head(d + devices()) == task ? devices() : 0)];
  else
    waiting_[d].pop();
  auto& state = record_->devices[d];
  const int64_t begin = receiver() ? copy_inputs(task, device) : now_ns_;
  const int64_t cost = state.cost_ns[op_of(task)], end = begin + cost;
  running_[d] = task;
  begin_ns_[d] = begin;
  if (cost > 0 && contention_.applies(device)) {
    contention_.start(device, op_of(task), now_ns_, begin, cost);
    push_moved_ends();
  } else {
    ends_.push({end, task});
  }
  if (record_->tasks) {
    const int32_t position = next_position_[d]++;
    record_->position[t] = position;
    record_->start_at[position] = begin;
  }
  record_->step_ns = std::max(record_->step_ns, end);
  if (limit_ns_ == kNoLimit) return;
  state.remaining_ns -= cost;
  const int64_t bound = end + std::max(state.remaining_ns, problem_.tail_ns(op_of(task)));
  if (bound <= limit_ns_) return;
  record_->rejected = true;
  record_->step_ns = bound;
}

void EventLoop::push_moved_ends() {
  for (const int32_t device : contention_.moved()) {
    const int32_t task = running_[device];
    ends_.push({contention_.end_ns(device), task});
  }
}

void EventLoop::make_ready(int32_t task, int32_t op) {
  tasks_[task].ready_ns = now_ns_;
  if (member(op)) {
    const int32_t collective = problem_.graph().op(op).collective, micro = micro_of(task);
    const auto count = static_cast<int32_t>(problem_.graph().collectives().size());
    if (--members_missing_[micro * count + collective] == 0) {
      find_ring(collective);
      (group_of(collective).size() == 1 ? local_ : bookable_).push({micro, collective});
    }
    return;
  }
  const int32_t device = device_of(op);
  touch(device);
  auto& heap = waiting_[device];
  switch (dispatch_) {
    case DispatchRule::fifo:
      heap.push({now_ns_, task});
      break;
    case DispatchRule::lifo:
      heap.push({-now_ns_, ~int64_t{task}});
      break;
    case DispatchRule::priority:
      heap.push({~plan_.schedule->priority[op], task});
      break;
    case DispatchRule::order:
      break;
  }
}

inline void EventLoop::give(int32_t task, int32_t op) {
  if (--tasks_[task].missing == 0) make_ready(task, op);
}

void EventLoop::end_task(int32_t task) {
  const int32_t op = op_of(task), device = device_of(op);
  const auto& rules = problem_.rules();
  auto& state = record_->devices[device];
  running_[device] = -1;
  state.compute_ns += now_ns_ - begin_ns_[device];
  record_->step_ns = std::max(record_->step_ns, now_ns_);
  if (state.cost_ns[op] > 0 && contention_.applies(device)) {
    contention_.stop(device, now_ns_);
    push_moved_ends();
  }
  const bool pauses = state.cost_ns[op] > 0 || rules.dead_after_free;
  state.free_ns = now_ns_ + (pauses ? rules.device_dead_ns : 0);
  if (state.free_ns > now_ns_)
    frees_.push({state.free_ns, device});
  else
    touch(device);
  hand_out(task, op);
}

/// Delivers an ended task's outputs to readers on its device and sends them to the other devices.
void EventLoop::hand_out(int32_t task, int32_t op) {
  const int32_t from = device_of(op), micro = micro_of(task), n = problem_.operators();
  const auto t = static_cast<size_t>(task);
  --unfinished_;
  if (record_->tasks) {
    record_->order.push_back(task);
    if (record_->times) record_->end_ns[t] = now_ns_;
  }
  if (stream_) record_->run_end_ns[micro] = now_ns_;
  const bool last = --to_end_[op] == 0;
  if (last) last_ended_[op] = task;
  for (const auto& reader : problem_.readers(op)) {
    const bool sum = accumulates(op, reader.op);
    if (sum && !last) continue;
    const int32_t to = device_of(reader.op);
    const bool is_there = to == from || receiver();
    if (is_there) give((sum ? micro_batches_ - 1 : micro) * n + reader.op, reader.op);
    if (to == from) continue;
    auto& sent =
        sent_[static_cast<size_t>(reader.output) * devices() + static_cast<size_t>(to)];
    if (sent == task) continue;
    sent = task;
    enqueue(task, reader.output, from, to);
  }
}

/// Number of a tensor's copy for a device, until the device has made it.
int32_t& EventLoop::copy_of(int32_t task, int32_t tensor, int32_t device) {
  const auto run = static_cast<size_t>(micro_of(task));
  return to_copy_[(run * static_cast<size_t>(problem_.outputs()) + static_cast<size_t>(tensor)) *
                      devices() +
                  static_cast<size_t>(device)];
}

/// Queue model receiver: makes the missing copies of a task's inputs on its device; returns when
/// the last one is complete.
int64_t EventLoop::copy_inputs(int32_t task, int32_t device) {
  const auto& graph = problem_.graph();
  const int32_t op = op_of(task);
  int64_t done = now_ns_;
  for (const int32_t tensor : graph.op(op).inputs) {
    const int32_t producer = graph.tensor(tensor).producer;
    const int32_t made = accumulates(producer, op) ? last_ended_[producer] : task - op + producer;
    const int32_t output = tensor - graph.op(producer).outputs.front();
    int32_t& number = copy_of(made, problem_.first_output(producer) + output, device);
    if (number < 0) continue;
    auto& copy = record_->copies[number];
    number = -1;
    copy.start_ns = done;
    copy.end_ns = done +=
        wire_ns(copy.from, device, problem_.output_bytes(producer, copy.output));
    record_->devices[copy.from].send_ns += copy.end_ns - copy.start_ns;
  }
  return done;
}

void EventLoop::enqueue(int32_t task, int32_t output, int32_t from, int32_t to) {
  const int64_t bytes = problem_.output_bytes(op_of(task), output);
  auto& sender = record_->devices[from];
  sender.sent_bytes += bytes;
  record_->devices[to].received_bytes += bytes;
  record_->transfers += plan_.quotient ? plan_.quotient->copies[from] : 1;
  const auto index = static_cast<int32_t>(record_->copy_count);
  const auto arrival = static_cast<int32_t>(arrivals_.size());
  record_->add_copy({now_ns_, now_ns_, task, output, from, to});
  if (receiver()) {
    copy_of(task, problem_.first_output(op_of(task)) + output, to) = index;
    return;
  }
  arrivals_.push_back({index, false, 1, bytes});
  if (fair()) {
    flow(arrival, problem_.tables().latency_ns(from, to));
    return;
  }
  const int64_t wire = wire_ns(from, to, bytes), start = queues_.transfer(from, to, now_ns_, wire);
  auto& copy = record_->copies[index];
  copy.start_ns = start;
  copy.end_ns = start + wire;
  arriving_.push({copy.end_ns, arrival});
}

/// Starts the flows of an arrival after its latency; without bytes it arrives then.
void EventLoop::flow(int32_t arrival, int64_t latency_ns) {
  const int64_t begin_ns = now_ns_ + latency_ns;
  if (arrivals_[arrival].bytes == 0)
    arriving_.push({begin_ns, arrival});
  else if (latency_ns > 0)
    begins_.push({begin_ns, arrival});
  else
    begin_flows(arrival);
}

void EventLoop::begin_flows(int32_t arrival) {
  const auto entry = arrivals_[arrival];
  if (!entry.collective) {
    const auto& copy = record_->copies[entry.index];
    flows_.begin(copy.from, copy.to, entry.bytes, arrival);
    return;
  }
  const auto& run = record_->collectives[entry.index];
  find_ring(run.collective);
  for (size_t i = 0; i < ring_.size(); ++i)
    flows_.begin(ring_[i], ring_[(i + 1) % ring_.size()], entry.bytes, arrival);
}

void EventLoop::arrive(int32_t arrival) {
  const auto entry = arrivals_[arrival];
  if (entry.collective)
    arrive_collective(record_->collectives[entry.index]);
  else
    arrive_copy(record_->copies[entry.index]);
}

/// Delivers a copy to the readers on its device. (By value: delivery may book more copies.)
void EventLoop::arrive_copy(Copy& booked) {
  booked.end_ns = now_ns_;
  const Copy copy = booked;
  auto& sender = record_->devices[copy.from];
  sender.send_ns += copy.end_ns - copy.start_ns;
  record_->last_ns = std::max(record_->last_ns, copy.end_ns);
  const int32_t op = op_of(copy.task), n = problem_.operators();
  for (const auto& reader : problem_.readers(op)) {
    if (reader.output != copy.output || device_of(reader.op) != copy.to) continue;
    const bool sum = accumulates(op, reader.op);
    if (sum && last_ended_[op] != copy.task) continue;
    give((sum ? micro_batches_ - 1 : micro_of(copy.task)) * n + reader.op, reader.op);
  }
}

/// Finds the distinct devices of a collective, ascending.
void EventLoop::find_ring(int32_t collective) {
  ring_.clear();
  for (const int32_t op : problem_.graph().collectives()[collective].members)
    ring_.push_back(device_of(op));
  std::sort(ring_.begin(), ring_.end());
  ring_.erase(std::unique(ring_.begin(), ring_.end()), ring_.end());
}

/// The group of all devices of a collective; requires find_ring().
const CollectiveGroup& EventLoop::group_of(int32_t collective) {
  const auto& about = problem_.graph().collectives()[collective];
  std::span<const int32_t> devices = ring_;
  if (plan_.quotient) devices = plan_.quotient->members[plan_.quotient->group[collective]];
  const auto& group = groups_.find(devices, about.kind == CollectiveKind::all_to_all);
  if (!fair() && !group.applies(about.kind, about.algorithm))
    collective_cost(problem_.cluster(), about.kind, about.algorithm, devices, about.bytes);
  return group;
}

void EventLoop::book_first(EventQueue& queue) {
  const auto micro = static_cast<int32_t>(queue.front().first);
  book_collective(static_cast<int32_t>(queue.pop()), micro);
}

void EventLoop::book_collective(int32_t collective, int32_t micro) {
  const auto& about = problem_.graph().collectives()[collective];
  find_ring(collective);
  const auto& group = group_of(collective);
  const auto cost =
      fair() ? group.cost(about.kind, CollectiveAlgorithm::ring, about.bytes)
             : group.cost(about.kind, about.algorithm, about.bytes, routing_of(problem_.graph(), about));
  if (!(cost.time_s() < 1e6))
    throw LimitError("collective '{}' would take {} s, expected less than 1e6 s", about.name, cost.time_s());
  const bool alone = group.size() == 1;
  const auto sent = static_cast<int64_t>(std::llround(cost.sent_bytes));
  const auto arrival = static_cast<int32_t>(arrivals_.size());
  arrivals_.push_back({static_cast<int32_t>(record_->collectives.size()), true,
                       static_cast<int32_t>(ring_.size()), sent});
  record_->collectives.push_back({collective, micro, now_ns_, now_ns_, now_ns_});
  if (!alone)
    for (const int32_t device : ring_) {
      record_->devices[device].sent_bytes += sent;
      record_->devices[device].received_bytes += sent;
    }
  if (fair() && !alone) {
    flow(arrival, std::llround(cost.latency_s * 1e9));
    return;
  }
  const int64_t duration = std::llround(cost.time_s() * 1e9);
  auto& run = record_->collectives.back();
  if (!alone) run.start_ns = queues_.collective(collective, ring_, now_ns_, duration);
  run.end_ns = run.start_ns + duration;
  if (run.end_ns > (int64_t{1} << 61))
    throw LimitError("the collectives of graph '{}' take longer than the simulator's clock holds; check the units of "
                     "bandwidths and times", problem_.graph().name());
  arriving_.push({run.end_ns, arrival});
}

/// The members of a collective deliver what they have received.
void EventLoop::arrive_collective(CollectiveRun& booked) {
  booked.end_ns = now_ns_;
  const CollectiveRun run = booked;
  find_ring(run.collective);
  if (ring_.size() > 1 || group_of(run.collective).size() > 1)
    for (const int32_t device : ring_)
      record_->devices[device].send_ns += run.end_ns - run.start_ns;
  record_->step_ns = std::max(record_->step_ns, now_ns_);
  if (now_ns_ > limit_ns_) record_->rejected = true;
  for (const int32_t op : problem_.graph().collectives()[run.collective].members)
    hand_out(run.micro_batch * problem_.operators() + op, op);
}

void EventLoop::report_deadlock() {
  std::string text;
  int shown = 0;
  for (int32_t d = 0; d < static_cast<int32_t>(devices()); ++d) {
    if (dispatch_ == DispatchRule::order) choice(d);  // skips entries that occupy no device
    const int32_t at = dispatch_ == DispatchRule::order ? next_in_order_[d] : 0;
    if (dispatch_ != DispatchRule::order ||
        at >= plan_.schedule->order_first[static_cast<size_t>(d) + 1])
      continue;
    const int32_t task = plan_.schedule->order[at];
    if (++shown <= 8)
      text += fmt::format("{}device '{}' waits for '{}' of micro-batch {}", shown > 1 ? "; " : "",
                          problem_.cluster().device(plan_.cluster_device(d)).name,
                          problem_.graph().op(op_of(task)).name,
                          micro_of(task) + 1);
  }
  if (shown == 0)
    text = fmt::format("{} tasks are missing from the devices' orders or wait for missing ones",
                       unfinished_);
  throw ScheduleError("the order contradicts graph '{}': {}", problem_.graph().name(), text);
}

}  // namespace trinity
