#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/export/chrome_trace.h"
#include "lua/bind/module.h"
#include "simulator/account.h"
#include "simulator/analysis.h"
#include "simulator/bind_schedule.h"
#include "strategy/schedule.h"

namespace trinity::lua {
namespace {

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

/// Numbers: a double array or a list.
std::vector<double> doubles_arg(lua_State* L, int index, const std::string& owner) {
  if (const auto* array = find_struct<trinity_double_array>(L, index, Magic::double_array)) {
    const auto* data = reinterpret_cast<const double*>(array + 1);
    return {data, data + array->length};
  }
  if (!lua_istable(L, index))
    throw ArgumentError(
        fmt::format("{}: expected a list or a double array, got {}", owner, type_name(L, index)));
  std::vector<double> values;
  for_each(L, index, [&](int i) {
    if (lua_type(L, -1) != LUA_TNUMBER)
      throw ArgumentError(
          fmt::format("{}: entry {}: expected a number, got {}", owner, i, type_name(L, -1)));
    values.push_back(lua_tonumber(L, -1));
  });
  return values;
}

/// What a script numbers from 1 (an int32 array or a list of integers from `low` to `high`), from
/// 0.
std::vector<int32_t> indices_arg(lua_State* L, int index, const std::string& owner, int64_t low,
                                 int64_t high) {
  std::vector<int64_t> values;
  if (const auto* array = find_struct<trinity_int32_array>(L, index, Magic::int32_array)) {
    const auto* data = reinterpret_cast<const int32_t*>(array + 1);
    values.assign(data, data + array->length);
  } else if (lua_istable(L, index)) {
    values = integers(L, index, owner);
  } else {
    throw ArgumentError(
        fmt::format("{}: expected a list or an int32 array, got {}", owner, type_name(L, index)));
  }
  std::vector<int32_t> indices;
  indices.reserve(values.size());
  for (const int64_t value : values) {
    if (value < low || value > high)
      throw ArgumentError(fmt::format("{}: expected {} to {}, got {}", owner, low, high, value));
    indices.push_back(static_cast<int32_t>(value - 1));
  }
  return indices;
}

/// Task numbers (micro-batch - 1) * operators + operator, a list of them a device.
void read_order(lua_State* L, int index, const Problem& problem, ScheduleSpec& spec) {
  const int64_t tasks = std::min<int64_t>(int64_t{problem.operators()} * spec.micro_batches,
                                          std::numeric_limits<int32_t>::max());
  for_each(L, index, [&](int d) {
    spec.order.push_back(
        indices_arg(L, lua_gettop(L), fmt::format("schedule: 'order': device {}", d), 1, tasks));
  });
}

/// problem:schedule(placement, {schedule=, micro_batches=, priority=, order=, stage=}, any) ->
/// schedule; `any`: a schedule that the placement contradicts is no error.
int problem_schedule(lua_State* L) {
  const auto& problem = *object_arg<BoundProblem>(L, 1).problem;
  std::vector<int32_t> placement(static_cast<size_t>(problem.operators()));
  placement_arg(L, 2, problem, placement.data());
  const auto spec = schedule_arg(L, 3, problem);
  const auto on = lua_toboolean(L, 4) ? OnContradiction::unschedule : OnContradiction::fail;
  push_object<const FixedSchedule>(
      L, std::make_shared<const FixedSchedule>(bind_schedule(spec, placement, problem, on)));
  return 1;
}

/// problem:bounds(micro_batches, stream) -> {critical_path_s=, work_s=, interval_s=, step_time_s=,
/// peak_memory_bytes=, least_devices=}
int problem_bounds(lua_State* L) {
  auto& self = object_arg<BoundProblem>(L, 1);
  const auto micro_batches =
      static_cast<int32_t>(integer_arg(L, 2, "micro_batches", 1, int64_t{1} << 30));
  Bounds bounds;
  const bool stream = lua_toboolean(L, 3);
  if (micro_batches > 1 || stream) {
    bounds = lower_bounds(*self.problem, micro_batches, stream);
  } else {
    if (!self.bounds) self.bounds = lower_bounds(*self.problem);
    bounds = *self.bounds;
  }
  lua_newtable(L);
  set_field(L, "critical_path_s", seconds(bounds.critical_path_ns));
  set_field(L, "work_s", seconds(bounds.work_ns));
  set_field(L, "interval_s", seconds(bounds.interval_ns));
  set_field(L, "step_time_s", seconds(bounds.step_time_ns));
  set_field(L, "peak_memory_bytes", static_cast<double>(bounds.peak_memory_bytes));
  set_field(L, "least_devices", bounds.least_devices);
  return 1;
}

/// problem:timeline(placement or {placement, schedule}) -> timeline
int problem_timeline(lua_State* L) {
  auto& self = object_arg<BoundProblem>(L, 1);
  auto result = std::make_shared<BoundTimeline>();
  result->problem = self.problem;
  result->placement.resize(static_cast<size_t>(self.problem->operators()));
  const Plan plan = plan_arg(L, 2, *self.problem, result->placement);
  result->timeline.wants_owners = true;
  Simulator(*self.problem).run(plan, result->metrics, &result->timeline);
  push_object(L, std::move(result));
  return 1;
}

/// timeline:fill(start_s, end_s, ready_s, device): writes tasks into arrays of tasks() entries;
/// NaN where a task does not run.
int timeline_fill(lua_State* L) {
  const auto& timeline = object_arg<BoundTimeline>(L, 1).timeline;
  const std::vector<int64_t>* times[] = {&timeline.start_ns, &timeline.end_ns, &timeline.ready_ns};
  for (int i = 0; i < 3; ++i) {
    const auto out = numbers_arg(L, 2 + i, "out");
    TRINITY_CHECK_EQ(out.size(), times[i]->size());
    std::transform(times[i]->begin(), times[i]->end(), out.begin(),
                   [](int64_t ns) { return ns < 0 ? std::nan("") : seconds(ns); });
  }
  fill_from_1(L, 5, "devices", timeline.device);
  return 0;
}

int timeline_tasks(lua_State* L) {
  const auto& timeline = object_arg<BoundTimeline>(L, 1).timeline;
  lua_pushnumber(L, static_cast<double>(timeline.start_ns.size()));
  lua_pushnumber(L, timeline.micro_batches);
  return 2;
}

int timeline_metrics(lua_State* L) {
  fill_metrics(L, 2, object_arg<BoundTimeline>(L, 1).metrics);
  return 0;
}

/// Adds operator and micro_batch of a task to the table on top of the stack.
void set_task(lua_State* L, const BoundTimeline& self, int32_t task) {
  const int32_t n = self.problem->operators();
  set_field(L, "task", task + 1);
  set_field(L, "operator", self.problem->graph().op(task % n).name);
  set_field(L, "micro_batch", task / n + 1);
}

void set_times(lua_State* L, int64_t ready_ns, int64_t start_ns, int64_t end_ns) {
  set_field(L, "ready_s", seconds(ready_ns));
  set_field(L, "start_s", seconds(start_ns));
  set_field(L, "end_s", seconds(end_ns));
}

void push_transfer(lua_State* L, const BoundTimeline& self, const Transfer& transfer) {
  lua_newtable(L);
  set_task(L, self, transfer.task);
  set_field(L, "output", transfer.output + 1);
  set_field(L, "from", transfer.from + 1);
  set_field(L, "to", transfer.to + 1);
  set_field(L, "bytes", static_cast<double>(transfer.bytes));
  set_times(L, transfer.enqueued_ns, transfer.start_ns, transfer.end_ns);
}

void push_collective(lua_State* L, const BoundTimeline& self, const CollectiveRun& run) {
  lua_newtable(L);
  set_field(L, "collective", self.problem->graph().collectives()[run.collective].name);
  set_field(L, "micro_batch", run.micro_batch + 1);
  set_times(L, run.ready_ns, run.start_ns, run.end_ns);
}

int timeline_transfers(lua_State* L) {
  const auto& self = object_arg<BoundTimeline>(L, 1);
  lua_newtable(L);
  for (size_t i = 0; i < self.timeline.transfers.size(); ++i) {
    push_transfer(L, self, self.timeline.transfers[i]);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

int timeline_collectives(lua_State* L) {
  const auto& self = object_arg<BoundTimeline>(L, 1);
  lua_newtable(L);
  for (size_t i = 0; i < self.timeline.collectives.size(); ++i) {
    push_collective(L, self, self.timeline.collectives[i]);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

/// timeline:memory(device) -> list of {time_s=, bytes=}
int timeline_memory(lua_State* L) {
  const auto& self = object_arg<BoundTimeline>(L, 1);
  const auto device = integer_arg(L, 2, "device", 1, self.problem->devices());
  lua_newtable(L);
  if (self.timeline.memory.empty()) return 1;
  const auto& levels = self.timeline.memory[device - 1];
  for (size_t i = 0; i < levels.size(); ++i) {
    lua_newtable(L);
    set_field(L, "time_s", seconds(levels[i].time_ns));
    set_field(L, "bytes", static_cast<double>(levels[i].bytes));
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

int timeline_chrome_trace(lua_State* L) {
  const auto& self = object_arg<BoundTimeline>(L, 1);
  return push_text(L, chrome_trace(*self.problem, self.timeline));
}

void push_step(lua_State* L, const BoundTimeline& self, const PathStep& step) {
  const auto at = static_cast<size_t>(step.index);
  if (step.kind == PathStep::Kind::transfer) {
    push_transfer(L, self, self.timeline.transfers[at]);
    set_field(L, "kind", std::string("transfer"));
  } else if (step.kind == PathStep::Kind::collective) {
    push_collective(L, self, self.timeline.collectives[at]);
    set_field(L, "kind", std::string("collective"));
  } else {
    lua_newtable(L);
    set_task(L, self, step.index);
    set_times(L, step.ready_ns, step.start_ns, step.end_ns);
    set_field(L, "kind", std::string("compute"));
  }
}

const CriticalPath& path_of(BoundTimeline& self) {
  if (!self.path) self.path = critical_path(*self.problem, self.placement, self.timeline);
  return *self.path;
}

/// timeline:critical_steps() -> how many links the critical path has;
/// timeline:critical_steps(kind, task, device, ready_s, start_s, end_s): writes them into arrays of
/// as many entries. kind: 1 a task; 2 a transfer, with its producer and its receiver; 3 a
/// collective, with task and device 0.
int timeline_critical_steps(lua_State* L) {
  auto& self = object_arg<BoundTimeline>(L, 1);
  const auto& steps = path_of(self).steps;
  if (lua_isnoneornil(L, 2)) return push_number(L, static_cast<double>(steps.size()));
  std::vector<int32_t> kind, task, device;
  std::vector<double> ready_s, start_s, end_s;
  for (const auto& step : steps) {
    const auto at = static_cast<size_t>(step.index);
    const bool sent = step.kind == PathStep::Kind::transfer;
    const bool ran = step.kind == PathStep::Kind::compute;
    kind.push_back(ran ? 0 : sent ? 1 : 2);
    task.push_back(ran ? step.index : sent ? self.timeline.transfers[at].task : -1);
    device.push_back(ran ? self.timeline.device[at] : sent ? self.timeline.transfers[at].to : -1);
    ready_s.push_back(seconds(step.ready_ns));
    start_s.push_back(seconds(step.start_ns));
    end_s.push_back(seconds(step.end_ns));
  }
  fill_from_1(L, 2, "kind", kind);
  fill_from_1(L, 3, "task", task);
  fill_from_1(L, 4, "device", device);
  fill_numbers(L, 5, "ready_s", ready_s);
  fill_numbers(L, 6, "start_s", start_s);
  fill_numbers(L, 7, "end_s", end_s);
  return 0;
}

/// timeline:critical_path() -> {steps={...}, compute_s=, wire_s=, collective_s=, queue_s=}
int timeline_critical_path(lua_State* L) {
  auto& self = object_arg<BoundTimeline>(L, 1);
  const auto& path = path_of(self);
  lua_newtable(L);
  set_field(L, "compute_s", seconds(path.compute_ns));
  set_field(L, "wire_s", seconds(path.wire_ns));
  set_field(L, "collective_s", seconds(path.collective_ns));
  set_field(L, "queue_s", seconds(path.queue_ns));
  lua_newtable(L);
  for (size_t i = 0; i < path.steps.size(); ++i) {
    push_step(L, self, path.steps[i]);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  lua_setfield(L, -2, "steps");
  return 1;
}

/// timeline:exposed_communication() -> seconds in which any device waits, list of seconds a device
int timeline_exposed(lua_State* L) {
  const auto& self = object_arg<BoundTimeline>(L, 1);
  const auto exposure = exposed_communication(*self.problem, self.placement, self.timeline);
  lua_pushnumber(L, seconds(exposure.any_ns));
  lua_newtable(L);
  for (size_t d = 0; d < exposure.device_ns.size(); ++d) {
    lua_pushnumber(L, seconds(exposure.device_ns[d]));
    lua_rawseti(L, -2, static_cast<int>(d) + 1);
  }
  return 2;
}

/// timeline:by_type() -> list of {type=, tasks=, total_s=}, the largest first
int timeline_by_type(lua_State* L) {
  const auto& self = object_arg<BoundTimeline>(L, 1);
  lua_newtable(L);
  int i = 0;
  for (const auto& share : by_type(*self.problem, self.timeline)) {
    lua_newtable(L);
    set_field(L, "type", share.type);
    set_field(L, "tasks", share.tasks);
    set_field(L, "total_s", seconds(share.total_ns));
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

/// owned: nullptr where memory is not accounted.
void push_device_account(lua_State* L, const DeviceAccount& device, const OwnedBytes* owned) {
  lua_newtable(L);
  set_field(L, "parameters", static_cast<double>(device.parameters));
  set_field(L, "weight_bytes", static_cast<double>(device.weight_bytes));
  set_field(L, "gradient_bytes", static_cast<double>(device.gradient_bytes));
  set_field(L, "optimizer_bytes", static_cast<double>(device.optimizer_bytes));
  set_field(L, "gathered_weight_bytes", static_cast<double>(device.gathered_bytes));
  set_field(L, "delayed_bytes", static_cast<double>(device.delayed_bytes));
  set_field(L, "flops", device.flops);
  set_field(L, "computation_s", seconds(device.compute_ns));
  set_field(L, "recomputation_s", seconds(device.recompute_ns));
  set_field(L, "idle_s", seconds(device.idle_ns));
  lua_newtable(L);
  for (size_t p = 0; p < kPurposes; ++p)
    set_field(L, purpose_name(static_cast<MessagePurpose>(p)), seconds(device.exposed_ns[p]));
  lua_setfield(L, -2, "exposed_s");
  push_numbers(L, device.activation_bytes, 0);
  lua_setfield(L, -2, "activations");
  if (!owned) return;
  push_owners(L, *owned);
  lua_setfield(L, -2, "peak_bytes");
}

void push_traffic(lua_State* L, const Traffic& traffic) {
  lua_newtable(L);
  set_field(L, "kind", std::string(traffic.send ? "send" : collective_kind_name(traffic.kind)));
  set_field(L, "phase", std::string(phase_name(traffic.phase)));
  set_field(L, "group", traffic.group + 1);
  set_field(L, "bytes", static_cast<double>(traffic.bytes));
  set_field(L, "count", static_cast<double>(traffic.count));
  push_numbers(L, traffic.devices, 1);
  lua_setfield(L, -2, "devices");
}

/// timeline:breakdown(groups or nil) -> list of devices, list of traffic
/// (engine/simulator/account.h). groups: of every operator, from 1.
int timeline_account(lua_State* L) {
  const auto& self = object_arg<BoundTimeline>(L, 1);
  std::vector<int32_t> group(static_cast<size_t>(self.problem->operators()), 0);
  int32_t groups = 1;
  if (lua_istable(L, 2)) {
    const auto given = integers(L, 2, "groups");
    if (given.size() != group.size()) throw ArgumentError("groups: expected one an operator");
    for (size_t op = 0; op < group.size(); ++op) {
      if (given[op] < 1 || given[op] > 1 << 20)
        throw ArgumentError("groups: expected numbers from 1");
      group[op] = static_cast<int32_t>(given[op]) - 1;
      groups = std::max(groups, group[op] + 1);
    }
  }
  const auto found = account(*self.problem, self.placement, self.timeline, group, groups);
  lua_newtable(L);
  for (size_t d = 0; d < found.devices.size(); ++d) {
    push_device_account(L, found.devices[d],
                        self.timeline.owners.empty() ? nullptr : &self.timeline.owners[d]);
    lua_rawseti(L, -2, static_cast<int>(d) + 1);
  }
  lua_newtable(L);
  for (size_t i = 0; i < found.traffic.size(); ++i) {
    push_traffic(L, found.traffic[i]);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  return 2;
}

constexpr luaL_Reg kTimeline[] = {TRINITY_BIND("tasks", timeline_tasks),
                                  TRINITY_BIND("account", timeline_account),
                                  TRINITY_BIND("fill", timeline_fill),
                                  TRINITY_BIND("metrics", timeline_metrics),
                                  TRINITY_BIND("transfers", timeline_transfers),
                                  TRINITY_BIND("collectives", timeline_collectives),
                                  TRINITY_BIND("memory", timeline_memory),
                                  TRINITY_BIND("chrome_trace", timeline_chrome_trace),
                                  TRINITY_BIND("critical_path", timeline_critical_path),
                                  TRINITY_BIND("critical_steps", timeline_critical_steps),
                                  TRINITY_BIND("exposed_communication", timeline_exposed),
                                  TRINITY_BIND("by_type", timeline_by_type)};
/// Further methods of a problem.
constexpr luaL_Reg kProblemSchedules[] = {TRINITY_BIND("schedule", problem_schedule),
                                 TRINITY_BIND("bounds", problem_bounds),
                                 TRINITY_BIND("timeline", problem_timeline)};

}  // namespace

void push_owners(lua_State* L, const OwnedBytes& owned) {
  lua_newtable(L);
  for (size_t owner = 0; owner < kMemoryOwners; ++owner)
    set_field(L, memory_owner_name(static_cast<MemoryOwner>(owner)),
              static_cast<double>(owned[owner]));
}

ScheduleSpec schedule_arg(lua_State* L, int index, const Problem& problem) {
  ScheduleSpec spec;
  if (lua_isnoneornil(L, index)) return spec;
  Fields fields(L, index, "schedule");
  spec.name = fields.string("schedule", spec.name);
  spec.micro_batches =
      static_cast<int32_t>(fields.integer("micro_batches", 1, 1, int64_t{1} << 30));
  const auto read = [&](const char* key, auto body) {
    fields.push_any(key);
    if (!lua_isnil(L, -1)) body(lua_gettop(L), fmt::format("schedule: '{}'", key));
    lua_pop(L, 1);
  };
  read("priority",
       [&](int at, const std::string& owner) { spec.priority = doubles_arg(L, at, owner); });
  read("stage", [&](int at, const std::string& owner) {
    spec.stage = indices_arg(L, at, owner, 0, problem.operators());
  });
  if (fields.push_table("order")) {
    read_order(L, lua_gettop(L), problem, spec);
    lua_pop(L, 1);
  }
  if (fields.push_table("tasks")) {
    spec.tasks = order_arg(L, lua_gettop(L));
    lua_pop(L, 1);
  }
  fields.refuse_unknown();
  check_schedule(spec, problem.graph(), problem.devices());
  return spec;
}

void push_schedule(lua_State* L, const ScheduleSpec& spec) {
  if (spec == ScheduleSpec{}) return lua_pushnil(L);
  lua_newtable(L);
  set_field(L, "schedule", spec.name);
  set_field(L, "micro_batches", spec.micro_batches);
  if (!spec.priority.empty()) set_numbers(L, "priority", spec.priority);
  if (!spec.stage.empty()) set_numbers(L, "stage", spec.stage, 1);
  if (!spec.tasks.empty()) {
    push_order(L, spec.tasks);
    lua_setfield(L, -2, "tasks");
  }
  if (spec.order.empty()) return;
  push_list(L, spec.order, [&](const auto& tasks) { push_numbers(L, tasks, 1); });
  lua_setfield(L, -2, "order");
}

void open_simulator(lua_State* L) {
  register_type<const FixedSchedule>(L, {});
  register_type<BoundTimeline>(L, kTimeline);
  luaL_getmetatable(L, kTypeName<BoundProblem>);
  lua_getfield(L, -1, "__index");
  register_functions(L, kProblemSchedules, kTypeName<BoundProblem>, true);
  lua_pop(L, 2);
}

}  // namespace trinity::lua
