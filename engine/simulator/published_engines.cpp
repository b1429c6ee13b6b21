#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>

#include "base/stop.h"
#include "simulator/engine.h"

namespace trinity {
namespace {

/// Published simulators share their start: operators without inputs begin in the order of the file (attribute
/// `file_position`, else the number), and tasks and transfers are recorded as they start.
class PublishedEngine : public Engine {
 protected:
  explicit PublishedEngine(const Problem& problem) : problem_(problem) {
    for (int32_t o = 0; o < problem.operators(); ++o)
      if (problem.missing(o) == 0) sources_.push_back(o);
    const auto position = [&](int32_t o) {
      return integer_attribute(problem.graph().op(o).attributes, "file_position", o);
    };
    std::stable_sort(sources_.begin(), sources_.end(),
                     [&](int32_t a, int32_t b) { return position(a) < position(b); });
  }

  void begin(const Plan& plan, bool limited, Record& record) {
    placement_ = plan.placement;
    record_ = &record;
    record.begin(problem_, Plan{plan.placement}, limited);
    missing_.clear();
    for (int32_t o = 0; o < problem_.operators(); ++o) missing_.push_back(problem_.missing(o));
    if (record.tasks)
      next_position_.assign(record.first_position.begin(), record.first_position.end() - 1);
  }

  /// Records that an operator starts; returns when it ends.
  int64_t start_task(int32_t op, int64_t start_ns) {
    auto& device = record_->devices[placement_[op]];
    const int64_t cost_ns = device.cost_ns[op], end_ns = start_ns + cost_ns;
    device.compute_ns += cost_ns;
    record_->step_ns = std::max(record_->step_ns, end_ns);
    if (record_->tasks) {
      const int32_t position = next_position_[placement_[op]]++;
      record_->position[op] = position;
      record_->start_at[position] = start_ns;
      record_->order.push_back(op);
    }
    if (record_->times) record_->end_ns[op] = end_ns;
    return end_ns;
  }

  /// Records that an output is sent to a device; returns when it arrives.
  int64_t start_transfer(int32_t op, int32_t output, int32_t to, int64_t start_ns) {
    const int32_t from = placement_[op];
    const int64_t bytes = problem_.output_bytes(op, output);
    const int64_t end_ns = start_ns + problem_.wire_ns(from, to, bytes);
    record_->devices[from].send_ns += end_ns - start_ns;
    record_->devices[from].sent_bytes += bytes;
    record_->devices[to].received_bytes += bytes;
    ++record_->transfers;
    if (record_->tasks) record_->add_copy({start_ns, end_ns, op, output, from, to});
    return end_ns;
  }

  const Problem& problem_;
  std::vector<int32_t> sources_;        // in file order
  std::vector<int32_t> missing_;        // [operator]: inputs to come
  std::vector<int32_t> next_position_;  // [device]
  std::span<const int32_t> placement_;
  Record* record_ = nullptr;
};

/// A task that ends releases its local readers one by one and enqueues one transfer per output on its
/// device's bus, which releases all remote readers together. Devices and buses are first in, first
/// out. At one instant releases come first (in order of the names of producer and reader), then
/// buses, then devices, each by number.
class PlacetoEngine : public PublishedEngine {
 public:
  explicit PlacetoEngine(const Problem& problem)
      : PublishedEngine(problem),
        rank_(static_cast<size_t>(problem.operators())),
        by_rank_(rank_.size()),
        units_(2 * static_cast<size_t>(problem.devices())) {
    std::iota(by_rank_.begin(), by_rank_.end(), 0);
    std::sort(by_rank_.begin(), by_rank_.end(), [&](int32_t a, int32_t b) {
      return problem.graph().op(a).name < problem.graph().op(b).name;
    });
    for (size_t i = 0; i < by_rank_.size(); ++i) rank_[by_rank_[i]] = static_cast<int32_t>(i);
  }

  void run(const Plan& plan, int64_t, Record& record) override {
    begin(plan, false, record);
    if (!events_.empty()) {  // of a run that was stopped
      events_ = {};
      for (auto& each : units_) each = {};
    }
    for (const int32_t source : sources_) offer(0, device, placement_[source], source, 0);
    for (StopPoll stop; !events_.empty(); stop.step()) {
      const Event event = events_.top();
      events_.pop();
      event.kind == release ? take_release(event) : take_unit(event);
    }
  }

 private:
  enum Kind : int32_t { release, bus, device };
  struct Event {
    int64_t time_ns;
    int32_t kind, first, second;  // release: name ranks of producer and reader; else: the unit
    bool operator>(const Event& other) const {
      return std::tie(time_ns, kind, first, second) >
             std::tie(other.time_ns, other.kind, other.first, other.second);
    }
  };
  /// A task that waits for its device, or an output that waits for its bus.
  struct Job {
    int64_t ready_ns, arrival;
    int32_t op, output;
    bool operator>(const Job& other) const {
      return ready_ns != other.ready_ns ? ready_ns > other.ready_ns : arrival > other.arrival;
    }
  };
  template <class T>
  using Heap = std::priority_queue<T, std::vector<T>, std::greater<>>;
  struct Unit {
    Heap<Job> jobs;
    bool active = false;
  };

  Unit& unit(int32_t kind, int32_t number) {
    return units_[kind == bus ? number : number + problem_.devices()];
  }

  void offer(int64_t time_ns, int32_t kind, int32_t number, int32_t op, int32_t output) {
    auto& to = unit(kind, number);
    to.jobs.push({time_ns, ++arrivals_, op, output});
    if (to.active) return;
    to.active = true;
    events_.push({time_ns, kind, number, 0});
  }

  void take_release(const Event& event) {
    const int32_t reader = by_rank_[event.second];
    if (--missing_[reader] == 0) offer(event.time_ns, device, placement_[reader], reader, 0);
  }

  void take_unit(const Event& event) {
    auto& from = unit(event.kind, event.first);
    if (from.jobs.empty()) {
      from.active = false;
      return;
    }
    const Job job = from.jobs.top();
    if (job.ready_ns > event.time_ns) {  // a transfer that becomes ready later
      events_.push({job.ready_ns, event.kind, event.first, 0});
      return;
    }
    from.jobs.pop();
    if (event.kind == device) {
      if (record_->times) record_->ready_ns[job.op] = job.ready_ns;
      compute(job.op, event.first, event.time_ns);
    } else {
      send(job.op, job.output, event.first, event.time_ns);
    }
  }

  void release_at(int64_t time_ns, int32_t from, int32_t reader) {
    events_.push({time_ns, release, rank_[from], rank_[reader]});
  }

  void compute(int32_t op, int32_t number, int64_t start_ns) {
    auto& state = record_->devices[number];
    const int64_t end_ns = start_task(op, start_ns);
    state.free_ns = end_ns + problem_.rules().device_dead_ns;
    record_->last_ns = std::max(record_->last_ns, state.free_ns);
    // outputs are enqueued in order; readers are sorted by operator, not by output
    std::vector<bool> away(static_cast<size_t>(problem_.first_output(op + 1) - problem_.first_output(op)));
    for (const auto& reader : problem_.readers(op)) {
      if (placement_[reader.op] == number)
        release_at(end_ns, op, reader.op);
      else
        away[reader.output] = true;
    }
    for (size_t output = 0; output < away.size(); ++output)
      if (away[output]) offer(end_ns, bus, number, op, static_cast<int32_t>(output));
    events_.push({state.free_ns, device, number, 0});
  }

  void send(int32_t op, int32_t output, int32_t number, int64_t start_ns) {
    const auto receives = [&](const Problem::Reader& reader) {
      return reader.output == output && placement_[reader.op] != number;
    };
    const auto readers = problem_.readers(op);
    const int32_t first = std::find_if(readers.begin(), readers.end(), receives)->op;
    const int64_t end_ns = start_transfer(op, output, placement_[first], start_ns);
    for (const auto& reader : readers)
      if (receives(reader)) release_at(end_ns, op, reader.op);
    auto& state = record_->devices[number];
    state.send_free_ns = end_ns + problem_.rules().link_dead_ns;
    record_->last_ns = std::max(record_->last_ns, state.send_free_ns);
    events_.push({state.send_free_ns, bus, number, 0});
  }

  std::vector<int32_t> rank_, by_rank_;  // operators sorted by name
  Heap<Event> events_;
  std::vector<Unit> units_;  // buses, then devices
  int64_t arrivals_ = 0;
};

/// Every edge is a transfer of its own, even to a device that already has the tensor. It arrives one link time
/// after the producer's end (at once on the same device); transfers never queue.
///
/// INSTANTS. Events of one instant happen in the order in which they were scheduled:
///   at first    every operator without inputs requests its device, in file order;
///   a request   joins its device's queue and grants the device;
///   a grant     if the device is free and its queue is not empty: the front takes the device, and
///               its start is scheduled for this instant;
///   a start     schedules the finish after the operator's time;
///   a finish    frees the device without a grant; schedules the device's release, then the
///               sending, for this instant;
///   a release   grants the device;
///   a sending   schedules an arrival for each out-edge, in file order;
///   an arrival  schedules its taking for this instant, which decrements the reader's missing
///               inputs; the last one schedules its request for this instant.
/// A request between a device's finish and its release thus starts the queue's front.
///
/// File order of edges: attribute `input_positions`, the edge number of each input; edges without it follow in order of
/// the reader's number.
class DopplerEngine : public PublishedEngine {
 public:
  explicit DopplerEngine(const Problem& problem) : PublishedEngine(problem) {
    const auto& graph = problem.graph();
    for (int32_t o = 0; o < problem.operators(); ++o) {
      auto& edges = edges_.emplace_back();
      for (const auto& reader : problem.readers(o)) {
        const int32_t tensor = graph.op(o).outputs[static_cast<size_t>(reader.output)];
        edges.push_back({edge_position(graph.op(reader.op), tensor), reader});
      }
      std::stable_sort(edges.begin(), edges.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
    }
  }

  void run(const Plan& plan, int64_t limit_ns, Record& record) override {
    limit_ns_ = limit_ns;
    begin(plan, limit_ns != kNoLimit, record);
    next_waiting_.resize(missing_.size());
    devices_.assign(record.devices.size(), {});
    events_.clear();
    now_ns_ = tickets_ = 0;
    for (const int32_t source : sources_) put(0, Kind::request, source);
    for (StopPoll stop; !events_.empty() && !record.rejected; stop.step()) {
      std::pop_heap(events_.begin(), events_.end(), std::greater<>());
      const Event event = events_.back();
      events_.pop_back();
      now_ns_ = event.time_ns;
      handle(event.kind, event.op);
    }
    record.last_ns = record.step_ns;
  }

 private:
  enum class Kind : uint8_t { request, start, finish, release, send, arrive, take };
  struct Event {
    int64_t time_ns, ticket;
    Kind kind;
    int32_t op;
    bool operator>(const Event& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : ticket > other.ticket;
    }
  };
  struct Device {
    int32_t front = -1, back = -1;  // of its queue; -1: empty
    bool taken = false;
  };

  /// The edge number of `reader` reading `tensor`; the maximum if the file gives none.
  static int64_t edge_position(const Operator& reader, int32_t tensor) {
    constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
    const auto* list = find_attribute<std::vector<int64_t>>(reader.attributes, "input_positions");
    if (!list) return kNone;
    for (size_t i = 0; i < reader.inputs.size() && i < list->size(); ++i)
      if (reader.inputs[i] == tensor) return (*list)[i];
    return kNone;
  }

  void put(int64_t time_ns, Kind kind, int32_t op) {
    events_.push_back({time_ns, tickets_++, kind, op});
    std::push_heap(events_.begin(), events_.end(), std::greater<>());
  }

  void handle(Kind kind, int32_t op) {
    switch (kind) {
      case Kind::request:
        return join(op);
      case Kind::start:
        return start(op);
      case Kind::finish:
        devices_[placement_[op]].taken = false;
        put(now_ns_, Kind::release, op);
        return put(now_ns_, Kind::send, op);
      case Kind::release:
        return grant(placement_[op]);
      case Kind::send:
        return deliver(op);
      case Kind::arrive:  // all but an operator's last have no further effect
        if (--missing_[op] == 0) put(now_ns_, Kind::take, op);
        return;
      case Kind::take:
        return put(now_ns_, Kind::request, op);
    }
  }

  void join(int32_t op) {
    if (record_->times) record_->ready_ns[op] = now_ns_;
    auto& device = devices_[placement_[op]];
    next_waiting_[op] = -1;
    (device.front < 0 ? device.front : next_waiting_[device.back]) = op;
    device.back = op;
    grant(placement_[op]);
  }

  void grant(int32_t number) {
    auto& device = devices_[number];
    if (device.taken || device.front < 0) return;
    const int32_t op = device.front;
    device.front = next_waiting_[op];
    device.taken = true;
    put(now_ns_, Kind::start, op);
  }

  void start(int32_t op) {
    if (limit_ns_ != kNoLimit) {
      auto& device = record_->devices[placement_[op]];
      const int64_t cost_ns = device.cost_ns[op];
      const int64_t bound_ns = now_ns_ + std::max(device.remaining_ns, cost_ns + problem_.tail_ns(op));
      if (bound_ns > limit_ns_) {
        record_->rejected = true;
        record_->step_ns = bound_ns;
        return;
      }
      device.remaining_ns -= cost_ns;
    }
    put(start_task(op, now_ns_), Kind::finish, op);
  }

  void deliver(int32_t op) {
    for (const auto& [position, edge] : edges_[op]) {
      const int32_t to = placement_[edge.op];
      put(to == placement_[op] ? now_ns_ : start_transfer(op, edge.output, to, now_ns_), Kind::arrive, edge.op);
    }
  }

  /// [producer], in file order, with their numbers.
  std::vector<std::vector<std::pair<int64_t, Problem::Reader>>> edges_;
  std::vector<int32_t> next_waiting_;  // [operator]: next in its device's queue
  std::vector<Event> events_;          // a heap
  std::vector<Device> devices_;
  int64_t limit_ns_ = kNoLimit, now_ns_ = 0, tickets_ = 0;
};

}  // namespace

void account_outputs_only(const Problem& problem, std::span<const int32_t> placement,
                          const Record& record, Metrics& metrics) {
  struct Change {
    int64_t time_ns;
    int64_t bytes;
  };
  std::vector<std::vector<Change>> changes(metrics.devices.size());
  for (int32_t op = 0; op < problem.operators(); ++op) {
    const auto o = static_cast<size_t>(op);
    int64_t bytes = 0, released = -1;
    for (int32_t i = problem.first_output(op); i < problem.first_output(op + 1); ++i)
      bytes += problem.all_output_bytes()[i];
    for (const auto& reader : problem.readers(op))
      released = std::max(released, record.end_ns[reader.op] - 1000);
    auto& device = changes[placement[o]];
    device.push_back({record.start_at[record.position[o]], bytes});
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

std::unique_ptr<Engine> placeto_engine(const Problem& problem) { return std::make_unique<PlacetoEngine>(problem); }

std::unique_ptr<Engine> doppler_engine(const Problem& problem) { return std::make_unique<DopplerEngine>(problem); }

}  // namespace trinity
