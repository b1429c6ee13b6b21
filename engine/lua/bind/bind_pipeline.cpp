#include <algorithm>
#include <cmath>

#include "base/words.h"
#include "formats/instances/pipeline_file.h"
#include "lua/bind/module.h"
#include "search/pipeline/layer_cut.h"
#include "search/pipeline/max_load_search.h"
#include "search/pipeline/pipeline_cuts.h"
#include "search/pipeline/pipeline_network.h"

namespace trinity::lua {

template <>
inline constexpr const char* kTypeName<const PipelineNetwork> = "pipeline network";
template <>
inline constexpr const char* kTypeName<const LayerRow> = "layer row";

namespace {

constexpr int64_t kMostDevices = 65536;  // tables have a place for each, whoever calls

/// { devices =, cpus =, memory_bytes =, bandwidth_bytes_per_s =, micro_batches = }
PipelineMachine machine_arg(lua_State* L, int index) {
  table_arg(L, index, "machine");
  Fields fields(L, index, "machine");
  PipelineMachine machine;
  machine.devices = static_cast<int32_t>(fields.integer("devices", 1, 0, kMostDevices));
  fields.take("cpus", machine.cpus);
  fields.take("memory_bytes", machine.memory_bytes);
  machine.bandwidth_bytes_per_s = fields.required_number("bandwidth_bytes_per_s");
  fields.take("micro_batches", machine.micro_batches);
  if (!(machine.bandwidth_bytes_per_s > 0))
    throw ArgumentError("machine: field 'bandwidth_bytes_per_s': expected a number above 0");
  fields.refuse_unknown();
  return machine;
}

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
    throw ArgumentError(
        fmt::format("{}: expected {} devices, got {}", name, network.count(), list.size()));
  for (const int64_t shown : list) {
    if (shown > machine.devices || shown <= -machine.cpus)
      throw ArgumentError(fmt::format("{}: expected devices from {} to {}, got {}", name,
                                      1 - machine.cpus, machine.devices, shown));
    device.push_back(static_cast<int32_t>(shown > 0 ? shown - 1 : machine.devices - shown));
  }
  return device;
}

/// pipeline_network(path) -> network, or nil for a file of another kind
int pipeline_read(lua_State* L) {
  auto network = read_pipeline_network(string_arg(L, 1, "path"));
  if (network)
    push_object<const PipelineNetwork>(
        L, std::make_shared<const PipelineNetwork>(std::move(*network)));
  else
    lua_pushnil(L);
  return 1;
}

/// pipeline_of(problem) -> network
int pipeline_of(lua_State* L) {
  const auto& bound = object_arg<BoundProblem>(L, 1, "problem");
  push_object<const PipelineNetwork>(
      L, std::make_shared<const PipelineNetwork>(network_of(*bound.problem)));
  return 1;
}

/// pipeline_cut(path, instance path, accelerators) -> device of every node, as scripts see them
int pipeline_cut(lua_State* L) {
  PipelineMachine machine;
  auto device = read_pipeline_cut(string_arg(L, 1, "path"), string_arg(L, 2, "instance"));
  machine.devices = static_cast<int32_t>(integer_arg(L, 3, "accelerators", 0, kMostDevices));
  for (auto& d : device) d = shown_device(d, machine);
  return push_numbers(L, device);
}

/// network:about() -> { name =, format =, unit =, nodes = names or numbers, expert = stages or nil,
/// and what the file says of the machine }
int network_about(lua_State* L) {
  const auto& network = object_arg<const PipelineNetwork>(L, 1);
  lua_newtable(L);
  set_field(L, "name", network.name);
  set_field(L, "format", network.format);
  set_field(L, "unit", network.unit);
  set_field(L, "devices", network.devices);
  set_field(L, "cpus", network.cpus);
  set_field(L, "memory_bytes", static_cast<double>(network.memory_bytes));
  set_field(L, "bandwidth_bytes_per_s", network.bandwidth_bytes_per_s);
  set_field(L, "micro_batches", static_cast<double>(network.micro_batches));
  lua_newtable(L);
  std::vector<int32_t> expert;
  for (int32_t n = 0; n < network.count(); ++n) {
    const auto& node = network.nodes[n];
    if (network.numbered_ids)
      lua_pushnumber(L, std::stod(node.id));
    else
      lua_pushlstring(L, node.id.data(), node.id.size());
    lua_rawseti(L, -2, n + 1);
    if (node.expert >= 0) expert.push_back(node.expert + 1);
  }
  lua_setfield(L, -2, "nodes");
  if (expert.size() == network.nodes.size()) set_numbers(L, "expert", expert);
  return 1;
}

/// Sets field `infeasibility` of the table on top: { device = and needed_bytes =, node = }, what
/// there is.
void set_infeasibility(lua_State* L, const LoadInfeasibility& infeasibility,
                       const PipelineMachine& machine) {
  lua_newtable(L);
  if (infeasibility.device >= 0) {
    set_field(L, "device", shown_device(infeasibility.device, machine));
    set_field(L, "needed_bytes", static_cast<double>(infeasibility.needed_bytes));
  }
  if (infeasibility.node >= 0) set_field(L, "node", infeasibility.node + 1);
  lua_setfield(L, -2, "infeasibility");
}

/// Pushes { feasible =, max_load =, optimal =, assignment =, loads =, infeasibility = } of a cut.
void push_cut(lua_State* L, const LoadInstance& instance, const PipelineMachine& machine,
              const MaxLoadCut& cut) {
  lua_newtable(L);
  set_boolean(L, "feasible", cut.feasible);
  set_boolean(L, "optimal", cut.exact);
  if (cut.device.empty()) return;
  set_field(L, "max_load", cut.load_s);
  set_numbers(L, "loads", max_load_loads_s(instance, cut.device));
  std::vector<int32_t> shown;
  for (const int32_t d : cut.device) shown.push_back(shown_device(d, machine));
  set_numbers(L, "assignment", shown);
  if (!cut.feasible) set_infeasibility(L, infeasibility_of(instance, cut.device), machine);
}

/// network:max_load(machine, { seconds =, most_ideals =, most_pairs =, orders = }) -> cut
int network_max_load(lua_State* L) {
  const auto& network = object_arg<const PipelineNetwork>(L, 1);
  const auto machine = machine_arg(L, 2);
  table_arg(L, 3, "options");
  Fields fields(L, 3, "max_load");
  MaxLoadLimits limits;
  fields.take("seconds", limits.seconds);
  fields.take("most_ideals", limits.most_ideals);
  fields.take("most_pairs", limits.most_pairs);
  fields.take("orders", limits.orders);
  fields.refuse_unknown();
  const auto instance = load_instance(network, machine);
  const auto cut = max_load_cut(instance, limits);
  push_cut(L, instance, machine, cut);
  if (cut.ideals > 0) set_field(L, "ideals", cut.ideals);
  return 1;
}

/// network:search(machine, { seed =, rounds =, first_round =, trials =, seconds =, starts = }) ->
/// cut; starts is a list of assignments
int network_search(lua_State* L) {
  const auto& network = object_arg<const PipelineNetwork>(L, 1);
  const auto machine = machine_arg(L, 2);
  table_arg(L, 3, "options");
  Fields fields(L, 3, "search");
  MaxLoadSearchOptions options;
  fields.take("seed", options.seed);
  fields.take("rounds", options.rounds);
  fields.take("first_round", options.first_round);
  fields.take("trials", options.trials);
  fields.take("seconds", options.seconds);
  if (fields.push_table("starts")) {
    for_each(L, lua_gettop(L),
             [&](int) { options.starts.push_back(read_devices(L, network, machine, "starts")); });
    lua_pop(L, 1);
  }
  fields.refuse_unknown();
  const auto instance = load_instance(network, machine);
  push_cut(L, instance, machine, max_load_search(instance, options, shared_pool()));
  return 1;
}

/// network:cuts(machine, rule, { seed =, seconds = }) -> cut
int network_cuts(lua_State* L) {
  static constexpr const char* kRules[] = {"balanced", "torchgpipe", "equal",
                                           "random",   "memory",     "search"};
  const auto& network = object_arg<const PipelineNetwork>(L, 1);
  const auto machine = machine_arg(L, 2);
  const auto rule = string_arg(L, 3, "rule");
  const auto* found = std::find(std::begin(kRules), std::end(kRules), rule);
  if (found == std::end(kRules))
    throw WrongArgument(3, "rule",
                        fmt::format("expected {}, got '{}'", fmt::join(kRules, ", "), rule));
  table_arg(L, 4, "options");
  Fields fields(L, 4, "cuts");
  CutSearchOptions options;
  fields.take("seed", options.seed);
  fields.take("seconds", options.seconds);
  fields.refuse_unknown();
  const auto instance = load_instance(network, machine);
  auto device = rule == "search"
                    ? search_cuts(instance, options)
                    : cut_by_rule(instance, static_cast<CutRule>(found - kRules), options.seed);
  push_cut(L, instance, machine, priced_cut(instance, std::move(device)));
  return 1;
}

/// network:price(machine, assignment) -> cut
int network_price(lua_State* L) {
  const auto& network = object_arg<const PipelineNetwork>(L, 1);
  const auto machine = machine_arg(L, 2);
  table_arg(L, 3, "assignment");
  lua_settop(L, 3);
  auto device = read_devices(L, network, machine, "assignment");
  const auto instance = load_instance(network, machine);
  check_load_instance(instance);
  push_cut(L, instance, machine, priced_cut(instance, std::move(device)));
  return 1;
}

/// A list of { workers =, bandwidth_bytes_per_s = }.
std::vector<PipedreamLevel> levels_arg(lua_State* L, int index) {
  table_arg(L, index, "levels");
  std::vector<PipedreamLevel> levels;
  for_each(L, index, [&](int) {
    Fields fields(L, lua_gettop(L), "level");
    PipedreamLevel level;
    level.workers = static_cast<int32_t>(fields.integer("workers", 1, 0, kMostDevices));
    level.bandwidth_bytes_per_s = fields.required_number("bandwidth_bytes_per_s");
    fields.refuse_unknown();
    levels.push_back(level);
  });
  return levels;
}

/// The stage of every node; those that take no part are with their readers, or with what they read.
std::vector<int32_t> stages_of(const PipelineNetwork& network, const PipedreamCuts& cuts,
                               const PipedreamPipeline& pipeline) {
  std::vector<int32_t> stage(network.nodes.size(), -1);
  for (size_t s = 0; s < pipeline.stages.size(); ++s)
    for (const int32_t node : cuts.states[pipeline.stages[s].last].layers)
      if (stage[node] < 0) stage[node] = static_cast<int32_t>(s);
  auto all = stage;
  for (const auto& [from, to] : network.edges) {
    auto &before = all[from], &after = all[to];
    const int32_t known = stage[to];
    if (stage[from] < 0 && known >= 0) before = before < 0 ? known : std::min(before, known);
    if (known < 0) after = std::max(after, stage[from]);
  }
  for (auto& s : all) s = std::max(s, 0);
  return all;
}

/// Pushes one stage: { nodes =, replicas = by level, devices =, first_device =, compute = }.
void push_stage(lua_State* L, const std::vector<int32_t>& nodes,
                const std::vector<int32_t>& replicas, int32_t& next_device) {
  lua_newtable(L);
  set_numbers(L, "nodes", nodes, 1);
  set_numbers(L, "replicas", replicas);
  int32_t devices = 1;
  for (const int32_t r : replicas) devices *= r;
  set_field(L, "devices", devices);
  set_field(L, "first_device", next_device);
  next_device += devices;
}

void push_stages(lua_State* L, const PipelineNetwork& network, const PipedreamCuts& cuts,
                 const PipedreamPipeline& pipeline) {
  const auto stage = stages_of(network, cuts, pipeline);
  std::vector<int32_t> first;
  int32_t next = 1;
  lua_newtable(L);
  for (size_t s = 0; s < pipeline.stages.size(); ++s) {
    std::vector<int32_t> nodes;
    for (int32_t n = 0; n < network.count(); ++n)
      if (stage[n] == static_cast<int32_t>(s)) nodes.push_back(n);
    const auto& about = pipeline.stages[s];
    first.push_back(next);
    push_stage(L, nodes, about.replicas, next);
    const double before = about.first < 0 ? 0 : cuts.states[about.first].time_s;
    set_field(L, "compute", (cuts.states[about.last].time_s - before) / network.unit_s);
    lua_rawseti(L, -2, static_cast<int>(s) + 1);
  }
  lua_setfield(L, -2, "stages");
  std::vector<int32_t> assignment;
  for (const int32_t s : stage) assignment.push_back(first[s]);
  set_numbers(L, "assignment", assignment);
}

/// network:pipedream(levels, { transfers =, compression =, straight =, fewer =, paper =,
/// memory_bytes =, compress = 'auto' | 'yes' | 'no', seconds = }) -> pipeline
int network_pipedream(lua_State* L) {
  const auto& network = object_arg<const PipelineNetwork>(L, 1);
  const auto levels = levels_arg(L, 2);
  table_arg(L, 3, "options");
  Fields fields(L, 3, "pipedream");
  PipedreamOptions options;
  fields.take("transfers", options.transfers);
  fields.take("compression", options.compression);
  fields.take("straight", options.straight);
  fields.take("fewer", options.fewer);
  fields.take("paper", options.paper);
  fields.take("memory_bytes", options.memory_bytes);
  const auto compress = fields.string("compress", "auto");
  const double seconds = fields.number("seconds", 1e9);
  fields.refuse_unknown();
  if (!(options.compression > 0))
    throw ArgumentError("pipedream: field 'compression': expected a number above 0");
  const auto [cuts, pipeline, complete] =
      find_pipedream_pipeline(pipedream_layers(network), levels, options, compress, seconds);
  lua_newtable(L);
  set_boolean(L, "feasible", pipeline.feasible);
  set_boolean(L, "complete", complete);
  set_field(L, "states", static_cast<double>(cuts.states.size()));
  set_field(L, "cuts", std::string(cuts.kind));
  set_field(L, "data_parallel", pipeline.data_parallel_s / network.unit_s);
  if (!pipeline.feasible) return 1;
  set_field(L, "max_load", pipeline.time_s / network.unit_s);
  push_stages(L, network, cuts, pipeline);
  return 1;
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
  lua_pushnil(L);
  lua_setfield(L, -2, "replicas");
  set_field(L, "data_parallel", stage.replicas);
  set_field(L, "tensor_parallel", stage.degree);
  set_field(L, "load", stage.time);
  set_field(L, "memory_bytes", stage.memory_bytes);
  int32_t recomputed = 0;
  for (size_t i = 0; i < stage.layers.size(); ++i)
    for (const auto& degree : problem.layers[stage.layers[i]].degrees)
      if (degree.degree == stage.degree)
        recomputed +=
            degree.configurations[stage.configuration[i]].id == "activation recomp" ? 1 : 0;
  set_field(L, "recomputed_layers", recomputed);
}

/// network:piper(machine, { seconds =, most_ideals =, data_parallel =, tensor_parallel = }) ->
/// pipeline
int network_piper(lua_State* L) {
  const auto& network = object_arg<const PipelineNetwork>(L, 1);
  const auto machine = machine_arg(L, 2);
  table_arg(L, 3, "options");
  Fields fields(L, 3, "piper");
  PiperLimits limits;
  fields.take("seconds", limits.seconds);
  fields.take("most_ideals", limits.most_ideals);
  fields.take("data_parallel", limits.data_parallel);
  fields.take("tensor_parallel", limits.tensor_parallel);
  fields.refuse_unknown();
  std::vector<std::vector<int32_t>> members;
  const auto problem = piper_problem(network, machine, members);
  const auto pipeline = piper_pipeline(problem, limits);
  lua_newtable(L);
  set_boolean(L, "feasible", pipeline.feasible);
  set_boolean(L, "optimal", pipeline.exact);
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

int push_row(lua_State* L, LayerRow row) {
  push_object<const LayerRow>(L, std::make_shared<const LayerRow>(std::move(row)));
  return 1;
}

/// layer_row(problem) -> row; see layer_row.h.
int pipeline_layer_row(lua_State* L) {
  return push_row(L, layer_row_of(*object_arg<BoundProblem>(L, 1, "problem").problem));
}

/// network:layer_row(machine) -> row
int network_layer_row(lua_State* L) {
  return push_row(L, layer_row_of(object_arg<const PipelineNetwork>(L, 1), machine_arg(L, 2)));
}

/// Sets field `key` of the table on top to what cuts send: from [0], behind layer l at [l].
void set_cut_bytes(lua_State* L, const char* key, const std::vector<double>& bytes) {
  lua_newtable(L);
  for (size_t c = 0; c < bytes.size(); ++c) {
    lua_pushnumber(L, bytes[c]);
    lua_rawseti(L, -2, static_cast<int>(c));
  }
  lua_setfield(L, -2, key);
}

void push_kind(lua_State* L, const LayerRow::Kind& kind) {
  lua_newtable(L);
  set_field(L, "device", kind.device + 1);
  set_numbers(L, "forward_s", kind.forward_s);
  set_numbers(L, "backward_s", kind.backward_s);
  set_numbers(L, "update_s", kind.update_s);
}

/// row:about() -> { layers = their number, layer_of =, type =, parameter_bytes =, fixed_bytes =,
/// activation_bytes =, forward_bytes =, backward_bytes =, kinds =, kind_of = by device }
int row_about(lua_State* L) {
  const auto& row = object_arg<const LayerRow>(L, 1);
  lua_newtable(L);
  set_field(L, "layers", row.count());
  set_numbers(L, "layer_of", row.layer_of, 1);
  push_list(L, row.type,
            [L](const std::string& type) { lua_pushlstring(L, type.data(), type.size()); });
  lua_setfield(L, -2, "type");
  set_numbers(L, "parameter_bytes", row.parameter_bytes);
  set_numbers(L, "fixed_bytes", row.fixed_bytes);
  set_numbers(L, "activation_bytes", row.activation_bytes);
  set_cut_bytes(L, "forward_bytes", row.forward_bytes);
  set_cut_bytes(L, "backward_bytes", row.backward_bytes);
  push_list(L, row.kinds, [L](const LayerRow::Kind& kind) { push_kind(L, kind); });
  lua_setfield(L, -2, "kinds");
  push_list(L, row.devices,
            [L](const LayerRow::Device& device) { lua_pushinteger(L, device.kind + 1); });
  lua_setfield(L, -2, "kind_of");
  return 1;
}

/// row:least_load(micro_batches) -> the device of every layer and the load, or nil
int row_least_load(lua_State* L) {
  const auto& row = object_arg<const LayerRow>(L, 1);
  const auto micro_batches =
      static_cast<int32_t>(integer_arg(L, 2, "micro_batches", 1, int64_t{1} << 30));
  const auto cut = least_load_cut(row, micro_batches);
  if (cut.device_of.empty()) {
    lua_pushnil(L);
    return 1;
  }
  push_numbers(L, cut.device_of, 1);
  lua_pushnumber(L, cut.load_s);
  return 2;
}

/// row:equal_work() -> the device of every layer
int row_equal_work(lua_State* L) {
  return push_numbers(L, equal_work_cut(object_arg<const LayerRow>(L, 1)), 1);
}

/// row:fastest({ micro_batches =, below_s =, most = }, step_times) -> { tried =, device_of =,
/// step_time_s = }, the last two where a cut is faster than below_s; nil where more would have to
/// be tried. step_times(cuts, below_s) -> seconds of steps, a list
int row_fastest(lua_State* L) {
  const auto& row = object_arg<const LayerRow>(L, 1);
  table_arg(L, 2, "options");
  function_arg(L, 3, "step_times");
  Fields fields(L, 2, "fastest");
  FastestOptions options;
  fields.take("micro_batches", options.micro_batches);
  fields.take("below_s", options.below_s);
  fields.take("most", options.most_cuts);
  fields.refuse_unknown();
  const auto found = fastest_cut(row, options, [L](const auto& cuts, double below_s) {
    lua_pushvalue(L, 3);
    push_list(L, cuts, [L](const auto& device_of) { push_numbers(L, device_of, 1); });
    lua_pushnumber(L, below_s);
    lua_call(L, 2, 1);  // its errors, whatever their type, go on to the script as they are
    table_arg(L, lua_gettop(L), "step_times");
    std::vector<double> times_s;
    for_each(L, lua_gettop(L),
             [&](int) { times_s.push_back(number_arg(L, lua_gettop(L), "step_times")); });
    lua_pop(L, 1);
    return times_s;
  });
  if (!found.complete) {
    lua_pushnil(L);
    return 1;
  }
  lua_newtable(L);
  set_field(L, "tried", static_cast<double>(found.tried));
  if (found.device_of.empty()) return 1;
  set_numbers(L, "device_of", found.device_of, 1);
  set_field(L, "step_time_s", found.step_time_s);
  return 1;
}

constexpr luaL_Reg kNetwork[] = {
    TRINITY_BIND("about", network_about),   TRINITY_BIND("max_load", network_max_load),
    TRINITY_BIND("search", network_search), TRINITY_BIND("cuts", network_cuts),
    TRINITY_BIND("price", network_price),   TRINITY_BIND("pipedream", network_pipedream),
    TRINITY_BIND("piper", network_piper),   TRINITY_BIND("layer_row", network_layer_row)};
constexpr luaL_Reg kRow[] = {
    TRINITY_BIND("about", row_about), TRINITY_BIND("least_load", row_least_load),
    TRINITY_BIND("equal_work", row_equal_work), TRINITY_BIND("fastest", row_fastest)};
constexpr luaL_Reg kPipelineFunctions[] = {
    TRINITY_BIND("pipeline_network", pipeline_read), TRINITY_BIND("pipeline_of", pipeline_of),
    TRINITY_BIND("layer_row", pipeline_layer_row), TRINITY_BIND("pipeline_cut", pipeline_cut)};

}  // namespace

void open_pipeline(lua_State* L) {
  register_functions(L, kPipelineFunctions);
  register_type<const PipelineNetwork>(L, kNetwork);
  register_type<const LayerRow>(L, kRow);
}

}  // namespace trinity::lua
