#include <algorithm>

#include "formats/export/placement_export.h"
#include "graph/iteration_space.h"
#include "graph/layers.h"
#include "graph/subgraph.h"
#include "lua/bind/module.h"
#include "strategy/mesh_schedule.h"
#include "strategy/own_order.h"
#include "strategy/tensor_pattern.h"

namespace trinity::lua {
namespace {

/// repeated_layers(graph) -> count, stem, layer of every operator: 0 before the first, from 1,
/// count + 1 after the last.
auto layers_of(const Graph& graph) {
  auto layers = repeated_layers(graph);
  return std::tuple(layers.count, layers.stem, from_1(std::move(layers.of)));
}

/// pipeline_order(strategy) -> the tasks of every place on its pipeline, as rows (strategy/own_order.h).
auto pipeline_order(lua_State* L, Given<"strategy"> strategy) {
  const auto given = parallelism_arg(L, strategy);
  check_pipeline(given);
  return order_rows(order_of(given));
}

/// read_order(rows) -> { tasks = rows, micro_batches =, virtual_stages =, schedule = }: what an order of one's own says,
/// and the schedule that has this order, or 'order'.
auto read_order(lua_State* L, Given<"tasks"> rows) {
  const auto order = order_arg(L, rows);
  check_order(order);
  const auto name = schedule_name_of(order);
  return record("tasks", order_rows(order), "micro_batches", micro_batches_of(order), "virtual_stages",
                virtual_stages_of(order), "schedule", name.empty() ? std::string("order") : name);
}

/// The rules of a strategy for single operators, which override the pattern, by operator number.
std::map<int32_t, int32_t> said_of(const Parallelism& given, const Graph& graph) {
  std::map<int32_t, int32_t> said;
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    if (graph.op(op).phase != Phase::forward) continue;
    const auto rule = given.operators.find(graph.op(op).name);
    if (rule == given.operators.end() || !rule->second.split) continue;
    const auto& name = *rule->second.split;
    said[op] = name.empty() ? -1 : iteration_space(graph, op).find(name);
  }
  return said;
}

/// tensor_dimensions(graph, strategy) -> of every operator the first dimension of its iteration
/// space that is cut over the axis `tensor` ('' where none is), and the roles of these.
auto tensor_dimensions(lua_State* L, const Graph& graph, Given<"strategy"> strategy) {
  const auto given = parallelism_arg(L, strategy);
  const auto count = static_cast<size_t>(graph.operator_count());
  const std::vector<int32_t> first_device(count, 0);
  const auto splits = tensor_splits(
      graph, {given.mesh.tensor, 1, given.sequence_parallel, said_of(given, graph)}, first_device);
  std::vector<std::string> names(count), roles(count);
  for (size_t op = 0; op < splits.size(); ++op) {
    const auto& factors = splits[op].factors;
    const auto cut = std::find_if(factors.begin(), factors.end(), [](int32_t factor) { return factor > 1; });
    if (cut == factors.end()) continue;
    const auto space = iteration_space(graph, static_cast<int32_t>(op));
    const auto& dimension = space.dimensions[static_cast<size_t>(cut - factors.begin())];
    names[op] = dimension.name;
    roles[op] = dimension_role_name(dimension.role);
  }
  return std::tuple(std::move(names), std::move(roles));
}

/// subgraph(graph, {numbers}) -> the graph of these operators, what they read of others from data
/// sources (graph/subgraph.h), and of each of its operators the original one (0: a source).
auto subgraph_of(lua_State* L, const Graph& graph, Table<"operators"> operators) {
  std::vector<bool> keep(static_cast<size_t>(graph.operator_count()), false);
  for (const int64_t op : integers(L, operators, "operators"))
    if (op >= 1 && op <= graph.operator_count()) keep[static_cast<size_t>(op - 1)] = true;
  auto made = subgraph(graph, keep, true);
  return std::tuple(std::make_shared<const Graph>(std::move(made.graph)), from_1(std::move(made.origin)));
}

/// module_paths(graph) -> of every operator what module_path() says.
auto module_paths(const Graph& graph) { return list_of(graph.operators(), module_path); }

/// collectives(graph) -> { { name =, kind =, bytes =, members = {operators} } }
auto collectives_of(const Graph& graph) {
  return list_of(graph.collectives(), [](const Collective& collective) {
    return record("name", collective.name, "kind", collective_kind_name(collective.kind), "bytes", collective.bytes,
                  "members", from_1(collective.members));
  });
}

constexpr luaL_Reg kOutline[] = {
    TRINITY_BIND("module_paths", module_paths), TRINITY_BIND("repeated_layers", layers_of),
    TRINITY_BIND("pipeline_order", pipeline_order), TRINITY_BIND("read_order", read_order),
    TRINITY_BIND("collectives", collectives_of), TRINITY_BIND("subgraph", subgraph_of),
    TRINITY_BIND("tensor_dimensions", tensor_dimensions)};

}  // namespace

void open_outline(lua_State* L) { register_functions(L, kOutline); }

}  // namespace trinity::lua
