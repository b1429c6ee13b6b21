#include "simulator/doppler_engine.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/stop.h"

namespace trinity {
namespace {

constexpr size_t kNear = 64;
constexpr int kOperatorBits = 24, kKindBits = 3;  // kMaxOperators
constexpr uint32_t kOperatorMask = (uint32_t{1} << kOperatorBits) - 1;
constexpr uint64_t kCodeMask = (uint64_t{1} << (kOperatorBits + kKindBits)) - 1;

/// Event type, stored in the bits above the operator.
enum Kind : uint32_t { request, start, finish, release, send, arrive, take, arrive_all };

constexpr uint32_t code(Kind kind, int32_t op) {
  return static_cast<uint32_t>(kind) << kOperatorBits | static_cast<uint32_t>(op);
}

int64_t file_position(const Operator& op, int32_t number) {
  return integer_attribute(op.attributes, "file_position", number);
}

/// The edge number of `reader` reading `tensor`; the maximum if the file gives none.
int64_t edge_position(const Operator& reader, int32_t tensor) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  const auto found = reader.attributes.find("input_positions");
  const auto* list = found == reader.attributes.end()
                         ? nullptr
                         : std::get_if<std::vector<int64_t>>(&found->second);
  if (!list) return kNone;
  for (size_t i = 0; i < reader.inputs.size() && i < list->size(); ++i)
    if (reader.inputs[i] == tensor) return (*list)[i];
  return kNone;
}

}  // namespace

DopplerEngine::DopplerEngine(const Problem& problem)
    : problem_(problem),
      missing_(static_cast<size_t>(problem.operators())),
      next_waiting_(missing_.size()),
      devices_(static_cast<size_t>(problem.devices())),
      next_position_(devices_.size()) {
  for (int32_t o = 0; o < problem.operators(); ++o) {
    inputs_.push_back(problem.missing(o));
    if (problem.missing(o) == 0) sources_.push_back(o);
  }
  std::stable_sort(sources_.begin(), sources_.end(), [&](int32_t a, int32_t b) {
    return file_position(problem.graph().op(a), a) < file_position(problem.graph().op(b), b);
  });
  order_edges();
  // Per operator: request, start, release, sending, finish; per edge: arrival and taking.
  due_.resize(6 * missing_.size() + 2 * edges_.size());
  near_.reserve(kNear + 1);
}

void DopplerEngine::order_edges() {
  const auto& graph = problem_.graph();
  const auto wires = problem_.uniform_wires();
  first_edge_.push_back(0);
  for (int32_t o = 0; o < problem_.operators(); ++o) {
    std::vector<std::pair<int64_t, Edge>> edges;
    for (const auto& reader : problem_.readers(o)) {
      const int32_t tensor = graph.op(o).outputs[static_cast<size_t>(reader.output)];
      edges.push_back({edge_position(graph.op(reader.op), tensor), {reader.op, reader.output}});
    }
    std::stable_sort(edges.begin(), edges.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    int64_t one = wires.empty() || edges.empty() ? -1 : wires[problem_.first_output(o)];
    for (const auto& [position, edge] : edges) {
      edges_.push_back(edge);
      if (one >= 0 && wires[problem_.first_output(o) + edge.output] != one) one = -1;
    }
    one_wire_ns_.push_back(one > 0 ? one : -1);  // without transfer time they mix with local edges
    first_edge_.push_back(static_cast<int32_t>(edges_.size()));
  }
}

/// One run, with everything that is constant during it as members. kRecord: positions, starts and
/// copies are wanted.
template <bool kLimited, bool kRecord>
class DopplerEngine::Run {
 public:
  Run(DopplerEngine& engine, const int32_t* placement, int64_t limit_ns, Record& record)
      : engine_(engine),
        problem_(engine.problem_),
        placement_(placement),
        limit_ns_(limit_ns),
        record_(record),
        states_(record.devices.data()),
        devices_(engine.devices_.data()),
        missing_(engine.missing_.data()),
        next_waiting_(engine.next_waiting_.data()),
        due_(engine.due_.data()) {}

  void run() {
    for (const int32_t source : engine_.sources_) put_now(request, source);
    for (StopPoll stop;; stop.step()) {
      while (at_ < end_ && beyond_ns_ == 0) happen(due_[at_++]);
      at_ = end_ = 0;
      if (beyond_ns_ > 0 || (engine_.near_.empty() && engine_.far_.empty())) break;
      advance();
    }
    record_.transfers = transfers_;
    record_.rejected = beyond_ns_ > 0;
    record_.step_ns = record_.last_ns = record_.rejected ? beyond_ns_ : step_ns_;
  }

 private:
  void put_now(Kind kind, int32_t op) { due_[end_++] = code(kind, op); }

  void put_off(int64_t time_ns, Kind kind, int32_t op) {
    if (time_ns == now_ns_) return put_now(kind, op);
    const Later later{time_ns, ++tickets_ << (kOperatorBits + kKindBits) | code(kind, op)};
    auto& near = engine_.near_;
    if (!engine_.far_.empty() && engine_.far_.front() < later) return put_far(later);
    size_t at = near.size();
    near.push_back(later);
    for (; at > 0 && near[at - 1] < later; --at) near[at] = near[at - 1];
    near[at] = later;
    if (near.size() <= kNear) return;
    put_far(near.front());
    near.erase(near.begin());
  }

  [[gnu::noinline]] void put_far(const Later& later) {
    engine_.far_.push_back(later);
    std::push_heap(engine_.far_.begin(), engine_.far_.end(), std::greater<>());
  }

  [[gnu::noinline]] void refill() {
    auto& far = engine_.far_;
    for (size_t i = 0; i < kNear / 2 && !far.empty(); ++i) {
      std::pop_heap(far.begin(), far.end(), std::greater<>());
      engine_.near_.push_back(far.back());
      far.pop_back();
    }
    std::reverse(engine_.near_.begin(), engine_.near_.end());
  }

  /// Advances to the next instant: its events become due.
  void advance() {
    auto& near = engine_.near_;
    if (near.empty()) refill();
    now_ns_ = near.back().time_ns;
    do {
      const auto what = static_cast<uint32_t>(near.back().order & kCodeMask);
      const auto op = static_cast<int32_t>(what & kOperatorMask);
      near.pop_back();
      if (what >> kOperatorBits == finish)
        put_now(finish, op);
      else if (what >> kOperatorBits == arrive)
        reach(op);
      else
        reach_everywhere(op);
      if (near.empty() && !engine_.far_.empty()) refill();
    } while (!near.empty() && near.back().time_ns == now_ns_);
  }

  void happen(uint32_t what) {
    const auto op = static_cast<int32_t>(what & kOperatorMask);
    switch (static_cast<Kind>(what >> kOperatorBits)) {
      case request:
        join(op);
        break;
      case start:
        begin(op);
        break;
      case finish:
        devices_[placement_[op]].taken = false;
        put_now(release, op);
        put_now(send, op);
        break;
      case release:
        grant(placement_[op]);
        break;
      case send:
        deliver(op);
        break;
      case arrive:
        put_now(take, op);
        break;
      case take:
        put_now(request, op);
        break;
      case arrive_all:
        break;
    }
  }

  void join(int32_t op) {
    if constexpr (kRecord)
      if (record_.times) record_.ready_ns[op] = now_ns_;
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
    put_now(start, op);
  }

  void begin(int32_t op) {
    auto& device = states_[placement_[op]];
    const int64_t cost = device.cost_ns[op], end = now_ns_ + cost;
    if constexpr (kLimited) {
      const int64_t bound = now_ns_ + std::max(device.remaining_ns, cost + problem_.tail_ns(op));
      if (bound > limit_ns_) {
        beyond_ns_ = bound;
        return;
      }
      device.remaining_ns -= cost;
    }
    device.compute_ns += cost;
    step_ns_ = std::max(step_ns_, end);
    if constexpr (kRecord) note(op, end);
    put_off(end, finish, op);
  }

  void note(int32_t op, int64_t end) {
    const int32_t device = placement_[op], position = engine_.next_position_[device]++;
    record_.position[op] = position;
    record_.start_at[position] = now_ns_;
    record_.order.push_back(op);
    if (record_.times) record_.end_ns[op] = end;
  }

  void deliver(int32_t op) {
    const int32_t from = placement_[op];
    const auto* const last = engine_.edges_.data() + engine_.first_edge_[op + 1];
    const int64_t one_ns = engine_.one_wire_ns_[op];
    bool away = false;
    for (const auto* edge = engine_.edges_.data() + engine_.first_edge_[op]; edge != last; ++edge) {
      const int32_t to = placement_[edge->reader];
      if (to == from) {
        reach(edge->reader);
        continue;
      }
      const int64_t bytes = problem_.output_bytes(op, edge->output);
      const int64_t wire_ns = one_ns >= 0 ? one_ns : problem_.wire_ns(from, to, bytes);
      states_[from].send_ns += wire_ns;
      states_[from].sent_bytes += bytes;
      states_[to].received_bytes += bytes;
      ++transfers_;
      away = true;
      if constexpr (kRecord)
        record_.add_copy({now_ns_, now_ns_ + wire_ns, op, edge->output, from, to});
      if (one_ns >= 0) continue;
      if (wire_ns > 0)
        put_off(now_ns_ + wire_ns, arrive, edge->reader);
      else
        reach(edge->reader);
    }
    if (away && one_ns >= 0) put_off(now_ns_ + one_ns, arrive_all, op);
  }

  /// Schedules an arrival for this instant. All but an operator's last have no further effect, so
  /// they are counted now.
  void reach(int32_t op) {
    if (--missing_[op] == 0) put_now(arrive, op);
  }

  /// All transfers of an operator at once: no other event comes between them.
  void reach_everywhere(int32_t op) {
    const auto* const last = engine_.edges_.data() + engine_.first_edge_[op + 1];
    for (const auto* edge = engine_.edges_.data() + engine_.first_edge_[op]; edge != last; ++edge)
      if (placement_[edge->reader] != placement_[op]) reach(edge->reader);
  }

  DopplerEngine& engine_;
  const Problem& problem_;
  const int32_t* const placement_;
  const int64_t limit_ns_;
  Record& record_;
  DeviceState* const states_;
  Device* const devices_;
  int32_t* const missing_;
  int32_t* const next_waiting_;
  uint32_t* const due_;
  size_t at_ = 0, end_ = 0;  // range of due_ that is still to be processed
  int64_t now_ns_ = 0, step_ns_ = 0;
  int64_t beyond_ns_ = 0;  // set once the limit is certain to be exceeded: bound on the step
  uint64_t tickets_ = 0;
  int32_t transfers_ = 0;
};

template <bool kLimited>
void DopplerEngine::choose(const int32_t* placement, int64_t limit_ns, Record& record) {
  if (record.tasks)
    Run<kLimited, true>(*this, placement, limit_ns, record).run();
  else
    Run<kLimited, false>(*this, placement, limit_ns, record).run();
}

void DopplerEngine::run(std::span<const int32_t> placement, int64_t limit_ns, Record& record) {
  const bool limited = limit_ns != kNoLimit;
  record.begin(problem_, Plan{placement}, limited);
  std::copy(inputs_.begin(), inputs_.end(), missing_.begin());
  std::fill(devices_.begin(), devices_.end(), Device{-1, -1, false});
  near_.clear();  // the previous run may have been stopped early
  far_.clear();
  if (record.tasks)
    std::copy(record.first_position.begin(), record.first_position.end() - 1,
              next_position_.begin());
  if (limited)
    choose<true>(placement.data(), limit_ns, record);
  else
    choose<false>(placement.data(), limit_ns, record);
}

}  // namespace trinity
