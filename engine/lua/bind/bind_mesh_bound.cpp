#include "lua/bind/module.h"
#include "simulator/mesh/mesh_bound.h"

namespace trinity::lua {
namespace {

MeshBounder& bounder_of(BoundProblem& self) {
  if (!self.bounder) self.bounder = std::make_shared<MeshBounder>(self.problem, shared_pool());
  return *self.bounder;
}

void set_seconds(lua_State* L, const char* name, double ns) { set_field(L, name, ns / 1e9); }

void push_unit(lua_State* L, const UnitProfile& unit) {
  lua_newtable(L);
  set_seconds(L, "forward_s", unit.forward.alone);
  set_seconds(L, "forward_to_next_s", unit.forward.to_next);
  set_seconds(L, "backward_s", unit.backward.alone);
  set_seconds(L, "backward_to_next_s", unit.backward.to_next);
  set_seconds(L, "forward_hands_on_s", unit.forward.hands_on);
  set_seconds(L, "backward_hands_on_s", unit.backward.hands_on);
  set_seconds(L, "forward_work_s", unit.forward_work_ns);
  set_seconds(L, "backward_work_s", unit.backward_work_ns);
  set_seconds(L, "forward_launch_s", unit.forward_launch_ns);
  set_seconds(L, "backward_launch_s", unit.backward_launch_ns);
  set_seconds(L, "forward_dispatch_s", unit.forward_dispatch_ns);
  set_seconds(L, "backward_dispatch_s", unit.backward_dispatch_ns);
  set_seconds(L, "weight_s", unit.weight_ns);
  set_seconds(L, "update_s", unit.update_ns);
  set_seconds(L, "spread_update_s", unit.spread_update_ns);
  const auto set_bytes = [L](const char* name, const char* spread, const SpreadBytes& bytes) {
    set_field(L, name, static_cast<double>(bytes.all));
    set_field(L, spread, static_cast<double>(bytes.spread));
  };
  set_bytes("weight_bytes", "spread_weight_bytes", unit.weights);
  set_bytes("optimizer_bytes", "spread_optimizer_bytes", unit.optimizer);
  set_bytes("gradient_bytes", "spread_gradient_bytes", unit.gradients);
  set_bytes("trained_bytes", "spread_trained_bytes", unit.trained);
  set_field(L, "kept_bytes", static_cast<double>(unit.kept_bytes));
}

int32_t layers_arg(lua_State* L, int index) {
  if (lua_isnoneornil(L, index)) return 0;
  return static_cast<int32_t>(integer_arg(L, index, "layers", 1, 1 << 20));
}

/// problem:mesh_units(strategy, stage, layers or nil) -> the network's units on the first device of a stage (from
/// 1) of the pipeline: what stands before the layers, the layers, what stands behind them
/// (simulator/mesh/unit_profile.h). layers: of a network of which this is a short form
/// (simulator/mesh/mesh_bound.h).
int problem_mesh_units(lua_State* L) {
  auto& self = object_arg<BoundProblem>(L, 1);
  const auto given = parallelism_arg(L, 2);
  const auto stage = static_cast<int32_t>(integer_arg(L, 3, "stage", 1, given.mesh.pipeline));
  push_list(L, bounder_of(self).units(given, stage - 1, layers_arg(L, 4)),
            [L](const UnitProfile& unit) { push_unit(L, unit); });
  return 1;
}

/// problem:mesh_bounds(strategies, layers or nil) -> of each { step_time_s =, memory_bytes = {a number a stage of the
/// pipeline}, weight_bytes =,
/// optimizer_bytes =, gradient_bytes = likewise, tasks = of a simulation } that no simulation comes below (simulator/mesh/mesh_bound.h), or
/// { refused = why }.
int problem_mesh_bounds(lua_State* L) {
  auto& self = object_arg<BoundProblem>(L, 1);
  table_arg(L, 2, "strategies");
  std::vector<Parallelism> strategies;
  for_each(L, 2, [&](int) { strategies.push_back(parallelism_arg(L, lua_gettop(L))); });
  push_list(L, bounder_of(self).run(strategies, layers_arg(L, 3)), [L](const MeshBound& bound) {
    lua_newtable(L);
    if (!bound.refused.empty()) return set_field(L, "refused", bound.refused);
    set_seconds(L, "step_time_s", static_cast<double>(bound.step_time_ns));
    set_numbers(L, "memory_bytes", bound.memory_bytes);
    set_numbers(L, "weight_bytes", bound.weight_bytes);
    set_numbers(L, "optimizer_bytes", bound.optimizer_bytes);
    set_numbers(L, "gradient_bytes", bound.gradient_bytes);
    set_field(L, "tasks", static_cast<double>(bound.tasks));
  });
  return 1;
}

constexpr luaL_Reg kBounds[] = {TRINITY_BIND("mesh_units", problem_mesh_units),
                                TRINITY_BIND("mesh_bounds", problem_mesh_bounds)};

}  // namespace

void open_mesh_bound(lua_State* L) {
  luaL_getmetatable(L, kTypeName<BoundProblem>);
  lua_getfield(L, -1, "__index");
  register_functions(L, kBounds, kTypeName<BoundProblem>, true);
  lua_pop(L, 2);
}

}  // namespace trinity::lua
