#include <algorithm>

#include "base/index.h"
#include "base/stop.h"
#include "lua/bind/module.h"

// Observations of environments (lib/trinity/env), for many placements at once.

namespace trinity::lua {

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
int critical_units_new(lua_State* L) {
  push_object(L, std::make_shared<BoundCriticalUnits>(
                     object_arg<BoundProblem>(L, 1, "problem").problem));
  return 1;
}

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
int critical_units_run(lua_State* L) {
  auto& self = object_arg<BoundCriticalUnits>(L, 1);
  table_arg(L, 2, "placements");
  table_arg(L, 3, "metrics");
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
  return 0;
}

constexpr luaL_Reg kCriticalUnits[] = {TRINITY_BIND("run", critical_units_run)};
constexpr luaL_Reg kFunctions[] = {TRINITY_BIND("critical_units", critical_units_new)};

}  // namespace

void open_env(lua_State* L) {
  register_functions(L, kFunctions);
  register_type<BoundCriticalUnits>(L, kCriticalUnits);
}

}  // namespace trinity::lua
