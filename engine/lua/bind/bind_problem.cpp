#include <algorithm>
#include <bit>
#include <cmath>

#include "base/hash.h"
#include "base/index.h"
#include "base/stop.h"
#include "base/words.h"
#include "lua/bind/module.h"
#include "search/placement/task_graph.h"
#include "simulator/memory_bound.h"
#include "strategy/strategy.h"

namespace trinity::lua {
namespace {

/// Names of rules, in the order of named_rules().
constexpr const char* kRules[] = {"standard", "compat", "placeto", "doppler"};

SimulationRules named_rules(const std::string& name, const Cluster& cluster) {
  switch (parse_word("simulation rules", name, kRules)) {
    case 1:
      return SimulationRules::compat();
    case 2:
      return SimulationRules::placeto();
    case 3:
      return SimulationRules::doppler();
    default:
      return SimulationRules::standard(cluster);
  }
}

int64_t pause_ns(Fields& fields, const char* key) {
  const double seconds = fields.number(key, 0);
  if (!(seconds >= 0 && seconds < 1e3))
    throw ArgumentError("{}: field '{}': expected 0 to 1000 s, got {}", fields.owner(), key, seconds);
  return std::llround(seconds * 1e9);
}

/// Rules by name, or a table that overrides the cluster's: queue, memory = 'slots' | 'none',
/// device_pause_s, link_pause_s.
SimulationRules rules_arg(lua_State* L, int index, const Cluster& cluster) {
  if (lua_isnoneornil(L, index)) return SimulationRules::standard(cluster);
  if (lua_type(L, index) == LUA_TSTRING)
    return named_rules(string_arg(L, index, "rules"), cluster);
  if (!lua_istable(L, index))
    throw ArgumentError("option 'rules': expected '{}' or a table of rules, got {}", fmt::join(kRules, "', '"),
                        type_name(L, index));
  Fields fields(L, index, "rules");
  auto rules = SimulationRules::standard(cluster);
  if (const auto queue = fields.string("queue")) rules.queue = parse_choice<QueueModel>(*queue);
  const auto memory = fields.string("memory", "slots");
  if (memory != "slots" && memory != "none")
    throw ArgumentError("rules: unknown memory model '{}'{} (known: none, slots)", memory,
                        suggestion(memory, {"none", "slots"}));
  rules.memory = memory == "none" ? MemoryModel::none : MemoryModel::slots;
  rules.device_dead_ns = pause_ns(fields, "device_pause_s");
  rules.link_dead_ns = pause_ns(fields, "link_pause_s");
  fields.refuse_unknown();
  return rules;
}

/// The cost model in Lua at `index`: function(operator, device, default_s) -> seconds or nil (the
/// default), `operator` 1-based, `device` a table. Empty when there is none.
CostFunction cost_arg(lua_State* L, int index, const Graph& graph) {
  if (lua_isnoneornil(L, index)) return {};
  if (!lua_isfunction(L, index))
    throw WrongArgument(index, "cost", "expected function, got " + type_name(L, index));
  return [L, index, &graph](const Operator& op, const Device& device, const DeviceType& type,
                            double default_s) -> std::optional<double> {
    lua_pushvalue(L, index);
    lua_pushinteger(L, &op - graph.operators().data() + 1);
    lua_newtable(L);
    set_fields(L, "name", device.name, "type", type.name, "speed", device.speed);
    lua_pushnumber(L, default_s);
    lua_call(L, 3, 1);  // its errors, whatever their type, go on to the script as they are
    const bool own = !lua_isnil(L, -1);
    if (own && lua_type(L, -1) != LUA_TNUMBER)
      throw ArgumentError("cost: the function returned {} for operator '{}', expected seconds or nil", type_name(L, -1),
                          op.name);
    const double time_s = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return own ? std::optional(time_s) : std::nullopt;
  };
}

/// problem(graph, cluster, rules, cost) -> problem
auto problem_new(lua_State* L) {
  auto graph = handle_arg<const Graph>(L, 1);
  auto cluster = handle_arg<const Cluster>(L, 2);
  const auto rules = rules_arg(L, 3, *cluster);
  const auto cost = cost_arg(L, 4, *graph);
  return std::make_shared<BoundProblem>(std::make_shared<const Problem>(graph, cluster, rules, cost), shared_pool());
}

/// problem:evaluate(list, metrics, limit_s, any): simulates a list of placements, or of {placement,
/// schedule}, on all threads and fills a list of metrics structs of the same length. `any`: a plan
/// whose order contradicts the graph does not fit, instead of an error.
void problem_evaluate(lua_State* L, BoundProblem& self, Table<"placements">, Table<"metrics">) {
  const int64_t limit_ns = limit_arg(L, 4);
  const auto n = static_cast<size_t>(self.problem->operators());
  self.placements.resize(lua_objlen(L, 2) * n);
  self.plans.clear();
  for_each(L, 2, [&](int i) {
    const auto placement = std::span(self.placements).subspan(static_cast<size_t>(i - 1) * n, n);
    self.plans.push_back(plan_arg(L, lua_gettop(L), *self.problem, placement));
  });
  self.batch.run(self.plans, self.metrics, limit_ns,
                 lua_toboolean(L, 5) ? OnContradiction::unschedule : OnContradiction::fail);
  for_each(L, 3, [&](int i) {
    fill_metrics(L, lua_gettop(L), self.metrics.at(static_cast<size_t>(i - 1)));
  });
}

/// problem:to_json(placement, notes, schedule, parallelism, splits, made_for) -> text;
/// see schedule_arg() and so on, nil where there is none.
int problem_to_json(lua_State* L, const BoundProblem& of) {
  const auto& problem = *of.problem;
  Strategy strategy;
  table_arg(L, 3, "notes");
  if (!lua_isnoneornil(L, 5)) {
    strategy.parallelism = parallelism_arg(L, 5);
  } else {
    strategy.placement = placement_arg(L, 2, problem);
    strategy.schedule = schedule_arg(L, 4, problem);
  }
  if (lua_istable(L, 6))
    strategy.splits = splits_arg(L, 6, problem.graph(), problem.cluster().device_count());
  std::map<std::string, Scalar> notes;
  for_each_entry(L, 3, [&] {
    const auto key = string_arg(L, -2, "note");
    notes[key] = scalar_arg(L, "note");
  });
  const auto made_for = lua_istable(L, 7) ? scalars_arg(L, 7, "made_for") : Scalars();
  return push_text(L, strategy_to_json(strategy, problem.graph(), problem.cluster(), notes, made_for));
}

/// problem:from_json(text, source, placement) -> {version=, same_graph=, same_cluster=, notes={},
/// made_for={}, schedule=, parallelism=, splits=};
/// fills the placement array. schedule: as to_json() takes it, nil for the default.
int problem_from_json(lua_State* L, const BoundProblem& of) {
  const auto& problem = *of.problem;
  const auto loaded = strategy_from_json(string_arg(L, 2, "text"), string_arg(L, 3, "source"),
                                         problem.graph(), problem.cluster());
  fill_from_1(L, 4, "placement", loaded.strategy.placement);
  push(L, record("version", loaded.version, "made_for", loaded.made_for, "same_graph", loaded.same_graph, "same_cluster",
                 loaded.same_cluster, "notes", loaded.notes));
  push_schedule(L, loaded.strategy.schedule);
  lua_setfield(L, -2, "schedule");
  if (loaded.strategy.parallelism) {
    push_parallelism(L, *loaded.strategy.parallelism);
    lua_setfield(L, -2, "parallelism");
  }
  if (!loaded.strategy.splits.empty()) {
    push_splits(L, loaded.strategy.splits);
    lua_setfield(L, -2, "splits");
  }
  return 1;
}

/// problem:cost_fingerprint() -> text: equal for equal times of a cost model of one's own; nil
/// without one.
std::optional<std::string> problem_cost_fingerprint(const BoundProblem& of) {
  const auto& problem = *of.problem;
  Hasher hash;
  bool any = false;
  for (int32_t o = 0; o < problem.operators(); ++o) {
    const auto& stated = problem.graph().op(o).stated;
    for (const auto& on : stated ? *stated : std::vector<StatedTime>{}) {
      any = true;
      hash.add(static_cast<uint64_t>(o)).add(static_cast<uint64_t>(on.device_type));
      for (const double value : {on.speed, on.time_s}) hash.add(std::bit_cast<uint64_t>(value));
    }
  }
  return any ? std::optional(fmt::format("{:016x}", hash.value())) : std::nullopt;
}

constexpr luaL_Reg kProblem[] = {TRINITY_BIND("check_memory", [](const BoundProblem& of) { check_memory(*of.problem); }),
                                 TRINITY_BIND("cost_fingerprint", problem_cost_fingerprint),
                                 TRINITY_BIND("evaluate", problem_evaluate),
                                 TRINITY_BIND("to_json", problem_to_json),
                                 TRINITY_BIND("from_json", problem_from_json)};
constexpr luaL_Reg kProblemFunctions[] = {TRINITY_BIND("problem", problem_new)};

}  // namespace

int64_t limit_arg(lua_State* L, int index) {
  if (lua_isnoneornil(L, index)) return kNoLimit;
  const double limit_s = number_arg(L, index, "reject_above_s");
  if (!(limit_s >= 0))
    throw ArgumentError("reject_above_s must not be negative, got {}", limit_s);
  return limit_s < 9e9 ? std::llround(limit_s * 1e9) : kNoLimit;
}

std::span<const int32_t> placement_entries(lua_State* L, int index, const Graph& graph) {
  const auto given = integers_arg(L, index, "placement", "a placement");
  if (given.size() != static_cast<size_t>(graph.operator_count()))
    throw ArgumentError("a placement of graph '{}' needs {} entries, got {}", graph.name(), graph.operator_count(),
                        given.size());
  return given;
}

void placement_arg(lua_State* L, int index, const Problem& problem, int32_t* out) {
  const auto given = placement_entries(L, index, problem.graph());
  std::transform(given.begin(), given.end(), out, [](int32_t device) { return device - 1; });
  check_placement({out, given.size()}, problem.graph(), problem.cluster());
}

std::vector<int32_t> placement_arg(lua_State* L, int index, const Problem& problem) {
  std::vector<int32_t> placement(at(problem.operators()));
  placement_arg(L, index, problem, placement.data());
  return placement;
}

Plan plan_arg(lua_State* L, int index, const Problem& problem, std::span<int32_t> placement) {
  if (!lua_istable(L, index)) {
    placement_arg(L, index, problem, placement.data());
    return {placement};
  }
  lua_rawgeti(L, index, 1);
  placement_arg(L, lua_gettop(L), problem, placement.data());
  lua_rawgeti(L, index, 2);
  const FixedSchedule* fixed = handle_arg<const FixedSchedule>(L, lua_gettop(L)).get();
  lua_pop(L, 2);  // the caller's table keeps the schedule alive
  return {placement, &fixed->schedule, nullptr, fixed->hash};
}

void fill_metrics(lua_State* L, int index, const Metrics& metrics) {
  auto* out = struct_arg<trinity_metrics>(L, index, Magic::metrics, "metrics", "a metrics struct");
  TRINITY_CHECK_EQ(out->device_count, static_cast<int32_t>(metrics.devices.size()));
  out->step_time_s = metrics.step_time_s();
  out->peak_memory_bytes = static_cast<double>(metrics.peak_memory_bytes);
  out->peak_communication_bytes = static_cast<double>(metrics.peak_communication_bytes);
  out->total_communication_bytes = static_cast<double>(metrics.total_communication_bytes);
  out->excess_memory_bytes = std::max(0.0, static_cast<double>(metrics.excess_memory_bytes));
  out->transfers = metrics.transfers;
  out->feasible = metrics.feasible() && !metrics.rejected;
  out->rejected = metrics.rejected;
  double* device = reinterpret_cast<double*>(out + 1);
  for (const auto& values : metrics.devices) {
    *device++ = static_cast<double>(values.compute_busy_ns) / 1e9;
    *device++ = static_cast<double>(values.send_busy_ns) / 1e9;
    *device++ = static_cast<double>(values.peak_memory_bytes);
    *device++ = static_cast<double>(values.bytes_sent);
    *device++ = static_cast<double>(values.bytes_received);
  }
}

/// Simulates batches of placements and reads their critical paths. Not thread-safe.
struct BoundCriticalUnits {
  explicit BoundCriticalUnits(std::shared_ptr<const Problem> bound) : problem(std::move(bound)) {
    for (int i = 0; i < shared_pool().threads(); ++i) workers.emplace_back(*problem);
  }
  struct Worker {
    explicit Worker(const Problem& problem) : simulator(problem) {}
    Simulator simulator;
    Timeline timeline;
  };
  std::shared_ptr<const Problem> problem;
  std::vector<Worker> workers;
  std::vector<int32_t> placements;
  std::vector<Metrics> metrics;
};

template <>
inline constexpr const char* kTypeName<BoundCriticalUnits> = "critical units";

namespace {

/// critical_units(problem) -> critical units
auto critical_units_new(const BoundProblem& of) { return std::make_shared<BoundCriticalUnits>(of.problem); }

/// Seconds that operators of each unit run on the critical path, and that transfers of their outputs
/// take there: `row` has one entry per unit.
void add_critical_s(const Problem& problem, std::span<const int32_t> placement,
                    const Timeline& timeline, std::span<double> row) {
  const auto unit_of = problem.graph().units();
  std::fill(row.begin(), row.end(), 0.0);
  for (const auto& step : critical_path(problem, placement, timeline).steps) {
    if (step.kind == PathStep::Kind::collective) continue;
    const int32_t task = step.kind == PathStep::Kind::compute
                             ? step.index
                             : timeline.transfers[at(step.index)].task;
    row[at(unit_of[task])] += static_cast<double>(step.end_ns - step.ready_ns) / 1e9;
  }
}

/// critical_units:run(placements, metrics, out): simulates placements first in, first out on all
/// threads, fills the same number of metrics structs and out[placement][unit], a double array: the
/// seconds of the critical path that run, wait for or send operators of the unit.
void critical_units_run(lua_State* L, BoundCriticalUnits& self, Table<"placements">, Table<"metrics">) {
  const auto& problem = *self.problem;
  const size_t n = at(problem.operators()), count = lua_objlen(L, 2);
  const auto units = static_cast<size_t>(problem.graph().unit_count());
  const auto out = numbers_arg(L, 4, "out");
  TRINITY_CHECK_EQ(out.size(), count * units);
  self.placements.resize(count * n);
  self.metrics.resize(count);
  for_each(L, 2, [&](int i) {
    placement_arg(L, lua_gettop(L), problem, self.placements.data() + at(i - 1) * n);
  });
  shared_pool().parallel_for(static_cast<int>(count), [&](int item, int thread) {
    poll_stop();
    auto& worker = self.workers[at(thread)];
    const auto placement = std::span<const int32_t>(self.placements).subspan(at(item) * n, n);
    worker.simulator.run(placement, self.metrics[at(item)], &worker.timeline);
    add_critical_s(problem, placement, worker.timeline, out.subspan(at(item) * units, units));
  });
  for_each(L, 3, [&](int i) { fill_metrics(L, lua_gettop(L), self.metrics.at(at(i - 1))); });
}

constexpr luaL_Reg kCriticalUnits[] = {TRINITY_BIND("run", critical_units_run)};
/// task_graph(problem) -> the fields of lib/trinity/search/task_graph.lua that are lists. Tasks, devices, edges, units
/// and tensors count from 1.
auto task_graph(const BoundProblem& of) {
  const auto& problem = of.problem;
  const auto graph = make_task_graph(*problem);
  const auto model = problem->rules().memory;
  std::vector<int64_t> output_bytes, workspace_bytes, fixed_bytes, capacity_bytes;
  for (int32_t o = 0; o < graph.tasks; ++o) {
    int64_t sum = 0;
    for (int32_t i = problem->first_output(o); i < problem->first_output(o + 1); ++i)
      sum += problem->held_bytes()[i];
    const bool slots = model == MemoryModel::slots;
    output_bytes.push_back(model == MemoryModel::none ? 0 : sum);
    workspace_bytes.push_back(slots ? problem->graph().op(o).workspace_bytes : 0);
    fixed_bytes.push_back(slots ? problem->fixed_bytes(o) : 0);
  }
  for (int32_t d = 0; d < graph.processors; ++d)
    capacity_bytes.push_back(problem->cluster().room_bytes(d));
  const auto column = [&](auto member) { return list_of(graph.edges, member); };
  return record("cost_ns", graph.cost, "edge_from", from_1(column(&TaskGraph::Edge::from)), "edge_to",
                from_1(column(&TaskGraph::Edge::to)), "edge_tensor", from_1(column(&TaskGraph::Edge::tensor)),
                "edge_bytes", column(&TaskGraph::Edge::bytes), "in_edges", from_1(graph.in), "first_in",
                from_1(graph.in_first), "first_out", from_1(graph.out_first), "latency_ns", graph.latency,
                "bytes_per_ns", graph.rate, "unit", from_1(graph.group), "follows", graph.follows, "output_bytes",
                output_bytes, "workspace_bytes", workspace_bytes, "fixed_bytes", fixed_bytes, "capacity_bytes",
                capacity_bytes);
}

constexpr luaL_Reg kFunctions[] = {
    TRINITY_BIND("critical_units", critical_units_new), TRINITY_BIND("task_graph", task_graph)};

}  // namespace

void open_problem(lua_State* L) {
  register_functions(L, kProblemFunctions);
  register_type<BoundProblem>(L, kProblem);
  register_functions(L, kFunctions);
  register_type<BoundCriticalUnits>(L, kCriticalUnits);
}

}  // namespace trinity::lua
