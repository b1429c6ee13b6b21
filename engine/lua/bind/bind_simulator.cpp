#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/export/chrome_trace.h"
#include "lua/bind/module.h"
#include "simulator/account.h"
#include "simulator/analysis.h"
#include "simulator/bind_schedule.h"
#include "strategy/own_order.h"
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
    throw ArgumentError("{}: expected a list or a double array, got {}", owner, type_name(L, index));
  std::vector<double> values;
  for_each(L, index, [&](int i) {
    if (lua_type(L, -1) != LUA_TNUMBER)
      throw ArgumentError("{}: entry {}: expected a number, got {}", owner, i, type_name(L, -1));
    values.push_back(lua_tonumber(L, -1));
  });
  return values;
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
auto problem_schedule(lua_State* L, const BoundProblem& of) {
  const auto& problem = *of.problem;
  const auto placement = placement_arg(L, 2, problem);
  const auto spec = schedule_arg(L, 3, problem);
  const auto on = lua_toboolean(L, 4) ? OnContradiction::unschedule : OnContradiction::fail;
  return std::make_shared<const FixedSchedule>(bind_schedule(spec, placement, problem, on));
}

/// problem:bounds(micro_batches, stream) -> {critical_path_s=, work_s=, interval_s=, step_time_s=,
/// peak_memory_bytes=, least_devices=}
auto problem_bounds(BoundProblem& self, Integer<"micro_batches", 1, int64_t{1} << 30> micro_batches, bool stream) {
  Bounds bounds;
  if (micro_batches > 1 || stream) {
    bounds = lower_bounds(*self.problem, static_cast<int32_t>(micro_batches), stream);
  } else {
    if (!self.bounds) self.bounds = lower_bounds(*self.problem);
    bounds = *self.bounds;
  }
  return record("critical_path_s", seconds(bounds.critical_path_ns), "work_s", seconds(bounds.work_ns), "interval_s",
                seconds(bounds.interval_ns), "step_time_s", seconds(bounds.step_time_ns), "peak_memory_bytes",
                bounds.peak_memory_bytes, "least_devices", bounds.least_devices);
}

/// problem:timeline(placement or {placement, schedule}) -> timeline
auto problem_timeline(lua_State* L, BoundProblem& self) {
  auto result = std::make_shared<BoundTimeline>();
  result->problem = self.problem;
  result->placement.resize(static_cast<size_t>(self.problem->operators()));
  const Plan plan = plan_arg(L, 2, *self.problem, result->placement);
  result->timeline.wants_owners = true;
  Simulator(*self.problem).run(plan, result->metrics, &result->timeline);
  return result;
}

/// timeline:fill(start_s, end_s, ready_s, device): writes tasks into arrays of tasks() entries;
/// NaN where a task does not run.
void timeline_fill(lua_State* L, const BoundTimeline& self) {
  const auto& timeline = self.timeline;
  const std::vector<int64_t>* times[] = {&timeline.start_ns, &timeline.end_ns, &timeline.ready_ns};
  for (int i = 0; i < 3; ++i) {
    const auto out = numbers_arg(L, 2 + i, "out");
    TRINITY_CHECK_EQ(out.size(), times[i]->size());
    std::transform(times[i]->begin(), times[i]->end(), out.begin(),
                   [](int64_t ns) { return ns < 0 ? std::nan("") : seconds(ns); });
  }
  fill_from_1(L, 5, "devices", timeline.device);
}

auto timeline_tasks(const BoundTimeline& self) {
  return std::tuple(self.timeline.start_ns.size(), self.timeline.micro_batches);
}

void timeline_metrics(lua_State* L, const BoundTimeline& self) { fill_metrics(L, 2, self.metrics); }

/// The fields of a task: its number, operator and micro-batch.
auto task_of(const BoundTimeline& self, int32_t task) {
  const int32_t n = self.problem->operators();
  return std::tuple("task", task + 1, "operator", self.problem->graph().op(task % n).name, "micro_batch", task / n + 1);
}

auto times_of(int64_t ready_ns, int64_t start_ns, int64_t end_ns) {
  return std::tuple("ready_s", seconds(ready_ns), "start_s", seconds(start_ns), "end_s", seconds(end_ns));
}

/// A table of the fields in tuples.
template <class... Tuples>
auto joined(Tuples&&... tuples) {
  return std::apply([](auto&&... parts) { return record(parts...); }, std::tuple_cat(tuples...));
}

auto transfer_of(const BoundTimeline& self, const Transfer& transfer, const char* kind = nullptr) {
  return joined(task_of(self, transfer.task),
                std::tuple("output", transfer.output + 1, "from", transfer.from + 1, "to", transfer.to + 1, "bytes",
                           transfer.bytes, "kind", kind),
                times_of(transfer.enqueued_ns, transfer.start_ns, transfer.end_ns));
}

auto collective_of(const BoundTimeline& self, const CollectiveRun& run, const char* kind = nullptr) {
  return joined(std::tuple("collective", self.problem->graph().collectives()[run.collective].name, "micro_batch",
                           run.micro_batch + 1, "kind", kind),
                times_of(run.ready_ns, run.start_ns, run.end_ns));
}

auto timeline_transfers(const BoundTimeline& self) {
  return list_of(self.timeline.transfers, [&](const Transfer& transfer) { return transfer_of(self, transfer); });
}

auto timeline_collectives(const BoundTimeline& self) {
  return list_of(self.timeline.collectives, [&](const CollectiveRun& run) { return collective_of(self, run); });
}

/// timeline:memory(device) -> list of {time_s=, bytes=}
auto timeline_memory(lua_State* L, const BoundTimeline& self) {
  const auto device = integer_arg(L, 2, "device", 1, self.problem->devices());
  const auto level = [](const auto& of) { return record("time_s", seconds(of.time_ns), "bytes", of.bytes); };
  using Levels = std::remove_cvref_t<decltype(self.timeline.memory[0])>;
  return list_of(self.timeline.memory.empty() ? Levels() : self.timeline.memory[device - 1], level);
}

auto timeline_chrome_trace(const BoundTimeline& self) { return chrome_trace(*self.problem, self.timeline); }

void push_step(lua_State* L, const BoundTimeline& self, const PathStep& step) {
  const auto at = static_cast<size_t>(step.index);
  if (step.kind == PathStep::Kind::transfer)
    push(L, transfer_of(self, self.timeline.transfers[at], "transfer"));
  else if (step.kind == PathStep::Kind::collective)
    push(L, collective_of(self, self.timeline.collectives[at], "collective"));
  else
    push(L, joined(task_of(self, step.index), times_of(step.ready_ns, step.start_ns, step.end_ns),
                   std::tuple("kind", "compute")));
}

const CriticalPath& path_of(BoundTimeline& self) {
  if (!self.path) self.path = critical_path(*self.problem, self.placement, self.timeline);
  return *self.path;
}

/// timeline:critical_steps() -> how many links the critical path has;
/// timeline:critical_steps(kind, task, device, ready_s, start_s, end_s): writes them into arrays of
/// of that length. kind: 1 a task; 2 a transfer, with its producer and its receiver; 3 a
/// collective, with task and device 0.
int timeline_critical_steps(lua_State* L, BoundTimeline& self) {
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
int timeline_critical_path(lua_State* L, BoundTimeline& self) {
  const auto& path = path_of(self);
  push(L, record("compute_s", seconds(path.compute_ns), "wire_s", seconds(path.wire_ns), "collective_s",
                 seconds(path.collective_ns), "queue_s", seconds(path.queue_ns)));
  push_list(L, path.steps, [&](const PathStep& step) { push_step(L, self, step); });
  lua_setfield(L, -2, "steps");
  return 1;
}

/// timeline:exposed_communication() -> seconds in which any device waits, list of seconds a device
auto timeline_exposed(const BoundTimeline& self) {
  const auto exposure = exposed_communication(*self.problem, self.placement, self.timeline);
  return std::tuple(seconds(exposure.any_ns), list_of(exposure.device_ns, seconds));
}

/// timeline:by_type() -> list of {type=, tasks=, total_s=}, the largest first
auto timeline_by_type(const BoundTimeline& self) {
  return list_of(by_type(*self.problem, self.timeline), [](const auto& share) {
    return record("type", share.type, "tasks", share.tasks, "total_s", seconds(share.total_ns));
  });
}

/// Per device and group: activations, their gradients and delayed data at the peak of memory.
std::vector<std::vector<int64_t>> peak_activations(const Timeline& timeline, std::span<const int32_t> group,
                                                   int32_t groups) {
  std::vector<std::vector<int64_t>> found(timeline.owners.size(), std::vector<int64_t>(static_cast<size_t>(groups)));
  for (const auto& [device, op, owner, bytes] : timeline.at_peak)
    if (owner == MemoryOwner::activations || owner == MemoryOwner::activation_gradients ||
        owner == MemoryOwner::delayed)
      found[static_cast<size_t>(device)][static_cast<size_t>(group[static_cast<size_t>(op)])] += bytes;
  return found;
}

/// owned: nullptr where memory is not accounted.
void push_device_account(lua_State* L, const DeviceAccount& device, const OwnedBytes* owned,
                         const std::vector<int64_t>* held) {
  std::map<std::string, double> exposed_s;
  for (size_t p = 0; p < kPurposes; ++p)
    exposed_s[choice_name(static_cast<MessagePurpose>(p))] = seconds(device.exposed_ns[p]);
  push(L, record("parameters", device.parameters, "weight_bytes", device.weight_bytes, "gradient_bytes",
                 device.gradient_bytes, "optimizer_bytes", device.optimizer_bytes, "gathered_weight_bytes",
                 device.gathered_bytes, "delayed_bytes", device.delayed_bytes, "flops", device.flops, "computation_s",
                 seconds(device.compute_ns), "recomputation_s", seconds(device.recompute_ns), "host_wait_s",
                 seconds(device.host_wait_ns), "idle_s", seconds(device.idle_ns), "exposed_s", exposed_s, "activations", device.activation_bytes));
  if (!owned) return;
  set_fields(L, "peak_bytes", named(*owned), "peak_activations", *held);
}

auto traffic_of(const Traffic& traffic) {
  return record("kind", traffic.send ? "send" : choice_name(traffic.kind), "phase", traffic.phase, "group",
                traffic.group + 1, "bytes", traffic.bytes, "count", traffic.count, "devices", from_1(traffic.devices));
}

/// timeline:breakdown(groups or nil) -> list of devices, list of traffic
/// (engine/simulator/account.h). groups: of every operator, from 1.
int timeline_account(lua_State* L, const BoundTimeline& self) {
  std::vector<int32_t> group(static_cast<size_t>(self.problem->operators()), 0);
  int32_t groups = 1;
  if (lua_istable(L, 2)) {
    const auto given = integers(L, 2, "groups");
    if (given.size() != group.size()) throw ArgumentError("groups: expected one group per "
                                                          "operator");
    for (size_t op = 0; op < group.size(); ++op) {
      if (given[op] < 1 || given[op] > 1 << 20)
        throw ArgumentError("groups: expected numbers from 1 to 2^20");
      group[op] = static_cast<int32_t>(given[op]) - 1;
      groups = std::max(groups, group[op] + 1);
    }
  }
  const auto found = account(*self.problem, self.placement, self.timeline, group, groups);
  const auto& owners = self.timeline.owners;
  const auto held = peak_activations(self.timeline, group, groups);
  push_list(L, found.devices, [&, d = size_t{0}](const DeviceAccount& device) mutable {
    if (owners.empty()) push_device_account(L, device, nullptr, nullptr);
    else push_device_account(L, device, &owners[d], &held[d]);
    ++d;
  });
  push(L, list_of(found.traffic, traffic_of));
  return 2;
}

constexpr luaL_Reg kTimeline[] = {
    TRINITY_BIND("tasks", timeline_tasks), TRINITY_BIND("account", timeline_account),
    TRINITY_BIND("fill", timeline_fill), TRINITY_BIND("metrics", timeline_metrics),
    TRINITY_BIND("transfers", timeline_transfers), TRINITY_BIND("collectives", timeline_collectives),
    TRINITY_BIND("memory", timeline_memory), TRINITY_BIND("chrome_trace", timeline_chrome_trace),
    TRINITY_BIND("critical_path", timeline_critical_path), TRINITY_BIND("critical_steps", timeline_critical_steps),
    TRINITY_BIND("exposed_communication", timeline_exposed), TRINITY_BIND("by_type", timeline_by_type)};
/// Further methods of a problem.
constexpr luaL_Reg kProblemSchedules[] = {
    TRINITY_BIND("schedule", problem_schedule), TRINITY_BIND("bounds", problem_bounds),
    TRINITY_BIND("timeline", problem_timeline)};

}  // namespace

std::vector<int32_t> indices_arg(lua_State* L, int index, const std::string& owner, int64_t low,
                                 int64_t high) {
  std::vector<int64_t> values;
  if (const auto* array = find_struct<trinity_int32_array>(L, index, Magic::int32_array)) {
    const auto* data = reinterpret_cast<const int32_t*>(array + 1);
    values.assign(data, data + array->length);
  } else if (lua_istable(L, index)) {
    values = integers(L, index, owner);
  } else {
    throw ArgumentError("{}: expected a list or an int32 array, got {}", owner, type_name(L, index));
  }
  std::vector<int32_t> indices;
  indices.reserve(values.size());
  for (const int64_t value : values) {
    if (value < low || value > high)
      throw ArgumentError("{}: expected {} to {}, got {}", owner, low, high, value);
    indices.push_back(static_cast<int32_t>(value - 1));
  }
  return indices;
}

std::map<std::string, int64_t> named(const OwnedBytes& owned) {
  std::map<std::string, int64_t> bytes;
  for (size_t owner = 0; owner < kMemoryOwners; ++owner)
    bytes[choice_name(static_cast<MemoryOwner>(owner))] = owned[owner];
  return bytes;
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
  fields.table("order", [&] { read_order(L, lua_gettop(L), problem, spec); });
  fields.table("tasks", [&] { spec.tasks = order_arg(L, lua_gettop(L)); });
  fields.refuse_unknown();
  check_schedule(spec, problem.graph(), problem.devices());
  return spec;
}

void push_schedule(lua_State* L, const ScheduleSpec& spec) {
  if (spec == ScheduleSpec{}) return lua_pushnil(L);
  push(L, record("schedule", spec.name, "micro_batches", spec.micro_batches));
  if (!spec.priority.empty()) set_numbers(L, "priority", spec.priority);
  if (!spec.stage.empty()) set_numbers(L, "stage", spec.stage, 1);
  if (!spec.tasks.empty()) set_fields(L, "tasks", order_rows(spec.tasks));
  if (spec.order.empty()) return;
  push_list(L, spec.order, [&](const auto& tasks) { push_numbers(L, tasks, 1); });
  lua_setfield(L, -2, "order");
}

void open_simulator(lua_State* L) {
  register_type<const FixedSchedule>(L, {});
  register_type<BoundTimeline>(L, kTimeline);
  add_methods<BoundProblem>(L, kProblemSchedules);
}

}  // namespace trinity::lua
