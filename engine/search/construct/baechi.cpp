#include "search/construct/baechi.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/index.h"
#include "base/stop.h"
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
  /// Bytes allocated when an operator runs.
  int64_t needed(int32_t op) const { return outputs[op] + workspace[op]; }
};

/// Allocated bytes per device.
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

/// Transfer channels of devices, and locations of tensors.
class Channels {
 public:
  explicit Channels(const TaskGraph& graph) : graph_(graph), free_(at(graph.processors), 0) {}

  /// When all inputs of `op` could be on `device`; with `book` the transfers are booked.
  int64_t arrival(const ListSchedule& list, int32_t op, int32_t device, bool book) {
    int64_t latest = 0, wires = 0;  // time of tensors from one operator that are still to be sent
    const auto inputs = graph_.inputs(op);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto& edge = graph_.edges[inputs[i]];
      const int32_t from = list.processor[edge.from];
      if (from < 0) continue;  // it follows, and will go with its reader
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

/// m-ETF.
class Scheduler {
 public:
  Scheduler(const Problem& problem, const TaskGraph& graph, double headroom)
      : problem_(problem),
        graph_(graph),
        bytes_(problem),
        ledger_(bytes_),
        channels_(graph),
        missing_(graph.awaited_inputs()),
        unit_device_(bytes_.fixed.size(), -1),
        free_at_(at(graph.processors), 0),
        running_(at(graph.processors), -1) {
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

  /// Bytes to run `op`, including its unit's if that is not placed.
  int64_t need_of(int32_t op) const {
    const int32_t unit = unit_of(op);
    return bytes_.needed(op) + (unit_device_[unit] >= 0 ? 0 : bytes_.fixed[unit]);
  }

  /// True if `op` may and can run on a device: its unit is there or not placed, and there is free
  /// memory for it and for the operators that follow and that it reads.
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

  /// When `op` could start on a device; kNever if it cannot.
  int64_t start_on(int32_t op, int32_t device) {
    if (!placeable(op, device)) return kNever;
    return std::max({channels_.arrival(list_, op, device, false), free_at_[device], now_});
  }

  /// The operator that a free device starts now, or -1.
  int32_t choose(int32_t device) {
    for (const int32_t op : ready_)
      if (start_on(op, device) <= now_) return op;
    return -1;
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

  /// The next instant at which a device becomes free or an operator could start; kNever if there is
  /// none.
  int64_t next_instant() {
    int64_t next = kNever;
    for (int32_t d = 0; d < graph_.processors; ++d) {
      if (free_at_[d] > now_) {
        next = std::min(next, free_at_[d]);
        continue;
      }
      for (const int32_t op : ready_)
        if (const int64_t start = start_on(op, d); start > now_) next = std::min(next, start);
    }
    return next;
  }

  void enter(int32_t op, int32_t device) {
    auto& home = unit_device_[unit_of(op)];
    if (home >= 0) return;
    home = device;
    ledger_.enter(unit_of(op), device);
  }

  void schedule(int32_t op, int32_t device) {
    for (const int32_t follower : missing_followers(graph_, list_.processor, op)) {
      const int32_t home = unit_device_[unit_of(follower)];
      start(follower, home >= 0 ? home : device);
    }
    start(op, device);
    ready_.erase(op);
    free_at_[device] = list_.end[op];
    running_[device] = op;
    if (list_.end[op] <= now_) finish();
    if (list_.sequence.size() % 256 == 0) poll_stop();
  }

  /// Books transfers and memory and records the times.
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

  /// Operators that have ended make their readers ready.
  void finish() {
    for (auto& op : running_) {
      if (op < 0 || list_.end[op] > now_) continue;
      for (const auto& edge : graph_.readers(op))
        if (--missing_[edge.to] == 0) ready_.insert(edge.to);
      op = -1;
    }
  }

  /// Places operators that follow but whose readers all follow.
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
  Bytes bytes_;
  Ledger ledger_;
  Channels channels_;
  std::vector<int32_t> missing_, unit_device_, readers_left_;
  std::vector<int64_t> free_at_, headroom_;
  std::vector<int32_t> running_;  // [device]
  std::set<int32_t> ready_;
  ListSchedule list_;
  int64_t now_ = 0;
};

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
  const auto graph = make_task_graph(problem);
  auto first = Scheduler(problem, graph, 0).run();
  for (int step = 1; !first.feasible && step < 10; ++step) {
    auto again = Scheduler(problem, graph, 0.1 * step).run();
    if (again.feasible) return again;
  }
  return first;
}

}  // namespace trinity
