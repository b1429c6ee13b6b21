#include "search/construct/learned_list.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <unordered_map>

#include "base/error.h"
#include "base/index.h"
#include "base/stop.h"

namespace trinity {
namespace {

/// Places in kListTerms.
enum Term : size_t {
  kQueue,
  kArrival,
  kStart,
  kTime,
  kUnitTime,
  kWires,
  kLoad,
  kOverload,
  kApart,
  kSiblings,
  kSends,
  kUnused,
  kLeavesUnit,
  kLeavesMean,
  kReceives,
  kTermCount
};
static_assert(kTermCount == kListTerms.size());

double log_ratio(double a, double b) {
  return std::clamp(std::log((a + 1) / (b + 1)) / 3, -1.0, 1.0);
}

void sort_unique(std::vector<int32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

LearnedList::LearnedList(const Problem& problem)
    : space_(problem), graph_(make_task_graph(problem)), awaited_(graph_.awaited_inputs()) {
  bind_units();
  bind_memory();
  bind_graph();
}

void LearnedList::bind_units() {
  const auto& problem = space_.problem();
  const size_t units = at(space_.units());
  unit_time_.assign(units, 0);
  unit_bytes_.assign(units, 0);
  readers_.resize(units);
  producers_.resize(units);
  for (int32_t o = 0; o < graph_.tasks; ++o) {
    const int32_t unit = graph_.group[o];
    const bool forward = problem.graph().op(o).phase == Phase::forward;
    unit_time_[unit] += graph_.mean_cost(o);
    unit_bytes_[unit] += problem.fixed_bytes(o);
    if (!forward || graph_.follows[o]) continue;
    for (const auto& edge : graph_.readers(o)) {
      const int32_t reader = graph_.group[edge.to];
      if (reader == unit || problem.graph().op(edge.to).phase != Phase::forward) continue;
      readers_[unit].push_back(reader);
      producers_[reader].push_back(unit);
    }
  }
  for (auto& list : readers_) sort_unique(list);
  for (auto& list : producers_) sort_unique(list);
}

/// An output that a gradient reads, itself or through a view, is kept; any other one passes.
void LearnedList::bind_memory() {
  const auto& problem = space_.problem();
  const auto forward = [&](int32_t o) { return problem.graph().op(o).phase == Phase::forward; };
  kept_.assign(at(problem.outputs()), false);
  for (int32_t o = graph_.tasks - 1; o >= 0; --o) {
    for (const auto& reader : problem.readers(o))
      if (forward(o) && !forward(reader.op))
        kept_[at(problem.first_output(o) + reader.output)] = true;
    if (const int32_t viewed = problem.alias(o); viewed >= 0)
      kept_[at(viewed)] = kept_[at(viewed)] || kept_[at(problem.first_output(o))];
  }
  passing_bytes_.assign(at(space_.units()), 0);
  for (int32_t o = 0; o < graph_.tasks; ++o) {
    int64_t sum = problem.workspace_bytes(o);
    for (int32_t i = problem.first_output(o); i < problem.first_output(o + 1); ++i)
      if (problem.alias(o) < 0)
        (kept_[at(i)] ? unit_bytes_[graph_.group[o]] : sum) += problem.held_bytes()[i];
    for (const int32_t e : graph_.inputs(o))
      if (!kept_[at(graph_.edges[e].tensor)]) sum += graph_.edges[e].bytes;
    auto& most = passing_bytes_[graph_.group[o]];
    most = std::max(most, sum);
  }
}

void LearnedList::bind_graph() {
  const auto up = static_levels(graph_);
  std::vector<double> before(at(graph_.tasks), 0);
  double longest = 1, wires = 0;
  for (int32_t o = 0; o < graph_.tasks; ++o)
    for (const auto& edge : graph_.readers(o))
      before[edge.to] = std::max(before[edge.to], before[o] + graph_.mean_cost(o));
  for (int32_t o = 0; o < graph_.tasks; ++o) longest = std::max(longest, before[o] + up[o]);
  for (int32_t o = 0; o < graph_.tasks; ++o) slack_.push_back(1 - (before[o] + up[o]) / longest);
  for (const double time : unit_time_) work_ += time;
  for (int32_t u = 0; u < space_.units(); ++u) {
    double wire = 0;
    for (const auto& n : space_.neighbours(u)) wire += graph_.mean_wire(n.bytes);
    wires += wire / 2;
    wire_share_.push_back(log_ratio(wire, unit_time_[u]));
  }
  double rate = 0;
  for (int32_t d = 0; d < space_.devices(); ++d) {
    double time = 1;
    for (int32_t u = 0; u < space_.units(); ++u) time += static_cast<double>(space_.cost_ns(u, d));
    rate += 1 / time;
  }
  share_ = 1 / rate;
  graph_wires_ = log_ratio(wires, work_);
  parallelism_ = std::clamp(std::log(std::max(work_, 1.0) / longest) / 3, -1.0, 1.0);
}

/// One schedule under construction.
class LearnedListRun {
 public:
  LearnedListRun(const LearnedList& list, std::span<const double> weights)
      : list_(list),
        graph_(list.graph_),
        problem_(list.space_.problem()),
        weights_(weights),
        devices_(at(graph_.processors)),
        assignment_(at(list.space_.units()), -1),
        missing_(list.awaited_),
        ready_(at(graph_.tasks), 0),
        end_(at(graph_.tasks), -1) {}

  LearnedList::Result run() {
    for (int32_t o = 0; o < graph_.tasks; ++o)
      if (graph_.follows[o])
        end_[o] = 0;
      else if (missing_[o] == 0)
        queue_.push({0, o});
    for (int64_t steps = 0; !queue_.empty(); ++steps) {
      const auto [time, op] = queue_.top();
      queue_.pop();
      take(time, op);
      if (steps % 1024 == 0) poll_stop();
    }
    for (auto& device : assignment_) device = std::max(device, 0);  // units that are never run
    return {std::move(assignment_), makespan_, fits_};
  }

 private:
  struct Device {
    int64_t free = 0, sent = 0, sent_first = 0;  // sent_first: what is there from the start
    int64_t bytes = 0, passing_bytes = 0;
    double load = 0;  // time of its units
    int32_t units = 0;
  };
  using Entry = std::pair<int64_t, int32_t>;
  using Terms = std::array<double, kListTerms.size()>;

  int32_t unit_of(int32_t op) const { return graph_.group[op]; }

  void take(int64_t time, int32_t op) {
    const int32_t unit = unit_of(op);
    if (assignment_[unit] < 0) settle(unit, choose(op, unit, time));
    if (ready_[op] > time) {
      queue_.push({ready_[op], op});
      return;
    }
    const int32_t d = assignment_[unit];
    end_[op] = std::max(time, devices_[d].free) + graph_.cost_of(op, d);
    devices_[d].free = end_[op];
    makespan_ = std::max(makespan_, end_[op]);
    for (const auto& edge : graph_.readers(op)) {
      ready_[edge.to] = std::max(ready_[edge.to], arrival(edge, true));
      if (--missing_[edge.to] == 0) queue_.push({ready_[edge.to], edge.to});
    }
  }

  /// When a tensor is on its reader's device, or made, where that is open.
  int64_t arrival(const TaskGraph::Edge& edge, bool book) {
    const int32_t to = assignment_[unit_of(edge.to)];
    return to < 0 ? end_[edge.from] : arrival_on(edge, to, book);
  }

  int64_t arrival_on(const TaskGraph::Edge& edge, int32_t to, bool book) {
    const int32_t from = assignment_[unit_of(edge.from)];
    if (from < 0 || from == to) return end_[edge.from];
    const int64_t key = int64_t{edge.tensor} * graph_.processors + to;
    if (const auto copy = copies_.find(key); copy != copies_.end()) return copy->second;
    auto& sender = devices_[from];
    const bool first = graph_.follows[edge.from];
    const int64_t begin = first ? sender.sent_first : std::max(end_[edge.from], sender.sent);
    const int64_t end = begin + graph_.wire(from, to, edge.bytes);
    if (!book) return end;
    if (first) sender.sent_first = end;
    sender.sent = std::max(sender.sent, end);
    copies_[key] = end;
    if (list_.kept_[at(edge.tensor)]) devices_[to].bytes += edge.bytes;
    return end;
  }

  /// Places a unit, what follows and its operators read, and sends what they read and is made.
  void settle(int32_t unit, int32_t device) {
    enter(unit, device);
    for (const int32_t op : problem_.graph().unit(unit))
      for (const int32_t e : graph_.inputs(op)) {
        const auto& edge = graph_.edges[e];
        if (graph_.follows[edge.from] && assignment_[unit_of(edge.from)] < 0)
          enter(unit_of(edge.from), device);
        if (end_[edge.from] >= 0 && !graph_.follows[op])
          ready_[op] = std::max(ready_[op], arrival_on(edge, device, true));
      }
  }

  void enter(int32_t unit, int32_t device) {
    assignment_[unit] = device;
    devices_[device].bytes += list_.unit_bytes_[unit];
    devices_[device].passing_bytes =
        std::max(devices_[device].passing_bytes, list_.passing_bytes_[unit]);
    devices_[device].load += static_cast<double>(list_.space_.cost_ns(unit, device));
    ++devices_[device].units;
    placed_work_ += list_.unit_time_[unit];
  }

  int32_t choose(int32_t op, int32_t unit, int64_t time) {
    std::vector<Terms> terms(devices_.size(), Terms{});
    shared_terms(op, unit, terms);
    std::array<double, kListTerms.size()> factors{};
    const auto circumstances = circumstances_of(op, unit);
    for (size_t k = 0; k < factors.size(); ++k)
      for (size_t j = 0; j < circumstances.size(); ++j)
        factors[k] += weights_[k * circumstances.size() + j] * circumstances[j];
    int32_t best = -1;
    double best_cost = 0;
    for (int32_t d = 0; d < graph_.processors; ++d) {
      own_terms(op, unit, time, d, terms[d]);
      double cost = 0;
      for (size_t k = 0; k < factors.size(); ++k) cost += factors[k] * terms[d][k];
      if (!fits(unit, d)) continue;
      if (best < 0 || cost < best_cost) std::tie(best, best_cost) = std::pair(d, cost);
    }
    if (best >= 0) return best;
    fits_ = false;
    return emptiest();
  }

  int64_t room(int32_t d) const { return problem_.cluster().room_bytes(d) - devices_[d].bytes; }
  bool fits(int32_t unit, int32_t d) const {
    const int64_t passing = std::max(devices_[d].passing_bytes, list_.passing_bytes_[unit]);
    return problem_.rules().memory == MemoryModel::none ||
           list_.unit_bytes_[unit] + passing <= room(d);
  }
  int32_t emptiest() const {
    int32_t best = 0;
    for (int32_t d = 1; d < graph_.processors; ++d)
      if (room(d) > room(best)) best = d;
    return best;
  }

  std::array<double, kListCircumstances.size()> circumstances_of(int32_t op, int32_t unit) const {
    return {1,
            list_.slack_[op],
            placed_work_ / std::max(list_.work_, 1.0),
            list_.parallelism_,
            std::log(static_cast<double>(graph_.processors)) / 3,
            list_.wire_share_[unit],
            list_.graph_wires_};
  }

  /// Those that one look at neighbours gives for all devices.
  void shared_terms(int32_t op, int32_t unit, std::vector<Terms>& terms) {
    add_wires(unit, terms);
    add_producers(unit, terms);
    for (const int32_t e : graph_.inputs(op)) {
      const auto& edge = graph_.edges[e];
      const int32_t from = assignment_[unit_of(edge.from)];
      for (int32_t d = 0; from >= 0 && d < graph_.processors; ++d)
        if (d != from && !copies_.contains(int64_t{edge.tensor} * graph_.processors + d))
          terms[d][kReceives] += static_cast<double>(graph_.wire(from, d, edge.bytes));
    }
  }

  void add_wires(int32_t unit, std::vector<Terms>& terms) const {
    for (const auto& n : list_.space_.neighbours(unit)) {
      const int32_t there = assignment_[n.unit];
      for (int32_t d = 0; there >= 0 && d < graph_.processors; ++d)
        if (d != there) terms[d][kWires] += static_cast<double>(graph_.wire(there, d, n.bytes));
    }
    for (const int32_t reader : list_.readers_[unit]) {
      if (assignment_[reader] >= 0) continue;
      for (const int32_t other : list_.producers_[reader]) {
        const int32_t there = assignment_[other];
        for (int32_t d = 0; there >= 0 && d < graph_.processors; ++d)
          if (d != there) terms[d][kApart] += joint_wire(unit, other, reader);
      }
    }
  }

  void add_producers(int32_t unit, std::vector<Terms>& terms) const {
    int32_t main = -1;
    int64_t most = -1;
    for (const int32_t producer : list_.producers_[unit]) {
      for (const int32_t sibling : list_.readers_[producer])
        if (const int32_t there = assignment_[sibling]; there >= 0)
          terms[there][kSiblings] += list_.unit_time_[sibling];
      if (const int64_t bytes = between(producer, unit); bytes > most)
        std::tie(most, main) = std::pair(bytes, assignment_[producer]);
    }
    for (int32_t d = 0; main >= 0 && d < graph_.processors; ++d) {
      if (d == main) continue;
      terms[d][kLeavesUnit] = list_.unit_time_[unit];
      terms[d][kLeavesMean] = list_.work_ / static_cast<double>(list_.space_.units());
    }
  }

  int64_t between(int32_t a, int32_t b) const {
    const auto row = list_.space_.neighbours(a);
    const auto found = std::lower_bound(row.begin(), row.end(), b,
                                        [](const auto& n, int32_t unit) { return n.unit < unit; });
    return found != row.end() && found->unit == b ? found->bytes : 0;
  }

  double joint_wire(int32_t a, int32_t b, int32_t reader) const {
    return graph_.mean_wire(std::min(between(a, reader), between(b, reader)));
  }

  void own_terms(int32_t op, int32_t unit, int64_t time, int32_t d, Terms& to) {
    const auto& device = devices_[d];
    int64_t there = time;
    for (const int32_t e : graph_.inputs(op))
      if (end_[graph_.edges[e].from] >= 0)
        there = std::max(there, arrival_on(graph_.edges[e], d, false));
    double least = device.load;
    for (const auto& other : devices_) least = std::min(least, other.load);
    const double share = list_.share_;
    const double unit_time = static_cast<double>(list_.space_.cost_ns(unit, d));
    to[kQueue] = static_cast<double>(std::max<int64_t>(0, device.free - time));
    to[kArrival] = static_cast<double>(there - time);
    to[kStart] = std::max(to[kQueue], to[kArrival]);
    to[kTime] = static_cast<double>(graph_.cost_of(op, d));
    to[kUnitTime] = unit_time;
    to[kLoad] = device.load - least;
    to[kOverload] = std::max(0.0, device.load + unit_time - share);
    to[kSends] = static_cast<double>(std::max<int64_t>(0, device.sent - time));
    to[kUnused] = device.units == 0 ? share / 20 : 0;
  }

  const LearnedList& list_;
  const TaskGraph& graph_;
  const Problem& problem_;
  std::span<const double> weights_;
  std::vector<Device> devices_;
  Assignment assignment_;
  std::vector<int32_t> missing_;
  std::vector<int64_t> ready_, end_;
  std::unordered_map<int64_t, int64_t> copies_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  double placed_work_ = 0;
  int64_t makespan_ = 0;
  bool fits_ = true;
};

LearnedList::Result LearnedList::build(std::span<const double> weights) const {
  if (weights.size() != at(kListWeightCount))
    throw ArgumentError(
        fmt::format("learned list: expected {} weights, got {}", kListWeightCount, weights.size()));
  return LearnedListRun(*this, weights).run();
}

LearnedList::Result LearnedList::alone() const {
  Result best;
  int64_t bytes = 0, passing = 0;
  for (const int64_t unit : unit_bytes_) bytes += unit;
  for (const int64_t unit : passing_bytes_) passing = std::max(passing, unit);
  const bool counts = space_.problem().rules().memory != MemoryModel::none;
  for (int32_t d = 0; d < space_.devices(); ++d) {
    Result made{Assignment(at(space_.units()), d)};
    for (int32_t u = 0; u < space_.units(); ++u) made.makespan += space_.cost_ns(u, d);
    made.fits = !counts || bytes + passing <= space_.problem().cluster().room_bytes(d);
    if (d == 0 || made.better(best)) best = std::move(made);
  }
  return best;
}

LearnedList::Result LearnedList::best(std::span<const std::vector<double>> members) const {
  auto best = alone();
  for (const auto& weights : members)
    if (auto made = build(weights); made.better(best)) best = std::move(made);
  return best;
}

}  // namespace trinity
