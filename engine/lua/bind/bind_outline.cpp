#include <algorithm>
#include <limits>

#include "formats/export/placement_export.h"
#include "graph/iteration_space.h"
#include "graph/layers.h"
#include "graph/subgraph.h"
#include "lua/bind/module.h"
#include "strategy/chunk_order.h"
#include "strategy/mesh_schedule.h"
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

const char* work_name(ChunkWork work) {
  constexpr const char* kNames[] = {"F", "B", "I", "W"};
  return kNames[static_cast<size_t>(work)];
}

/// chunk_orders(strategy) -> of every place on the axis `pipeline` three lists, the tasks in order:
/// { work =, chunk =, micro_batch = }, work of forward, backward, its input and its weight part as
/// 'F', 'B', 'I', 'W', numbers from 0.
int chunk_orders(lua_State* L) {
  const auto given = parallelism_arg(L, 1);
  check_pipeline(given);
  const int32_t p = given.mesh.pipeline;
  lua_createtable(L, p, 0);
  for (int32_t device = 0; device < p; ++device) {
    const auto tasks =
        chunk_order(schedule_of(given), p, given.virtual_stages, given.micro_batches, device);
    std::vector<int32_t> chunk, micro_batch;
    lua_createtable(L, 0, 3);
    lua_createtable(L, static_cast<int>(tasks.size()), 0);
    for (size_t i = 0; i < tasks.size(); ++i) {
      lua_pushstring(L, work_name(tasks[i].work));
      lua_rawseti(L, -2, static_cast<int>(i) + 1);
      chunk.push_back(tasks[i].chunk);
      micro_batch.push_back(tasks[i].micro_batch);
    }
    lua_setfield(L, -2, "work");
    push_numbers(L, chunk);
    lua_setfield(L, -2, "chunk");
    push_numbers(L, micro_batch);
    lua_setfield(L, -2, "micro_batch");
    lua_rawseti(L, -2, device + 1);
  }
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

ChunkWork parse_work(const std::string& name) {
  constexpr std::string_view kNames = "FBIW";
  const size_t found = name.size() == 1 ? kNames.find(name) : std::string_view::npos;
  if (found == std::string_view::npos)
    throw ArgumentError(fmt::format("expected work 'F', 'B', 'I' or 'W', got '{}'", name));
  return static_cast<ChunkWork>(found);
}

/// The numbers of the list at `index`, each less by `less`.
std::vector<int32_t> entries_arg(lua_State* L, int index, const char* key, int64_t less) {
  table_arg(L, index, key);
  std::vector<int32_t> list;
  for (const int64_t entry : integers(L, index, key)) {
    if (entry < 0 || entry > std::numeric_limits<int32_t>::max())
      throw ArgumentError(
          fmt::format("argument '{}': expected numbers from 0 to 2^31 - 1, got {}", key, entry));
    list.push_back(static_cast<int32_t>(entry - less));
  }
  return list;
}

/// The list at field `key` of the table at `index`.
std::vector<int32_t> numbers_at(lua_State* L, int index, const char* key) {
  lua_getfield(L, index, key);
  auto list = entries_arg(L, lua_gettop(L), key, 0);
  lua_pop(L, 1);
  return list;
}

/// A list of what chunk_orders() gives.
std::vector<std::vector<ChunkTask>> orders_arg(lua_State* L, int index) {
  table_arg(L, index, "orders");
  std::vector<std::vector<ChunkTask>> orders;
  for_each(L, index, [&](int) {
    const int top = lua_gettop(L);
    table_arg(L, top, "orders");
    const auto chunk = numbers_at(L, top, "chunk");
    const auto micro_batch = numbers_at(L, top, "micro_batch");
    if (chunk.size() != micro_batch.size())
      throw ArgumentError("expected lists of one length");
    std::vector<ChunkTask> tasks;
    lua_getfield(L, top, "work");
    table_arg(L, lua_gettop(L), "work");
    for_each(L, lua_gettop(L), [&](int i) {
      const auto at = static_cast<size_t>(i - 1);
      if (at >= chunk.size()) throw ArgumentError("expected lists of one length");
      tasks.push_back({parse_work(string_arg(L, -1, "work")), chunk[at], micro_batch[at]});
    });
    lua_settop(L, top);
    orders.push_back(std::move(tasks));
  });
  return orders;
}

/// order_schedule(problem, placement, stage, micro_batches, name, orders) -> a schedule, as problem
/// methods take it, that goes by `orders` where schedule `name` has the stages.
int order_schedule(lua_State* L) {
  const auto& self = object_arg<BoundProblem>(L, 1, "problem");
  const auto& graph = self.problem->graph();
  std::vector<int32_t> placement;
  for (const int32_t device : placement_entries(L, 2, graph)) placement.push_back(device - 1);
  const auto stage = entries_arg(L, 3, "stage", 1);
  const auto micro_batches = integer_arg(L, 4, "micro_batches", 1, 1 << 30);
  const auto schedule = parse_pipeline_schedule(string_arg(L, 5, "name"));
  const auto orders = orders_arg(L, 6);
  push_object<const FixedSchedule>(
      L, std::make_shared<const FixedSchedule>(pipeline_schedule(
             graph, placement, self.problem->cluster().device_count(), stage,
             static_cast<int32_t>(micro_batches), schedule, orders)));
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
                                 TRINITY_BIND("chunk_orders", chunk_orders),
                                 TRINITY_BIND("collectives", collectives_of),
                                 TRINITY_BIND("order_schedule", order_schedule),
                                 TRINITY_BIND("subgraph", subgraph_of),
                                 TRINITY_BIND("tensor_dimensions", tensor_dimensions)};

}  // namespace

void open_outline(lua_State* L) { register_functions(L, kOutline); }

}  // namespace trinity::lua
