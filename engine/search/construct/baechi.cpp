#include "search/construct/baechi.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "base/index.h"
#include "base/stop.h"
#include "search/construct/favourite_child.h"
#include "search/partition/row_cut.h"

namespace trinity {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// Bytes of operators and units under a problem's rules.
struct Bytes {
  std::vector<int64_t> outputs, workspace;  // per operator
  std::vector<int64_t> fixed;               // per unit
  std::vector<int64_t> capacity;            // per device

  explicit Bytes(const Problem& problem) : fixed(at(problem.graph().unit_count()), 0) {
    const auto model = problem.rules().memory;
    for (int32_t o = 0; o < problem.operators(); ++o) {
      int64_t sum = 0;
      for (int32_t i = problem.first_output(o); i < problem.first_output(o + 1); ++i)
        sum += problem.held_bytes()[i];
      outputs.push_back(model == MemoryModel::none ? 0 : sum);
      workspace.push_back(model == MemoryModel::slots ? problem.workspace_bytes(o) : 0);
      if (model == MemoryModel::slots) fixed[problem.graph().units()[o]] += problem.fixed_bytes(o);
    }
    for (int32_t d = 0; d < problem.devices(); ++d)
      capacity.push_back(problem.cluster().room_bytes(d));
  }
  /// What running an operator takes.
  int64_t needed(int32_t op) const { return outputs[op] + workspace[op]; }
};

/// What is taken on every device.
class Ledger {
 public:
  explicit Ledger(const Bytes& bytes)
      : bytes_(bytes), used_(bytes.capacity.size(), 0), peak_(used_) {}

  int64_t free(int32_t device) const { return bytes_.capacity[device] - used_[device]; }
  const std::vector<int64_t>& peak() const { return peak_; }

  void enter(int32_t unit, int32_t device) { take(device, bytes_.fixed[unit]); }
  void run(int32_t op, int32_t device) {
    take(device, bytes_.needed(op));
    used_[device] -= bytes_.workspace[op];
  }
  void drop_outputs(int32_t op, int32_t device) { used_[device] -= bytes_.outputs[op]; }

 private:
  void take(int32_t device, int64_t bytes) {
    used_[device] += bytes;
    peak_[device] = std::max(peak_[device], used_[device]);
  }

  const Bytes& bytes_;
  std::vector<int64_t> used_, peak_;
};

/// The channels of devices, and which tensors are where.
class Channels {
 public:
  explicit Channels(const TaskGraph& graph) : graph_(graph), free_(at(graph.processors), 0) {}

  /// When all that `op` reads could be on `device`; with `book` the transfers are booked.
  int64_t arrival(const ListSchedule& list, int32_t op, int32_t device, bool book) {
    int64_t latest = 0, wires = 0;  // of the tensors from one operator that are still to be sent
    const auto inputs = graph_.inputs(op);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto& edge = graph_.edges[inputs[i]];
      const int32_t from = list.processor[edge.from];
      if (from < 0) continue;  // follows, and will go with its reader
      latest = std::max(latest, list.end[edge.from]);
      if (from == device) continue;
      if (i == 0 || graph_.edges[inputs[i - 1]].from != edge.from) wires = 0;
      const int64_t key = int64_t{edge.tensor} * graph_.processors + device;
      if (const auto copy = copies_.find(key); copy != copies_.end()) {
        latest = std::max(latest, copy->second);
        continue;
      }
      const int64_t wire = graph_.wire(from, device, edge.bytes);
      wires += wire;
      const int64_t send = std::max(list.end[edge.from], free_[from]);
      const int64_t receive = std::max(send, free_[device]);
      latest = std::max(latest, receive + (book ? wire : wires));
      if (!book) continue;
      free_[from] = send + wire;
      free_[device] = receive + wire;
      copies_[key] = receive + wire;
    }
    return latest;
  }

 private:
  const TaskGraph& graph_;
  std::vector<int64_t> free_;
  std::unordered_map<int64_t, int64_t> copies_;
};

/// m-ETF, and m-SCT when there are favourite children.
class Scheduler {
 public:
  Scheduler(const Problem& problem, const TaskGraph& graph, double headroom,
            const FavouriteChildren* favourites)
      : problem_(problem),
        graph_(graph),
        favourites_(favourites),
        bytes_(problem),
        ledger_(bytes_),
        channels_(graph),
        missing_(graph.awaited_inputs()),
        unit_device_(bytes_.fixed.size(), -1),
        free_at_(at(graph.processors), 0),
        running_(at(graph.processors), -1),
        last_(at(graph.processors), -1) {
    list_.processor.assign(at(graph.tasks), -1);
    list_.start.assign(at(graph.tasks), 0);
    list_.end.assign(at(graph.tasks), 0);
    for (const int64_t bytes : bytes_.capacity)
      headroom_.push_back(static_cast<int64_t>(headroom * static_cast<double>(bytes)));
    for (int32_t o = 0; o < graph.tasks; ++o) {
      const auto readers = graph.readers(o);
      readers_left_.push_back(static_cast<int32_t>(readers.size()));
      if (missing_[o] == 0 && !graph.follows[o]) ready_.insert(o);
    }
    bound_needs();
  }

  BaechiResult run() {
    while (true) {
      finish();
      while (const auto choice = best_choice()) schedule(choice->op, choice->device);
      const int64_t next = next_instant();
      if (next == kNever) break;
      now_ = next;
    }
    if (ready_.empty()) place_unread();
    return result();
  }

 private:
  struct Choice {
    int64_t start;
    int32_t op, device;
  };

  int32_t unit_of(int32_t op) const { return problem_.graph().units()[op]; }

  /// What running `op` takes, with its unit where that is still open.
  int64_t need_of(int32_t op) const {
    const int32_t unit = unit_of(op);
    return bytes_.needed(op) + (unit_device_[unit] >= 0 ? 0 : bytes_.fixed[unit]);
  }

  /// An operator with its unit, and all that follows with its units.
  void bound_needs() {
    int64_t largest = 0;
    std::set<int32_t> entering;
    for (int32_t o = 0; o < graph_.tasks; ++o) {
      const int64_t unit_bytes = bytes_.fixed[unit_of(o)];
      if (!graph_.follows[o]) {
        largest = std::max(largest, bytes_.needed(o) + unit_bytes);
        continue;
      }
      most_need_ += bytes_.needed(o);
      if (entering.insert(unit_of(o)).second) most_need_ += unit_bytes;
    }
    most_need_ += largest;
  }

  /// Whether `op` may and can run on a device: its unit is there or open, and all that it would
  /// take, with what follows and it reads, is free.
  bool placeable(int32_t op, int32_t device) const {
    const int32_t unit = unit_of(op), home = unit_device_[unit];
    if (home >= 0 && home != device) return false;
    const int64_t need = need_of(op), kept = home >= 0 ? 0 : headroom_[device];
    const auto followers = missing_followers(graph_, list_.processor, op);
    if (followers.empty()) return need + kept <= ledger_.free(device);
    std::map<int32_t, int64_t> needs{{device, need + kept}};
    std::set<int32_t> entering{unit};
    for (const int32_t follower : followers) {
      const int32_t other = unit_of(follower), other_home = unit_device_[other];
      auto& taken = needs[other_home >= 0 ? other_home : device];
      taken += bytes_.needed(follower);
      if (other_home < 0 && entering.insert(other).second) taken += bytes_.fixed[other];
    }
    return std::all_of(needs.begin(), needs.end(),
                       [&](const auto& n) { return n.second <= ledger_.free(n.first); });
  }

  /// When `op` could start on a device, kNever when it cannot.
  int64_t start_on(int32_t op, int32_t device) {
    if (!placeable(op, device)) return kNever;
    return std::max({channels_.arrival(list_, op, device, false), free_at_[device], now_});
  }

  /// The latest of these over the devices that `op` can run on: from then on it is urgent.
  int64_t urgent_at(int32_t op) {
    int64_t latest = kNever;
    for (int32_t d = 0; d < graph_.processors; ++d)
      if (const int64_t start = start_on(op, d); start != kNever)
        latest = latest == kNever ? start : std::max(latest, start);
    return latest;
  }

  /// The favourite child that a device is awake for, or -1.
  int32_t awaited(int32_t device) {
    if (!favourites_ || last_[device] < 0) return -1;
    const int32_t child = favourites_->child[last_[device]];
    if (child < 0 || !ready_.count(child) || unit_device_[unit_of(child)] >= 0) return -1;
    const int64_t here = start_on(child, device);
    if (here == kNever) return -1;
    for (int32_t d = 0; d < graph_.processors; ++d)
      if (d != device && start_on(child, d) < here) return -1;
    return child;
  }

  /// Whether no operator of an open unit is urgent now: all could start on a device that is busy.
  /// Spares looking at each, of which there may be many.
  bool no_open_urgent() const {
    for (int32_t d = 0; d < graph_.processors; ++d)
      if (free_at_[d] > now_ && ledger_.free(d) - headroom_[d] >= most_need_) return true;
    return false;
  }

  /// What a free device starts now, or -1.
  int32_t choose(int32_t device) {
    const int32_t child = awaited(device);
    for (const int32_t op : child >= 0 && no_open_urgent() ? pinned_ready_ : ready_) {
      if (start_on(op, device) > now_) continue;
      if (child < 0 || urgent_at(op) <= now_) return op;
    }
    return child >= 0 && start_on(child, device) <= now_ ? child : -1;
  }

  std::optional<Choice> best_choice() {
    std::optional<Choice> best;
    for (int32_t d = 0; d < graph_.processors; ++d) {
      if (free_at_[d] > now_) continue;
      const int32_t op = choose(d);
      if (op >= 0 && (!best || op < best->op)) best = Choice{now_, op, d};
    }
    return best;
  }

  /// The next instant at which a device ends or something could start; kNever when there is none.
  int64_t next_instant() {
    int64_t next = kNever;
    for (int32_t d = 0; d < graph_.processors; ++d) {
      if (free_at_[d] > now_) {
        next = std::min(next, free_at_[d]);
        continue;
      }
      const int32_t child = awaited(d);
      if (child >= 0) next = std::min(next, start_on(child, d));
      for (const int32_t op : child >= 0 && no_open_urgent() ? pinned_ready_ : ready_)
        if (const int64_t start = start_on(op, d); start > now_) next = std::min(next, start);
    }
    return next;
  }

  void enter(int32_t op, int32_t device) {
    auto& home = unit_device_[unit_of(op)];
    if (home >= 0) return;
    home = device;
    ledger_.enter(unit_of(op), device);
    for (const int32_t other : problem_.graph().unit(unit_of(op)))
      if (ready_.count(other)) pinned_ready_.insert(other);
  }

  void make_ready(int32_t op) {
    ready_.insert(op);
    if (unit_device_[unit_of(op)] >= 0) pinned_ready_.insert(op);
  }

  void schedule(int32_t op, int32_t device) {
    for (const int32_t follower : missing_followers(graph_, list_.processor, op)) {
      const int32_t home = unit_device_[unit_of(follower)];
      start(follower, home >= 0 ? home : device);
    }
    start(op, device);
    ready_.erase(op);
    pinned_ready_.erase(op);
    last_[device] = op;
    free_at_[device] = list_.end[op];
    running_[device] = op;
    if (list_.end[op] <= now_) finish();
    if (list_.sequence.size() % 256 == 0) poll_stop();
  }

  /// Books transfers and memory and notes the times.
  void start(int32_t op, int32_t device) {
    enter(op, device);
    const bool follower = graph_.follows[op];
    const int64_t arrival = channels_.arrival(list_, op, device, true);
    list_.start[op] = follower ? arrival : std::max(now_, arrival);
    list_.end[op] = list_.start[op] + graph_.cost_of(op, device);
    list_.processor[op] = device;
    list_.makespan = std::max(list_.makespan, list_.end[op]);
    list_.sequence.push_back(op);
    ledger_.run(op, device);
    if (readers_left_[op] == 0) ledger_.drop_outputs(op, device);
    for (const int32_t e : graph_.inputs(op)) {
      const int32_t from = graph_.edges[e].from;
      if (--readers_left_[from] == 0) ledger_.drop_outputs(from, list_.processor[from]);
    }
  }

  /// Operators that have ended by now make their readers ready.
  void finish() {
    for (auto& op : running_) {
      if (op < 0 || list_.end[op] > now_) continue;
      for (const auto& edge : graph_.readers(op))
        if (--missing_[edge.to] == 0) make_ready(edge.to);
      op = -1;
    }
  }

  /// What follows but is read by nobody that does not.
  void place_unread() {
    for (int32_t o = 0; o < graph_.tasks; ++o) {
      if (list_.processor[o] >= 0) continue;
      const int32_t home = unit_device_[unit_of(o)];
      int32_t device = home;
      for (int32_t d = 0; d < graph_.processors && device < 0; ++d)
        if (placeable(o, d)) device = d;
      if (device < 0 || !placeable(o, device)) {
        ready_.insert(o);
        return;
      }
      for (const int32_t follower : missing_followers(graph_, list_.processor, o)) {
        const int32_t other = unit_device_[unit_of(follower)];
        start(follower, other >= 0 ? other : device);
      }
      start(o, device);
    }
  }

  BaechiResult result() {
    BaechiResult found;
    found.peak_bytes = ledger_.peak();
    if (ready_.empty()) {
      found.feasible = true;
      found.list = std::move(list_);
      return found;
    }
    const int32_t op = *ready_.begin();
    const int32_t home = unit_device_[unit_of(op)];
    found.reason = fmt::format(
        "operator '{}' needs {} bytes, more than is free on {} after {} of {} operators",
        problem_.graph().op(op).name, need_of(op),
        home >= 0 ? "device '" + problem_.cluster().device(home).name + "', its unit's,"
                  : std::string("any device"),
        list_.sequence.size(), graph_.tasks);
    return found;
  }

  const Problem& problem_;
  const TaskGraph& graph_;
  const FavouriteChildren* favourites_;
  Bytes bytes_;
  Ledger ledger_;
  Channels channels_;
  std::vector<int32_t> missing_, unit_device_, readers_left_;
  std::vector<int64_t> free_at_, headroom_;
  std::vector<int32_t> running_, last_;     // per device
  std::set<int32_t> ready_, pinned_ready_;  // pinned: whose unit is placed
  int64_t most_need_ = 0;                   // no operator takes more when it places its unit
  ListSchedule list_;
  int64_t now_ = 0;
};

/// Operators of the linear program: all where units have one each, otherwise those of phase
/// forward and of units without such.
std::vector<bool> deciding_operators(const Problem& problem) {
  const auto& graph = problem.graph();
  std::vector<bool> forward(at(graph.unit_count()), false), decides(at(problem.operators()));
  for (const auto& op : graph.operators())
    if (op.phase == Phase::forward) forward[op.unit] = true;
  for (int32_t o = 0; o < problem.operators(); ++o)
    decides[o] = graph.op(o).phase == Phase::forward || !forward[graph.op(o).unit] ||
                 graph.unit(graph.op(o).unit).size() == 1;
  return decides;
}

FavouriteChildren find_favourites(const Problem& problem, const TaskGraph& graph) {
  const auto decides = deciding_operators(problem);
  SctProgram program;
  std::vector<int32_t> number(at(graph.tasks), -1), op_of;
  for (int32_t o = 0; o < graph.tasks; ++o) {
    if (!decides[o]) continue;
    number[o] = static_cast<int32_t>(op_of.size());
    op_of.push_back(o);
    program.time.push_back(graph.mean_cost(o));
  }
  int32_t from = -1, to = -1;  // edges between two operators are neighbours
  for (const auto& edge : graph.edges) {
    if (!decides[edge.from] || !decides[edge.to]) continue;
    const bool joined = graph.group[edge.from] == graph.group[edge.to];
    const double wire = joined ? 0 : graph.mean_wire(edge.bytes);
    if (edge.from == from && edge.to == to)
      program.edges.back().wire += wire;
    else
      program.edges.push_back({number[edge.from], number[edge.to], wire, joined});
    std::tie(from, to) = std::pair(edge.from, edge.to);
  }
  const auto found = favourite_children(program);
  FavouriteChildren all = found;
  all.child.assign(at(graph.tasks), -1);
  all.parent.assign(at(graph.tasks), -1);
  for (size_t i = 0; i < op_of.size(); ++i) {
    if (found.child[i] >= 0) all.child[op_of[i]] = op_of[found.child[i]];
    if (found.parent[i] >= 0) all.parent[op_of[i]] = op_of[found.parent[i]];
  }
  return all;
}

BaechiResult schedule_with_retries(const Problem& problem, const TaskGraph& graph,
                                   const FavouriteChildren* favourites) {
  auto first = Scheduler(problem, graph, 0, favourites).run();
  for (int step = 1; !first.feasible && step < 10; ++step) {
    auto again = Scheduler(problem, graph, 0.1 * step, favourites).run();
    if (again.feasible) return again;
  }
  return first;
}

}  // namespace

std::vector<int32_t> m_topo(const Problem& problem) {
  const Bytes bytes(problem);
  const auto units = problem.graph().units();
  auto unit_bytes = bytes.fixed;
  for (int32_t o = 0; o < problem.operators(); ++o) unit_bytes[units[o]] += bytes.needed(o);
  const int64_t limit =
      std::accumulate(unit_bytes.begin(), unit_bytes.end(), int64_t{0}) / problem.devices() +
      *std::max_element(unit_bytes.begin(), unit_bytes.end());
  const auto part = fill_row(unit_bytes, unit_bytes.size(), problem.devices(), limit);
  std::vector<int32_t> device;
  for (const int32_t unit : units) device.push_back(std::min(part[unit], problem.devices() - 1));
  return device;
}

BaechiResult m_etf(const Problem& problem) {
  return schedule_with_retries(problem, make_task_graph(problem), nullptr);
}

BaechiResult m_sct(const Problem& problem) {
  const auto graph = make_task_graph(problem);
  const auto favourites = find_favourites(problem, graph);
  return schedule_with_retries(problem, graph, &favourites);
}

}  // namespace trinity
