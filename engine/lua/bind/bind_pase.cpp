#include <array>

#include "lua/bind/module.h"
#include "search/pase/pase_search.h"
#include "selection/selection_solver.h"

namespace trinity::lua {

template <>
inline constexpr const char* kTypeName<const PaseProblem> = "pase";

namespace {

using Bound = const PaseProblem;

PaseOptions read_options(lua_State* L, int index) {
  Fields fields(L, index, "trinity.pase");
  PaseOptions o;
  fields.take("devices", o.devices, "peak_flops", o.peak_flops, "bandwidth_bytes_per_s", o.bandwidth_bytes_per_s,
              "word_bytes", o.word_bytes, "cutoff", o.cutoff);
  o.factors = parse_choice<PaseOptions::Factors>(fields.string("factors", "divisors"));
  fields.take_all("halo", o.halo, "sum_edges", o.sum_edges);
  return o;
}

/// core.pase(graph, options): the layers of a graph with their configurations and cost tables.
auto pase_new(lua_State* L, const Graph& graph, Table<"options">) {
  const auto options = read_options(L, 2);
  return std::make_shared<Bound>(pase_problem(pase_layers(graph), options));
}

/// pase:summary(): { name =, devices =, layers = { { name =, type =, kind =, dimensions =, ... } },
/// edges = { { from, to } }, entries = }; one edge a pair of layers.
auto pase_summary(const Bound& self) {
  const auto dimension = [](const auto& of) {
    return record("name", of.name, "size", of.size, "role", choice_name(of.role), "splits", of.splits);
  };
  size_t i = 0;
  const auto layer = [&](const auto& of) {
    return record("name", of.name, "type", of.type, "kind", choice_name(of.kind), "pointwise", of.pointwise,
                  "configurations", self.configurations[i++].size(), "dimensions", list_of(of.dimensions, dimension),
                  "operators", from_1(of.operators));
  };
  const auto& selection = self.selection;
  const auto edge = [](const auto& of) { return from_1(std::array{of.from, of.to}); };
  return record("name", self.graph.name, "devices", self.options.devices, "entries",
                selection.node_costs.size() + selection.edge_costs.size(), "layers", list_of(self.graph.layers, layer),
                "edges", list_of(selection.edges, edge));
}

size_t layer_arg(lua_State* L, const PaseProblem& self, int index) {
  const auto layers = static_cast<int64_t>(self.graph.layers.size());
  return static_cast<size_t>(integer_arg(L, index, "layer", 1, layers) - 1);
}

/// pase:configuration(layer, strategy) -> a factor per dimension.
int pase_configuration(lua_State* L, const Bound& self) {
  const auto& list = self.configurations[layer_arg(L, self, 2)];
  const auto strategy = integer_arg(L, 3, "strategy", 1, static_cast<int64_t>(list.size()));
  return push_numbers(L, list[strategy - 1]);
}

Configuration read_configuration(lua_State* L, int index, const std::string& owner) {
  Configuration factors;
  for (const int64_t factor : integers(L, index, owner)) {
    if (factor < 1 || factor > 4096)
      throw ArgumentError("{}: expected factors from 1 to 4096, got {}", owner, factor);
    factors.push_back(static_cast<int32_t>(factor));
  }
  return factors;
}

/// pase:find(layer, factors) -> the strategy with these factors, or nil.
int pase_find(lua_State* L, const Bound& self) {
  const auto layer = layer_arg(L, self, 2);
  table_arg(L, 3, "factors");
  const auto found =
      self.find(static_cast<int32_t>(layer), read_configuration(L, 3, "argument 2 ('factors')"));
  if (found < 0) return 0;
  return push_number(L, found + 1);
}

/// A list of configurations, one per layer.
std::vector<Configuration> strategy_arg(lua_State* L, int index) {
  table_arg(L, index, "configurations");
  std::vector<Configuration> strategy;
  for_each(L, index, [&](int i) {
    if (!lua_istable(L, -1))
      throw WrongArgument(index, "configurations", "entry {}: expected a list of factors, got {}", i, type_name(L, -1));
    strategy.push_back(read_configuration(L, lua_gettop(L), fmt::format("layer {}", i)));
  });
  return strategy;
}

/// pase:price(configurations) -> cost, compute, communication in layers, between layers, in FLOP.
auto pase_price(lua_State* L, const Bound& self, Table<"configurations"> configurations) {
  const auto cost = price_strategy(self, strategy_arg(L, configurations));
  return std::tuple(cost.total(), cost.compute, cost.communication, cost.edges);
}

/// pase:layer_cost(layer, strategy) -> compute, communication of a layer, in FLOP.
auto pase_layer_cost(lua_State* L, const Bound& self) {
  const auto layer = layer_arg(L, self, 2);
  const auto& list = self.configurations[layer];
  const auto strategy = integer_arg(L, 3, "strategy", 1, static_cast<int64_t>(list.size()));
  const auto cost = layer_cost(self.graph.layers[layer], list[strategy - 1], self.options);
  return std::tuple(cost.compute, cost.communication);
}

/// pase:edge_cost(edge, from, to) -> what an edge of the summary costs between two strategies, in
/// FLOP.
double pase_edge_cost(lua_State* L, const Bound& self) {
  const auto& selection = self.selection;
  const auto count = static_cast<int64_t>(selection.edges.size());
  const auto edge = static_cast<size_t>(integer_arg(L, 2, "edge", 1, count) - 1);
  const auto [from, to] = selection.edges[edge];
  const auto row = integer_arg(L, 3, "from", 1, selection.strategies(from)) - 1;
  const auto column = integer_arg(L, 4, "to", 1, selection.strategies(to)) - 1;
  return selection.edge_table(edge)[row * selection.strategies(to) + column];
}

/// pase:selection() -> the strategy-selection problem: one node per layer.
auto pase_selection(lua_State* L) {
  const auto& self = handle_arg<Bound>(L, 1);
  return std::shared_ptr<const SelectionProblem>(self, &self->selection);
}

/// pase:walk(start, options) -> strategies, cost, iterations, accepted; see flexflow_walk().
auto pase_walk(lua_State* L, const Bound& self, Table<"start"> start, Options<"pase:walk"> fields) {
  WalkOptions o;
  for (const int64_t strategy : integers(L, start, "argument 1 ('start')"))
    o.start.push_back(static_cast<int32_t>(std::clamp<int64_t>(strategy - 1, -1, 1 << 30)));
  fields.take_all("seed", o.seed, "iterations", o.iterations, "alpha_per_ms", o.alpha_per_ms);
  o.flops = self.options.peak_flops;
  auto walk = flexflow_walk(self.selection, o);
  return std::tuple(from_1(std::move(walk.choice)), walk.cost, walk.iterations, walk.accepted);
}

/// pase:tofu() -> a configuration per layer.
auto pase_tofu(const Bound& self) { return tofu_split(self, shared_pool()); }

/// pase:splits(graph, configurations, devices) -> { { operator =, factors =, copies =, devices = }
/// } for the operators that are split; `devices`: the numbers of those to use.
int pase_splits_of(lua_State* L, const Bound& self, const Graph& graph) {
  const auto strategy = strategy_arg(L, 3);
  table_arg(L, 4, "devices");
  std::vector<int32_t> devices;
  for (const int64_t device : integers(L, 4, "argument 3 ('devices')"))
    devices.push_back(static_cast<int32_t>(std::clamp<int64_t>(device, 0, 1 << 20) - 1));
  push_splits(L, pase_splits(graph, self, strategy, devices));
  return 1;
}

constexpr luaL_Reg kPase[] = {
    TRINITY_BIND("summary", pase_summary), TRINITY_BIND("configuration", pase_configuration),
    TRINITY_BIND("find", pase_find), TRINITY_BIND("price", pase_price), TRINITY_BIND("layer_cost", pase_layer_cost),
    TRINITY_BIND("edge_cost", pase_edge_cost), TRINITY_BIND("selection", pase_selection),
    TRINITY_BIND("walk", pase_walk), TRINITY_BIND("tofu", pase_tofu), TRINITY_BIND("splits", pase_splits_of)};
constexpr luaL_Reg kPaseFunctions[] = {TRINITY_BIND("pase", pase_new)};

}  // namespace

void open_pase(lua_State* L) {
  register_functions(L, kPaseFunctions);
  register_type<Bound>(L, kPase);
}

}  // namespace trinity::lua
