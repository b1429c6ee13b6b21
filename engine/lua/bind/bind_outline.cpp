#include "formats/export/placement_export.h"
#include "graph/layers.h"
#include "graph/subgraph.h"
#include "lua/bind/module.h"
#include "strategy/mesh_schedule.h"
#include "strategy/own_order.h"

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
    return record("name", collective.name, "kind", choice_name(collective.kind), "bytes", collective.bytes,
                  "members", from_1(collective.members));
  });
}

constexpr luaL_Reg kOutline[] = {
    TRINITY_BIND("module_paths", module_paths), TRINITY_BIND("repeated_layers", layers_of),
    TRINITY_BIND("pipeline_order", pipeline_order), TRINITY_BIND("read_order", read_order),
    TRINITY_BIND("collectives", collectives_of), TRINITY_BIND("subgraph", subgraph_of)};

}  // namespace

void open_outline(lua_State* L) { register_functions(L, kOutline); }

}  // namespace trinity::lua
