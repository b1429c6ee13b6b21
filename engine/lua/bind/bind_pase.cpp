#include <array>

#include "lua/bind/module.h"
#include "search/pase/pase_search.h"
#include "search/pase/pase_splits.h"
#include "selection/selection_solver.h"

namespace trinity::lua {

template <>
inline constexpr const char* kTypeName<const PaseProblem> = "pase";

namespace {

using Bound = const PaseProblem;

PaseOptions read_options(lua_State* L, int index) {
  Fields fields(L, index, "trinity.pase");
  PaseOptions o;
  fields.take("devices", o.devices);
  fields.take("peak_flops", o.peak_flops);
  fields.take("bandwidth_bytes_per_s", o.bandwidth_bytes_per_s);
  fields.take("word_bytes", o.word_bytes);
  fields.take("cutoff", o.cutoff);
  o.factors = parse_factors(fields.string("factors", "divisors"));
  fields.take("halo", o.halo);
  fields.take("sum_edges", o.sum_edges);
  fields.refuse_unknown();
  return o;
}

/// core.pase(graph, options): the layers of a graph with their configurations and cost tables.
int pase_new(lua_State* L) {
  const auto& graph = object_arg<const Graph>(L, 1, "graph");
  table_arg(L, 2, "options");
  const auto options = read_options(L, 2);
  push_object<Bound>(L, std::make_shared<Bound>(pase_problem(pase_layers(graph), options)));
  return 1;
}

void push_layer(lua_State* L, const PaseProblem& self, size_t i) {
  const auto& layer = self.graph.layers[i];
  lua_createtable(L, 0, 7);
  set_field(L, "name", layer.name);
  set_field(L, "type", layer.type);
  set_field(L, "kind", layer_kind_name(layer.kind));
  set_field(L, "pointwise", layer.pointwise);
  set_field(L, "configurations", static_cast<double>(self.configurations[i].size()));
  lua_createtable(L, static_cast<int>(layer.dimensions.size()), 0);
  for (size_t d = 0; d < layer.dimensions.size(); ++d) {
    lua_createtable(L, 0, 4);
    set_field(L, "name", layer.dimensions[d].name);
    set_field(L, "size", static_cast<double>(layer.dimensions[d].size));
    set_field(L, "role", dimension_role_name(layer.dimensions[d].role));
    set_boolean(L, "splits", layer.dimensions[d].splits);
    lua_rawseti(L, -2, static_cast<int>(d) + 1);
  }
  lua_setfield(L, -2, "dimensions");
  set_numbers(L, "operators", layer.operators, 1);
}

/// pase:summary(): { name =, devices =, layers = { { name =, type =, kind =, dimensions =, ... } },
/// edges = { { from, to } }, entries = }; one edge a pair of layers.
int pase_summary(lua_State* L) {
  const auto& self = object_arg<Bound>(L, 1);
  const auto& selection = self.selection;
  lua_createtable(L, 0, 5);
  set_field(L, "name", self.graph.name);
  set_field(L, "devices", self.options.devices);
  set_field(L, "entries",
            static_cast<double>(selection.node_costs.size() + selection.edge_costs.size()));
  size_t i = 0;
  push_list(L, self.graph.layers, [&](const auto&) { push_layer(L, self, i++); });
  lua_setfield(L, -2, "layers");
  push_list(L, selection.edges, [&](const auto& edge) {
    push_numbers(L, std::array{edge.from, edge.to}, 1);
  });
  lua_setfield(L, -2, "edges");
  return 1;
}

size_t layer_arg(lua_State* L, const PaseProblem& self, int index) {
  const auto layers = static_cast<int64_t>(self.graph.layers.size());
  return static_cast<size_t>(integer_arg(L, index, "layer", 1, layers) - 1);
}

/// pase:configuration(layer, strategy) -> a factor per dimension.
int pase_configuration(lua_State* L) {
  const auto& self = object_arg<Bound>(L, 1);
  const auto& list = self.configurations[layer_arg(L, self, 2)];
  const auto strategy = integer_arg(L, 3, "strategy", 1, static_cast<int64_t>(list.size()));
  return push_numbers(L, list[strategy - 1]);
}

Configuration read_configuration(lua_State* L, int index, const std::string& owner) {
  Configuration factors;
  for (const int64_t factor : integers(L, index, owner)) {
    if (factor < 1 || factor > 4096)
      throw ArgumentError(
          fmt::format("{}: expected factors from 1 to 4096, got {}", owner, factor));
    factors.push_back(static_cast<int32_t>(factor));
  }
  return factors;
}

/// pase:find(layer, factors) -> the strategy with these factors, or nil.
int pase_find(lua_State* L) {
  const auto& self = object_arg<Bound>(L, 1);
  const auto layer = layer_arg(L, self, 2);
  table_arg(L, 3, "factors");
  const auto found =
      self.find(static_cast<int32_t>(layer), read_configuration(L, 3, "argument 2 ('factors')"));
  if (found < 0) return 0;
  return push_number(L, found + 1);
}

/// A list of configurations, one a layer.
std::vector<Configuration> strategy_arg(lua_State* L, int index) {
  table_arg(L, index, "configurations");
  std::vector<Configuration> strategy;
  for_each(L, index, [&](int i) {
    if (!lua_istable(L, -1))
      throw WrongArgument(
          index, "configurations",
          fmt::format("entry {}: expected a list of factors, got {}", i, type_name(L, -1)));
    strategy.push_back(read_configuration(L, lua_gettop(L), fmt::format("layer {}", i)));
  });
  return strategy;
}

/// pase:price(configurations) -> cost, compute, communication in layers, between layers, in FLOP.
int pase_price(lua_State* L) {
  const auto cost = price_strategy(object_arg<Bound>(L, 1), strategy_arg(L, 2));
  for (const double value : {cost.total(), cost.compute, cost.communication, cost.edges})
    lua_pushnumber(L, value);
  return 4;
}

/// pase:layer_cost(layer, strategy) -> compute, communication of a layer, in FLOP.
int pase_layer_cost(lua_State* L) {
  const auto& self = object_arg<Bound>(L, 1);
  const auto layer = layer_arg(L, self, 2);
  const auto& list = self.configurations[layer];
  const auto strategy = integer_arg(L, 3, "strategy", 1, static_cast<int64_t>(list.size()));
  const auto cost = layer_cost(self.graph.layers[layer], list[strategy - 1], self.options);
  lua_pushnumber(L, cost.compute);
  lua_pushnumber(L, cost.communication);
  return 2;
}

/// pase:edge_cost(edge, from, to) -> what an edge of the summary costs between two strategies, in
/// FLOP.
int pase_edge_cost(lua_State* L) {
  const auto& selection = object_arg<Bound>(L, 1).selection;
  const auto count = static_cast<int64_t>(selection.edges.size());
  const auto edge = static_cast<size_t>(integer_arg(L, 2, "edge", 1, count) - 1);
  const auto [from, to] = selection.edges[edge];
  const auto row = integer_arg(L, 3, "from", 1, selection.strategies(from)) - 1;
  const auto column = integer_arg(L, 4, "to", 1, selection.strategies(to)) - 1;
  return push_number(L, selection.edge_table(edge)[row * selection.strategies(to) + column]);
}

/// pase:selection() -> the strategy-selection problem: a node a layer.
int pase_selection(lua_State* L) {
  const auto& self = handle_arg<Bound>(L, 1);
  push_object<const SelectionProblem>(
      L, std::shared_ptr<const SelectionProblem>(self, &self->selection));
  return 1;
}

/// pase:walk(start, options) -> strategies, cost, iterations, accepted; see flexflow_walk().
int pase_walk(lua_State* L) {
  const auto& self = object_arg<Bound>(L, 1);
  table_arg(L, 2, "start");
  table_arg(L, 3, "options");
  WalkOptions o;
  for (const int64_t strategy : integers(L, 2, "argument 1 ('start')"))
    o.start.push_back(static_cast<int32_t>(std::clamp<int64_t>(strategy - 1, -1, 1 << 30)));
  Fields fields(L, 3, "pase:walk");
  fields.take("seed", o.seed);
  fields.take("iterations", o.iterations);
  fields.take("alpha_per_ms", o.alpha_per_ms);
  o.flops = self.options.peak_flops;
  fields.refuse_unknown();
  const auto walk = flexflow_walk(self.selection, o);
  push_numbers(L, walk.choice, 1);
  lua_pushnumber(L, walk.cost);
  lua_pushnumber(L, static_cast<double>(walk.iterations));
  lua_pushnumber(L, static_cast<double>(walk.accepted));
  return 4;
}

/// pase:tofu() -> a configuration per layer.
int pase_tofu(lua_State* L) {
  push_list(L, tofu_split(object_arg<Bound>(L, 1), shared_pool()),
            [&](const auto& factors) { push_numbers(L, factors); });
  return 1;
}

/// pase:splits(graph, configurations, devices) -> { { operator =, factors =, copies =, devices = }
/// } for the operators that are split; `devices`: the numbers of those to use.
int pase_splits_of(lua_State* L) {
  const auto& self = object_arg<Bound>(L, 1);
  const auto& graph = object_arg<const Graph>(L, 2, "graph");
  const auto strategy = strategy_arg(L, 3);
  table_arg(L, 4, "devices");
  std::vector<int32_t> devices;
  for (const int64_t device : integers(L, 4, "argument 3 ('devices')"))
    devices.push_back(static_cast<int32_t>(std::clamp<int64_t>(device, 0, 1 << 20) - 1));
  const auto splits = pase_splits(graph, self, strategy, devices);
  push_splits(L, splits);
  return 1;
}

constexpr luaL_Reg kMethods[] = {TRINITY_BIND("summary", pase_summary),
                                 TRINITY_BIND("configuration", pase_configuration),
                                 TRINITY_BIND("find", pase_find),
                                 TRINITY_BIND("price", pase_price),
                                 TRINITY_BIND("layer_cost", pase_layer_cost),
                                 TRINITY_BIND("edge_cost", pase_edge_cost),
                                 TRINITY_BIND("selection", pase_selection),
                                 TRINITY_BIND("walk", pase_walk),
                                 TRINITY_BIND("tofu", pase_tofu),
                                 TRINITY_BIND("splits", pase_splits_of)};
constexpr luaL_Reg kPaseFunctions[] = {TRINITY_BIND("pase", pase_new)};

}  // namespace

void open_pase(lua_State* L) {
  register_functions(L, kPaseFunctions);
  register_type<Bound>(L, kMethods);
}

}  // namespace trinity::lua
