#include "lua/bind/module.h"
#include "strategy/lower.h"

namespace trinity::lua {
namespace {

Mesh mesh_arg(Fields& fields) {
  Mesh mesh;
  if (!fields.push_table("mesh")) return mesh;
  lua_State* L = fields.state();
  Fields axes(L, lua_gettop(L), "mesh");
  mesh.data = static_cast<int32_t>(axes.integer("data", 1, 1, 1 << 20));
  mesh.tensor = static_cast<int32_t>(axes.integer("tensor", 1, 1, 1 << 20));
  mesh.pipeline = static_cast<int32_t>(axes.integer("pipeline", 1, 1, 1 << 20));
  axes.refuse_unknown();
  lua_pop(L, 1);
  return mesh;
}

}  // namespace

Parallelism parallelism_arg(lua_State* L, int index) {
  table_arg(L, index, "strategy");
  Fields fields(L, index, "strategy");
  Parallelism given;
  given.mesh = mesh_arg(fields);
  given.schedule = fields.string("schedule", given.schedule);
  given.virtual_stages = static_cast<int32_t>(fields.integer("virtual_stages", 1, 1, 4096));
  given.micro_batches = static_cast<int32_t>(fields.integer("micro_batches", 1, 1, 1 << 30));
  given.recompute = parse_recompute(fields.string("recompute", "none"));
  fields.take("bucket_bytes", given.bucket_bytes);
  given.sequence_parallel = fields.boolean("sequence_parallel", false);
  given.shard = static_cast<int32_t>(fields.integer("shard", 0, 0, 3));
  if (fields.push_table("stages")) {
    for (const int64_t layers : integers(L, lua_gettop(L), "stages")) {
      if (layers < 0 || layers > 1 << 20)
        throw ArgumentError(
            fmt::format("stages: expected numbers of layers from 0, got {}", layers));
      given.stages.push_back(static_cast<int32_t>(layers));
    }
    lua_pop(L, 1);
  }
  fields.refuse_unknown();
  return given;
}

void push_parallelism(lua_State* L, const Parallelism& given) {
  const Parallelism plain;
  lua_newtable(L);
  lua_newtable(L);
  const auto set_axis = [L](const char* name, int32_t size) {
    if (size > 1) set_field(L, name, size);
  };
  set_axis("data", given.mesh.data);
  set_axis("tensor", given.mesh.tensor);
  set_axis("pipeline", given.mesh.pipeline);
  lua_setfield(L, -2, "mesh");
  set_field(L, "schedule", given.schedule);
  set_field(L, "micro_batches", given.micro_batches);
  if (given.virtual_stages > 1) set_field(L, "virtual_stages", given.virtual_stages);
  if (given.recompute != Recompute::none)
    set_field(L, "recompute", std::string(recompute_name(given.recompute)));
  if (given.bucket_bytes != plain.bucket_bytes)
    set_field(L, "bucket_bytes", static_cast<double>(given.bucket_bytes));
  if (given.sequence_parallel) set_field(L, "sequence_parallel", true);
  if (given.shard > 0) set_field(L, "shard", given.shard);
  if (given.stages.empty()) return;
  push_numbers(L, given.stages, 0);
  lua_setfield(L, -2, "stages");
}

namespace {

/// lower_strategy(graph, cluster, strategy) -> { graph =, placement =, schedule =, stage =,
/// origin =, home =, layers =, part = }, lists from 1: device and virtual stage of every operator
/// of the lowered graph, the original one (0: what moves or sums), where the first part of every
/// original one is, the layers of every stage. strategy: { mesh =, schedule =, ... }.
int lower_strategy(lua_State* L) {
  const auto& graph = object_arg<const Graph>(L, 1, "graph");
  const auto& cluster = object_arg<const Cluster>(L, 2, "cluster");
  auto lowered = lower(parallelism_arg(L, 3), graph, cluster);
  lua_newtable(L);
  const auto set_list = [L](const char* name, const std::vector<int32_t>& list, int32_t from) {
    push_numbers(L, list, from);
    lua_setfield(L, -2, name);
  };
  push_object<const Graph>(L, std::make_shared<const Graph>(std::move(lowered.graph)));
  lua_setfield(L, -2, "graph");
  set_list("placement", lowered.placement, 1);
  set_list("origin", lowered.origin, 1);
  set_list("stage", lowered.schedule.stage, 1);
  set_list("home", lowered.home, 1);
  set_list("layers", lowered.layers, 0);
  set_list("part", lowered.part, 1);
  set_field(L, "schedule", lowered.schedule.name);
  return 1;
}

constexpr luaL_Reg kStrategyFunctions[] = {TRINITY_BIND("lower_strategy", lower_strategy)};

}  // namespace

void open_strategy(lua_State* L) { register_functions(L, kStrategyFunctions); }

}  // namespace trinity::lua
