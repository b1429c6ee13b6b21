#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/index.h"
#include "cluster/collectives.h"
#include "graph/experts.h"
#include "simulator/metrics.h"
#include "simulator/problem.h"
#include "strategy/pieces.h"
#include "strategy/quotient.h"

namespace trinity {

/// An order in pieces, compiled for the engine of pipelines: operators in segments; transfers and collectives with
/// their durations, queues and readers. Not thread-safe; working memory is kept between orders.
class OrderProgram {
 protected:
  static constexpr size_t kMostQueues = size_t{1} << 24;

  /// Entries of a list.
  struct Range {
    int32_t begin = 0, end = 0;
  };
  template <class T>
  static std::span<const T> in(const std::vector<T>& list, Range range) {
    return std::span(list).subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.end - range.begin));
  }
  /// The entries from `begin` on.
  template <class T>
  static Range since(int32_t begin, const std::vector<T>& list) {
    return {begin, static_cast<int32_t>(list.size())};
  }
  /// Operators of a list that run back to back once the inputs of the first have arrived.
  struct Segment {
    Range operators;             // in pieces.operators
    Range needs, emits;          // incoming tensors in needs_; in emits_
    int64_t length_ns, busy_ns;  // until the device is free; until the last operator has ended
    bool once;
  };
  /// An operator of a segment that starts a transfer or provides a collective's input.
  struct Emit {
    int64_t offset_ns;  // of its end, from the segment's start
    int32_t op;
    bool sends, free;   // sends to other devices; takes no time
    Range feeds;        // feeds_of_ the operator
  };
  /// A member of a collective with an input.
  struct Feed {
    int32_t collective;
    bool last;  // accumulates: fed by the last micro-batch alone
  };
  /// An output that is sent to a device.
  struct Route {
    int32_t op, output, from, to;
    bool last;
    int64_t bytes, wire_ns;
    Range queues, feeds;
  };
  struct Group {
    int64_t duration_ns = 0;
    int32_t missing = 0;  // edges into all members
    bool once = false;
    Range queues, devices, feeds, sends;  // feeds, sends: for all members
  };

  explicit OrderProgram(const Cluster& cluster) : prices_(cluster) {}

  /// Requires problem_ to micros_. Returns false if the engine cannot run the order, or if it is faulty.
  bool compile() {
    const int64_t tasks = int64_t{problem_->operators()} * micros_;
    if (tasks > (int64_t{1} << 30) || problem_->longest_step_ns() * micros_ >= 0x1p61) return false;
    simulated_.assign(at(pieces_->devices()), {});
    if (!place_lists() || !order_lists() || !find_routes() || !find_groups()) return false;
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

  /// Positions of all pieces. Returns false unless a device runs every list once per micro-batch, and
  /// operators that run once come last.
  /// Positions of all pieces. Returns false unless a device runs every list once per micro-batch, and
  /// operators that run once come last.
  bool order_lists() {
    constexpr int32_t kNone = -1;
    base_.assign(at(pieces_->lists()) * at(micros_), kNone);
    list_rank_.assign(at(pieces_->lists()), kNone);
    turns_.clear();
    turns_of_.assign(simulated_.size(), {kNone, 0});
    positions_.clear();
    reached_.resize(at(micros_));
    for (int32_t d = 0; d < pieces_->devices(); ++d) {
      int32_t rank = 0, position = 0;
      for (const auto& piece : pieces_->of(at(d)))
        if (piece.micro_batch == micros_ - 1) list_rank_[piece.list] = rank++;
      std::fill(reached_.begin(), reached_.end(), kNone);
      bool once = false, turns = false;
      for (const auto& [list, micro] : pieces_->of(at(d))) {
        auto& base = base_[list_cell(list, micro)];
        if (base != kNone || list_device_[list] != d) return false;
        base = position;
        turns = turns || list_rank_[list] <= reached_[micro];
        reached_[micro] = list_rank_[list];
        const bool runs_once = list_once(list);
        if (runs_once ? micro != micros_ - 1 : once) return false;
        once = once || runs_once;
        for (int32_t k = 0; runs_once && k < micros_; ++k) base_[list_cell(list, k)] = position;
        position += static_cast<int32_t>(pieces_->list(at(list)).size());
      }
      positions_.push_back(position);
      if (turns) find_turns(d, rank);
    }
    return std::find(base_.begin(), base_.end(), kNone) == base_.end();
  }

  /// Requires two lists of one device. True if the first precedes the second in all micro-batches.
  bool always_before(int32_t a, int32_t b) const {
    const auto& [begin, lists] = turns_of_[static_cast<size_t>(list_device_[a])];
    const int32_t first = list_rank_[a], second = list_rank_[b];
    return begin < 0 ? first < second : turns_[static_cast<size_t>(begin + first * lists + second)];
  }
  bool accumulates(int32_t op, int32_t reader) const {
    return micros_ > 1 && problem_->once(reader) && !problem_->once(op);
  }
  int32_t collectives() const { return static_cast<int32_t>(problem_->graph().collectives().size()); }
  const Collective& collective_at(int32_t c) const {
    return problem_->graph().collectives()[static_cast<size_t>(c)];
  }
  int32_t collective_of(int32_t op) const { return problem_->collective_of(op); }
  bool member(int32_t op) const { return collective_of(op) >= 0; }
  int32_t cluster_device(int32_t device) const { return quotient_ ? quotient_->devices[device] : device; }
  int64_t cost_ns(int32_t op) const { return problem_->cost_ns(cluster_device(placement_[op]), op); }
  Range routes_of(int32_t op) const { return {route_first_[op], route_first_[static_cast<size_t>(op) + 1]}; }
  bool sends(int32_t op) const { return route_first_[op] < route_first_[static_cast<size_t>(op) + 1]; }
  bool list_once(int32_t list) const { return problem_->once(pieces_->operators[pieces_->list_first[list]]); }
  size_t list_cell(int32_t list, int32_t micro) const {
    return static_cast<size_t>(micro) * list_device_.size() + static_cast<size_t>(list);
  }
  size_t rows() const { return groups_.size() + routes_.size(); }

  const Problem* problem_ = nullptr;
  const OrderPieces* pieces_ = nullptr;
  const Quotient* quotient_ = nullptr;
  std::span<const int32_t> placement_;
  int32_t micros_ = 1;

  std::vector<int32_t> list_of_, index_of_;   // per operator; -1 for members
  std::vector<int32_t> list_device_;          // per list
  std::vector<int32_t> base_;                 // [micro][list]: position of its first operator
  std::vector<int32_t> positions_;            // per device: of all its pieces
  std::vector<int32_t> segment_first_;        // per list, and the end
  std::vector<Segment> segments_;
  std::vector<int64_t> offset_ns_;  // per operator in lists, from its segment's start
  std::vector<int32_t> needs_;      // 2 * row, + 1: of all micro-batches
  std::vector<Emit> emits_;
  std::vector<Feed> feeds_;
  std::vector<Route> routes_;
  std::vector<Range> feeds_of_;  // per operator: feeds of members on its device
  std::vector<Group> groups_;
  std::vector<int32_t> queues_, group_devices_, group_sends_;
  size_t queue_count_ = 0;  // upper limit of numbers in queues_
  std::vector<int32_t> row_place_;  // per row: where its cells are within a micro-batch
  std::vector<int64_t> row_ns_;     // per row: its duration; ~duration if it runs in the last micro-batch alone
  std::vector<DeviceMetrics> simulated_;
  int32_t transfers_ = 0;

 private:
  /// Checks that every operator except members is in one list, on the list's device.
  bool place_lists() {
    list_of_.assign(at(problem_->operators()), -1);
    index_of_.resize(list_of_.size());
    list_device_.clear();
    int32_t listed = 0;
    for (int32_t list = 0; list < pieces_->lists(); ++list) {
      const auto operators = pieces_->list(at(list));
      if (operators.empty()) return false;
      list_device_.push_back(placement_[operators[0]]);
      for (size_t i = 0; i < operators.size(); ++i, ++listed) {
        const int32_t op = operators[i];
        if (list_of_[op] >= 0 || member(op) || placement_[op] != list_device_.back() ||
            problem_->once(op) != problem_->once(operators[0]))
          return false;
        list_of_[op] = list;
        index_of_[op] = static_cast<int32_t>(i);
      }
    }
    for (int32_t op = 0; op < problem_->operators(); ++op) listed += member(op);
    return listed == problem_->operators();
  }

  /// For a device with several orders of its lists: which list precedes which in all micro-batches.
  void find_turns(int32_t device, int32_t lists) {
    turns_of_[device] = {static_cast<int32_t>(turns_.size()), lists};
    std::vector<int32_t> list(at(lists));
    for (int32_t i = 0; i < pieces_->lists(); ++i)
      if (list_device_[i] == device && list_rank_[i] >= 0) list[at(list_rank_[i])] = i;
    for (const int32_t a : list)
      for (const int32_t b : list) {
        bool always = a != b;
        for (int32_t k = 0; k < micros_ && always; ++k)
          always = base_[list_cell(a, k)] < base_[list_cell(b, k)];
        turns_.push_back(always);
      }
  }

  bool find_groups() {
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

  bool price(int32_t collective) {
    const auto& about = collective_at(collective);
    auto& group = groups_[collective];
    ring_.clear();
    for (const int32_t op : about.members) {
      ring_.push_back(placement_[op]);
      group.missing += problem_->missing(op);
    }
    group.once = problem_->once(about.members[0]);
    std::sort(ring_.begin(), ring_.end());
    ring_.erase(std::unique(ring_.begin(), ring_.end()), ring_.end());
    const auto& found = group_of(collective);
    if (found.size() < 2 || !found.applies(about.kind, about.algorithm)) return false;
    const auto cost =
        found.cost(about.kind, about.algorithm, about.bytes, routing_of(problem_->graph(), about));
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
    const auto device = static_cast<int32_t>(group_devices_.size()), queue = static_cast<int32_t>(queues_.size());
    group_devices_.insert(group_devices_.end(), ring_.begin(), ring_.end());
    const auto model = problem_->rules().queue;
    if (quotient_ && (model == QueueModel::pair || model == QueueModel::route)) {
      const auto& list = quotient_->group_queues[quotient_->group[collective]];
      queues_.insert(queues_.end(), list.begin(), list.end());
    } else {
      for (size_t i = 0; i < ring_.size(); ++i)
        add_queues(ring_[i],
                   model == QueueModel::sender ? ring_[i] : ring_[(i + 1) % ring_.size()]);
    }
    group.devices = since(device, group_devices_);
    group.queues = since(queue, queues_);
    join_members(collective);
    return true;
  }

  /// For the devices in ring_, or the representatives' group: thousands of collectives share few
  /// groups.
  const CollectiveGroup& group_of(int32_t collective) {
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

  /// Finds transfers to other devices, and local and remote collective members that read them.
  /// Returns false if one copy would serve readers that accumulate and others.
  bool find_routes() {
    routes_.clear();
    transfers_ = 0;
    route_first_.clear();
    feeds_.clear();
    queues_.clear();
    feeds_of_.clear();
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
        const auto begin = static_cast<int32_t>(queues_.size());
        add_queues(from, to);
        routes_.push_back({op, reader.output, from, to, last, bytes,
                           problem_->wire_ns(cluster_device(from), cluster_device(to), bytes),
                           since(begin, queues_), {}});
        count(routes_.back());
      }
      for (size_t r = first; r < routes_.size(); ++r)
        routes_[r].feeds = add_feeds(op, routes_[r].to, routes_[r].output);
      feeds_of_.push_back(add_feeds(op, from, -1));
    }
    route_first_.push_back(static_cast<int32_t>(routes_.size()));
    return true;
  }

  /// Cells of the rows that a device waits for are neighbours: it reads them one after the other.
  void place_rows() {
    auto& first = needed_by_;  // per device, and the end: its first place; find_needs() uses it later
    first.assign(positions_.size() + 1, 0);
    const auto device_of = [&](size_t row) {
      return row < groups_.size() ? group_devices_[groups_[row].devices.begin] : routes_[row - groups_.size()].to;
    };
    for (size_t row = 0; row < rows(); ++row) ++first[at(device_of(row)) + 1];
    for (size_t d = 1; d < first.size(); ++d) first[d] += first[d - 1];
    row_place_.resize(rows());
    for (size_t row = 0; row < rows(); ++row) row_place_[row] = first[at(device_of(row))]++;
    row_ns_.clear();
    for (const auto& group : groups_) row_ns_.push_back(group.once ? ~group.duration_ns : group.duration_ns);
    for (const auto& route : routes_)
      row_ns_.push_back(route.last || problem_->once(route.op) ? ~route.wire_ns : route.wire_ns);
  }

  /// Adds a route's transfers to the devices' counters.
  void count(const Route& route) {
    const int32_t times = route.last || problem_->once(route.op) ? 1 : micros_;
    simulated_[route.from].send_busy_ns += times * route.wire_ns;
    simulated_[route.from].bytes_sent += times * route.bytes;
    simulated_[route.to].bytes_received += times * route.bytes;
    transfers_ += times * (quotient_ ? quotient_->copies[route.from] : 1);
  }

  /// Collects everything that follows the end of a collective, over all its members.
  void join_members(int32_t collective) {
    auto& group = groups_[collective];
    const auto feed = static_cast<int32_t>(feeds_.size()), send = static_cast<int32_t>(group_sends_.size());
    for (const int32_t op : collective_at(collective).members) {
      for (int32_t f = feeds_of_[op].begin; f < feeds_of_[op].end; ++f) feeds_.push_back(Feed(feeds_[f]));
      if (sends(op)) group_sends_.push_back(op);
    }
    group.feeds = since(feed, feeds_);
    group.sends = since(send, group_sends_);
  }

  /// Members on a device that read an output (-1: any).
  Range add_feeds(int32_t op, int32_t device, int32_t output) {
    const auto begin = static_cast<int32_t>(feeds_.size());
    for (const auto& reader : problem_->readers(op))
      if (member(reader.op) && placement_[reader.op] == device &&
          (output < 0 || reader.output == output))
        feeds_.push_back({collective_of(reader.op), accumulates(op, reader.op)});
    return since(begin, feeds_);
  }

  /// A new segment begins at each operator that is the first of its list to read an incoming tensor.
  bool find_segments(int32_t list) {
    const auto& rules = problem_->rules();
    int64_t offset_ns = 0;
    for (int32_t i = pieces_->list_first[list]; i < pieces_->list_first[at(list) + 1]; ++i) {
      const int32_t op = pieces_->operators[i];
      const auto need = static_cast<int32_t>(needs_.size()), emit = static_cast<int32_t>(emits_.size());
      if (!find_needs(op)) return false;
      const Range needs = since(need, needs_);
      if (needs.begin < needs.end || i == pieces_->list_first[list]) {
        segments_.push_back({{i, i}, needs, {emit, emit}, 0, 0, problem_->once(op)});
        offset_ns = 0;
      }
      const int64_t cost = cost_ns(op);
      offset_ns_[i] = offset_ns;
      simulated_[list_device_[list]].compute_busy_ns += cost * (problem_->once(op) ? 1 : micros_);
      offset_ns += cost;
      if (sends(op) || feeds_of_[op].begin < feeds_of_[op].end)
        emits_.push_back({offset_ns, op, sends(op), cost == 0, feeds_of_[op]});
      auto& segment = segments_.back();
      segment.busy_ns = offset_ns;
      if (cost > 0 || rules.dead_after_free) offset_ns += rules.device_dead_ns;
      segment.length_ns = offset_ns;
      segment.operators.end = i + 1;
      segment.emits.end = static_cast<int32_t>(emits_.size());
    }
    return true;
  }

  /// Adds to needs_ the incoming tensors that an operator is the first of its list to read. Returns
  /// false if its device computes one of them later.
  bool find_needs(int32_t op) {
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

  /// Writes the queues of a transfer to queues_.
  void add_queues(int32_t from, int32_t to) {
    const auto model = problem_->rules().queue;
    const auto add = [this](std::span<const int32_t> list) {
      queues_.insert(queues_.end(), list.begin(), list.end());
    };
    if (model == QueueModel::sender)
      queues_.push_back(from);
    else if (quotient_ && (model == QueueModel::pair || model == QueueModel::route))
      add(quotient_->path(from, to));
    else if (model == QueueModel::pair)
      queues_.push_back(from * pieces_->devices() + to);
    else if (model == QueueModel::route)
      for (const int32_t channel : problem_->cluster().route(from, to)) queues_.push_back(channel);
  }

  CollectiveGroups prices_;
  std::vector<std::optional<CollectiveGroup>> quotient_groups_;  // by Quotient::price, on demand
  std::vector<int32_t> list_rank_;                               // per list: sequence in the last micro-batch
  std::vector<std::pair<int32_t, int32_t>> turns_of_;  // per device: start in turns_ (or -1), and its lists
  std::vector<bool> turns_;           // [list_rank_][list_rank_]: first always precedes second
  std::vector<int32_t> reached_;      // per micro-batch, while lists are ordered
  std::vector<int32_t> needed_by_;    // per need: the last list that has it
  std::vector<int32_t> route_first_;  // per operator, and the end
  std::vector<int32_t> ring_;
};

}  // namespace trinity
