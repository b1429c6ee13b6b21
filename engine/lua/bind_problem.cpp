#include <algorithm>

#include "lua/module.h"
#include "strategy/strategy.h"

namespace trinity::lua {
namespace {

/// problem(graph, cluster, {rules='standard'|'compat'}) -> problem
int problem_new(lua_State* L) {
  auto graph = handle_arg<const Graph>(L, 1);
  auto cluster = handle_arg<const Cluster>(L, 2);
  const auto name = lua_isnoneornil(L, 3) ? std::string("standard") : string_arg(L, 3, "rules");
  if (name != "standard" && name != "compat")
    throw ArgumentError(fmt::format("unknown simulation rules '{}'{} (known: compat, standard)",
                                    name, suggestion(name, {"compat", "standard"})));
  const auto rules =
      name == "compat" ? SimulationRules::compat() : SimulationRules::standard(*cluster);
  push_object(L, std::make_shared<BoundProblem>(
                     std::make_shared<const Problem>(graph, cluster, rules), shared_pool()));
  return 1;
}

int problem_check_memory(lua_State* L) {
  object_arg<BoundProblem>(L, 1).problem->check_memory();
  return 0;
}

int problem_lower_bound_s(lua_State* L) {
  const auto& problem = *object_arg<BoundProblem>(L, 1).problem;
  lua_pushnumber(L, static_cast<double>(problem.lower_bound_ns()) * 1e-9);
  return 1;
}

/// Writes metrics into the FFI struct at `index`, which must have room for all devices.
void fill(lua_State* L, int index, const Problem& problem, const Metrics& metrics) {
  auto* out = struct_arg<trinity_metrics>(L, index, Magic::metrics, "metrics");
  TRINITY_CHECK_EQ(out->device_count, problem.devices());
  out->step_time_s = metrics.step_time_s();
  out->lower_bound_s = static_cast<double>(problem.lower_bound_ns()) * 1e-9;
  out->peak_memory_bytes = static_cast<double>(metrics.peak_memory_bytes);
  out->peak_communication_bytes = static_cast<double>(metrics.peak_communication_bytes);
  out->total_communication_bytes = static_cast<double>(metrics.total_communication_bytes);
  out->excess_memory_bytes = std::max(0.0, static_cast<double>(metrics.excess_memory_bytes));
  out->transfers = metrics.transfers;
  out->feasible = metrics.feasible();
  double* device = reinterpret_cast<double*>(out + 1);
  for (const auto& values : metrics.devices) {
    *device++ = static_cast<double>(values.compute_busy_ns) * 1e-9;
    *device++ = static_cast<double>(values.peak_memory_bytes);
    *device++ = static_cast<double>(values.bytes_sent);
    *device++ = static_cast<double>(values.bytes_received);
  }
}

/// problem:evaluate(placements, metrics): simulates a list of placements on all threads and fills
/// a list of as many metrics structs.
int problem_evaluate(lua_State* L) {
  auto& self = object_arg<BoundProblem>(L, 1);
  table_arg(L, 2, "placements");
  table_arg(L, 3, "metrics");
  const int count = static_cast<int>(lua_objlen(L, 2));
  const auto n = static_cast<size_t>(self.problem->operators());
  self.placements.resize(static_cast<size_t>(count) * n);
  for_each(L, 2, [&](int i) {
    placement_arg(L, lua_gettop(L), *self.problem,
                  self.placements.data() + static_cast<size_t>(i - 1) * n);
  });
  self.batch.run(self.placements, count, self.metrics);
  for_each(L, 3, [&](int i) {
    fill(L, lua_gettop(L), *self.problem, self.metrics.at(static_cast<size_t>(i - 1)));
  });
  return 0;
}

/// problem:to_json(placement, notes) -> text
int problem_to_json(lua_State* L) {
  const auto& problem = *object_arg<BoundProblem>(L, 1).problem;
  Strategy strategy;
  strategy.placement.resize(static_cast<size_t>(problem.operators()));
  placement_arg(L, 2, problem, strategy.placement.data());
  table_arg(L, 3, "notes");
  std::map<std::string, std::string> notes;
  lua_pushnil(L);
  while (lua_next(L, 3)) {
    const auto key = string_arg(L, -2, "note");
    notes[key] = lua_type(L, -1) == LUA_TNUMBER ? fmt::format("{:.17g}", lua_tonumber(L, -1))
                                                : string_arg(L, -1, "note");
    lua_pop(L, 1);
  }
  const auto text = strategy_to_json(strategy, problem.graph(), problem.cluster(), notes);
  lua_pushlstring(L, text.data(), text.size());
  return 1;
}

/// problem:from_json(text, source, placement) -> {same_graph=, same_cluster=, notes={}}; fills the
/// placement array.
int problem_from_json(lua_State* L) {
  const auto& problem = *object_arg<BoundProblem>(L, 1).problem;
  const auto loaded = strategy_from_json(string_arg(L, 2, "text"), string_arg(L, 3, "source"),
                                         problem.graph(), problem.cluster());
  auto* out = struct_arg<trinity_int32_array>(L, 4, Magic::int32_array, "an int32 array");
  TRINITY_CHECK_EQ(out->length, problem.operators());
  auto* device = reinterpret_cast<int32_t*>(out + 1);
  for (const int32_t d : loaded.strategy.placement) *device++ = d + 1;
  lua_newtable(L);
  set_boolean(L, "same_graph", loaded.same_graph);
  set_boolean(L, "same_cluster", loaded.same_cluster);
  lua_newtable(L);
  for (const auto& [key, value] : loaded.notes) set_field(L, key.c_str(), value);
  lua_setfield(L, -2, "notes");
  return 1;
}

constexpr luaL_Reg kProblem[] = {TRINITY_BIND("check_memory", problem_check_memory),
                                 TRINITY_BIND("lower_bound_s", problem_lower_bound_s),
                                 TRINITY_BIND("evaluate", problem_evaluate),
                                 TRINITY_BIND("to_json", problem_to_json),
                                 TRINITY_BIND("from_json", problem_from_json),
                                 {nullptr, nullptr}};
constexpr luaL_Reg kFunctions[] = {TRINITY_BIND("problem", problem_new), {nullptr, nullptr}};

}  // namespace

void placement_arg(lua_State* L, int index, const Problem& problem, int32_t* out) {
  const auto* array = struct_arg<trinity_int32_array>(L, index, Magic::int32_array, "a placement");
  if (array->length != problem.operators())
    throw ArgumentError(fmt::format("a placement of graph '{}' needs {} entries, got {}",
                                    problem.graph().name(), problem.operators(), array->length));
  const auto* data = reinterpret_cast<const int32_t*>(array + 1);
  for (int32_t i = 0; i < array->length; ++i) out[i] = data[i] - 1;
  check_placement({out, static_cast<size_t>(array->length)}, problem.graph(), problem.cluster());
}

void open_problem(lua_State* L) {
  luaL_register(L, nullptr, kFunctions);
  register_type<BoundProblem>(L, kProblem);
}

}  // namespace trinity::lua
