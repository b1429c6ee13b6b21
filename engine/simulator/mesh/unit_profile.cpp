#include "simulator/mesh/unit_profile.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/index.h"
#include "graph/experts.h"
#include "graph/layers.h"
#include "graph/operator_types.h"
#include "graph/recompute.h"
#include "graph/split_backward.h"
#include "strategy/cost.h"
#include "strategy/dispatch.h"
#include "strategy/mesh_schedule.h"
#include "strategy/mesh_words.h"
#include "strategy/offload.h"
#include "strategy/schedule.h"

namespace trinity {
namespace {

/// The strategy to lower: one stage of one replica; with delayed W operators two stages, the second
/// without layers.
Parallelism one_stage(const Parallelism& of, int32_t layers) {
  Parallelism one = of;
  one.mesh.data = one.mesh.expert = 1;
  if (one.schedule == "1f1b") return one;
  one.mesh.pipeline = 2;
  one.micro_batches = 2;
  one.stages = {layers, 0};
  return one;
}

/// The graph of one device per equivalence class, where stages allow it, else of all: the first device is enough.
LoweredGraph lowered(const Parallelism& one, const Graph& graph, const Cluster& cluster) {
  LaneParts parts;
  auto lane = lower_lane(one, graph, cluster, parts);
  return lane ? std::move(*lane) : lower_replica(one, graph, cluster);
}

/// Bytes of a tensor on its device between forward and backward.
int64_t held_bytes(const Tensor& tensor) { return tensor.bytes - tensor.host_bytes; }

double later(double a, double b) { return std::max(a, b); }

/// Part of an operator's time that does not depend on its size.
double launch_ns(const Graph& graph, const Operator& op, const Device& device,
                 const DeviceType& type) {
  if (op.measured()) return 0;
  Operator small;
  small.type = op.type;
  small.attributes = op.attributes;
  small.inputs = op.inputs;
  small.outputs = op.outputs;
  small.stated = op.stated;
  small.traffic_bytes = 1e-30;
  return std::floor(operator_time_s(graph, small, device, type) * 1e9);
}

}  // namespace

/// Traverses the tasks of one pass, unit after unit.
class UnitProfiler::Follower {
 public:
  /// first: as first unit of a virtual stage.
  Follower(const UnitProfiler& of, Pass pass, bool first, const std::vector<double>& cost)
      : of_(of), pass_(pass), first_(first), step_(pass == Pass::forward ? 1 : -1), cost_(cost),
        start_(of.tasks_.size(), kNever), after_(of.tasks_.size(), kNever),
        run_(of.tasks_.size(), 0) {
    for (size_t t = 0; t < of.tasks_.size(); ++t)
      if (of.tasks_[t].pass == pass) turn_.push_back(static_cast<int32_t>(t));
  }

  void run(std::vector<UnitProfile>& units) {
    std::vector<int32_t> runs(units.size(), 0);
    for (size_t first = 0; first < turn_.size();) {
      size_t end = first;
      while (end < turn_.size() && unit(end) == unit(first)) ++end;
      ++now_;
      for (size_t i = first; i < end; ++i) run_[turn_[i]] = now_;
      add(first, end, pass_of(units[at(unit(first))]), runs[at(unit(first))]++ == 0);
      first = end;
    }
    for (const int32_t t : turn_) hand_on(t, units);
    for (size_t u = 0; u < units.size(); ++u)
      if (runs[u] > 1) pass_of(units[u]).to_next = pass_of(units[u]).alone;
  }

 private:
  /// State of a device: time since its first start and since the arrival.
  struct Clock {
    double start = kNever, after = kNever;
  };

  const Task& task(int32_t t) const { return of_.tasks_[t]; }
  int32_t unit(size_t turn) const { return task(turn_[turn]).unit; }
  UnitPass& pass_of(UnitProfile& unit) const {
    return pass_ == Pass::forward ? unit.forward : first_ ? unit.first_backward : unit.backward;
  }
  /// True if a task reads an output of the previous unit.
  bool arrives(const Task& reader, int32_t read) const {
    const auto& writer = task(read);
    return !reader.again && writer.pass == pass_ && writer.unit == reader.unit - step_ &&
           start_[read] > kNever;
  }

  /// Adds one run of operators of a unit; `first`: the unit's first.
  void add(size_t from, size_t end, UnitPass& result, bool first) {
    Clock free;
    for (size_t i = from; i < end; ++i) step(turn_[i], free);
    const double alone = later(free.start, 0);
    if (!first) {  // operators between the runs may be missing in a stage
      result.alone += alone;
      if (result.alone_after > kNever) result.alone_after += alone;
      result.to_next_after = result.alone_after;
      return;
    }
    result.alone = alone;
    result.alone_after = free.after;
    const Clock next = begin_next(end, unit(from), free);
    result.to_next = later(next.start, alone);
    result.to_next_after = next.after;
  }

  /// Runs a task of a unit; times count from the unit's first start with a cost.
  void step(int32_t t, Clock& free) {
    const auto& task = this->task(t);
    Clock ready;
    for (const int32_t read : task.reads) {
      if (run_[read] == now_) {
        ready.start = later(ready.start, start_[read]);
        ready.after = later(ready.after, after_[read]);
      } else if (arrives(task, read)) {
        ready.after = later(ready.after, 0);
      }
    }
    if (task.collective >= 0) {
      start_[t] = ready.start + cost_[t];
      after_[t] = ready.after + cost_[t];
      return;
    }
    if (first_ && task.before) {
      after_[t] = ready.after;
      return;
    }
    after_[t] = free.after = later(free.after, ready.after) + cost_[t];
    if (cost_[t] == 0 && free.start == kNever) return;  // may have run before
    start_[t] = free.start = later(later(free.start, 0), ready.start) + cost_[t];
  }

  /// Earliest start of the first operator with a cost, after a unit on its device.
  Clock begin_next(size_t from, int32_t before, Clock free) {
    if (from == turn_.size() || unit(from) != before + step_) return free;
    std::vector<std::pair<int32_t, Clock>> written;
    const auto find = [&](int32_t t) -> Clock {
      if (run_[t] == now_) return {start_[t], after_[t]};
      for (const auto& [other, clock] : written)
        if (other == t) return clock;
      return {};
    };
    for (size_t i = from; i < turn_.size() && unit(i) == before + step_; ++i) {
      const int32_t t = turn_[i];
      Clock ready;
      for (const int32_t read : task(t).reads) {
        const Clock there = find(read);
        ready = {later(ready.start, there.start), later(ready.after, there.after)};
      }
      if (task(t).collective >= 0) {
        written.push_back({t, {ready.start + cost_[t], ready.after + cost_[t]}});
        continue;
      }
      free = {later(free.start, ready.start), later(free.after, ready.after)};
      if (cost_[t] > 0) return free;
      written.push_back({t, free});
    }
    return free;
  }

  /// Records for the previous unit what a task reads of it.
  void hand_on(int32_t t, std::vector<UnitProfile>& units) {
    const auto& reader = task(t);
    for (size_t i = 0; i < reader.reads.size(); ++i) {
      const int32_t read = reader.reads[i];
      if (!arrives(reader, read)) continue;
      auto& pass = pass_of(units[at(reader.unit - step_)]);
      const bool none = pass.hands_on == kNever;
      pass.hands_on = none ? start_[read] : std::min(pass.hands_on, start_[read]);
      pass.hands_on_after = none ? after_[read] : std::min(pass.hands_on_after, after_[read]);
      pass.least_bytes = none ? reader.bytes[i] : std::min(pass.least_bytes, reader.bytes[i]);
    }
  }

  const UnitProfiler& of_;
  Pass pass_;
  bool first_;
  int32_t step_;
  const std::vector<double>& cost_;  // ns per task
  std::vector<double> start_, after_;  // per task: end, within its run of operators of a unit
  std::vector<int32_t> run_;           // per task, from 1
  int32_t now_ = 0;
  std::vector<int32_t> turn_;
};

Parallelism UnitProfiler::part_of(const Parallelism& given) {
  Parallelism part = without(given, kProfile);
  if (given.mesh.placement == 1) part.inside.clear();
  part.mesh.data = given.mesh.expert;
  part.schedule = splits_backward(schedule_of(given)) ? "zb-h1" : "1f1b";
  return part;
}

UnitProfiler::UnitProfiler(const Parallelism& part, const Graph& graph, const Cluster& cluster)
    : of_(part) {
  const int32_t layers = repeated_layers(graph).count;
  const int32_t width = of_.mesh.width();
  units_ = layers + 2;
  bytes_.resize(at(units_));
  const auto one = one_stage(of_, layers);
  LoweredGraph replica;
  std::vector<int32_t> spread;
  std::optional<SpreadExperts> shared;
  if (of_.mesh.expert > 1) {
    shared = spread_experts(graph, of_.mesh.expert);
    replica = lowered(one, shared->graph, cluster);
    for (const auto& role : replica.roles)
      spread.push_back(role.origin < 0 ? 1 : shared->spread[role.origin]);
  } else {
    replica = lowered(one, graph, cluster);
    spread.assign(replica.roles.size(), 1);
  }
  add_tasks(replica, shared ? shared->graph : graph, spread, width);
  if (of_.schedule == "1f1b") {
    count_bytes(replica, spread);
  } else {  // one stage: a tied weight has one copy and the backward pass is not split
    auto whole = of_;
    whole.schedule = "1f1b";
    bytes_ = UnitProfiler(whole, graph, cluster).bytes_;
  }
  find_costs(replica.graph, cluster);
}

void UnitProfiler::add_tasks(const LoweredGraph& replica, const Graph& original, std::span<const int32_t> spread,
                             int32_t width) {
  const auto& graph = replica.graph;
  const bool delayed = of_.schedule != "1f1b";
  const auto weight = delayed ? find_weight_work(graph) : std::vector<bool>();
  std::vector<int32_t> task_of(at(graph.operator_count()), -1), message(graph.collectives().size(), -1);
  std::vector<bool> updated(at(original.operator_count()), false);  // a tied weight has a copy on either stage
  for (int32_t o = 0; o < graph.operator_count(); ++o) {
    if (replica.device_of(o) % width != 0) continue;
    const auto& op = graph.op(o);
    Task task;
    task.op = o;
    task.unit = std::clamp(replica.roles[o].layer + 1, 0, units_ - 1);
    task.pass = runs_once(op) ? Pass::update
                : op.phase == Phase::forward ? Pass::forward
                : delayed && weight[o]       ? Pass::weight
                                             : Pass::backward;
    if (op.collective >= 0) {
      if (message[op.collective] < 0)
        message[op.collective] = add_message(replica, op.collective, width);
      task.collective = message[op.collective];
    } else if (of_.mesh.expert > 1 && is_exchange(op)) {  // joins the replicas of the full strategy
      task.collective = add_exchange(graph, op);
    }
    task.spread = spread[o] > 1;
    const int32_t serves = replica.roles[o].serves;
    if (op.type == "Update" && !updated[at(serves)]) {
      task.link_share = link_share(original, original.op(serves));
      updated[at(serves)] = true;
    }
    for (const int32_t tensor : op.inputs) {
      const int32_t writer = task_of[graph.tensor(tensor).producer];
      if (writer < 0) continue;
      task.reads.push_back(writer);
      task.bytes.push_back(graph.tensor(tensor).bytes);
    }
    task.again = is_recomputed(op);
    task.before = task.pass == Pass::backward && !task.again && task.collective < 0 && !task.reads.empty();
    for (const int32_t read : task.reads)
      task.before = task.before && tasks_[read].pass == Pass::backward && tasks_[read].unit == task.unit + 1;
    task_of[o] = static_cast<int32_t>(tasks_.size());
    tasks_.push_back(std::move(task));
  }
}

int32_t UnitProfiler::add_message(const LoweredGraph& replica, int32_t collective,
                                  int32_t width) {
  const auto& about = replica.graph.collectives()[collective];
  std::vector<int32_t> parts;
  const int32_t slot = replica.device_of(about.members[0]) % width / of_.mesh.parts() * of_.mesh.parts();
  if (about.axes < 0)
    for (const int32_t member : about.members) parts.push_back(replica.device_of(member) % width);
  else  // the group of the slot's first device over these axes
    for (int32_t part = 0; part < of_.mesh.parts(); ++part)
      if (first_over(about.axes, of_.mesh.tensor, part) == 0) parts.push_back(slot + part);
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  const auto found = std::find(parts_.begin(), parts_.end(), parts);
  messages_.push_back({about.kind, about.algorithm, about.bytes,
                       static_cast<size_t>(found - parts_.begin()), {}});
  if (found == parts_.end()) parts_.push_back(std::move(parts));
  return static_cast<int32_t>(messages_.size()) - 1;
}

int32_t UnitProfiler::add_exchange(const Graph& graph, const Operator& op) {
  messages_.push_back({CollectiveKind::all_to_all, CollectiveAlgorithm::automatic,
                       graph.tensor(op.outputs[0]).bytes, kRanks, routing_of(op)});
  return static_cast<int32_t>(messages_.size()) - 1;
}

void UnitProfiler::count_bytes(const LoweredGraph& replica, std::span<const int32_t> spread) {
  const auto& graph = replica.graph;
  std::vector<int32_t> unit_of(at(graph.operator_count()), -1);
  // unit that reads it in backward: its own, or the first
  std::vector<int32_t> kept_by(graph.tensors().size(), -1);
  std::vector<bool> summed(graph.tensors().size(), false);
  std::vector<bool> delayed(graph.tensors().size(), false);
  std::vector<Pass> pass_of(unit_of.size(), Pass::update);
  const auto add = [&](SpreadBytes& sum, int32_t op, int64_t bytes) {
    sum.all += bytes;
    if (spread[op] > 1) sum.spread += bytes;
  };
  const auto widen = [&](SpreadBytes& most, int32_t op, int64_t bytes) {
    auto& one = spread[op] > 1 ? most.spread : most.all;
    one = std::max(one, bytes);
  };
  for (const auto& task : tasks_) {
    const auto& op = graph.op(task.op);
    auto& unit = bytes_[at(task.unit)];
    unit_of[task.op] = task.unit;
    pass_of[task.op] = task.pass;
    add(unit.weights, task.op, op.parameter_bytes());
    add(unit.optimizer, task.op, op.persistent_bytes);
    add(unit.trained, task.op, op.trainable_bytes());
    widen(unit.largest_trained, task.op, op.trainable_bytes());
    if (task.pass == Pass::forward) continue;
    for (const int32_t tensor : op.inputs) {
      const int32_t root = stored_tensor(graph, tensor), writer = graph.tensor(root).producer;
      if (unit_of[writer] < 0 || is_data(graph.op(writer))) continue;
      const bool waits = pass_of[writer] == Pass::forward || pass_of[writer] == Pass::backward;
      if (task.pass == Pass::weight && waits && !runs_once(graph.op(writer)) && !delayed[root]) {
        delayed[root] = true;
        unit.delayed_bytes += held_bytes(graph.tensor(root));
      }
      if (task.pass != Pass::update) {
        if (graph.op(writer).phase != Phase::forward) continue;
        if (kept_by[root] < 0 || task.unit == unit_of[writer]) kept_by[root] = task.unit;
      } else if (root == tensor && !runs_once(graph.op(writer)) && !summed[root]) {
        summed[root] = true;
        add(bytes_[at(unit_of[writer])].gradients, writer, graph.tensor(root).bytes);
        widen(bytes_[at(unit_of[writer])].largest_gradient, writer, graph.tensor(root).bytes);
      }
    }
  }
  for (size_t tensor = 0; tensor < kept_by.size(); ++tensor)
    if (kept_by[tensor] >= 0)
      bytes_[at(kept_by[tensor])].kept_bytes += held_bytes(graph.tensor(static_cast<int32_t>(tensor)));
}

std::vector<CollectiveGroup> UnitProfiler::groups_of(std::span<const int32_t> devices,
                                                     std::span<const int32_t> ranks,
                                                     CollectiveGroups& groups) const {
  std::vector<CollectiveGroup> result;
  for (const auto& parts : parts_) {
    std::vector<int32_t> members;
    for (const int32_t part : parts) members.push_back(devices[part]);
    std::sort(members.begin(), members.end());
    result.push_back(groups.find(members, true));
  }
  std::vector<int32_t> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  result.push_back(groups.find(sorted, true));
  return result;
}

void UnitProfiler::find_costs(const Graph& graph, const Cluster& cluster) {
  // An operator that may run on another stage belongs to its layer's dispatched run or not; there it takes
  // a part of the run's wait. Both are computed, and the shorter one counts.
  std::vector<bool> others(at(graph.operator_count()), true), left_out = others;
  for (const auto& task : tasks_) {
    others[task.op] = task.collective >= 0;
    left_out[task.op] = task.collective >= 0 || task.before;
  }
  for (int32_t d = 0; d < cluster.device_count(); ++d) {
    const auto& device = cluster.device(d);
    const auto& type = cluster.type_of(d);
    auto& costs = costs_[{device.type, device.speed}];
    if (!costs.all_ns.empty()) continue;
    const auto hosted = HostedCosts(graph, type, left_out).on(device);
    const auto whole = left_out == others ? hosted : HostedCosts(graph, type, others).on(device);
    for (const auto& task : tasks_) {
      const double time_s = std::min(hosted.times_s[task.op], whole.times_s[task.op]);
      costs.all_ns.push_back(static_cast<double>(std::llround(time_s * 1e9)));
      costs.launch_ns.push_back(time_s > 0 ? launch_ns(graph, graph.op(task.op), device, type) : 0);
      costs.dispatch_ns.push_back(hosted.dispatch_s[task.op] * 1e9 - 0.5);  // times are rounded
      costs.host_ns.push_back(
          task.link_share > 0 ? 1e9 * offloaded_update_s(graph.op(task.op), device, type, task.link_share) : 0);
      costs.waiting_ns.push_back(task.before ? 0 : whole.times_s[task.op] * 1e9 - 0.5);
    }
  }
}

std::vector<UnitProfile> UnitProfiler::run(const Device& device,
                                           std::span<const CollectiveGroup> groups) const {
  const auto& costs = costs_.at({device.type, device.speed});
  auto cost = costs.all_ns;
  auto units = bytes_;
  std::vector<std::array<double, 2>> waiting_ns(units.size());  // per unit: forward, backward
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const auto& task = tasks_[t];
    const bool forward = task.pass == Pass::forward;
    if (task.pass != Pass::update) {
      auto& unit = units[at(task.unit)];
      (forward ? unit.forward_work_ns : unit.backward_work_ns) += cost[t];
      (forward ? unit.forward_launch_ns : unit.backward_launch_ns) += costs.launch_ns[t];
      (forward ? unit.forward_dispatch_ns : unit.backward_dispatch_ns) += costs.dispatch_ns[t];
      waiting_ns[at(task.unit)][forward ? 0 : 1] += costs.waiting_ns[t];
    }
    if (task.pass == Pass::weight) units[at(task.unit)].weight_ns += cost[t];
    if (task.pass == Pass::update) {
      units[at(task.unit)].update_ns += cost[t];
      units[at(task.unit)].host_update_ns += costs.host_ns[t];
      if (task.spread) {
        units[at(task.unit)].spread_update_ns += cost[t];
        units[at(task.unit)].spread_host_update_ns += costs.host_ns[t];
      }
    }
    if (task.collective < 0) continue;
    const auto& message = messages_[task.collective];
    const auto& group = message.group == kRanks ? groups.back() : groups[message.group];
    if (group.size() < 2 || !group.applies(message.kind, message.algorithm)) continue;
    const auto found = group.cost(message.kind, message.algorithm, message.bytes, message.routing);
    cost[t] = std::floor(found.time_s() * 1e9);
  }
  for (size_t u = 0; u < units.size(); ++u) {
    units[u].forward_dispatch_ns = std::min(units[u].forward_dispatch_ns, waiting_ns[u][0]);
    units[u].backward_dispatch_ns = std::min(units[u].backward_dispatch_ns, waiting_ns[u][1]);
  }
  Follower(*this, Pass::forward, false, cost).run(units);
  for (const bool first : {false, true}) Follower(*this, Pass::backward, first, cost).run(units);
  return units;
}

}  // namespace trinity
