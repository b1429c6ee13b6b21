#include <algorithm>
#include <numeric>

#include "lua/bind/module.h"
#include "lua/bind/option_list.h"
#include "simulator/mesh/mesh_bound.h"
#include "strategy/lower.h"
#include "strategy/mesh_schedule.h"
#include "strategy/mesh_words.h"
#include "strategy/own_order.h"

namespace trinity::lua {
namespace {

/// Calls body(key) for every named field of a table, with its value on top of the stack.
template <class Body>
void for_each_field(lua_State* L, int index, const char* what, Body body) {
  for_each_entry(L, index, [&] {
    const int top = lua_gettop(L);
    if (lua_type(L, top - 1) != LUA_TSTRING)
      throw ArgumentError("{}: expected fields by name", what);
    body(std::string(lua_tostring(L, top - 1)));
    lua_settop(L, top);
  });
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

}  // namespace

PipelineOrder order_arg(lua_State* L, int index) {
  table_arg(L, index, "tasks");
  std::vector<std::string> rows;
  for_each(L, index, [&](int) { rows.push_back(string_arg(L, lua_gettop(L), "tasks")); });
  return parse_order(rows);
}

namespace {

/// A visitor that reads the fields that a table has.
struct WordTaker {
  Fields* fields;
  Parallelism& given;

  template <class Get>
  void operator()(const MeshWord& word, Get get) {
    take(word, get(given));
  }
  void group(std::string_view name, auto words) {
    if (name == "schedule") return words();  // a script's table has no groups but `mesh` and `sync`
    fields->table(name.data(), [&] {
      Fields inner(fields->state(), -1, name.data());
      auto* outer = std::exchange(fields, &inner);
      words();
      inner.refuse_unknown();
      if (name == "sync") check_fields(given.sync);
      fields = outer;
    });
  }

 private:
  template <class Value>
  void take(const MeshWord& word, Value&& value) {
    using Plain = std::remove_cvref_t<Value>;
    lua_State* L = fields->state();
    if constexpr (std::is_same_v<Plain, bool>)
      value = fields->boolean(word.name, value);
    else if constexpr (std::is_floating_point_v<Plain>)
      value = checked_share(word.name, fields->number(word.name, value));
    else if constexpr (std::is_integral_v<Plain>)
      value = static_cast<Plain>(fields->integer(word.name, value, word.min, word.max));
    else if constexpr (std::is_enum_v<Plain>)
      value = parse_choice<Plain>(fields->string(word.name, choice_name(value)));
    else if constexpr (std::is_same_v<Plain, std::string>)
      value = fields->string(word.name, value);
    else if constexpr (std::is_same_v<Plain, RecomputeWord<Parallelism>>)
      parse_recompute(fields->string(word.name, "none"), given);
    else
      fields->table(word.name, [&] {
        if constexpr (std::is_same_v<Plain, PipelineOrder>)
          value = order_arg(L, lua_gettop(L));
        else if constexpr (std::is_same_v<Plain, std::map<std::string, OperatorChoice>>)
          value = rules_arg(L, lua_gettop(L));
        else
          take_list(L, word, value);
      });
  }
  static double checked_share(const char* name, double value) {
    if (!(value >= 0 && value <= 1))
      throw ArgumentError("field '{}': expected a number from 0 to 1, got {}", name, value);
    return value;
  }
  static void take_list(lua_State* L, const MeshWord& word, std::vector<Axis>& list) {
    for_each(L, lua_gettop(L), [&](int i) {
      if (lua_type(L, -1) != LUA_TSTRING)
        throw ArgumentError("field '{}': entry {}: expected the name of an axis, got {}", word.name, i,
                            type_name(L, -1));
      list.push_back(parse_choice<Axis>(lua_tostring(L, -1)));
    });
  }
  static void take_list(lua_State* L, const MeshWord& word, std::vector<int32_t>& list) {
    for (const int64_t entry : integers(L, lua_gettop(L), word.name)) {
      const bool counts = word.listed == Listed::counts;
      if (counts && (entry < word.min || entry > word.max))
        throw ArgumentError("{}: expected numbers of layers from {}, got {}", word.name, word.min, entry);
      list.push_back(static_cast<int32_t>(counts ? entry : std::clamp<int64_t>(entry - 1, -1, 1 << 30)));
    }
  }
};

/// A visitor that sets fields of the table on top of the stack: those that are not the default, and those that are
/// always there.
struct WordPusher {
  lua_State* L;
  const Parallelism& given;
  const Parallelism plain = {};

  template <class Get>
  void operator()(const MeshWord& word, Get get) {
    if (!word.always && get(given) == get(plain)) return;
    push(get(given), word.listed);
    lua_setfield(L, -2, word.name);
  }
  void group(std::string_view name, auto words) {
    if (name == "schedule") return words();
    if (name == "sync" && given.sync == plain.sync) return;
    lua_newtable(L);
    words();
    lua_setfield(L, -2, name.data());
  }

 private:
  template <class Value>
  void push(const Value& value, Listed listed) {
    if constexpr (std::is_same_v<Value, PipelineOrder>)
      lua::push(L, order_rows(value));
    else if constexpr (std::is_same_v<Value, RecomputeWord<const Parallelism>>)
      push_text(L, recompute_text(value.given));
    else if constexpr (std::is_same_v<Value, std::map<std::string, OperatorChoice>>)
      push_rules(L, value);
    else if constexpr (std::is_same_v<Value, std::vector<int32_t>>)
      push_numbers(L, value, listed == Listed::counts ? 0 : 1);
    else
      lua::push(L, value);
  }
};

/// A visitor that adds fields with numbers, flags and choices to a list of options, a group's as
/// "group.field".
struct WordLister {
  OptionList& list;
  const Parallelism plain = {};
  std::string within = {};

  template <class Get>
  void operator()(const MeshWord& word, Get get) {
    const auto value = get(plain);
    using Value = std::remove_const_t<decltype(value)>;
    const auto name = within + word.name;
    if constexpr (std::is_same_v<Value, bool>)
      list(name.c_str(), value, word.help);
    else if constexpr (std::is_arithmetic_v<Value>)
      list(name.c_str(), value, static_cast<double>(word.min), static_cast<double>(word.max), word.help);
    else if constexpr (std::is_enum_v<Value>)
      list(name.c_str(), value, choices<Value>(), word.help);
  }
  void group(std::string_view name, auto words) {
    if (name != "schedule") within = std::string(name) + '.';
    words();
    within.clear();
  }

 private:
  template <class Choice>
  static std::array<const char*, kChoices<Choice>> choices() {
    std::array<const char*, kChoices<Choice>> names;
    for (size_t i = 0; i < names.size(); ++i) names[i] = choice_name(static_cast<Choice>(i));
    return names;
  }
};

/// strategy_words() -> words of a strategy with a mesh that are numbers, flags or choices, as OptionList has them
int strategy_words(lua_State* L) {
  lua_newtable(L);
  OptionList list{L};
  each_mesh_word(WordLister{list});
  return 1;
}

}  // namespace

Parallelism parallelism_arg(lua_State* L, int index) {
  table_arg(L, index, "strategy");
  Fields fields(L, index, "strategy");
  Parallelism given;
  each_mesh_word(WordTaker{&fields, given});
  fields.refuse_unknown();
  return given;
}

void push_parallelism(lua_State* L, const Parallelism& given) {
  lua_newtable(L);
  each_mesh_word(WordPusher{L, given});
}

Scalar scalar_arg(lua_State* L, const char* name) {
  const int top = lua_gettop(L);
  if (lua_type(L, top) == LUA_TNUMBER) return lua_tonumber(L, top);
  if (lua_type(L, top) == LUA_TBOOLEAN) return lua_toboolean(L, top) != 0;
  return string_arg(L, top, name);
}

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

namespace {

/// The position of every device of a mesh on its axes: lists by axis, by device, from 0; nothing
/// for devices that are left over.
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
/// fills a list of metrics structs of the same length. any: see evaluate(). entries: the names of
/// the strategies in errors, or nil.
void problem_price(lua_State* L, BoundProblem& self, Table<"strategies">, Table<"metrics">) {
  std::vector<int64_t> entries;
  if (lua_istable(L, 6)) entries = integers(L, 6, "entries");
  std::vector<Strategy> strategies;
  for_each(L, 2, [&](int i) {
    try {
      strategies.push_back(strategy_arg(L, lua_gettop(L), *self.problem));
    } catch (const ArgumentError& error) {
      if (entries.empty()) throw;
      throw ArgumentError("entry {}: {}", entries.at(static_cast<size_t>(i - 1)), error.what());
    }
  });
  const auto on = lua_toboolean(L, 5) ? OnContradiction::unschedule : OnContradiction::fail;
  pricer_of(self).run(strategies, self.metrics, limit_arg(L, 4), on, entries);
  for_each(L, 3, [&](int i) {
    fill_metrics(L, lua_gettop(L), self.metrics.at(static_cast<size_t>(i - 1)));
  });
}

/// problem:home(strategy, placement): writes where the first part of every operator is.
void problem_home(lua_State* L, BoundProblem& self) {
  fill_from_1(L, 3, "placement", pricer_of(self).home(strategy_arg(L, 2, *self.problem)));
}

/// A strategy with a mesh.
Strategy meshed_arg(lua_State* L, const BoundProblem& self) {
  auto strategy = strategy_arg(L, 2, *self.problem);
  if (!strategy.parallelism) throw WrongArgument(2, "strategy", "without a mesh");
  return strategy;
}

/// problem:simulated_devices(strategy) -> of how many devices a strategy with a mesh is
/// simulated.
auto problem_simulated_devices(lua_State* L, BoundProblem& self) {
  return static_cast<int64_t>(pricer_of(self).simulated_devices(meshed_arg(L, self)));
}

/// problem:owners(strategy, devices) -> who owns the peaks of these devices (from 1), of a strategy
/// with a mesh: bytes by name.
auto problem_owners(lua_State* L, BoundProblem& self) {
  const auto strategy = meshed_arg(L, self);
  table_arg(L, 3, "devices");
  const auto owners = pricer_of(self).owners(strategy);
  std::vector<std::map<std::string, int64_t>> found;
  for_each(L, 3, [&](int) {
    const lua_Integer device = lua_tointeger(L, -1);
    if (device < 1 || device > std::ssize(owners)) throw WrongArgument(3, "devices", "no device of the cluster");
    found.push_back(named(owners[static_cast<size_t>(device) - 1]));
  });
  return found;
}

/// [operator]: 0 before the layers, 1 in a layer, 2 after them; 0 if there is no mesh.
std::vector<int32_t> parts_by_layer(const LoweredGraph& made) {
  const int32_t layers = std::accumulate(made.layers.begin(), made.layers.end(), 0);
  std::vector<int32_t> parts;
  for (const auto& role : made.roles)
    parts.push_back(made.layers.empty() || role.layer < 0 ? 0 : role.layer < layers ? 1 : 2);
  return parts;
}

/// problem:lower(strategy) -> { problem =, graph =, placement =, schedule =,
/// micro_batches =, tasks =, stage =, origin =, layers =, pipeline =, part =, coordinates = }, lists from 1:
/// device and virtual stage of every operator of the lowered graph, the original one (0: what moves
/// or sums), the layers of every virtual stage and where on the axis `pipeline` it is. strategy:
/// see strategy_arg().
int problem_lower(lua_State* L, BoundProblem& self) {
  const auto strategy = strategy_arg(L, 2, *self.problem);
  const auto bound = pricer_of(self).bind(strategy);
  const auto& made = *bound.made;
  const auto& schedule = bound.arranged.schedule;
  push(L, record("graph", std::shared_ptr<const Graph>(bound.made, &made.graph), "problem",
                 std::make_shared<BoundProblem>(bound.problem, shared_pool()), "placement",
                 from_1(bound.arranged.placement), "origin", from_1(made.each(&OperatorRole::origin)), "layers", made.layers, "part",
                 from_1(parts_by_layer(made)), "pipeline", from_1(made.pipeline), "schedule", schedule.name, "micro_batches",
                 schedule.micro_batches));
  if (!schedule.stage.empty()) set_numbers(L, "stage", schedule.stage, 1);
  if (!schedule.tasks.empty()) set_fields(L, "tasks", order_rows(schedule.tasks));
  if (!strategy.parallelism) return 1;
  push_coordinates(L, strategy.parallelism->mesh);
  lua_setfield(L, -2, "coordinates");
  return 1;
}

/// schedule_bubble(strategy) -> idle over ideal time of equal stages: of a device, of the step.
auto equal_stage_bubble(lua_State* L, Given<"strategy"> strategy) {
  const auto bubble = schedule_bubble(parallelism_arg(L, strategy));
  return std::tuple(bubble.of_device, bubble.of_step);
}

/// mesh_coordinates(strategy) -> as `coordinates` of problem:lower().
int mesh_coordinates(lua_State* L) {
  push_coordinates(L, parallelism_arg(L, 1).mesh);
  return 1;
}

constexpr luaL_Reg kStrategyFunctions[] = {
    TRINITY_BIND("schedule_bubble", equal_stage_bubble), TRINITY_BIND("strategy_words", strategy_words),
    TRINITY_BIND("mesh_coordinates", mesh_coordinates)};
/// Further methods of a problem.
constexpr luaL_Reg kPricing[] = {
    TRINITY_BIND("price", problem_price), TRINITY_BIND("home", problem_home),
    TRINITY_BIND("simulated_devices", problem_simulated_devices), TRINITY_BIND("owners", problem_owners),
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
      "first_backward_s", unit.first_backward.alone / kSecond, "first_backward_to_next_s",
      unit.first_backward.to_next / kSecond, "forward_hands_on_s", unit.forward.hands_on / kSecond, "backward_hands_on_s", unit.backward.hands_on / kSecond,
      "forward_dispatch_s", unit.forward_dispatch_ns / kSecond, "backward_dispatch_s",
      unit.backward_dispatch_ns / kSecond, "forward_work_s",
      unit.forward_work_ns / kSecond, "backward_work_s", unit.backward_work_ns / kSecond, "forward_launch_s",
      unit.forward_launch_ns / kSecond, "backward_launch_s", unit.backward_launch_ns / kSecond, "weight_s",
      unit.weight_ns / kSecond, "update_s", unit.update_ns / kSecond, "spread_update_s", unit.spread_update_ns / kSecond,
      "host_update_s", unit.host_update_ns / kSecond, "spread_host_update_s", unit.spread_host_update_ns / kSecond,
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

void open_strategy(lua_State* L) {
  register_functions(L, kStrategyFunctions);
  add_methods<BoundProblem>(L, kPricing);
  add_methods<BoundProblem>(L, kBounds);
}

}  // namespace trinity::lua
