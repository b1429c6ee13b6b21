#include "simulator/order_engine.h"

#include <algorithm>
#include <cmath>

#include "base/index.h"
#include "base/stop.h"

namespace trinity {
namespace {

constexpr size_t kMostRoom = size_t{1} << 20;

}  // namespace

bool OrderEngine::takes(const Problem& problem) {
  const auto& rules = problem.rules();
  return !problem.contends() && !rules.published_name() && rules.queue != QueueModel::fair &&
         rules.queue != QueueModel::receiver;
}

bool OrderEngine::run(const Problem& problem, std::span<const int32_t> placement,
                      const OrderPieces& pieces, const Quotient* quotient, int64_t limit_ns,
                      Metrics& metrics) {
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
  account(metrics);
  return true;
}

bool OrderEngine::compile() {
  const int64_t tasks = int64_t{problem_->operators()} * micros_;
  if (tasks > (int64_t{1} << 30) || problem_->longest_step_ns() * micros_ >= 0x1p61) return false;
  devices_.assign(at(pieces_->devices()), {});
  simulated_.assign(devices_.size(), {});
  if (!place_lists() || !order_lists() || !find_routes() || !find_groups()) return false;
  rows_ = groups_.size() + routes_.size();
  place_rows();
  segments_.clear();
  segment_first_.clear();
  needs_.clear();
  emits_.clear();
  needed_by_.assign(2 * rows(), -1);
  offset_ns_.resize(pieces_->operators.size());
  for (int32_t list = 0; list < pieces_->lists(); ++list) {
    segment_first_.push_back(static_cast<int32_t>(segments_.size()));
    if (!find_segments(list)) return false;
  }
  segment_first_.push_back(static_cast<int32_t>(segments_.size()));
  return true;
}

/// Finds transfers to other devices, and local and remote collective members that read them.
/// Returns false if one copy would serve readers that accumulate and others.
bool OrderEngine::find_routes() {
  routes_.clear();
  transfers_ = 0;
  route_first_.clear();
  feeds_.clear();
  queues_.clear();
  feeds_begin_.resize(list_of_.size());
  feeds_end_.resize(list_of_.size());
  for (int32_t op = 0; op < problem_->operators(); ++op) {
    const int32_t from = placement_[op];
    const size_t first = routes_.size();
    route_first_.push_back(static_cast<int32_t>(first));
    for (const auto& reader : problem_->readers(op)) {
      const int32_t to = placement_[reader.op];
      const bool last = accumulates(op, reader.op);
      if (problem_->once(op) && !problem_->once(reader.op) && micros_ > 1) return false;
      if (to == from) continue;
      const auto known = std::find_if(
          routes_.begin() + static_cast<std::ptrdiff_t>(first), routes_.end(),
          [&](const Route& r) { return r.output == reader.output && r.to == to; });
      if (known != routes_.end()) {
        if (known->last != last) return false;
        continue;
      }
      const int64_t bytes = problem_->output_bytes(op, reader.output);
      routes_.push_back({op, reader.output, from, to, last, bytes,
                         problem_->wire_ns(cluster_device(from), cluster_device(to), bytes),
                         static_cast<int32_t>(queues_.size()), 0, 0, 0});
      add_queues(from, to);
      routes_.back().queues_end = static_cast<int32_t>(queues_.size());
      count(routes_.back());
    }
    for (size_t r = first; r < routes_.size(); ++r) {
      routes_[r].feeds_begin = static_cast<int32_t>(feeds_.size());
      add_feeds(op, routes_[r].to, routes_[r].output);
      routes_[r].feeds_end = static_cast<int32_t>(feeds_.size());
    }
    feeds_begin_[op] = static_cast<int32_t>(feeds_.size());
    add_feeds(op, from, -1);
    feeds_end_[op] = static_cast<int32_t>(feeds_.size());
  }
  route_first_.push_back(static_cast<int32_t>(routes_.size()));
  return true;
}

/// Cells of the rows that a device waits for are neighbours: it reads them one after the other.
void OrderEngine::place_rows() {
  std::vector<int32_t> first(devices_.size() + 1, 0);
  const auto device_of = [&](size_t row) {
    return row < groups_.size() ? group_devices_[groups_[row].devices_begin] : routes_[row - groups_.size()].to;
  };
  for (size_t row = 0; row < rows_; ++row) ++first[at(device_of(row)) + 1];
  for (size_t d = 1; d < first.size(); ++d) first[d] += first[d - 1];
  row_place_.resize(rows_);
  for (size_t row = 0; row < rows_; ++row) row_place_[row] = first[at(device_of(row))]++;
}

/// Adds a route's transfers to the devices' counters.
void OrderEngine::count(const Route& route) {
  const int32_t times = route.last || problem_->once(route.op) ? 1 : micros_;
  simulated_[route.from].send_busy_ns += times * route.wire_ns;
  simulated_[route.from].bytes_sent += times * route.bytes;
  simulated_[route.to].bytes_received += times * route.bytes;
  transfers_ += times * (quotient_ ? quotient_->copies[route.from] : 1);
}

/// Members on a device (-1: any) that read an output.
void OrderEngine::add_feeds(int32_t op, int32_t device, int32_t output) {
  for (const auto& reader : problem_->readers(op))
    if (member(reader.op) && placement_[reader.op] == device &&
        (output < 0 || reader.output == output))
      feeds_.push_back({collective_of(reader.op), accumulates(op, reader.op)});
}

bool OrderEngine::find_groups() {
  groups_.assign(at(collectives()), {});
  group_devices_.clear();
  group_sends_.clear();
  quotient_groups_.clear();
  double longest_ns = 0;
  for (size_t c = 0; c < groups_.size(); ++c) {
    if (!price(static_cast<int32_t>(c))) return false;
    longest_ns += static_cast<double>(groups_[c].duration_ns + problem_->rules().link_dead_ns);
  }
  queue_count_ = 0;
  for (const int32_t queue : queues_) queue_count_ = std::max(queue_count_, at(queue) + 1);
  if (queue_count_ > kMostQueues) return false;
  return longest_ns * micros_ < 0x1p60;
}

/// For the devices in ring_, or the representatives' group: thousands of collectives share few
/// groups.
const CollectiveGroup& OrderEngine::group_of(int32_t collective) {
  const bool exchanges =
      collective_at(collective).kind == CollectiveKind::all_to_all;
  if (!quotient_) return prices_.find(ring_, exchanges);
  const int32_t number = quotient_->group[collective];
  const size_t price = 2 * at(quotient_->price[number]) + exchanges;
  if (price >= quotient_groups_.size()) quotient_groups_.resize(price + 1);
  auto& known = quotient_groups_[price];
  if (!known) known = prices_.find(quotient_->members[number], exchanges);
  return *known;
}

bool OrderEngine::price(int32_t collective) {
  const auto& about = collective_at(collective);
  auto& group = groups_[collective];
  ring_.clear();
  for (const int32_t op : collective_at(collective).members) {
    ring_.push_back(placement_[op]);
    group.missing += problem_->missing(op);
  }
  group.once = problem_->once(collective_at(collective).members[0]);
  std::sort(ring_.begin(), ring_.end());
  ring_.erase(std::unique(ring_.begin(), ring_.end()), ring_.end());
  const auto& found = group_of(collective);
  if (found.size() < 2 || !found.applies(about.kind, about.algorithm)) return false;
  const auto cost = found.cost(about.kind, about.algorithm, about.bytes);
  if (!(cost.time_s() < 1e6)) return false;
  group.duration_ns = std::llround(cost.time_s() * 1e9);
  const int64_t sent_bytes = std::llround(cost.sent_bytes);
  if (group.duration_ns == 0) return false;
  for (const int32_t device : ring_) {
    auto& totals = simulated_[device];
    const int64_t times = group.once ? 1 : micros_;
    totals.send_busy_ns += times * group.duration_ns;
    totals.bytes_sent += times * sent_bytes;
    totals.bytes_received += times * sent_bytes;
  }
  group.devices_begin = static_cast<int32_t>(group_devices_.size());
  group_devices_.insert(group_devices_.end(), ring_.begin(), ring_.end());
  group.devices_end = static_cast<int32_t>(group_devices_.size());
  group.queues_begin = static_cast<int32_t>(queues_.size());
  const auto model = problem_->rules().queue;
  if (quotient_ && (model == QueueModel::pair || model == QueueModel::route)) {
    const auto& list = quotient_->group_queues[quotient_->group[collective]];
    queues_.insert(queues_.end(), list.begin(), list.end());
  } else {
    for (size_t i = 0; i < ring_.size(); ++i)
      add_queues(ring_[i],
                 model == QueueModel::sender ? ring_[i] : ring_[(i + 1) % ring_.size()]);
  }
  group.queues_end = static_cast<int32_t>(queues_.size());
  join_members(collective);
  return true;
}

/// Collects everything that follows the end of a collective, over all its members.
void OrderEngine::join_members(int32_t collective) {
  auto& group = groups_[collective];
  group.feeds_begin = static_cast<int32_t>(feeds_.size());
  group.sends_begin = static_cast<int32_t>(group_sends_.size());
  for (const int32_t op : collective_at(collective).members) {
    for (int32_t f = feeds_begin_[op]; f < feeds_end_[op]; ++f) {
      const Feed feed = feeds_[f];
      feeds_.push_back(feed);
    }
    if (route_first_[op] < route_first_[at(op) + 1]) group_sends_.push_back(op);
  }
  group.feeds_end = static_cast<int32_t>(feeds_.size());
  group.sends_end = static_cast<int32_t>(group_sends_.size());
}

/// Writes the queues of a transfer to queues_.
void OrderEngine::add_queues(int32_t from, int32_t to) {
  const auto model = problem_->rules().queue;
  const auto add = [this](std::span<const int32_t> list) {
    queues_.insert(queues_.end(), list.begin(), list.end());
  };
  if (model == QueueModel::sender)
    queues_.push_back(from);
  else if (quotient_ && (model == QueueModel::pair || model == QueueModel::route))
    add(quotient_->path(from, to));
  else if (model == QueueModel::pair)
    queues_.push_back(from * static_cast<int32_t>(devices_.size()) + to);
  else if (model == QueueModel::route)
    for (const int32_t channel : problem_->cluster().route(from, to)) queues_.push_back(channel);
}

/// A new segment begins at each operator that is the first of its list to read an incoming tensor.
bool OrderEngine::find_segments(int32_t list) {
  const auto& rules = problem_->rules();
  int64_t offset_ns = 0;
  for (int32_t i = pieces_->list_first[list]; i < pieces_->list_first[at(list) + 1]; ++i) {
    const int32_t op = pieces_->operators[i];
    const auto first_need = static_cast<int32_t>(needs_.size());
    if (!find_needs(op)) return false;
    const auto end_need = static_cast<int32_t>(needs_.size());
    if (first_need < end_need || i == pieces_->list_first[list]) {
      const auto emit = static_cast<int32_t>(emits_.size());
      segments_.push_back({i, i, first_need, end_need, emit, emit, 0, 0, problem_->once(op)});
      offset_ns = 0;
    }
    const int64_t cost = cost_ns(op);
    offset_ns_[i] = offset_ns;
    simulated_[list_device_[list]].compute_busy_ns += cost * (problem_->once(op) ? 1 : micros_);
    offset_ns += cost;
    const bool sends = route_first_[op] < route_first_[at(op) + 1];
    if (sends || feeds_begin_[op] < feeds_end_[op])
      emits_.push_back({offset_ns, op, feeds_begin_[op], feeds_end_[op], sends, cost == 0});
    auto& segment = segments_.back();
    segment.busy_ns = offset_ns;
    if (cost > 0 || rules.dead_after_free) offset_ns += rules.device_dead_ns;
    segment.length_ns = offset_ns;
    segment.end = i + 1;
    segment.emits_end = static_cast<int32_t>(emits_.size());
  }
  return true;
}

/// Adds to needs_ the incoming tensors that an operator is the first of its list to read. Returns
/// false if its device computes one of them later.
bool OrderEngine::find_needs(int32_t op) {
  const auto add = [this, list = list_of_[op]](int32_t need) {
    if (needed_by_[need] != list) needs_.push_back(need);
    needed_by_[need] = list;
  };
  for (const auto& [from, output] : problem_->sources(op)) {
    if (placement_[from] != placement_[op]) {
      int32_t route = route_first_[from];
      while (routes_[route].output != output || routes_[route].to != placement_[op]) ++route;
      add(2 * (collectives() + route));
    } else if (member(from)) {
      add(2 * collective_of(from) + accumulates(from, op));
    } else {
      const int32_t before = list_of_[from], list = list_of_[op];
      if (before == list ? index_of_[from] >= index_of_[op] : !always_before(before, list))
        return false;
    }
  }
  return true;
}

bool OrderEngine::simulate(int64_t limit_ns) {
  begin();
  for (size_t c = 0; c < groups_.size(); ++c)
    for (int32_t k = groups_[c].once ? micros_ - 1 : 0; k < micros_ && groups_[c].missing == 0; ++k)
      push_book(static_cast<int32_t>(c), k, 0);
  for (size_t d = 0; d < devices_.size(); ++d) advance(static_cast<int32_t>(d));
  return go_on(limit_ns);
}

bool OrderEngine::go_on(int64_t limit_ns) {
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
    if (kind_of(event) == kBooks)
      book_collective(what_of(event), micro_of(event));
    else
      send(what_of(event), micro_of(event), last_of(event), kind_of(event) == kFreeSends);
  }
  int32_t expected = 0;
  for (const auto& group : groups_) expected += group.once ? 1 : micros_;
  for (size_t d = 0; d < devices_.size(); ++d)
    if (devices_[d].piece != pieces_->piece_first[d + 1]) return false;
  rejected_ = step_ns_ > limit_ns;
  return !unsure_ && booked_ == expected;
}

void OrderEngine::begin() {
  all_arrived_.assign(groups_.size(), -1);
  waiting_.assign(groups_.size(), micros_);
  first_cells_.assign(rows(), {});
  for (size_t c = 0; c < groups_.size(); ++c) first_cells_[at(row_place_[c])].missing = groups_[c].missing;
  opened_ = 0;
  cells_.clear();
  cells_.reserve(rows() * at(micros_));
  pieces_done_.assign(at(pieces_->lists()), 0);
  events_.clear();
  clear_lists();
  free_ns_.assign(queue_count_, 0);
  asked_ns_.assign(queue_count_, -1);
  asked_by_.resize(queue_count_);
  for (size_t d = 0; d < devices_.size(); ++d) {
    auto& device = devices_[d];
    device.piece = pieces_->piece_first[d];
    device.segment = device.base = 0;
    device.free_ns = 0;
    device.blocked = -1;
  }
  ticket_ = 0;
  now_ns_ = step_ns_ = 0;
  booked_ = 0;
  unsure_ = rejected_ = false;
  flights_.clear();
}

/// Clears tables that grow during a run; reserves their full size if that is small.
void OrderEngine::clear_lists() {
  started_.resize(devices_.size());
  for (size_t d = 0; d < devices_.size(); ++d) {
    size_t segments = 0;
    for (int32_t p = pieces_->piece_first[d]; p < pieces_->piece_first[d + 1]; ++p) {
      const int32_t list = pieces_->pieces[p].list;
      segments += at(segment_first_[at(list) + 1] - segment_first_[list]);
    }
    started_[d].clear();
    started_[d].reserve(std::min(segments, kMostRoom));
  }
}

/// Runs everything that a device can run now.
void OrderEngine::advance(int32_t number) {
  auto& device = devices_[number];
  for (; device.piece < pieces_->piece_first[at(number) + 1]; ++device.piece) {
    const auto [list, micro] = pieces_->pieces[device.piece];
    open(micro);
    const int32_t end = segment_first_[at(list) + 1] - segment_first_[list];
    for (; device.segment < end; ++device.segment) {
      const int32_t segment_number = segment_first_[list] + device.segment;
      const auto& segment = segments_[segment_number];
      int64_t start_ns = device.free_ns;
      for (int32_t i = segment.needs_begin; i < segment.needs_end; ++i) {
        const int32_t row = needs_[i] / 2;
        const Cell& cell = cell_of(row, micro);
        const bool all = needs_[i] % 2 == 1;
        device.blocked = row;
        if (all ? all_arrived_[row] < 0 : !cell.booked()) return;
        start_ns = std::max(start_ns, all ? all_arrived_[row] : cell.time_ns);
      }
      device.blocked = -1;
      begin_segment(number, segment_number, list, micro, start_ns);
    }
    device.segment = 0;
    device.base += pieces_->list_first[at(list) + 1] - pieces_->list_first[list];
    ++pieces_done_[list];
    count_run(seeks_ ? component_of_[number] : -1, micro);
  }
  device.blocked = -1;
}

void OrderEngine::begin_segment(int32_t number, int32_t which, int32_t list, int32_t micro,
                                int64_t start_ns) {
  auto& device = devices_[number];
  const auto& segment = segments_[which];
  if (const int32_t of = seeks_ ? component_of_[number] : -1; of >= 0)
    components_[of].newest = std::max(components_[of].newest, micro);
  started_[number].push_back(
      {start_ns, device.base + segment.begin - pieces_->list_first[list], which});
  device.free_ns = start_ns + segment.length_ns;
  step_ns_ = std::max(step_ns_, start_ns + segment.busy_ns);
  const bool last = segment.once || pieces_done_[list] + 1 == micros_;
  for (int32_t i = segment.emits_begin; i < segment.emits_end; ++i) {
    const auto& emit = emits_[i];
    const int64_t end_ns = start_ns + emit.offset_ns;
    if (emit.sends)
      push(end_ns, emit.free ? kFreeSends : kTaskSends,
           emit.free ? ticket_++ : at(micro) * list_of_.size() + at(emit.op), emit.op, micro, last);
    for (int32_t f = emit.feeds_begin; f < emit.feeds_end; ++f)
      if (!feeds_[f].last || last) feed(feeds_[f], micro, end_ns);
  }
}

/// A member of a collective has received an input.
void OrderEngine::feed(const Feed& feed, int32_t micro, int64_t time_ns) {
  if (feed.last) micro = micros_ - 1;
  open(micro);
  Cell& cell = cell_of(feed.collective, micro);
  cell.time_ns = std::max(cell.time_ns, time_ns);
  if (--cell.missing == 0) push_book(feed.collective, micro, cell.time_ns);
}

void OrderEngine::push_book(int32_t collective, int32_t micro, int64_t time_ns) {
  push(time_ns, kBooks, at(micro) * groups_.size() + at(collective), collective, micro);
}

/// Checks that tasks without duration do not compete with another device for a queue.
void OrderEngine::check_turn(int32_t queue, int32_t device, bool free) {
  const int32_t by = 2 * device + free;
  if (asked_ns_[queue] == now_ns_ && asked_by_[queue] / 2 != device &&
      (free || asked_by_[queue] % 2 == 1))
    unsure_ = true;
  asked_ns_[queue] = now_ns_;
  asked_by_[queue] = by;
}

int64_t OrderEngine::book(std::span<const int32_t> queues, int64_t duration_ns) {
  int64_t start_ns = now_ns_;
  for (const int32_t queue : queues) start_ns = std::max(start_ns, free_ns_[queue]);
  for (const int32_t queue : queues)
    free_ns_[queue] = start_ns + duration_ns + problem_->rules().link_dead_ns;
  return start_ns;
}

void OrderEngine::note_booked(int32_t row, int32_t micro, int64_t end_ns) {
  cell_of(row, micro) = {end_ns, Cell::kBooked};
  if (!seeks_) return;
  flights_.push_back({end_ns, row, micro});
  count_run(component_of_row(row), micro);
}

void OrderEngine::send(int32_t op, int32_t of, bool last, bool free) {
  for (int32_t r = route_first_[op]; r < route_first_[at(op) + 1]; ++r) {
    const Route& route = routes_[r];
    if (route.last && !last) continue;
    const int32_t micro = route.last ? micros_ - 1 : of;
    open(micro);
    const auto queues = queues_of(route);
    for (const int32_t queue : queues) check_turn(queue, route.from, free);
    const int64_t start_ns = book(queues, route.wire_ns);
    const int64_t end_ns = start_ns + route.wire_ns;
    const int32_t row = collectives() + r;
    note_booked(row, micro, end_ns);
    for (int32_t f = route.feeds_begin; f < route.feeds_end; ++f) feed(feeds_[f], micro, end_ns);
    wake(route.to, row);
  }
}

void OrderEngine::book_collective(int32_t collective, int32_t micro) {
  const auto& group = groups_[collective];
  open(micro);
  const int64_t start_ns = book(queues_of(group), group.duration_ns);
  const int64_t end_ns = start_ns + group.duration_ns;
  note_booked(collective, micro, end_ns);
  ++booked_;
  step_ns_ = std::max(step_ns_, end_ns);
  arrive(collective, micro, end_ns);
  ++ticket_;
}

/// Runs of one collective end in order, so the last one booked is the last to arrive.
void OrderEngine::arrive(int32_t collective, int32_t micro, int64_t time_ns) {
  const auto& group = groups_[collective];
  const bool last = --waiting_[collective] == 0 || group.once;
  if (last) all_arrived_[collective] = time_ns;
  for (int32_t f = group.feeds_begin; f < group.feeds_end; ++f)
    if (!feeds_[f].last || last) feed(feeds_[f], micro, time_ns);
  for (int32_t i = group.sends_begin; i < group.sends_end; ++i)
    push(time_ns, kMemberSends, ticket_++, group_sends_[i], micro, last);
  for (int32_t i = group.devices_begin; i < group.devices_end; ++i)
    wake(group_devices_[i], collective);
}

}  // namespace trinity
