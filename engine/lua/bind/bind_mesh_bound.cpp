#include "lua/bind/module.h"
#include "simulator/mesh/mesh_bound.h"

namespace trinity::lua {
namespace {

MeshBounder& bounder_of(BoundProblem& self) {
  if (!self.bounder) self.bounder = std::make_shared<MeshBounder>(self.problem, shared_pool());
  return *self.bounder;
}

auto unit_of(const UnitProfile& unit) {
  constexpr double kSecond = 1e9;
  return record(
      "forward_s", unit.forward.alone / kSecond, "forward_to_next_s", unit.forward.to_next / kSecond, "backward_s",
      unit.backward.alone / kSecond, "backward_to_next_s", unit.backward.to_next / kSecond,
      "forward_hands_on_s", unit.forward.hands_on / kSecond, "backward_hands_on_s", unit.backward.hands_on / kSecond,
      "forward_dispatch_s", unit.forward_dispatch_ns / kSecond, "backward_dispatch_s",
      unit.backward_dispatch_ns / kSecond, "forward_work_s",
      unit.forward_work_ns / kSecond, "backward_work_s", unit.backward_work_ns / kSecond, "forward_launch_s",
      unit.forward_launch_ns / kSecond, "backward_launch_s", unit.backward_launch_ns / kSecond, "weight_s",
      unit.weight_ns / kSecond, "update_s", unit.update_ns / kSecond, "spread_update_s", unit.spread_update_ns / kSecond,
      "weight_bytes", unit.weights.all, "spread_weight_bytes", unit.weights.spread, "optimizer_bytes", unit.optimizer.all,
      "spread_optimizer_bytes", unit.optimizer.spread, "gradient_bytes", unit.gradients.all, "spread_gradient_bytes",
      unit.gradients.spread, "trained_bytes", unit.trained.all, "spread_trained_bytes", unit.trained.spread, "kept_bytes",
      unit.kept_bytes);
}

using Layers = Optional<Integer<"layers", 1, 1 << 20>>;
int32_t count_of(const Layers& layers) { return layers ? static_cast<int32_t>(*layers) : 0; }

/// problem:mesh_units(strategy, stage, layers or nil) -> the network's units on the first device of a stage (from
/// 1) of the pipeline: the part before the layers, the layers, the part after them
/// (simulator/mesh/unit_profile.h). layers: of a network of which this is a short form
/// (simulator/mesh/mesh_bound.h).
auto problem_mesh_units(lua_State* L, BoundProblem& self, Given<"strategy"> strategy, Given<"stage"> at, Layers layers) {
  const auto given = parallelism_arg(L, strategy);
  const auto stage = static_cast<int32_t>(integer_arg(L, at, "stage", 1, given.mesh.pipeline));
  return list_of(bounder_of(self).units(given, stage - 1, count_of(layers)), unit_of);
}

/// problem:mesh_bounds(strategies, layers or nil) -> of each { step_time_s =, memory_bytes = {a number a stage of the
/// pipeline}, weight_bytes =, optimizer_bytes =, gradient_bytes = likewise, tasks = of a simulation } that no simulation
/// comes below (simulator/mesh/mesh_bound.h), or { refused = why }.
int problem_mesh_bounds(lua_State* L, BoundProblem& self, Table<"strategies"> list, Layers layers) {
  std::vector<Parallelism> strategies;
  for_each(L, list, [&](int) { strategies.push_back(parallelism_arg(L, lua_gettop(L))); });
  push_list(L, bounder_of(self).run(strategies, count_of(layers)), [L](const MeshBound& bound) {
    if (!bound.refused.empty()) return push(L, record("refused", bound.refused));
    push(L, record("step_time_s", static_cast<double>(bound.step_time_ns) / 1e9, "memory_bytes", bound.memory_bytes,
                   "weight_bytes", bound.weight_bytes, "optimizer_bytes", bound.optimizer_bytes, "gradient_bytes",
                   bound.gradient_bytes, "tasks", bound.tasks));
  });
  return 1;
}

constexpr luaL_Reg kBounds[] = {
    TRINITY_BIND("mesh_units", problem_mesh_units), TRINITY_BIND("mesh_bounds", problem_mesh_bounds)};

}  // namespace

void open_mesh_bound(lua_State* L) { add_methods<BoundProblem>(L, kBounds); }

}  // namespace trinity::lua
