#include "simulator/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "graph/operator_types.h"
#include "strategy/dispatch.h"
#include "strategy/schedule.h"

namespace trinity {
namespace {

/// Maximum pause, latency or operator time: 1e6 s.
constexpr int64_t kLongest = 1'000'000'000'000'000;

/// Maximum number of devices with a table of all pairs: 4 MB.
constexpr int32_t kTabledDevices = 512;

}  // namespace

SimulationRules SimulationRules::standard(const Cluster& cluster) {
  SimulationRules rules;
  rules.queue = cluster.queue();
  return rules;
}

SimulationRules SimulationRules::compat() {
  SimulationRules rules;
  rules.memory = MemoryModel::outputs_only;
  rules.device_dead_ns = 5700;
  rules.link_dead_ns = 25000;
  rules.broadcast = true;
  rules.last_event = true;
  return rules;
}

SimulationRules SimulationRules::placeto() {
  SimulationRules rules = compat();
  rules.dead_after_free = true;
  rules.last_event = false;
  rules.event_order = true;
  return rules;
}

SimulationRules SimulationRules::doppler() {
  SimulationRules rules;
  rules.queue = QueueModel::none;
  rules.memory = MemoryModel::none;
  rules.edge_transfers = true;
  return rules;
}

const char* SimulationRules::published_name() const {
  if (edge_transfers) return "doppler";
  return broadcast || last_event || memory == MemoryModel::outputs_only ? "placeto" : nullptr;
}

Problem::Problem(std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster,
                 SimulationRules rules, const CostFunction& cost)
    : graph_(std::move(graph)), cluster_(std::move(cluster)), rules_(rules) {
  check_rules();
  on_ = find_devices(static_cast<bool>(cost));
  if (cost)
    graph_ = std::make_shared<const Graph>(
        graph_->with_stated_times(stated_times(*graph_, *cluster_, on_->first, cost)));
  bind(true);
}

Problem::Problem(std::shared_ptr<const Graph> graph, const Problem& like)
    : graph_(std::move(graph)), cluster_(like.cluster_), rules_(like.rules_) {
  check_rules();
  on_ = like.on_;
  bind(false);
}

std::shared_ptr<Problem::Devices> Problem::find_devices(bool own_costs) const {
  auto found = std::make_shared<Devices>();
  find_classes(*found, own_costs);
  find_contention(*found);
  find_wires(*found);
  return found;
}

void Problem::bind(bool first) {
  cost_class_ = on_->cost_class.data();
  wires_ = on_->wires.empty() ? nullptr : on_->wires.data();
  bind_costs();
  check_contention();
  bind_edges();
  bind_gradients();
  if (first) check_latencies();
  bind_uniform_wires();
  bind_aliases();
  bind_tails();
  check_range();
}

void Problem::check_rules() const {
  for (const int64_t pause_ns : {rules_.device_dead_ns, rules_.link_dead_ns}) {
    if (pause_ns < 0)
      throw ArgumentError("a pause must not be negative, got {} ns", pause_ns);
    if (pause_ns > kLongest)
      throw LimitError("a pause of {} ns is more than the simulator's clock supports ({})", pause_ns, kLongest);
  }
  const bool queued = rules_.queue == QueueModel::route || rules_.queue == QueueModel::fair ||
                      rules_.queue == QueueModel::receiver;
  if (queued && (rules_.broadcast || rules_.last_event || rules_.link_dead_ns > 0))
    throw ArgumentError("queue model '{}' cannot be combined with rules 'placeto' (broadcast, pauses of links); use "
                        "'sender'", choice_name(rules_.queue));
  if (rules_.broadcast && rules_.memory == MemoryModel::slots)
    throw ArgumentError("SimulationRules: broadcast cannot be combined with MemoryModel::slots; "
                        "use outputs_only or none");
  if (rules_.event_order && (!rules_.broadcast || rules_.queue != QueueModel::sender))
    throw ArgumentError("SimulationRules: event_order needs broadcast and queue 'sender'");
  const bool pauses = rules_.device_dead_ns > 0 || rules_.link_dead_ns > 0;
  if (rules_.edge_transfers && (rules_.broadcast || rules_.last_event || pauses ||
                                rules_.queue != QueueModel::none ||
                                rules_.memory != MemoryModel::none))
    throw ArgumentError("rules 'doppler' require queue = 'none', memory = 'none' and no pauses");
  const char* published = rules_.published_name();
  if (published && !graph_->collectives().empty())
    throw ArgumentError("rules '{}' do not support collectives", published);
}

/// True if two devices of a type with contention are on one node.
void Problem::find_contention(Devices& found) const {
  std::set<std::pair<std::string_view, int32_t>> seen;
  std::map<int32_t, bool> known;
  for (int32_t d = 0; d < devices(); ++d) {
    const auto& device = cluster_->device(d);
    const auto [contends, added] = known.try_emplace(device.type);
    if (added) contends->second = has_contention(cluster_->type_of(d));
    if (contends->second && !device.node.empty())
      found.contends = !seen.insert({device.node, device.type}).second || found.contends;
  }
}

void Problem::check_contention() const {
  if (contends() && rules_.edge_transfers)
    throw ArgumentError("rules 'doppler' do not support memory contention");
  const auto longest = cost_ns_.empty() ? 0 : *std::max_element(cost_ns_.begin(), cost_ns_.end());
  if (contends() && longest >= (int64_t{1} << 40))
    throw LimitError("graph '{}': an operator takes {:.3g} s, more than the limit for devices with memory contention",
                     graph_->name(), static_cast<double>(longest) * 1e-9);
}

/// own_costs: the cost model may distinguish types by name.
void Problem::find_classes(Devices& found, bool own_costs) const {
  std::map<std::pair<int32_t, double>, int32_t> classes;
  const auto kinds = cluster_->kinds();
  for (int32_t d = 0; d < devices(); ++d) {
    const auto& device = cluster_->device(d);
    if (const Device* before = d > 0 ? &cluster_->device(d - 1) : nullptr;
        before && before->type == device.type && before->speed == device.speed) {
      found.cost_class.push_back(found.cost_class.back());
      continue;
    }
    const auto [known, added] = classes.emplace(
        std::pair(own_costs ? device.type : kinds[device.type], device.speed),
        static_cast<int32_t>(found.first.size()));
    found.cost_class.push_back(known->second);
    if (added) found.first.push_back(d);
  }
}

void Problem::bind_costs() {
  const auto n = static_cast<size_t>(operators());
  least_cost_ns_.assign(n, std::numeric_limits<int64_t>::max());
  cost_ns_.reserve(n * on_->first.size());
  std::map<int32_t, HostedCosts> by_type;
  for (const int32_t d : on_->first) {
    const auto& device = cluster_->device(d);
    const auto& costs = by_type.try_emplace(device.type, *graph_, cluster_->type_of(d)).first->second;
    const auto times_s = costs.on(device).times_s;
    for (size_t o = 0; o < n; ++o) {
      const auto& op = graph_->operators()[o];
      const double time_s = times_s[o];
      if (!(time_s >= 0 && time_s < 1e6))
        throw LimitError("operator '{}' would take {} s on device '{}', expected less than 1e6 s", op.name, time_s,
                         device.name);
      cost_ns_.push_back(std::llround(time_s * 1e9));
      least_cost_ns_[o] = std::min(least_cost_ns_[o], cost_ns_.back());
    }
  }
  for (const auto& op : graph_->operators()) {
    fixed_bytes_.push_back(op.parameter_bytes() + op.persistent_bytes);
    once_.push_back(runs_once(op));
    has_workspace_ = has_workspace_ || op.workspace_bytes > 0;
  }
}

void Problem::bind_edges() {
  missing_.assign(static_cast<size_t>(operators()), 0);
  reader_offsets_.push_back(0);
  source_offsets_.push_back(0);
  output_offsets_.push_back(0);
  for (int32_t o = 0; o < operators(); ++o) {
    collective_of_.push_back(graph_->op(o).collective);
    for (const int32_t tensor : graph_->op(o).inputs) {
      const int32_t from = graph_->tensor(tensor).producer;
      sources_.push_back({from, tensor - graph_->op(from).outputs.front()});
    }
    source_offsets_.push_back(static_cast<int32_t>(sources_.size()));
    const auto& outputs = graph_->op(o).outputs;
    for (const int32_t tensor : outputs) {
      output_bytes_.push_back(graph_->tensor(tensor).bytes);
      held_bytes_.push_back(is_variable(graph_->op(o)) ? 0 : output_bytes_.back());
    }
    output_offsets_.push_back(static_cast<int32_t>(output_bytes_.size()));
    max_outputs_ = std::max(max_outputs_, static_cast<int32_t>(outputs.size()));
    const auto [first, last] = boost::out_edges(o, graph_->csr());
    for (auto edge = first; edge != last; ++edge) {
      const int32_t tensor = graph_->csr()[*edge].tensor;
      const auto reader = static_cast<int32_t>(boost::target(*edge, graph_->csr()));
      readers_.push_back({reader, tensor - outputs.front()});
      auto& missing = missing_[reader];
      most_missing_ = std::max(most_missing_, ++missing);
    }
    std::sort(readers_.begin() + reader_offsets_.back(), readers_.end(),
              [](const Reader& a, const Reader& b) {
                return a.op != b.op ? a.op < b.op : a.output < b.output;
              });
    reader_offsets_.push_back(static_cast<int32_t>(readers_.size()));
  }
}

/// Gradients are written in every micro-batch and read once per step; collectives reduce them in
/// place.
void Problem::bind_gradients() {
  bool kept = rules_.memory == MemoryModel::slots;
  for (int32_t d = 0; d < devices() && kept; ++d) kept = cluster_->type_of(d).keeps_gradients;
  if (!kept) return;
  gradient_bytes_.assign(static_cast<size_t>(operators()), 0);
  std::vector<bool> stays(held_bytes_.size(), false);
  const auto in_buffers = [&](int32_t input) {
    const int32_t producer = graph_->tensor(input).producer;
    return graph_->tensor(input).bytes == 0 ||
           stays[first_output(producer) + input - graph_->op(producer).outputs.front()];
  };
  for (int32_t o = 0; o < operators(); ++o) {
    const auto& op = graph_->op(o);
    for (const auto& reader : readers(o)) {
      if (once(o) || !once(reader.op)) continue;
      const int32_t tensor = first_output(o) + reader.output;
      gradient_bytes_[o] += held_bytes_[tensor];
      held_bytes_[tensor] = 0;
      stays[tensor] = true;
    }
    if (!once(o) || op.collective < 0 || op.inputs.empty() ||
        !std::all_of(op.inputs.begin(), op.inputs.end(), in_buffers))
      continue;
    for (int32_t i = first_output(o); i < first_output(o + 1); ++i) {
      held_bytes_[i] = 0;
      stays[i] = true;
    }
  }
  for (int32_t o = 0; o < operators(); ++o) fixed_bytes_[o] += gradient_bytes_[o];
}

int64_t Problem::framework_bytes() const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int32_t d = 0; d < devices(); ++d) least = std::min(least, framework_bytes(d));
  return least;
}

Problem::Wire Problem::rounded(const trinity::Wire& wire) {
  return {std::llround(wire.latency_s * 1e9), wire.bandwidth_bytes_per_s / 1e9};
}

Problem::Wire Problem::found_wire(int32_t from, int32_t to) const {
  return from == to ? Wire{} : rounded(cluster_->wire(from, to));
}

/// Throws LimitError for a latency beyond the clock's range.
void Problem::check_latency(const trinity::Wire& wire, const std::string& route) const {
  if (!(wire.latency_s * 1e9 <= static_cast<double>(kLongest)))
    throw LimitError("cluster '{}': {} has a latency of {} s, more than the simulator's clock supports",
                     cluster_->name(), route, wire.latency_s);
}

void Problem::check_latencies() const {
  if (devices() > kTabledDevices)
    return cluster_->routes().for_each_wire(
        [this](const trinity::Wire& wire) { check_latency(wire, "a route"); });
  for (int32_t a = 0; a < devices(); ++a)
    for (int32_t b = 0; b < devices(); ++b)
      if (const auto wire = cluster_->wire(a, b); a != b && !(wire.latency_s < 1))
        check_latency(wire, fmt::format("the route from '{}' to '{}'", cluster_->device(a).name,
                                        cluster_->device(b).name));
}

void Problem::find_wires(Devices& found) const {
  const auto note = [&found](const Wire& wire) {
    found.longest_latency_ns = std::max(found.longest_latency_ns, wire.latency_ns);
    found.shortest_latency_ns = std::min(found.shortest_latency_ns, wire.latency_ns);
    found.least_bytes_per_ns = std::min(found.least_bytes_per_ns, wire.bytes_per_ns);
    found.most_bytes_per_ns = std::max(found.most_bytes_per_ns, wire.bytes_per_ns);
  };
  if (devices() > kTabledDevices) {
    cluster_->routes().for_each_wire([&](const trinity::Wire& wire) { note(rounded(wire)); });
    return;
  }
  auto& wires = found.wires;
  for (int32_t a = 0; a < devices(); ++a)
    for (int32_t b = 0; b < devices(); ++b) {
      wires.push_back(found_wire(a, b));
      if (a != b) note(wires.back());
    }
  const auto n = static_cast<size_t>(devices());
  found.uniform = true;
  for (size_t at = 1; at < wires.size() && found.uniform; ++at)
    if (at % (n + 1) != 0 && (wires[at].latency_ns != wires[1].latency_ns ||
                              wires[at].bytes_per_ns != wires[1].bytes_per_ns))
      found.uniform = false;
}

void Problem::bind_uniform_wires() {
  if (!on_->uniform) return;
  for (const int64_t bytes : output_bytes_) {
    const bool representable =
        devices() > 1 && static_cast<double>(bytes) / wires_[1].bytes_per_ns < 4e18;
    uniform_wire_ns_.push_back(representable ? wire_ns(0, 1, bytes) : 0);  // see check_range()
  }
}

void Problem::bind_aliases() {
  alias_.assign(static_cast<size_t>(operators()), -1);
  for (int32_t o = 0; o < operators(); ++o) {
    const auto& op = graph_->op(o);
    const int32_t input = overwritten(*graph_, op);
    if (input < 0) continue;
    const int32_t from = graph_->tensor(input).producer;
    alias_[o] = first_output(from) + input - graph_->op(from).outputs.front();
  }
}

void Problem::bind_tails() {
  tail_ns_.assign(static_cast<size_t>(operators()), 0);
  for (int32_t o = operators() - 1; o >= 0; --o)
    for (const auto& reader : readers(o)) {
      auto& tail = tail_ns_[o];
      tail = std::max(tail, least_cost_ns(reader.op) + tail_ns(reader.op));
    }
}

/// Some operator or transfer is always running, so no step exceeds the sum of all operators and
/// transfers (collectives are added by the simulator, which knows their devices).
void Problem::check_range() {
  for (int32_t o = 0; o < operators(); ++o) {
    int64_t slowest = 0;
    for (int32_t c = 0; c < cost_classes(); ++c)
      slowest =
          std::max(slowest, cost_ns_[static_cast<size_t>(c) * static_cast<size_t>(operators()) +
                                     static_cast<size_t>(o)]);
    longest_step_ns_ += static_cast<double>(slowest + rules_.device_dead_ns);
  }
  const auto latency = static_cast<double>(on_->longest_latency_ns);
  const double rate = on_->least_bytes_per_ns;
  for (int32_t o = 0; o < operators() && devices() > 1; ++o)
    for (const auto& reader : readers(o))
      longest_step_ns_ += latency + static_cast<double>(rules_.link_dead_ns) + 1 +
                          static_cast<double>(output_bytes(o, reader.output)) / rate;
  if (longest_step_ns_ >= std::ldexp(1.0, 62))
    throw LimitError("graph '{}' on cluster '{}': a step could take {:.3g} s, more than the simulator's clock holds "
                     "({:.3g} s); check the units of bandwidths and times", graph_->name(), cluster_->name(),
                     longest_step_ns_ * 1e-9, std::ldexp(1.0, 62) * 1e-9);
}

}  // namespace trinity
