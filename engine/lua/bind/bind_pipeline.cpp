#include <algorithm>

#include "lua/bind/module.h"
#include "search/pipeline/layer_cut.h"
#include "search/pipeline/max_load_search.h"
#include "search/pipeline/pipeline_cuts.h"
#include "search/pipeline/pipeline_network.h"

namespace trinity::lua {

template <>
inline constexpr const char* kTypeName<const PipelineNetwork> = "pipeline network";
template <>
inline constexpr const char* kTypeName<const std::vector<PipedreamState>> = "pipeline cuts";
template <>
inline constexpr const char* kTypeName<const LayerRow> = "layer row";

namespace {

constexpr int64_t kMostDevices = 65536;  // tables have a place for each, whoever calls

/// { devices =, cpus =, memory_bytes =, bandwidth_bytes_per_s =, micro_batches = }
struct Machine : PipelineMachine {
  static Machine from_stack(lua_State* L, int index) {
    table_arg(L, index, "machine");
    Fields fields(L, index, "machine");
    Machine machine;
    machine.devices = static_cast<int32_t>(fields.integer("devices", 1, 0, kMostDevices));
    fields.take("cpus", machine.cpus, "memory_bytes", machine.memory_bytes);
    machine.bandwidth_bytes_per_s = fields.required_number("bandwidth_bytes_per_s");
    fields.take("micro_batches", machine.micro_batches);
    if (!(machine.bandwidth_bytes_per_s > 0))
      throw ArgumentError("machine: field 'bandwidth_bytes_per_s': expected a number above 0");
    fields.refuse_unknown();
    return machine;
  }
};

/// Devices as scripts see them: accelerators from 1, the CPUs 0, -1, ...
int32_t shown_device(int32_t device, const PipelineMachine& machine) {
  return device < machine.devices ? device + 1 : machine.devices - device;
}

/// The device of every node at the top of the stack, a list as scripts see it.
std::vector<int32_t> read_devices(lua_State* L, const PipelineNetwork& network,
                                  const PipelineMachine& machine, const char* name) {
  std::vector<int32_t> device;
  const auto list = integers(L, lua_gettop(L), name);
  if (list.size() != network.nodes.size())
    throw ArgumentError("{}: expected {} devices, got {}", name, network.count(), list.size());
  for (const int64_t shown : list) {
    if (shown > machine.devices || shown <= -machine.cpus)
      throw ArgumentError("{}: expected devices from {} to {}, got {}", name, 1 - machine.cpus, machine.devices, shown);
    device.push_back(static_cast<int32_t>(shown > 0 ? shown - 1 : machine.devices - shown));
  }
  return device;
}

PipelineNetwork::Node read_network_node(lua_State* L) {
  Fields fields(L, lua_gettop(L), "node");
  PipelineNetwork::Node node;
  int32_t unit = 0;
  fields.take_all("time", node.time, "cpu_time", node.cpu_time, "transfer", node.transfer, "output_bytes",
                  node.output_bytes, "parameter_bytes", node.parameter_bytes, "memory_bytes", node.memory_bytes, "unit",
                  unit, "backward", node.backward, "supported", node.supported, "planned", node.planned);
  node.unit = unit - 1;
  return node;
}

/// { id =, time =, parameter_bytes =, bytes_per_batch =, fixed_bytes =, sync_bytes = by edge of the layer }
PiperProblem::Configuration read_configuration(lua_State* L, size_t edges) {
  Fields fields(L, lua_gettop(L), "configuration");
  PiperProblem::Configuration made;
  made.id = fields.required_string("id");
  fields.take("time", made.time, "parameter_bytes", made.parameter_bytes, "bytes_per_batch", made.bytes_per_batch,
              "fixed_bytes", made.fixed_bytes);
  fields.table("sync_bytes", [&] { made.sync_bytes = Numbers<"sync_bytes">::from_stack(L, lua_gettop(L)); });
  fields.refuse_unknown();
  if (made.sync_bytes.size() != edges)
    throw ArgumentError("sync_bytes: expected {} entries, got {}", edges, made.sync_bytes.size());
  return made;
}

/// Reads the layers of a problem of Piper, one per node: lists of { degree =, configurations = }, ascending.
void read_piper_layers(lua_State* L, PiperProblem& problem) {
  problem.index();
  for (size_t l = 0; l < problem.layers.size(); ++l) {
    auto& layer = problem.layers[l];
    lua_rawgeti(L, -1, static_cast<int>(l) + 1);
    table_arg(L, lua_gettop(L), "layer");
    for_each(L, lua_gettop(L), [&](int) {
      Fields fields(L, lua_gettop(L), "degree");
      auto& degree = layer.degrees.emplace_back();
      degree.degree = static_cast<int32_t>(fields.integer("degree", 1, 1, 1 << 20));
      const auto read = [&](int) { degree.configurations.push_back(read_configuration(L, layer.edges.size())); };
      fields.required_table("configurations", [&] { for_each(L, lua_gettop(L), read); });
      fields.refuse_unknown();
      if (degree.configurations.empty()) throw ArgumentError("degree: expected a configuration");
    });
    if (layer.degrees.empty()) throw ArgumentError("layers: expected a degree");
    lua_pop(L, 1);
  }
}

/// pipeline_network({ unit_s =, bandwidth_bytes_per_s =, nodes = rows of PipelineNetwork::Node with units from 1, edges =
/// rows { producer, reader, bytes of Piper's }, layers = Piper's }) -> network
auto pipeline_network(lua_State* L, Options<"network"> fields) {
  PipelineNetwork network;
  fields.take("unit_s", network.unit_s, "bandwidth_bytes_per_s", network.bandwidth_bytes_per_s);
  fields.required_table("nodes", [&] {
    for_each(L, lua_gettop(L), [&](int i) {
      auto& node = network.nodes.emplace_back(read_network_node(L));
      if (node.unit < 0) node.unit = i - 1;
    });
  });
  for (const auto& node : network.nodes)
    if (node.unit >= network.count()) throw ArgumentError("unit: expected at most {}", network.count());
  fields.required_table("edges", [&] {
    for_each(L, lua_gettop(L), [&](int) {
      const auto edge = Numbers<"edge">::from_stack(L, lua_gettop(L));
      const auto is_node = [&](size_t i) { return edge.size() > i && edge[i] >= 1 && edge[i] <= network.count(); };
      if (!is_node(0) || !is_node(1)) throw ArgumentError("edges: expected nodes from 1 to {}", network.count());
      const auto from = static_cast<int32_t>(edge[0]) - 1, to = static_cast<int32_t>(edge[1]) - 1;
      network.edges.emplace_back(from, to);
      network.piper.edges.push_back({from, to, edge.size() > 2 ? edge[2] : 0});
    });
  });
  std::sort(network.edges.begin(), network.edges.end());
  network.edges.erase(std::unique(network.edges.begin(), network.edges.end()), network.edges.end());
  if (fields.push_table("layers")) {
    network.piper.layers.resize(network.nodes.size());
    read_piper_layers(L, network.piper);
    lua_pop(L, 1);
  }
  fields.refuse_unknown();
  return std::make_shared<const PipelineNetwork>(std::move(network));
}

/// pipeline_of(problem) -> network, and its nodes' names
auto pipeline_of(const BoundProblem& of) {
  auto network = std::make_shared<const PipelineNetwork>(network_of(*of.problem));
  auto names = list_of(network->operators, [&](int32_t o) { return of.problem->graph().op(o).name; });
  return std::tuple(std::move(network), std::move(names));
}

/// Pushes { feasible =, max_load =, optimal =, assignment =, loads =, infeasibility = { device = and needed_bytes =,
/// node = } } of a cut, what there is.
void push_cut(lua_State* L, const LoadInstance& instance, const PipelineMachine& machine, const MaxLoadCut& cut) {
  push(L, record("feasible", cut.feasible, "optimal", cut.exact));
  if (cut.device.empty()) return;
  const auto shown = list_of(cut.device, [&](int32_t d) { return shown_device(d, machine); });
  set_fields(L, "max_load", cut.load_s, "loads", max_load_loads_s(instance, cut.device), "assignment", shown);
  if (cut.feasible) return;
  const auto why = infeasibility_of(instance, cut.device);
  lua_newtable(L);
  if (why.device >= 0)
    set_fields(L, "device", shown_device(why.device, machine), "needed_bytes", why.needed_bytes);
  if (why.node >= 0) set_fields(L, "node", why.node + 1);
  lua_setfield(L, -2, "infeasibility");
}

/// network:max_load(machine, { seconds =, most_ideals =, most_pairs =, orders = }) -> cut
int network_max_load(lua_State* L, const PipelineNetwork& network, const Machine& machine, Options<"max_load"> fields) {
  MaxLoadLimits limits;
  fields.take_all("seconds", limits.seconds, "most_ideals", limits.most_ideals, "most_pairs", limits.most_pairs,
                  "orders", limits.orders);
  const auto instance = load_instance(network, machine);
  const auto cut = max_load_cut(instance, limits);
  push_cut(L, instance, machine, cut);
  if (cut.ideals > 0) set_field(L, "ideals", cut.ideals);
  return 1;
}

/// network:search(machine, { seed =, rounds =, first_round =, trials =, seconds =, starts = }) ->
/// cut; starts is a list of assignments
int network_search(lua_State* L, const PipelineNetwork& network, const Machine& machine, Options<"search"> fields) {
  MaxLoadSearchOptions options;
  fields.take("seed", options.seed, "rounds", options.rounds, "first_round", options.first_round, "trials",
              options.trials, "seconds", options.seconds);
  const auto read = [&](int) { options.starts.push_back(read_devices(L, network, machine, "starts")); };
  fields.table("starts", [&] { for_each(L, lua_gettop(L), read); });
  fields.refuse_unknown();
  const auto instance = load_instance(network, machine);
  push_cut(L, instance, machine, max_load_search(instance, options, shared_pool()));
  return 1;
}

/// network:cuts(machine, rule, { seed =, seconds = }) -> cut
int network_cuts(lua_State* L, const PipelineNetwork& network, const Machine& machine, Text<"rule"> rule) {
  static constexpr const char* kRules[] = {"balanced", "torchgpipe", "equal", "random", "memory", "search"};
  const auto* found = std::find(std::begin(kRules), std::end(kRules), rule);
  if (found == std::end(kRules))
    throw WrongArgument(3, "rule", "expected {}, got '{}'", fmt::join(kRules, ", "), rule);
  table_arg(L, 4, "options");
  Fields fields(L, 4, "cuts");
  CutSearchOptions options;
  fields.take_all("seed", options.seed, "seconds", options.seconds);
  const auto instance = load_instance(network, machine);
  auto device = rule == "search"
                    ? search_cuts(instance, options)
                    : cut_by_rule(instance, static_cast<CutRule>(found - kRules), options.seed);
  push_cut(L, instance, machine, priced_cut(instance, std::move(device)));
  return 1;
}

/// network:price(machine, assignment) -> cut
int network_price(lua_State* L, const PipelineNetwork& network, const Machine& machine, Table<"assignment">) {
  lua_settop(L, 3);
  auto device = read_devices(L, network, machine, "assignment");
  const auto instance = load_instance(network, machine);
  check_load_instance(instance);
  push_cut(L, instance, machine, priced_cut(instance, std::move(device)));
  return 1;
}

/// States of a network in order of their size, from which lib/trinity/pipeline/pipedream.lua chooses.
using PipedreamCuts = std::vector<PipedreamState>;

/// network:pipedream_cuts(which, { seconds =, most = }) -> cuts; nil and why where there are too many for memory; nil
/// where the time is up. which: 'antichains', 'compressed' (antichains of compressed branches), 'chain' (of one order
/// of the layers) or 'few' (at most `most` of these)
int network_pipedream_cuts(lua_State* L, const PipelineNetwork& network, Text<"which"> which,
                           Options<"pipedream_cuts"> fields) {
  double seconds = 1e9;
  int32_t most = 1;
  fields.take_all("seconds", seconds, "most", most);
  const auto deadline = Deadline::in(seconds);
  const auto layers = pipedream_layers(network);
  const auto states = [&] {
    if (which == "antichains") return pipedream_states(layers, deadline);
    if (which == "compressed") return pipedream_states(compress_branches(layers), deadline);
    if (which == "chain") return pipedream_chain(layers, deadline);
    if (which == "few") return pipedream_few(layers, most);
    throw WrongArgument(2, "which", "expected antichains, compressed, chain or few, got '{}'", which);
  };
  try {
    return push_results(L, std::make_shared<const PipedreamCuts>(states()));
  } catch (const LimitError& error) {
    return push_results(L, std::tuple(nullptr, std::string(error.what())));
  } catch (const TimeIsUp&) {
    return push_results(L, nullptr);
  }
}

/// cuts:columns() -> { time_s =, parameter_bytes =, activation_bytes =, output_bytes =: a number each state; after = a
/// byte each pair of states, 1 where the second contains the first }; see PipedreamState.
auto cuts_columns(const PipedreamCuts& cuts) {
  const auto column = [&](double PipedreamState::*field) { return list_of(cuts, field); };
  std::string after(cuts.size() * cuts.size(), '\0');
  for (size_t s = 0; s < cuts.size(); ++s)
    for (const int32_t b : cuts[s].before) after[static_cast<size_t>(b) * cuts.size() + s] = 1;
  return record("time_s", column(&PipedreamState::time_s), "parameter_bytes", column(&PipedreamState::parameter_bytes),
                "activation_bytes", column(&PipedreamState::activation_bytes), "output_bytes",
                column(&PipedreamState::output_bytes), "after", std::move(after));
}

/// cuts:stages(network, last) -> the stage of every node, from 1, by the last state of every stage. Nodes that take no
/// part are with their readers, or with what they read.
int cuts_stages(lua_State* L, const PipedreamCuts& cuts, const PipelineNetwork& network, Numbers<"last"> last) {
  std::vector<int32_t> stage(network.nodes.size(), -1);
  for (size_t s = 0; s < last.size(); ++s) {
    if (!(last[s] >= 1 && last[s] <= static_cast<double>(cuts.size())))
      throw WrongArgument(3, "last", "expected states from 1 to {}, got {}", cuts.size(), last[s]);
    for (const int32_t node : cuts[static_cast<size_t>(last[s]) - 1].layers)
      if (stage.at(static_cast<size_t>(node)) < 0) stage[node] = static_cast<int32_t>(s);
  }
  auto all = stage;
  for (const auto& [from, to] : network.edges) {
    auto &before = all[from], &after = all[to];
    const int32_t known = stage[to];
    if (stage[from] < 0 && known >= 0) before = before < 0 ? known : std::min(before, known);
    if (known < 0) after = std::max(after, stage[from]);
  }
  for (auto& s : all) s = std::max(s, 0);
  return push_results(L, from_1(std::move(all)));
}

/// Pushes one stage: { nodes =, replicas = by level, devices =, first_device =, compute = }.
void push_stage(lua_State* L, const std::vector<int32_t>& nodes,
                const std::vector<int32_t>& replicas, int32_t& next_device) {
  int32_t devices = 1;
  for (const int32_t r : replicas) devices *= r;
  push(L, record("nodes", from_1(nodes), "replicas", replicas, "devices", devices, "first_device", next_device));
  next_device += devices;
}

/// Pushes a stage of Piper's.
void push_piper_stage(lua_State* L, const PiperProblem& problem, const PiperStage& stage,
                      const std::vector<std::vector<int32_t>>& members, int32_t& next,
                      std::vector<int32_t>& assignment) {
  std::vector<int32_t> nodes;
  for (const int32_t layer : stage.layers)
    nodes.insert(nodes.end(), members[layer].begin(), members[layer].end());
  std::sort(nodes.begin(), nodes.end());
  for (const int32_t node : nodes) assignment[node] = next;
  push_stage(L, nodes, {stage.degree, stage.replicas}, next);
  int32_t recomputed = 0;
  for (size_t i = 0; i < stage.layers.size(); ++i)
    for (const auto& degree : problem.layers[stage.layers[i]].degrees)
      if (degree.degree == stage.degree)
        recomputed += degree.configurations[stage.configuration[i]].id == "activation recomp" ? 1 : 0;
  set_fields(L, "replicas", nullptr, "data_parallel", stage.replicas, "tensor_parallel", stage.degree, "load", stage.time,
             "memory_bytes", stage.memory_bytes, "recomputed_layers", recomputed);
}

/// network:piper(machine, { seconds =, most_ideals =, data_parallel =, tensor_parallel = }) ->
/// pipeline
int network_piper(lua_State* L, const PipelineNetwork& network, const Machine& machine, Options<"piper"> fields) {
  PiperLimits limits;
  fields.take_all("seconds", limits.seconds, "most_ideals", limits.most_ideals, "data_parallel", limits.data_parallel,
                  "tensor_parallel", limits.tensor_parallel);
  std::vector<std::vector<int32_t>> members;
  const auto problem = piper_problem(network, machine, members);
  const auto pipeline = piper_pipeline(problem, limits);
  push(L, record("feasible", pipeline.feasible, "optimal", pipeline.exact));
  if (pipeline.ideals > 0) set_field(L, "ideals", pipeline.ideals);
  if (!pipeline.feasible) return 1;
  set_field(L, "max_load", pipeline.time);
  std::vector<int32_t> assignment(network.nodes.size(), 0);
  int32_t next = 1;
  lua_newtable(L);
  for (size_t s = 0; s < pipeline.stages.size(); ++s) {
    push_piper_stage(L, problem, pipeline.stages[s], members, next, assignment);
    lua_rawseti(L, -2, static_cast<int>(s) + 1);
  }
  lua_setfield(L, -2, "stages");
  set_numbers(L, "assignment", assignment);
  return 1;
}

auto shared(LayerRow row) { return std::make_shared<const LayerRow>(std::move(row)); }

/// layer_row(problem) -> row; see layer_row.h.
auto pipeline_layer_row(const BoundProblem& of) { return shared(layer_row_of(*of.problem)); }

/// network:layer_row(machine) -> row
auto network_layer_row(const PipelineNetwork& network, const Machine& machine) {
  return shared(layer_row_of(network, machine));
}

/// Sets field `key` of the table on top to the bytes that cuts send: from [0], after layer l at
/// [l].
void set_cut_bytes(lua_State* L, const char* key, const std::vector<double>& bytes) {
  push(L, std::span(bytes).subspan(bytes.empty() ? 0 : 1));
  if (!bytes.empty()) {
    lua_pushnumber(L, bytes[0]);
    lua_rawseti(L, -2, 0);
  }
  lua_setfield(L, -2, key);
}

/// row:about() -> { layers = their number, layer_of =, type =, parameter_bytes =, fixed_bytes =,
/// activation_bytes =, forward_bytes =, backward_bytes =, kinds =, kind_of = by device }
int row_about(lua_State* L, const LayerRow& row) {
  const auto kind = [](const LayerRow::Kind& of) {
    return record("device", of.device + 1, "forward_s", of.forward_s, "backward_s", of.backward_s, "update_s",
                  of.update_s);
  };
  const auto kind_of = list_of(row.devices, [](const LayerRow::Device& device) { return device.kind + 1; });
  push(L, record("layers", row.count(), "layer_of", from_1(row.layer_of), "type", row.type, "parameter_bytes",
                 row.parameter_bytes, "fixed_bytes", row.fixed_bytes, "activation_bytes", row.activation_bytes, "kinds",
                 list_of(row.kinds, kind), "kind_of", kind_of));
  set_cut_bytes(L, "forward_bytes", row.forward_bytes);
  set_cut_bytes(L, "backward_bytes", row.backward_bytes);
  return 1;
}

/// row:least_load(micro_batches) -> the device of every layer and the load, or nil
int row_least_load(lua_State* L, const LayerRow& row, Integer<"micro_batches", 1, int64_t{1} << 30> micro_batches) {
  auto cut = least_load_cut(row, static_cast<int32_t>(micro_batches));
  if (cut.device_of.empty()) return push_results(L, nullptr);
  return push_results(L, std::tuple(from_1(std::move(cut.device_of)), cut.load_s));
}

/// row:equal_work() -> the device of every layer
auto row_equal_work(const LayerRow& row) { return from_1(equal_work_cut(row)); }

/// row:fastest({ micro_batches =, below_s =, most = }, step_times) -> { tried =, device_of =,
/// step_time_s = }, the last two where a cut is faster than below_s; nil where more would have to
/// be tried. step_times(cuts, below_s) -> seconds of steps, a list
int row_fastest(lua_State* L, const LayerRow& row, Options<"fastest"> fields, Function<"step_times">) {
  FastestOptions options;
  fields.take_all("micro_batches", options.micro_batches, "below_s", options.below_s, "most", options.most_cuts);
  const auto found = fastest_cut(row, options, [L](const auto& cuts, double below_s) {
    lua_pushvalue(L, 3);
    push_list(L, cuts, [L](const auto& device_of) { push_numbers(L, device_of, 1); });
    lua_pushnumber(L, below_s);
    lua_call(L, 2, 1);  // its errors, whatever their type, go on to the script as they are
    std::vector<double> times_s = Numbers<"step_times">::from_stack(L, lua_gettop(L));
    lua_pop(L, 1);
    return times_s;
  });
  if (!found.complete) return push_results(L, nullptr);
  push(L, record("tried", found.tried));
  if (!found.device_of.empty())
    set_fields(L, "device_of", from_1(found.device_of), "step_time_s", found.step_time_s);
  return 1;
}

constexpr luaL_Reg kNetwork[] = {
    TRINITY_BIND("max_load", network_max_load), TRINITY_BIND("search", network_search), TRINITY_BIND("cuts", network_cuts), TRINITY_BIND("price", network_price),
    TRINITY_BIND("pipedream_cuts", network_pipedream_cuts), TRINITY_BIND("piper", network_piper),
    TRINITY_BIND("layer_row", network_layer_row)};
constexpr luaL_Reg kCuts[] = {TRINITY_BIND("columns", cuts_columns), TRINITY_BIND("stages", cuts_stages)};
constexpr luaL_Reg kRow[] = {
    TRINITY_BIND("about", row_about), TRINITY_BIND("least_load", row_least_load),
    TRINITY_BIND("equal_work", row_equal_work), TRINITY_BIND("fastest", row_fastest)};
constexpr luaL_Reg kPipelineFunctions[] = {
    TRINITY_BIND("pipeline_network", pipeline_network), TRINITY_BIND("pipeline_of", pipeline_of),
    TRINITY_BIND("layer_row", pipeline_layer_row)};

}  // namespace

void open_pipeline(lua_State* L) {
  register_functions(L, kPipelineFunctions);
  register_type<const PipelineNetwork>(L, kNetwork);
  register_type<const PipedreamCuts>(L, kCuts);
  register_type<const LayerRow>(L, kRow);
}

}  // namespace trinity::lua
