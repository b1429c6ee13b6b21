#include "formats/export/placement_export.h"
#include "graph/layers.h"
#include "graph/meaning.h"
#include "graph/subgraph.h"
#include "lua/bind/module.h"
#include "strategy/mesh_schedule.h"
#include "strategy/own_order.h"
#include "strategy/splits.h"

namespace trinity::lua {
namespace {

/// iteration_space(graph, operator) -> { { name =, size =, role =, splits = } }, outermost first.
auto iteration_space_of(lua_State* L, const Graph& graph) {
  const auto op = integer_arg(L, 2, "operator", 1, graph.operator_count());
  return list_of(iteration_space(graph, static_cast<int32_t>(op - 1)).dimensions, [](const auto& of) {
    return record("name", of.name, "size", of.size, "role", choice_name(of.role), "splits", of.splits);
  });
}

/// A list field of integers in [low, high], moved down by `down`.
std::vector<int32_t> integer_list(lua_State* L, Fields& fields, const char* key, int64_t low,
                                  int64_t high, int32_t down) {
  std::vector<int32_t> list;
  fields.table(key, [&] {
    for (const int64_t value : integers(L, -1, fields.owner())) {
      if (value < low || value > high)
        throw ArgumentError("{}: field '{}': expected integers from {} to {}, got {}", fields.owner(), key, low, high,
                            value);
      list.push_back(static_cast<int32_t>(value) - down);
    }
  });
  return list;
}

}  // namespace

Splits splits_arg(lua_State* L, int index, const Graph& graph, int32_t devices) {
  table_arg(L, index, "splits");
  Splits splits(static_cast<size_t>(graph.operator_count()));
  for_each(L, index, [&](int i) {
    if (!lua_istable(L, -1))
      throw WrongArgument(index, "splits", "entry {}: expected a table, got {}", i, type_name(L, -1));
    Fields fields(L, lua_gettop(L), fmt::format("splits: entry {}", i));
    const auto op = fields.integer("operator", 0, 0, graph.operator_count());
    if (op == 0)
      throw ArgumentError("{}: field 'operator' is missing", fields.owner());
    auto& split = splits[op - 1];
    split.factors = integer_list(L, fields, "factors", 1, 4096, 0);
    split.devices = integer_list(L, fields, "devices", 1, devices, 1);
    split.copies = static_cast<int32_t>(fields.integer("copies", 1, 1, 4096));
    fields.refuse_unknown();
  });
  return splits;
}

void push_splits(lua_State* L, const Splits& splits) {
  lua_newtable(L);
  int count = 0;
  for (size_t i = 0; i < splits.size(); ++i) {
    if (splits[i] == OperatorSplit{}) continue;
    push(L, record("operator", i + 1, "copies", splits[i].copies, "factors", splits[i].factors, "devices",
                   from_1(splits[i].devices)));
    lua_rawseti(L, -2, ++count);
  }
}

namespace {

/// lower_splits(graph, devices, placement, splits) -> graph, and lists: device of every operator,
/// original operator (0: none), part (from 1). placement: an int32 array. splits: a list of
/// { operator =, factors =, copies =, devices = }.
auto lower(lua_State* L, const Graph& graph, Integer<"devices", 1, 4096> count) {
  const auto devices = static_cast<int32_t>(count);
  const auto given = integers_arg(L, 3, "placement");
  std::vector<int32_t> placement(given.begin(), given.end());
  for (int32_t& device : placement) --device;
  auto lowered = lower_splits(graph, splits_arg(L, 4, graph, devices), placement, devices);
  return std::tuple(std::make_shared<const Graph>(std::move(lowered.graph)), from_1(lowered.each(&OperatorRole::device)),
                    from_1(lowered.each(&OperatorRole::origin)), from_1(lowered.each(&OperatorRole::part)));
}

/// state_meaning(graph) -> the same training graph, with attributes that state the meaning of its
/// operators
auto stated(const Graph& graph) { return std::make_shared<const Graph>(state_meaning(graph)); }

constexpr luaL_Reg kSplitsFunctions[] = {
    TRINITY_BIND("iteration_space", iteration_space_of), TRINITY_BIND("lower_splits", lower),
    TRINITY_BIND("state_meaning", stated)};

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
auto order_of_rows(lua_State* L, Given<"tasks"> rows) {
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
    TRINITY_BIND("pipeline_order", pipeline_order), TRINITY_BIND("read_order", order_of_rows),
    TRINITY_BIND("collectives", collectives_of), TRINITY_BIND("subgraph", subgraph_of)};

}  // namespace

void open_splits(lua_State* L) {
  register_functions(L, kSplitsFunctions);
  register_functions(L, kOutline);
}

}  // namespace trinity::lua
