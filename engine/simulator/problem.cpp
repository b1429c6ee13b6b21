#include "simulator/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "graph/operator_types.h"
#include "strategy/dispatch.h"
#include "strategy/schedule.h"

namespace trinity {
namespace {

void check_rules(const SimulationRules& rules, const Graph& graph) {
  for (const int64_t pause_ns : {rules.device_dead_ns, rules.link_dead_ns}) {
    if (pause_ns < 0)
      throw ArgumentError("a pause must not be negative, got {} ns", pause_ns);
    if (pause_ns > kLongestNs)
      throw LimitError("a pause of {} ns is more than the simulator's clock supports ({})", pause_ns, kLongestNs);
  }
  const bool queued = rules.queue == QueueModel::route || rules.queue == QueueModel::fair ||
                      rules.queue == QueueModel::receiver;
  if (queued && (rules.broadcast || rules.last_event || rules.link_dead_ns > 0))
    throw ArgumentError("queue model '{}' cannot be combined with rules 'placeto' (broadcast, pauses of links); use "
                        "'sender'", choice_name(rules.queue));
  if (rules.broadcast && rules.memory == MemoryModel::slots)
    throw ArgumentError("SimulationRules: broadcast cannot be combined with MemoryModel::slots; "
                        "use outputs_only or none");
  if (rules.event_order && (!rules.broadcast || rules.queue != QueueModel::sender))
    throw ArgumentError("SimulationRules: event_order needs broadcast and queue 'sender'");
  const bool pauses = rules.device_dead_ns > 0 || rules.link_dead_ns > 0;
  if (rules.edge_transfers && (rules.broadcast || rules.last_event || pauses || rules.queue != QueueModel::none ||
                               rules.memory != MemoryModel::none))
    throw ArgumentError("rules 'doppler' require queue = 'none', memory = 'none' and no pauses");
  const char* published = rules.published_name();
  if (published && !graph.collectives().empty())
    throw ArgumentError("rules '{}' do not support collectives", published);
}

void check_contention(const Problem& problem) {
  if (!problem.tables().contends()) return;
  if (problem.rules().edge_transfers)
    throw ArgumentError("rules 'doppler' do not support memory contention");
  int64_t longest_ns = 0;
  for (const int32_t device : problem.tables().first())
    for (const int64_t time_ns : problem.costs(device)) longest_ns = std::max(longest_ns, time_ns);
  if (longest_ns >= (int64_t{1} << 40))
    throw LimitError("graph '{}': an operator takes {:.3g} s, more than the limit for devices with memory contention",
                     problem.graph().name(), static_cast<double>(longest_ns) * 1e-9);
}

/// [operator]: Problem::alias().
std::vector<int32_t> aliases(const Problem& problem) {
  const auto& graph = problem.graph();
  std::vector<int32_t> found(static_cast<size_t>(problem.operators()), -1);
  for (int32_t o = 0; o < problem.operators(); ++o) {
    const int32_t input = overwritten(graph, graph.op(o));
    if (input < 0) continue;
    const int32_t from = graph.tensor(input).producer;
    found[o] = problem.first_output(from) + input - graph.op(from).outputs.front();
  }
  return found;
}

/// [operator]: Problem::tail_ns().
std::vector<int64_t> tails(const Problem& problem) {
  std::vector<int64_t> found(static_cast<size_t>(problem.operators()), 0);
  for (int32_t o = problem.operators() - 1; o >= 0; --o)
    for (const auto& reader : problem.readers(o))
      found[o] = std::max(found[o], problem.least_cost_ns(reader.op) + found[reader.op]);
  return found;
}

/// [output]: Problem::uniform_wires().
std::vector<int64_t> uniform_wires_of(const Problem& problem) {
  std::vector<int64_t> found;
  if (!problem.tables().uniform()) return found;
  for (const int64_t bytes : problem.all_output_bytes()) {
    const bool representable = problem.devices() > 1 &&
                               static_cast<double>(bytes) / problem.tables().wire(0, 1).bytes_per_ns < 4e18;
    found.push_back(representable ? problem.wire_ns(0, 1, bytes) : 0);  // see check_range()
  }
  return found;
}

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
  check_rules(rules_, *graph_);
  tables_ = std::make_shared<const DeviceTables>(cluster_, static_cast<bool>(cost));
  if (cost)
    graph_ = std::make_shared<const Graph>(
        graph_->with_stated_times(stated_times(*graph_, *cluster_, tables_->first(), cost)));
  bind(true);
}

Problem::Problem(std::shared_ptr<const Graph> graph, const Problem& like)
    : graph_(std::move(graph)), cluster_(like.cluster_), rules_(like.rules_) {
  check_rules(rules_, *graph_);
  tables_ = like.tables_;
  bind(false);
}

void Problem::bind(bool first) {
  wires_ = tables_->wire_table();
  bind_costs();
  check_contention(*this);
  bind_edges();
  bind_gradients();
  if (first) tables_->check_latencies();
  uniform_wire_ns_ = uniform_wires_of(*this);
  alias_ = aliases(*this);
  tail_ns_ = tails(*this);
  check_range();
}

void Problem::bind_costs() {
  const auto n = static_cast<size_t>(operators());
  least_cost_ns_.assign(n, std::numeric_limits<int64_t>::max());
  cost_ns_.reserve(n * tables_->first().size());
  std::map<int32_t, HostedCosts> by_type;
  for (const int32_t d : tables_->first()) {
    const auto& device = cluster_->device(d);
    const auto& costs = by_type.try_emplace(device.type, *graph_, cluster_->type_of(d)).first->second;
    const auto [times_s, dispatch_s, copies_s] = costs.on(device);
    for (const double wait_s : copies_s) copies_ns_.push_back(std::llround(wait_s * 1e9));
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
      held_bytes_.push_back(is_variable(graph_->op(o)) ? 0 : output_bytes_.back() - graph_->tensor(tensor).host_bytes);
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

/// Some operator or transfer is always running, so no step exceeds the sum of all operators and
/// transfers (collectives are added by the simulator, which knows their devices).
void Problem::check_range() {
  for (int32_t o = 0; o < operators(); ++o) {
    int64_t slowest = 0;
    for (const int32_t device : tables_->first()) slowest = std::max(slowest, cost_ns(device, o));
    longest_step_ns_ += static_cast<double>(slowest + rules_.device_dead_ns);
  }
  const auto latency = static_cast<double>(tables_->longest_latency_ns());
  const double rate = tables_->least_bytes_per_ns();
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
