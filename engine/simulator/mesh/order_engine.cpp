#include "simulator/order_engine.h"

#include "base/stop.h"
#include "simulator/mesh/order_periods.h"

namespace trinity {

class OrderEngine::Run : OrderPeriods {
 public:
  explicit Run(const Cluster& cluster) : OrderPeriods(cluster) {}

  /// True if the problem's rules are supported.
  static bool takes(const Problem& problem) {
    const auto& rules = problem.rules();
    return !problem.tables().contends() && !rules.published_name() && rules.queue != QueueModel::fair &&
           rules.queue != QueueModel::receiver;
  }

  bool run(const Problem& problem, std::span<const int32_t> placement, const OrderPieces& pieces,
           const Quotient* quotient, int64_t limit_ns, Metrics& metrics) {
    problem_ = &problem;
    placement_ = placement;
    pieces_ = &pieces;
    quotient_ = quotient;
    micros_ = pieces.micro_batches;
    if (!takes(*problem_) || !compile()) return false;
    find_holds();
    seek_period();
    if (!simulate(limit_ns)) return false;
    if (period_.micros > 0 && !run_rest(limit_ns)) {
      period_.micros = 0;
      pieces_ = &pieces;
      micros_ = pieces.micro_batches;
      if (!compile()) return false;
      find_holds();
      if (!simulate(limit_ns)) return false;
    }
    if (rejected_) {
      metrics.devices.resize(at(problem_->devices()));
      metrics.reject(limit_ns);
      return true;
    }
    if (problem.rules().memory == MemoryModel::slots && period_.micros == 0) find_levels();  // else by run_rest()
    finish(metrics);
    return true;
  }

  int32_t left_out() const { return period_.micros; }

 private:
  bool simulate(int64_t limit_ns) {
    begin();
    for (size_t c = 0; c < groups_.size(); ++c)
      for (int32_t k = groups_[c].once ? micros_ - 1 : 0; k < micros_ && groups_[c].missing == 0; ++k)
        push_book(static_cast<int32_t>(c), k, 0);
    for (size_t d = 0; d < devices_.size(); ++d) advance(static_cast<int32_t>(d));
    return go_on(limit_ns);
  }

  bool go_on(int64_t limit_ns) {
    StopPoll stop;
    for (; !events_.empty() && !unsure_; stop.step()) {
      if (const int32_t of = seeks_ ? component_of(events_.back()) : -1; of >= 0 && reached_mark(of)) {
        mark(of);
        if (period_.micros > 0) return true;
      }
      const Event event = events_.back();
      now_ns_ = event.time_ns;
      if (now_ns_ > limit_ns) {
        rejected_ = true;
        return true;
      }
      events_.pop_back();
      if (event.kind() == kBooks)
        book_collective(event.what(), event.micro());
      else
        send(event.what(), event.micro(), event.last(), event.kind() == kFreeSends);
    }
    int32_t expected = 0;
    for (const auto& group : groups_) expected += group.once ? 1 : micros_;
    for (size_t d = 0; d < devices_.size(); ++d)
      if (devices_[d].piece != pieces_->piece_first[d + 1]) return false;
    rejected_ = step_ns_ > limit_ns;
    return !unsure_ && booked_ == expected;
  }

  /// Runs the remainder. Returns false if everything must be run.
  bool run_rest(int64_t limit_ns) {
    pass_copies();
    if (!order_lists() || !go_on(limit_ns)) return false;
    if (rejected_ || problem_->rules().memory != MemoryModel::slots) return true;
    find_levels();
    return levels_repeat_;
  }

  void begin() {
    all_arrived_.assign(groups_.size(), -1);
    waiting_.assign(groups_.size(), micros_);
    devices_.assign(positions_.size(), {});
    first_missing_.assign(rows(), 0);
    for (size_t c = 0; c < groups_.size(); ++c) first_missing_[at(row_place_[c])] = groups_[c].missing;
    opened_ = 0;
    arrival_ns_.clear();
    missing_.clear();
    arrival_ns_.reserve(rows() * at(micros_));
    missing_.reserve(rows() * at(micros_));
    pieces_done_.assign(at(pieces_->lists()), 0);
    events_.clear();
    started_.resize(devices_.size());
    for (auto& list : started_) list.clear();
    free_ns_.assign(queue_count_, 0);
    asked_ns_.assign(queue_count_, -1);
    asked_by_.resize(queue_count_);
    for (size_t d = 0; d < devices_.size(); ++d) devices_[d].piece = pieces_->piece_first[d];
    ticket_ = 0;
    now_ns_ = step_ns_ = 0;
    booked_ = 0;
    unsure_ = rejected_ = false;
    flights_.clear();
  }

  /// Adds table rows for all micro-batches up to `micro`; a run that stops at a mark needs few.
  void open_rows(int32_t micro) {
    for (; opened_ <= micro; ++opened_) missing_.insert(missing_.end(), first_missing_.begin(), first_missing_.end());
    arrival_ns_.resize(missing_.size(), ~int64_t{0});
  }

  void open(int32_t micro) {
    if (micro >= opened_) open_rows(micro);
  }

  /// Runs everything that a device can run now.
  void advance(int32_t number) {
    auto& device = devices_[number];
    for (; device.piece < pieces_->piece_first[at(number) + 1]; ++device.piece) {
      const auto [list, micro] = pieces_->pieces[device.piece];
      open(micro);
      const int32_t end = segment_first_[at(list) + 1] - segment_first_[list];
      for (; device.segment < end; ++device.segment) {
        const int32_t segment_number = segment_first_[list] + device.segment;
        const auto& segment = segments_[segment_number];
        int64_t start_ns = device.free_ns;
        for (const int32_t need : in(needs_, segment.needs)) {
          const int32_t row = need / 2;
          const int64_t arrival_ns = need % 2 == 1 ? all_arrived_[row] : arrival_ns_[cell_of(row, micro)];
          device.blocked = row;
          if (arrival_ns < 0) return;
          start_ns = std::max(start_ns, arrival_ns);
        }
        device.blocked = -1;
        begin_segment(number, segment_number, list, micro, start_ns);
      }
      device.segment = 0;
      device.base += static_cast<int32_t>(pieces_->list(at(list)).size());
      ++pieces_done_[list];
      count_run(seeks_ ? component_of_[number] : -1, micro);
    }
    device.blocked = -1;
  }

  void begin_segment(int32_t number, int32_t which, int32_t list, int32_t micro,
                                int64_t start_ns) {
    auto& device = devices_[number];
    const auto& segment = segments_[which];
    if (const int32_t of = seeks_ ? component_of_[number] : -1; of >= 0)
      components_[of].newest = std::max(components_[of].newest, micro);
    started_[number].push_back(
        {start_ns, device.base + segment.operators.begin - pieces_->list_first[list], which});
    device.free_ns = start_ns + segment.length_ns;
    step_ns_ = std::max(step_ns_, start_ns + segment.busy_ns);
    const bool last = segment.once || pieces_done_[list] + 1 == micros_;
    for (const auto& emit : in(emits_, segment.emits)) {
      const int64_t end_ns = start_ns + emit.offset_ns;
      if (emit.sends)
        push(end_ns, emit.free ? kFreeSends : kTaskSends,
             emit.free ? ticket_++ : at(micro) * list_of_.size() + at(emit.op), emit.op, micro, last);
      for (const auto& one : in(feeds_, emit.feeds))
        if (!one.last || last) feed(one, micro, end_ns);
    }
  }

  /// A member of a collective has received an input.
  void feed(const Feed& feed, int32_t micro, int64_t time_ns) {
    if (feed.last) micro = micros_ - 1;
    open(micro);
    const size_t cell = cell_of(feed.collective, micro);
    arrival_ns_[cell] = std::min(arrival_ns_[cell], ~time_ns);
    if (--missing_[cell] == 0) push_book(feed.collective, micro, ~arrival_ns_[cell]);
  }

  void push(int64_t time_ns, uint64_t kind, uint64_t number, int32_t what, int32_t micro,
            bool last = false) {
    const Event event{time_ns, kind << 62 | number,
                      static_cast<uint64_t>(what) << 32 | static_cast<uint64_t>(micro) << 1 | last};
    events_.insert(std::upper_bound(events_.begin(), events_.end(), event, std::greater<>()), event);
  }

  void push_book(int32_t collective, int32_t micro, int64_t time_ns) {
    push(time_ns, kBooks, at(micro) * groups_.size() + at(collective), collective, micro);
  }

  void send(int32_t op, int32_t of, bool last, bool free) {
    for (int32_t r = routes_of(op).begin; r < routes_of(op).end; ++r) {
      const Route& route = routes_[r];
      if (route.last && !last) continue;
      const int32_t micro = route.last ? micros_ - 1 : of;
      open(micro);
      const auto queues = in(queues_, route.queues);
      for (const int32_t queue : queues) check_turn(queue, route.from, free);
      const int64_t start_ns = book(queues, route.wire_ns);
      const int64_t end_ns = start_ns + route.wire_ns;
      const int32_t row = collectives() + r;
      note_booked(row, micro, end_ns);
      for (const auto& one : in(feeds_, route.feeds)) feed(one, micro, end_ns);
      wake(route.to, row);
    }
  }

  /// Checks that tasks without duration do not compete with another device for a queue.
  void check_turn(int32_t queue, int32_t device, bool free) {
    const int32_t by = 2 * device + free;
    if (asked_ns_[queue] == now_ns_ && asked_by_[queue] / 2 != device &&
        (free || asked_by_[queue] % 2 == 1))
      unsure_ = true;
    asked_ns_[queue] = now_ns_;
    asked_by_[queue] = by;
  }

  void book_collective(int32_t collective, int32_t micro) {
    const auto& group = groups_[collective];
    open(micro);
    const int64_t start_ns = book(in(queues_, group.queues), group.duration_ns);
    const int64_t end_ns = start_ns + group.duration_ns;
    note_booked(collective, micro, end_ns);
    ++booked_;
    step_ns_ = std::max(step_ns_, end_ns);
    arrive(collective, micro, end_ns);
    ++ticket_;
  }

  int64_t book(std::span<const int32_t> queues, int64_t duration_ns) {
    int64_t start_ns = now_ns_;
    for (const int32_t queue : queues) start_ns = std::max(start_ns, free_ns_[queue]);
    for (const int32_t queue : queues)
      free_ns_[queue] = start_ns + duration_ns + problem_->rules().link_dead_ns;
    return start_ns;
  }

  void note_booked(int32_t row, int32_t micro, int64_t end_ns) {
    arrival_ns_[cell_of(row, micro)] = end_ns;
    if (!seeks_) return;
    flights_.push_back({end_ns, row, micro});
    count_run(component_of_row(row), micro);
  }

  /// Runs of one collective end in order, so the last one booked is the last to arrive.
  void arrive(int32_t collective, int32_t micro, int64_t time_ns) {
    const auto& group = groups_[collective];
    const bool last = --waiting_[collective] == 0 || group.once;
    if (last) all_arrived_[collective] = time_ns;
    for (const auto& one : in(feeds_, group.feeds))
      if (!one.last || last) feed(one, micro, time_ns);
    for (const int32_t op : in(group_sends_, group.sends)) push(time_ns, kMemberSends, ticket_++, op, micro, last);
    for (const int32_t device : in(group_devices_, group.devices)) wake(device, collective);
  }

  void wake(int32_t device, int32_t row) {
    if (devices_[device].blocked == row) advance(device);
  }

  void finish(Metrics& metrics) const {
    metrics.step_time_ns = step_ns_;
    metrics.transfers = transfers_;
    metrics.rejected = metrics.unscheduled = false;
    metrics.peak_communication_bytes = metrics.total_communication_bytes = 0;
    metrics.peak_memory_bytes = 0;
    metrics.excess_memory_bytes = std::numeric_limits<int64_t>::min();
    metrics.devices.resize(at(problem_->devices()));
    for (size_t d = 0; d < metrics.devices.size(); ++d) {
      const int32_t from = quotient_ ? quotient_->of[d] : static_cast<int32_t>(d);
      auto& to = metrics.devices[d];
      to = from >= 0 ? simulated_[from] : DeviceMetrics{};
      metrics.total_communication_bytes += to.bytes_sent;
      metrics.peak_communication_bytes =
          std::max(metrics.peak_communication_bytes, to.bytes_sent + to.bytes_received);
      metrics.peak_memory_bytes = std::max(metrics.peak_memory_bytes, to.peak_memory_bytes);
      const int64_t capacity = problem_->cluster().capacity_bytes(static_cast<int32_t>(d));
      metrics.excess_memory_bytes =
          std::max(metrics.excess_memory_bytes, to.peak_memory_bytes - capacity);
    }
  }

  uint64_t ticket_ = 0;
  int64_t now_ns_ = 0;
  int32_t booked_ = 0;
  bool unsure_ = false, rejected_ = false;
};

OrderEngine::OrderEngine(const Cluster& cluster) : run_(std::make_unique<Run>(cluster)) {}
OrderEngine::~OrderEngine() = default;

bool OrderEngine::run(const Problem& problem, std::span<const int32_t> placement, const OrderPieces& pieces,
                      const Quotient* quotient, int64_t limit_ns, Metrics& metrics) {
  return run_->run(problem, placement, pieces, quotient, limit_ns, metrics);
}

int32_t OrderEngine::left_out() const { return run_->left_out(); }

}  // namespace trinity
