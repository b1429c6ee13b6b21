#include "support/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cluster/collectives.h"

namespace trinity::test {

using namespace reference;

namespace {

__extension__ typedef __int128 Int128;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kNsPerSecond = 1'000'000'000;

/// Bytes in transfer under QueueModel::fair.
struct Flow {
  std::vector<int32_t> channels;
  int64_t begin_ns = 0;
  Int128 remaining = 0;  ///< in bytes times nanoseconds per second
  int64_t rate = 0;      ///< bytes per second, 0 while it does not flow

  bool crosses(int32_t channel) const {
    return std::find(channels.begin(), channels.end(), channel) != channels.end();
  }
};

/// A transfer or a run of a collective, in the common order of booking.
struct Booking {
  bool collective = false;
  size_t index = 0;           ///< index in Story::copies or Story::runs
  std::vector<size_t> flows;  ///< it arrives with the last of these
  int64_t end_ns = 0;         ///< or at this time if it has none
  bool arrived = false;
};

/// Every device and the next one, the last and the first; empty for one device.
std::vector<std::pair<int32_t, int32_t>> ring(const std::vector<int32_t>& devices) {
  std::vector<std::pair<int32_t, int32_t>> neighbours;
  if (devices.size() < 2) return neighbours;
  for (size_t i = 0; i < devices.size(); ++i)
    neighbours.emplace_back(devices[i], devices[(i + 1) % devices.size()]);
  return neighbours;
}

/// The event loop: simulates a step and records its story.
class Stage {
 public:
  Stage(const Problem& problem, const Plan& plan)
      : problem_(problem), graph_(problem.graph()), rules_(problem.rules()) {
    if (plan.schedule) schedule_ = *plan.schedule;
    story_.operators = problem.operators();
    story_.micro_batches = schedule_.runs();
    story_.stream = schedule_.stream > 0;
    story_.started.resize(problem.devices());
    running_.assign(problem.devices(), -1);
    left_.assign(problem.devices(), 0);
    free_ns_.assign(problem.devices(), 0);
    check();
    make_tasks(plan);
  }

  Story play() {
    for (size_t t = 0; t < story_.tasks.size(); ++t)
      if (story_.tasks[t].state == State::waiting && story_.tasks[t].awaited == 0)
        become_ready(static_cast<int32_t>(t));
    while (true) {
      while (something_due()) continue;
      share_channels();
      const int64_t next = next_instant();
      if (next == kNever) break;
      advance(next);
    }
    check_all_ended();
    return std::move(story_);
  }

 private:
  /// A queue: (device, -1) a send queue, (device, device) the queue of a pair, (-1, channel) a
  /// channel.
  using Queue = std::pair<int32_t, int32_t>;

  void check() const {
    if (rules_.broadcast || rules_.last_event || rules_.memory == MemoryModel::outputs_only)
      throw std::logic_error("the reference simulator does not know these rules");
    if (schedule_.micro_batches < 1) throw ArgumentError("a step has at least one micro-batch");
    const auto operators = static_cast<size_t>(problem_.operators());
    if (schedule_.dispatch == DispatchRule::priority && schedule_.priority.size() != operators)
      throw ArgumentError("a priority is needed for every operator");
    const auto devices = static_cast<size_t>(problem_.devices());
    if (schedule_.dispatch == DispatchRule::order && schedule_.order_first.size() != devices + 1)
      throw ArgumentError("a sequence is needed for every device");
    if (story_.micro_batches == 1) return;
    for (int32_t op = 0; op < problem_.operators(); ++op)
      for (const auto& reader : problem_.readers(op))
        if (once(op) && !once(reader.op))
          throw ArgumentError("an operator of every micro-batch reads one that runs once");
  }

  bool once(int32_t op) const { return story_.once(problem_, op); }

  void make_tasks(const Plan& plan) {
    for (int32_t k = 0; k < story_.micro_batches; ++k)
      for (int32_t op = 0; op < problem_.operators(); ++op) {
        Task task;
        task.micro = k;
        task.op = op;
        task.device = plan.placement[op];
        task.member = graph_.op(op).collective >= 0;
        const bool runs = !once(op) || k == story_.micro_batches - 1;
        if (!runs) task.state = State::absent;
        story_.tasks.push_back(task);
      }
    for (int32_t op = 0; op < problem_.operators(); ++op)
      for (const auto& reader : problem_.readers(op))
        for (int32_t k = 0; k < story_.micro_batches; ++k)
          ++story_.tasks[story_.number(k, reader.op)].awaited;
  }

  // ---- One instant

  /// Applies the first rule of the instant's order that is due; false if there is none.
  bool something_due() {
    return end_a_task() || arrive_a_booking() || book_collectives(true) || start_a_task() ||
           book_collectives(false);
  }

  /// Tasks end, in order of number.
  bool end_a_task() {
    for (size_t t = 0; t < story_.tasks.size(); ++t) {
      Task& task = story_.tasks[t];
      if (task.state != State::running || end_of(task) > now_) continue;
      task.end_ns = now_;
      const bool pauses = task.end_ns > task.start_ns || rules_.dead_after_free;
      running_[task.device] = -1;
      free_ns_[task.device] = task.end_ns + (pauses ? rules_.device_dead_ns : 0);
      task.state = State::ended;
      deliver(static_cast<int32_t>(t));
      return true;
    }
    return false;
  }

  /// Transfers and collectives arrive, in order of booking.
  bool arrive_a_booking() {
    for (size_t b = 0; b < bookings_.size(); ++b) {
      if (bookings_[b].arrived || !due(bookings_[b])) continue;
      bookings_[b].arrived = true;
      if (bookings_[b].collective)
        end_collective(bookings_[b].index);
      else
        end_transfer(bookings_[b].index);
      return true;
    }
    return false;
  }

  /// Collectives whose last member has become ready are booked, in order of (micro-batch,
  /// collective): the first of those on one device, or all others.
  bool book_collectives(bool on_one_device) {
    bool any = false;
    const auto& collectives = graph_.collectives();
    for (int32_t k = 0; k < story_.micro_batches; ++k)
      for (size_t c = 0; c < collectives.size(); ++c) {
        const std::pair<int32_t, int32_t> run(k, static_cast<int32_t>(c));
        if (booked_.contains(run)) continue;
        bool ready = true;
        for (const int32_t op : collectives[c].members)
          ready = ready && story_.tasks[story_.number(k, op)].state == State::ready;
        if (!ready) continue;
        if ((member_devices(story_, collectives[c]).size() == 1) != on_one_device) continue;
        booked_.insert(run);
        book_collective(run.first, run.second);
        if (on_one_device) return true;
        any = true;
      }
    return any;
  }

  /// Starts the choice with the smallest (ready time, number) among all free devices.
  bool start_a_task() {
    int32_t best = -1;
    for (int32_t d = 0; d < problem_.devices(); ++d) {
      if (running_[d] >= 0 || free_ns_[d] > now_) continue;
      const int32_t choice = choose(d);
      if (choice >= 0 && (best < 0 || ready_key(choice) < ready_key(best))) best = choice;
    }
    if (best < 0) return false;
    Task& task = story_.tasks[best];
    task.state = State::running;
    task.start_ns = rules_.queue == QueueModel::receiver ? copy_inputs(best) : now_;
    task.end_ns = task.start_ns + problem_.cost_ns(task.device, task.op);
    left_[task.device] = static_cast<Int128>(task.end_ns - task.start_ns) << 20;
    running_[task.device] = best;
    story_.started[task.device].push_back(best);
    return true;
  }

  /// The receiver copies missing inputs of the task from other devices, in the order of its inputs;
  /// returns the end of the last copy.
  int64_t copy_inputs(int32_t number) {
    const Task& task = story_.tasks[number];
    int64_t done = now_;
    for (const int32_t tensor : graph_.op(task.op).inputs)
      for (size_t c = 0; c < story_.copies.size(); ++c) {
        Transfer& transfer = story_.copies[c].transfer;
        const auto& readers = story_.copies[c].readers;
        const auto& outputs = graph_.op(story_.tasks[transfer.task].op).outputs;
        if (made_.contains(c) || outputs[transfer.output] != tensor) continue;
        if (std::find(readers.begin(), readers.end(), number) == readers.end()) continue;
        made_.insert(c);
        transfer.start_ns = done;
        transfer.end_ns = done += problem_.wire_ns(transfer.from, transfer.to, transfer.bytes);
      }
    return done;
  }

  // ---- Contention

  /// When a running task ends if all rates stay the same.
  int64_t end_of(const Task& task) const {
    const Int128 left = left_[task.device], speed = rate(problem_, story_, running_, task);
    return std::max(now_, task.start_ns) + static_cast<int64_t>((left + speed - 1) / speed);
  }

  // ---- Devices

  std::pair<int64_t, int32_t> ready_key(int32_t task) const {
    return {story_.tasks[task].ready_ns, task};
  }

  /// The ready task that the device takes, or -1.
  int32_t choose(int32_t device) const {
    if (schedule_.dispatch == DispatchRule::order) {
      const int32_t head = head_of_sequence(device);
      return head >= 0 && story_.tasks[head].state == State::ready ? head : -1;
    }
    int32_t best = -1;
    for (size_t t = 0; t < story_.tasks.size(); ++t) {
      const Task& task = story_.tasks[t];
      if (task.device != device || task.member || task.state != State::ready) continue;
      const auto number = static_cast<int32_t>(t);
      if (best < 0 || goes_before(number, best)) best = number;
    }
    return best;
  }

  bool goes_before(int32_t a, int32_t b) const {
    if (schedule_.dispatch == DispatchRule::lifo) return ready_key(a) > ready_key(b);
    if (schedule_.dispatch == DispatchRule::fifo) return ready_key(a) < ready_key(b);
    const int64_t first = schedule_.priority[story_.tasks[a].op];
    const int64_t second = schedule_.priority[story_.tasks[b].op];
    return first != second ? first > second : a < b;
  }

  /// The first task of the device's sequence that has not started. Members of collectives occupy no
  /// device and are skipped.
  int32_t head_of_sequence(int32_t device) const {
    for (int32_t i = schedule_.order_first[device]; i < schedule_.order_first[device + 1]; ++i) {
      const int32_t number = schedule_.order[i];
      const Task& task = story_.tasks.at(number);
      if (task.device != device) throw ArgumentError("a sequence holds another device's task");
      if (!task.member && (task.state == State::waiting || task.state == State::ready))
        return number;
    }
    return -1;
  }

  // ---- Tensors

  void become_ready(int32_t number) {
    story_.tasks[number].state = State::ready;
    story_.tasks[number].ready_ns = now_;
  }

  void input_arrives(int32_t number) {
    if (--story_.tasks[number].awaited == 0) become_ready(number);
  }

  bool all_micro_batches_ended(int32_t op) const {
    for (int32_t k = 0; k < story_.micro_batches; ++k) {
      const State state = story_.tasks[story_.number(k, op)].state;
      if (state != State::ended && state != State::absent) return false;
    }
    return true;
  }

  /// A reader on the producer's device sees a tensor now; for every other device with readers of
  /// an output one transfer is enqueued, in order of first reader. A tensor that accumulates goes
  /// to its readers that run once with the last of its micro-batches.
  void deliver(int32_t number) {
    const Task task = story_.tasks[number];
    std::vector<Copy> copies;
    for (const auto& reader : problem_.readers(task.op)) {
      if (once(reader.op) && !all_micro_batches_ended(task.op)) continue;
      const int32_t reading =
          story_.number(reader_micro(problem_, story_, task.micro, reader.op), reader.op);
      const int32_t to = story_.tasks[reading].device;
      if (to == task.device) {
        input_arrives(reading);
        continue;
      }
      auto copy = std::find_if(copies.begin(), copies.end(), [&](const Copy& other) {
        return other.transfer.output == reader.output && other.transfer.to == to;
      });
      if (copy == copies.end()) {
        const int64_t bytes = problem_.output_bytes(task.op, reader.output);
        copies.push_back({{now_, 0, 0, bytes, number, reader.output, task.device, to}, {}});
        copy = copies.end() - 1;
      }
      copy->readers.push_back(reading);
    }
    for (Copy& copy : copies) {
      if (rules_.queue != QueueModel::receiver) {
        book_transfer(copy);
        continue;
      }
      copy.transfer.start_ns = copy.transfer.end_ns = now_;
      story_.copies.push_back(copy);
      for (const int32_t reader : copy.readers) input_arrives(reader);
    }
  }

  // ---- Links

  std::vector<Queue> queues(int32_t from, int32_t to) const {
    if (rules_.queue == QueueModel::sender) return {{from, -1}};
    if (rules_.queue == QueueModel::pair) return {{from, to}};
    std::vector<Queue> occupied;
    if (rules_.queue == QueueModel::route)
      for (const int32_t channel : problem_.cluster().route(from, to))
        occupied.emplace_back(-1, channel);
    return occupied;
  }

  /// Occupies the queues together for `duration_ns` as soon as all are free; returns the start.
  int64_t occupy(const std::vector<Queue>& occupied, int64_t duration_ns) {
    const bool pauses = rules_.queue == QueueModel::sender || rules_.queue == QueueModel::pair;
    int64_t start = now_;
    for (const Queue& queue : occupied) start = std::max(start, queue_free_ns_[queue]);
    for (const Queue& queue : occupied)
      queue_free_ns_[queue] = start + duration_ns + (pauses ? rules_.link_dead_ns : 0);
    return start;
  }

  size_t add_flow(int32_t from, int32_t to, int64_t begin_ns, int64_t bytes) {
    const auto channels = problem_.cluster().route(from, to);
    Flow flow;
    flow.channels.assign(channels.begin(), channels.end());
    flow.begin_ns = begin_ns;
    flow.remaining = static_cast<Int128>(bytes) * kNsPerSecond;
    flows_.push_back(flow);
    return flows_.size() - 1;
  }

  void book_transfer(Copy copy) {
    Booking booking;
    booking.index = story_.copies.size();
    Transfer& transfer = copy.transfer;
    transfer.start_ns = now_;
    if (rules_.queue == QueueModel::fair) {
      const int64_t begin = now_ + problem_.tables().latency_ns(transfer.from, transfer.to);
      booking.flows = {add_flow(transfer.from, transfer.to, begin, transfer.bytes)};
    } else {
      const int64_t duration = problem_.wire_ns(transfer.from, transfer.to, transfer.bytes);
      transfer.start_ns = occupy(queues(transfer.from, transfer.to), duration);
      booking.end_ns = transfer.start_ns + duration;
    }
    story_.copies.push_back(copy);
    bookings_.push_back(booking);
  }

  /// A collective on one device has no neighbours: it occupies nothing and takes no time.
  void book_collective(int32_t micro, int32_t number) {
    const Collective& collective = graph_.collectives()[number];
    const auto neighbours = ring(member_devices(story_, collective));
    Booking booking;
    booking.collective = true;
    booking.index = story_.runs.size();
    booking.end_ns = now_;
    CollectiveRun run{number, micro, now_, now_, now_};
    if (!neighbours.empty()) {
      const CollectiveCost cost = price(problem_, story_, collective);
      if (rules_.queue == QueueModel::fair) {
        const int64_t begin = now_ + std::llround(cost.latency_s * 1e9);
        for (const auto& [from, to] : neighbours)
          booking.flows.push_back(add_flow(from, to, begin, std::llround(cost.sent_bytes)));
      } else {
        std::vector<Queue> occupied;
        for (const auto& [from, to] : neighbours)
          for (const Queue& queue : queues(from, to)) occupied.push_back(queue);
        const int64_t duration = std::llround(cost.time_s() * 1e9);
        run.start_ns = occupy(occupied, duration);
        booking.end_ns = run.start_ns + duration;
      }
    }
    story_.runs.push_back(run);
    bookings_.push_back(booking);
  }

  bool due(const Booking& booking) const {
    if (booking.flows.empty()) return booking.end_ns <= now_;
    for (const size_t f : booking.flows)
      if (flows_[f].begin_ns > now_ || flows_[f].remaining > 0) return false;
    return true;
  }

  void end_transfer(size_t index) {
    story_.copies[index].transfer.end_ns = now_;
    for (const int32_t reader : story_.copies[index].readers) input_arrives(reader);
  }

  /// The members' tasks end together, delivered in order of number.
  void end_collective(size_t index) {
    CollectiveRun& run = story_.runs[index];
    run.end_ns = now_;
    for (const int32_t op : graph_.collectives()[run.collective].members) {
      const int32_t number = story_.number(run.micro_batch, op);
      Task& task = story_.tasks[number];
      task.state = State::ended;
      task.start_ns = run.start_ns;
      task.end_ns = now_;
      deliver(number);
    }
  }

  // ---- Fair shares

  /// Max-min fair rates of all flows that flow after this instant, by progressive filling.
  void share_channels() {
    std::vector<Flow*> unfixed;
    for (Flow& flow : flows_) {
      flow.rate = 0;
      if (flow.begin_ns <= now_ && flow.remaining > 0) unfixed.push_back(&flow);
    }
    std::vector<int64_t> left;
    for (const Channel& channel : problem_.cluster().channels())
      left.push_back(std::max<int64_t>(1, std::llround(channel.bandwidth_bytes_per_s)));
    while (!unfixed.empty()) {
      const auto [channel, share] = least_share(unfixed, left);
      std::vector<Flow*> others;
      for (Flow* flow : unfixed) {
        if (!flow->crosses(channel)) {
          others.push_back(flow);
          continue;
        }
        flow->rate = share;
        for (const int32_t crossed : flow->channels)
          left[crossed] = std::max<int64_t>(0, left[crossed] - share);
      }
      unfixed = others;
    }
  }

  /// The channel with the smallest share per unfixed flow (ties: the first), and the share.
  static std::pair<int32_t, int64_t> least_share(const std::vector<Flow*>& unfixed,
                                                 const std::vector<int64_t>& left) {
    std::pair<int32_t, int64_t> least{-1, 0};
    for (size_t c = 0; c < left.size(); ++c) {
      const auto channel = static_cast<int32_t>(c);
      int64_t flows = 0;
      for (const Flow* flow : unfixed) flows += flow->crosses(channel) ? 1 : 0;
      if (flows == 0) continue;
      const int64_t share = std::max<int64_t>(1, left[c] / flows);
      if (least.first < 0 || share < least.second) least = {channel, share};
    }
    if (least.first < 0) throw std::logic_error("a route crosses no channel");
    return least;
  }

  // ---- The clock

  int64_t next_instant() const {
    int64_t next = kNever;
    const auto consider = [&](int64_t time_ns) {
      if (time_ns > now_) next = std::min(next, time_ns);
    };
    for (const Task& task : story_.tasks)
      if (task.state == State::running) consider(end_of(task));
    for (const int64_t free_ns : free_ns_) consider(free_ns);
    for (const Booking& booking : bookings_)
      if (!booking.arrived && booking.flows.empty()) consider(booking.end_ns);
    for (const Flow& flow : flows_) {
      consider(flow.begin_ns);
      if (flow.rate > 0)
        consider(now_ + static_cast<int64_t>((flow.remaining + flow.rate - 1) / flow.rate));
    }
    return next;
  }

  void advance(int64_t time_ns) {
    std::vector<std::pair<int32_t, Int128>> done;
    for (const Task& task : story_.tasks) {
      if (task.state != State::running) continue;
      const int64_t from = std::max(now_, task.start_ns);
      if (time_ns > from)
        done.push_back(
            {task.device, Int128{rate(problem_, story_, running_, task)} * (time_ns - from)});
    }
    for (const auto& [device, work] : done)
      left_[device] = std::max<Int128>(0, left_[device] - work);
    for (Flow& flow : flows_) flow.remaining -= static_cast<Int128>(flow.rate) * (time_ns - now_);
    now_ = time_ns;
  }

  void check_all_ended() const {
    for (const Task& task : story_.tasks)
      if (task.state != State::ended && task.state != State::absent)
        throw ArgumentError(fmt::format("'{}' of micro-batch {} waits for ever",
                                        graph_.op(task.op).name, task.micro));
  }

  const Problem& problem_;
  const Graph& graph_;
  const SimulationRules& rules_;
  Schedule schedule_;
  Story story_;
  int64_t now_ = 0;
  std::vector<int32_t> running_;  ///< per device: its task, or -1
  std::vector<Int128> left_;      ///< per device: work of that task, in 2^-20 ns
  std::vector<int64_t> free_ns_;  ///< per device: the end of its last pause
  std::map<Queue, int64_t> queue_free_ns_;
  std::vector<Booking> bookings_;
  std::set<size_t> made_;  ///< receiver: copies made by their device
  std::vector<Flow> flows_;
  std::set<std::pair<int32_t, int32_t>> booked_;  ///< (micro-batch, collective)
};

}  // namespace

void simulate_reference(const Problem& problem, const Plan& plan, Metrics& metrics,
                        Timeline& timeline) {
  metrics = Metrics{};
  timeline = Timeline{};
  metrics.devices.resize(problem.devices());
  const Schedule schedule = plan.schedule ? *plan.schedule : Schedule{};
  const Story story = Stage(problem, plan).play();
  tell(story, timeline);
  measure_traffic(problem, story, metrics);
  measure_tasks(story, metrics);
  if (story.stream) measure_stream(problem, story, schedule, metrics);
  measure_memory(problem, story, schedule.weight_versions, metrics, timeline);
  measure_peaks(problem, metrics);
}

}  // namespace trinity::test
