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
/// count + 1 behind the last.
int layers_of(lua_State* L) {
  const auto layers = repeated_layers(object_arg<const Graph>(L, 1, "graph"));
  lua_pushinteger(L, layers.count);
  lua_pushlstring(L, layers.stem.data(), layers.stem.size());
  push_numbers(L, layers.of, 1);
  return 3;
}

/// pipeline_order(strategy) -> the tasks of every place on its pipeline, as rows (strategy/own_order.h).
int pipeline_order(lua_State* L) {
  const auto given = parallelism_arg(L, 1);
  check_pipeline(given);
  push_order(L, order_of(given));
  return 1;
}

/// read_order(rows) -> { tasks = rows, micro_batches =, virtual_stages =, schedule = }: what an order of one's own says,
/// and the schedule that has this order, or 'order'.
int read_order(lua_State* L) {
  const auto order = order_arg(L, 1);
  check_order(order);
  const auto name = schedule_name_of(order);
  lua_createtable(L, 0, 4);
  push_order(L, order);
  lua_setfield(L, -2, "tasks");
  set_field(L, "micro_batches", micro_batches_of(order));
  set_field(L, "virtual_stages", virtual_stages_of(order));
  set_field(L, "schedule", name.empty() ? std::string("order") : name);
  return 1;
}

/// What a strategy says of operators in place of the pattern, by number.
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
int tensor_dimensions(lua_State* L) {
  const auto& graph = object_arg<const Graph>(L, 1, "graph");
  const auto given = parallelism_arg(L, 2);
  const std::vector<int32_t> first_device(static_cast<size_t>(graph.operator_count()), 0);
  const auto splits = tensor_splits(
      graph, {given.mesh.tensor, 1, given.sequence_parallel, said_of(given, graph)}, first_device);
  lua_createtable(L, graph.operator_count(), 0);
  lua_createtable(L, graph.operator_count(), 0);
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    std::string name, role;
    if (!splits.empty() && !splits[op].factors.empty()) {
      const auto& factors = splits[op].factors;
      const auto cut =
          std::find_if(factors.begin(), factors.end(), [](int32_t factor) { return factor > 1; });
      if (cut != factors.end()) {
        const auto space = iteration_space(graph, op);
        const auto& dimension = space.dimensions[static_cast<size_t>(cut - factors.begin())];
        name = dimension.name;
        role = dimension_role_name(dimension.role);
      }
    }
    lua_pushlstring(L, name.data(), name.size());
    lua_rawseti(L, -3, op + 1);
    lua_pushlstring(L, role.data(), role.size());
    lua_rawseti(L, -2, op + 1);
  }
  return 2;
}

/// subgraph(graph, {numbers}) -> the graph of these operators, what they read of others from data
/// sources (graph/subgraph.h), and of each of its operators the original one (0: a source).
int subgraph_of(lua_State* L) {
  const auto& graph = object_arg<const Graph>(L, 1, "graph");
  table_arg(L, 2, "operators");
  std::vector<bool> keep(static_cast<size_t>(graph.operator_count()), false);
  for (const int64_t op : integers(L, 2, "operators"))
    if (op >= 1 && op <= graph.operator_count()) keep[static_cast<size_t>(op - 1)] = true;
  auto made = subgraph(graph, keep, true);
  push_object<const Graph>(L, std::make_shared<const Graph>(std::move(made.graph)));
  push_numbers(L, made.origin, 1);
  return 2;
}

/// module_paths(graph) -> of every operator what module_path() says.
int module_paths(lua_State* L) {
  const auto& graph = object_arg<const Graph>(L, 1, "graph");
  lua_createtable(L, graph.operator_count(), 0);
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    const auto path = module_path(graph.op(op));
    lua_pushlstring(L, path.data(), path.size());
    lua_rawseti(L, -2, op + 1);
  }
  return 1;
}

/// collectives(graph) -> { { name =, kind =, bytes =, members = {operators} } }
int collectives_of(lua_State* L) {
  const auto& graph = object_arg<const Graph>(L, 1, "graph");
  lua_newtable(L);
  int count = 0;
  for (const auto& collective : graph.collectives()) {
    lua_createtable(L, 0, 4);
    set_field(L, "name", collective.name);
    set_field(L, "kind", std::string(collective_kind_name(collective.kind)));
    set_field(L, "bytes", static_cast<double>(collective.bytes));
    push_numbers(L, collective.members, 1);
    lua_setfield(L, -2, "members");
    lua_rawseti(L, -2, ++count);
  }
  return 1;
}

constexpr luaL_Reg kOutline[] = {TRINITY_BIND("module_paths", module_paths),
                                 TRINITY_BIND("repeated_layers", layers_of),
                                 TRINITY_BIND("pipeline_order", pipeline_order),
                                 TRINITY_BIND("read_order", read_order),
                                 TRINITY_BIND("collectives", collectives_of),
                                 TRINITY_BIND("subgraph", subgraph_of),
                                 TRINITY_BIND("tensor_dimensions", tensor_dimensions)};

}  // namespace

void open_outline(lua_State* L) { register_functions(L, kOutline); }

}  // namespace trinity::lua
