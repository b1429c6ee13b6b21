#include <algorithm>

#include "lua/bind/module.h"
#include "strategy/lower.h"
#include "strategy/mesh_schedule.h"
#include "strategy/own_order.h"
#include "strategy/recompute_modules.h"

namespace trinity::lua {
namespace {

/// Calls body(key) for every named field of a table, with its value on top of the stack.
template <class Body>
void for_each_field(lua_State* L, int index, const char* what, Body body) {
  lua_pushnil(L);
  while (lua_next(L, index)) {
    const int top = lua_gettop(L);
    if (lua_type(L, top - 1) != LUA_TSTRING)
      throw ArgumentError(fmt::format("{}: expected fields by name", what));
    body(std::string(lua_tostring(L, top - 1)));
    lua_settop(L, top - 1);
  }
}

/// { name = { recompute =, split = } }, `split` false for what stays whole.
std::map<std::string, OperatorChoice> rules_arg(lua_State* L, int index) {
  std::map<std::string, OperatorChoice> rules;
  for_each_field(L, index, "operators", [&](const std::string& name) {
    const int top = lua_gettop(L);
    table_arg(L, top, "operators");
    OperatorChoice rule;
    lua_getfield(L, top, "recompute");
    if (!lua_isnil(L, -1)) rule.recompute = lua_toboolean(L, -1) != 0;
    lua_getfield(L, top, "split");
    if (!lua_isnil(L, -1))
      rule.split = lua_isboolean(L, -1) ? std::string() : string_arg(L, -1, "split");
    rules[name] = std::move(rule);
  });
  return rules;
}

void push_rules(lua_State* L, const std::map<std::string, OperatorChoice>& rules) {
  lua_newtable(L);
  for (const auto& [name, rule] : rules) {
    lua_newtable(L);
    if (rule.recompute) set_boolean(L, "recompute", *rule.recompute);
    if (rule.split && rule.split->empty()) set_boolean(L, "split", false);
    if (rule.split && !rule.split->empty()) set_field(L, "split", *rule.split);
    lua_setfield(L, -2, name.c_str());
  }
}

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
  mesh.placement = static_cast<int32_t>(axes.integer("placement", 1, 1, 1 << 20));
  axes.refuse_unknown();
  lua_pop(L, 1);
  return mesh;
}

Synchronisation sync_arg(Fields& fields) {
  Synchronisation given;
  if (!fields.push_table("sync")) return given;
  lua_State* L = fields.state();
  Fields said(L, lua_gettop(L), "sync");
  given.kind = parse_synchronise(said.string("kind", "all_reduce"));
  given.algorithm = parse_collective_algorithm(said.string("algorithm", "automatic"));
  given.inner = static_cast<int32_t>(said.integer("inner", 1, 1, 1 << 20));
  given.every = static_cast<int32_t>(said.integer("every", 1, 0, 1 << 20));
  given.servers = static_cast<int32_t>(said.integer("servers", 1, 1, 1 << 20));
  given.asynchronous = said.boolean("asynchronous", false);
  said.refuse_unknown();
  check_fields(given);
  lua_pop(L, 1);
  return given;
}

void push_synchronise(lua_State* L, const Synchronisation& given) {
  const Synchronisation plain;
  if (given == plain) return;
  lua_newtable(L);
  set_field(L, "kind", std::string(synchronise_name(given.kind)));
  if (given.algorithm != plain.algorithm)
    set_field(L, "algorithm", std::string(collective_algorithm_name(given.algorithm)));
  if (given.inner != plain.inner) set_field(L, "inner", given.inner);
  if (given.every != plain.every) set_field(L, "every", given.every);
  if (given.servers != plain.servers) set_field(L, "servers", given.servers);
  if (given.asynchronous) set_boolean(L, "asynchronous", true);
  lua_setfield(L, -2, "sync");
}

}  // namespace

PipelineOrder order_arg(lua_State* L, int index) {
  table_arg(L, index, "tasks");
  std::vector<std::string> rows;
  for_each(L, index, [&](int) { rows.push_back(string_arg(L, lua_gettop(L), "tasks")); });
  return parse_order(rows);
}

void push_order(lua_State* L, const PipelineOrder& order) {
  push_list(L, order_rows(order), [L](const std::string& row) { push_text(L, row); });
}

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
  parse_recompute(fields.string("recompute", "none"), given);
  fields.take("bucket_bytes", given.bucket_bytes);
  given.sequence_parallel = fields.boolean("sequence_parallel", false);
  given.scatter_gather = fields.boolean("scatter_gather", false);
  given.overlap_tp_grad_allreduce = fields.boolean("overlap_tp_grad_allreduce", false);
  given.zero_stage = static_cast<int32_t>(fields.integer("zero_stage", 0, 0, 3));
  given.cp_comm_type = parse_context_kind(fields.string("cp_comm_type", "all_gather"));
  given.sync = sync_arg(fields);
  if (fields.push_table("stages")) {
    for (const int64_t layers : integers(L, lua_gettop(L), "stages")) {
      if (layers < 0 || layers > 1 << 20)
        throw ArgumentError(
            fmt::format("stages: expected numbers of layers from 0, got {}", layers));
      given.stages.push_back(static_cast<int32_t>(layers));
    }
    lua_pop(L, 1);
  }
  if (fields.push_table("tasks")) {
    given.tasks = order_arg(L, lua_gettop(L));
    lua_pop(L, 1);
  }
  if (fields.push_table("operators")) {
    given.operators = rules_arg(L, lua_gettop(L));
    lua_pop(L, 1);
  }
  if (fields.push_table("inside")) {
    for (const int64_t place : integers(L, lua_gettop(L), "inside"))
      given.inside.push_back(static_cast<int32_t>(std::clamp<int64_t>(place - 1, -1, 1 << 30)));
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
  set_axis("placement", given.mesh.placement);
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
    set_field(L, "recompute", recompute_text(given));
  if (given.bucket_bytes != plain.bucket_bytes)
    set_field(L, "bucket_bytes", static_cast<double>(given.bucket_bytes));
  if (given.sequence_parallel) set_boolean(L, "sequence_parallel", true);
  if (given.scatter_gather) set_boolean(L, "scatter_gather", true);
  if (given.overlap_tp_grad_allreduce) set_boolean(L, "overlap_tp_grad_allreduce", true);
  if (given.zero_stage > 0) set_field(L, "zero_stage", given.zero_stage);
  if (given.cp_comm_type != plain.cp_comm_type)
    set_field(L, "cp_comm_type", std::string(context_kind_name(given.cp_comm_type)));
  push_synchronise(L, given.sync);
  if (!given.operators.empty()) {
    push_rules(L, given.operators);
    lua_setfield(L, -2, "operators");
  }
  if (!given.inside.empty()) {
    push_numbers(L, given.inside, 1);
    lua_setfield(L, -2, "inside");
  }
  if (!given.tasks.empty()) {
    push_order(L, given.tasks);
    lua_setfield(L, -2, "tasks");
  }
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

void push_scalar(lua_State* L, const Scalar& scalar) {
  if (const auto* truth = std::get_if<bool>(&scalar))
    lua_pushboolean(L, *truth);
  else if (const auto* number = std::get_if<double>(&scalar))
    lua_pushnumber(L, *number);
  else
    lua_pushstring(L, std::get<std::string>(scalar).c_str());
}

}  // namespace

Scalars scalars_arg(lua_State* L, int index, const char* owner) {
  Scalars scalars;
  for_each_field(L, index, owner, [&](const std::string& name) {
    if (!lua_istable(L, -1)) {
      scalars[name] = scalar_arg(L, "option");
      return;
    }
    std::map<std::string, Scalar> group;
    for_each_field(L, lua_gettop(L), owner,
                   [&](const std::string& key) { group[key] = scalar_arg(L, "option"); });
    scalars[name] = std::move(group);
  });
  return scalars;
}

Replication replication_arg(lua_State* L, int index) {
  Fields fields(L, index, "replication");
  Replication replication;
  replication.kind = fields.string("kind", "");
  replication.replicas = static_cast<int32_t>(fields.integer("replicas", 1, 1, 1 << 24));
  if (fields.push_table("options")) {
    replication.options = scalars_arg(L, lua_gettop(L), "replication");
    lua_pop(L, 1);
  }
  fields.refuse_unknown();
  return replication;
}

void push_scalars(lua_State* L, const Scalars& scalars) {
  lua_newtable(L);
  for (const auto& [name, value] : scalars) {
    if (const auto* scalar = std::get_if<Scalar>(&value)) {
      push_scalar(L, *scalar);
    } else {
      lua_newtable(L);
      for (const auto& [key, entry] : std::get<1>(value)) {
        push_scalar(L, entry);
        lua_setfield(L, -2, key.c_str());
      }
    }
    lua_setfield(L, -2, name.c_str());
  }
}

void push_replication(lua_State* L, const Replication& replication) {
  lua_newtable(L);
  set_field(L, "kind", replication.kind);
  set_field(L, "replicas", replication.replicas);
  push_scalars(L, replication.options);
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
  push_axis("context",
            [&](int32_t, int32_t, int32_t part) { return part / mesh.tensor % mesh.context; });
  push_axis("placement", [&](int32_t, int32_t, int32_t part) { return part / mesh.parts(); });
  push_axis("tensor", [&](int32_t, int32_t, int32_t part) { return part % mesh.tensor; });
}

StrategyPricer& pricer_of(BoundProblem& self) {
  if (!self.pricer) self.pricer = std::make_unique<StrategyPricer>(self.problem, shared_pool());
  return *self.pricer;
}

/// problem:price(strategies, metrics, limit_s, any, entries): simulates strategies that lower and
/// fills a list of as many metrics structs. any: see evaluate(). entries: what the strategies are
/// called in errors, or nil.
int problem_price(lua_State* L) {
  auto& self = object_arg<BoundProblem>(L, 1);
  table_arg(L, 2, "strategies");
  table_arg(L, 3, "metrics");
  std::vector<int64_t> entries;
  if (lua_istable(L, 6)) entries = integers(L, 6, "entries");
  std::vector<Strategy> strategies;
  for_each(L, 2, [&](int i) {
    try {
      strategies.push_back(strategy_arg(L, lua_gettop(L), *self.problem));
    } catch (const ArgumentError& error) {
      if (entries.empty()) throw;
      throw ArgumentError(
          fmt::format("entry {}: {}", entries.at(static_cast<size_t>(i - 1)), error.what()));
    }
  });
  const auto on = lua_toboolean(L, 5) ? OnContradiction::unschedule : OnContradiction::fail;
  pricer_of(self).run(strategies, self.metrics, limit_arg(L, 4), on, entries);
  for_each(L, 3, [&](int i) {
    fill_metrics(L, lua_gettop(L), self.metrics.at(static_cast<size_t>(i - 1)));
  });
  return 0;
}

/// problem:home(strategy, placement): writes where the first part of every operator is.
int problem_home(lua_State* L) {
  auto& self = object_arg<BoundProblem>(L, 1);
  const auto strategy = strategy_arg(L, 2, *self.problem);
  fill_from_1(L, 3, "placement", pricer_of(self).home(strategy));
  return 0;
}

/// problem:simulated_devices(strategy) -> of how many devices a strategy with a mesh is
/// simulated.
int problem_simulated_devices(lua_State* L) {
  auto& self = object_arg<BoundProblem>(L, 1);
  const auto strategy = strategy_arg(L, 2, *self.problem);
  if (!strategy.parallelism) throw WrongArgument(2, "strategy", "without a mesh");
  lua_pushinteger(L, pricer_of(self).simulated_devices(strategy));
  return 1;
}

/// problem:owners(strategy, devices) -> who owns the peaks of these devices (from 1), of a strategy
/// with a mesh: bytes by name.
int problem_owners(lua_State* L) {
  auto& self = object_arg<BoundProblem>(L, 1);
  const auto strategy = strategy_arg(L, 2, *self.problem);
  if (!strategy.parallelism) throw WrongArgument(2, "strategy", "without a mesh");
  table_arg(L, 3, "devices");
  const auto owners = pricer_of(self).owners(strategy);
  lua_newtable(L);
  for (int i = 1; i <= static_cast<int>(lua_objlen(L, 3)); ++i) {
    lua_rawgeti(L, 3, i);
    const lua_Integer device = lua_tointeger(L, -1);
    lua_pop(L, 1);
    if (device < 1 || device > std::ssize(owners))
      throw WrongArgument(3, "devices", "no device of the cluster");
    push_owners(L, owners[static_cast<size_t>(device) - 1]);
    lua_rawseti(L, -2, i);
  }
  return 1;
}

/// problem:lower(strategy) -> { problem =, graph =, placement =, schedule =,
/// micro_batches =, tasks =, stage =, origin =, layers =, pipeline =, part =, coordinates = }, lists from 1:
/// device and virtual stage of every operator of the lowered graph, the original one (0: what moves
/// or sums), the layers of every virtual stage and where on the axis `pipeline` it is. strategy:
/// see strategy_arg().
int problem_lower(lua_State* L) {
  auto& self = object_arg<BoundProblem>(L, 1);
  const auto strategy = strategy_arg(L, 2, *self.problem);
  const auto bound = pricer_of(self).bind(strategy);
  const auto& made = *bound.made;
  lua_newtable(L);
  if (strategy.parallelism) {
    push_coordinates(L, strategy.parallelism->mesh);
    lua_setfield(L, -2, "coordinates");
  }
  const auto set_list = [L](const char* name, const std::vector<int32_t>& list, int32_t from) {
    push_numbers(L, list, from);
    lua_setfield(L, -2, name);
  };
  push_object<const Graph>(L, std::shared_ptr<const Graph>(bound.made, &made.graph));
  lua_setfield(L, -2, "graph");
  push_object(L, std::make_shared<BoundProblem>(bound.problem, shared_pool()));
  lua_setfield(L, -2, "problem");
  set_list("placement", bound.arranged.placement, 1);
  set_list("origin", made.origin, 1);
  const auto& stage = bound.arranged.schedule.stage;
  if (!stage.empty()) set_list("stage", stage, 1);
  set_list("layers", made.layers, 0);
  set_list("part", made.part, 1);
  set_list("pipeline", made.pipeline, 1);
  set_field(L, "schedule", bound.arranged.schedule.name);
  if (!bound.arranged.schedule.tasks.empty()) {
    push_order(L, bound.arranged.schedule.tasks);
    lua_setfield(L, -2, "tasks");
  }
  set_field(L, "micro_batches", bound.arranged.schedule.micro_batches);
  return 1;
}

/// schedule_bubble(strategy) -> idle over ideal time of equal stages: of a device, of the step.
int equal_stage_bubble(lua_State* L) {
  const auto bubble = schedule_bubble(parallelism_arg(L, 1));
  lua_pushnumber(L, bubble.of_device);
  lua_pushnumber(L, bubble.of_step);
  return 2;
}

/// mesh_coordinates(strategy) -> as `coordinates` of problem:lower().
int mesh_coordinates(lua_State* L) {
  push_coordinates(L, parallelism_arg(L, 1).mesh);
  return 1;
}

constexpr luaL_Reg kStrategyFunctions[] = {TRINITY_BIND("schedule_bubble", equal_stage_bubble),
                                           TRINITY_BIND("mesh_coordinates", mesh_coordinates)};
/// Further methods of a problem.
constexpr luaL_Reg kPricing[] = {TRINITY_BIND("price", problem_price),
                                 TRINITY_BIND("home", problem_home),
                                 TRINITY_BIND("simulated_devices", problem_simulated_devices),
                                 TRINITY_BIND("owners", problem_owners),
                                 TRINITY_BIND("lower", problem_lower)};

}  // namespace

Strategy strategy_arg(lua_State* L, int index, const Problem& problem) {
  table_arg(L, index, "strategy");
  Strategy strategy;
  lua_getfield(L, index, "mesh");
  const bool mesh = !lua_isnil(L, -1);
  lua_pop(L, 1);
  if (mesh) {
    strategy.parallelism = parallelism_arg(L, index);
    return strategy;
  }
  const int top = lua_gettop(L);
  for (const char* name : {"placement", "schedule", "splits"}) lua_getfield(L, index, name);
  strategy.placement.resize(static_cast<size_t>(problem.operators()));
  const auto given = placement_entries(L, top + 1, problem.graph());
  std::transform(given.begin(), given.end(), strategy.placement.begin(),
                 [](int32_t device) { return device - 1; });
  strategy.schedule = schedule_arg(L, top + 2, problem);
  strategy.splits = splits_arg(L, top + 3, problem.graph(), problem.cluster().device_count());
  lua_settop(L, top);
  return strategy;
}

void open_strategy(lua_State* L) {
  register_functions(L, kStrategyFunctions);
  luaL_getmetatable(L, kTypeName<BoundProblem>);
  lua_getfield(L, -1, "__index");
  register_functions(L, kPricing, kTypeName<BoundProblem>, true);
  lua_pop(L, 2);
}

}  // namespace trinity::lua
