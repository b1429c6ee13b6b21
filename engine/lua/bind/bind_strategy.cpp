#include "lua/bind/module.h"
#include "strategy/lower.h"
#include "strategy/mesh_schedule.h"

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
  mesh.context = static_cast<int32_t>(axes.integer("context", 1, 1, 1 << 20));
  mesh.expert = static_cast<int32_t>(axes.integer("expert", 1, 1, 1 << 20));
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
  if (fields.push_table("order")) {
    for_each(L, lua_gettop(L), [&](int i) {
      if (lua_type(L, -1) != LUA_TSTRING)
        throw ArgumentError(fmt::format(
            "field 'order': entry {}: expected the name of an axis, got {}", i, type_name(L, -1)));
      given.mesh.order.push_back(parse_axis(lua_tostring(L, -1)));
    });
    lua_pop(L, 1);
  }
  if (fields.push_table("devices")) {
    for (const int64_t device : integers(L, lua_gettop(L), "devices"))
      given.mesh.devices.push_back(
          static_cast<int32_t>(std::clamp<int64_t>(device - 1, -1, 1 << 30)));
    lua_pop(L, 1);
  }
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
  set_axis("context", given.mesh.context);
  set_axis("expert", given.mesh.expert);
  lua_setfield(L, -2, "mesh");
  if (!given.mesh.order.empty()) {
    lua_newtable(L);
    int i = 0;
    for (const Axis axis : given.mesh.order) {
      lua_pushstring(L, axis_name(axis));
      lua_rawseti(L, -2, ++i);
    }
    lua_setfield(L, -2, "order");
  }
  if (!given.mesh.devices.empty()) {
    push_numbers(L, given.mesh.devices, 1);
    lua_setfield(L, -2, "devices");
  }
  set_field(L, "schedule", given.schedule);
  set_field(L, "micro_batches", given.micro_batches);
  if (given.virtual_stages > 1) set_field(L, "virtual_stages", given.virtual_stages);
  if (given.recompute != Recompute::none)
    set_field(L, "recompute", std::string(recompute_name(given.recompute)));
  if (given.bucket_bytes != plain.bucket_bytes)
    set_field(L, "bucket_bytes", static_cast<double>(given.bucket_bytes));
  if (given.sequence_parallel) set_boolean(L, "sequence_parallel", true);
  if (given.shard > 0) set_field(L, "shard", given.shard);
  if (given.stages.empty()) return;
  push_numbers(L, given.stages, 0);
  lua_setfield(L, -2, "stages");
}

Scalar scalar_arg(lua_State* L, const char* name) {
  const int top = lua_gettop(L);
  if (lua_type(L, top) == LUA_TNUMBER) return lua_tonumber(L, top);
  if (lua_type(L, top) == LUA_TBOOLEAN) return lua_toboolean(L, top) != 0;
  return string_arg(L, top, name);
}

namespace {

/// Calls body(key) for every named field of a table, with its value on top of the stack.
template <class Body>
void for_each_field(lua_State* L, int index, Body body) {
  lua_pushnil(L);
  while (lua_next(L, index)) {
    const int top = lua_gettop(L);
    if (lua_type(L, top - 1) != LUA_TSTRING)
      throw ArgumentError("replication: expected options by name");
    body(std::string(lua_tostring(L, top - 1)));
    lua_settop(L, top - 1);
  }
}

void push_scalar(lua_State* L, const Scalar& scalar) {
  if (const auto* truth = std::get_if<bool>(&scalar))
    lua_pushboolean(L, *truth);
  else if (const auto* number = std::get_if<double>(&scalar))
    lua_pushnumber(L, *number);
  else
    lua_pushstring(L, std::get<std::string>(scalar).c_str());
}

}  // namespace

Replication replication_arg(lua_State* L, int index) {
  Fields fields(L, index, "replication");
  Replication replication;
  replication.kind = fields.string("kind", "");
  replication.replicas = static_cast<int32_t>(fields.integer("replicas", 1, 1, 1 << 24));
  if (fields.push_table("options")) {
    for_each_field(L, lua_gettop(L), [&](const std::string& name) {
      if (!lua_istable(L, -1)) {
        replication.options[name] = scalar_arg(L, "option");
        return;
      }
      std::map<std::string, Scalar> group;
      for_each_field(L, lua_gettop(L),
                     [&](const std::string& key) { group[key] = scalar_arg(L, "option"); });
      replication.options[name] = std::move(group);
    });
    lua_pop(L, 1);
  }
  fields.refuse_unknown();
  return replication;
}

void push_replication(lua_State* L, const Replication& replication) {
  lua_newtable(L);
  set_field(L, "kind", replication.kind);
  set_field(L, "replicas", replication.replicas);
  lua_newtable(L);
  for (const auto& [name, option] : replication.options) {
    if (const auto* scalar = std::get_if<Scalar>(&option)) {
      push_scalar(L, *scalar);
    } else {
      lua_newtable(L);
      for (const auto& [key, value] : std::get<1>(option)) {
        push_scalar(L, value);
        lua_setfield(L, -2, key.c_str());
      }
    }
    lua_setfield(L, -2, name.c_str());
  }
  lua_setfield(L, -2, "options");
}

namespace {

/// Where every device of a mesh stands on its axes: lists by axis, by device, from 0; nothing for
/// devices that are left over.
void push_coordinates(lua_State* L, const Mesh& mesh) {
  lua_newtable(L);
  const auto push_axis = [&](const char* name, auto coordinate) {
    lua_newtable(L);
    for (int32_t stage = 0; stage < mesh.pipeline; ++stage)
      for (int32_t replica = 0; replica < mesh.data; ++replica)
        for (int32_t part = 0; part < mesh.width(); ++part) {
          lua_pushinteger(L, coordinate(stage, replica, part));
          lua_rawseti(L, -2, mesh.device(stage, replica, part) + 1);
        }
    lua_setfield(L, -2, name);
  };
  push_axis("pipeline", [](int32_t stage, int32_t, int32_t) { return stage; });
  push_axis("data", [](int32_t, int32_t replica, int32_t) { return replica; });
  push_axis("context", [&](int32_t, int32_t, int32_t part) { return part / mesh.tensor; });
  push_axis("tensor", [&](int32_t, int32_t, int32_t part) { return part % mesh.tensor; });
}

/// lower_strategy(graph, cluster, strategy) -> { graph =, placement =, schedule =, stage =,
/// origin =, home =, layers =, pipeline =, part =, coordinates = }, lists from 1: device and
/// virtual stage of every operator of the lowered graph, the original one (0: what moves or sums),
/// where the first part of every original one is, the layers of every virtual stage and where on
/// the axis `pipeline` it is. strategy: { mesh =, schedule =, ... }.
int lower_strategy(lua_State* L) {
  const auto& graph = object_arg<const Graph>(L, 1, "graph");
  const auto& cluster = object_arg<const Cluster>(L, 2, "cluster");
  const Parallelism given = parallelism_arg(L, 3);
  auto lowered = lower(given, graph, cluster);
  lua_newtable(L);
  push_coordinates(L, given.mesh);
  lua_setfield(L, -2, "coordinates");
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
  set_list("pipeline", lowered.pipeline, 1);
  set_field(L, "schedule", lowered.schedule.name);
  return 1;
}

/// schedule_bubble(strategy) -> idle over ideal time of equal stages: of a device, of the step.
int equal_stage_bubble(lua_State* L) {
  const auto bubble = schedule_bubble(parallelism_arg(L, 1));
  lua_pushnumber(L, bubble.of_device);
  lua_pushnumber(L, bubble.of_step);
  return 2;
}

constexpr luaL_Reg kStrategyFunctions[] = {TRINITY_BIND("lower_strategy", lower_strategy),
                                           TRINITY_BIND("schedule_bubble", equal_stage_bubble)};

}  // namespace

void open_strategy(lua_State* L) { register_functions(L, kStrategyFunctions); }

}  // namespace trinity::lua
