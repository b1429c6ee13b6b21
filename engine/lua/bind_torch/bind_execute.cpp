#include "data/dataset.h"
#include "execute/executor.h"
#include "execute/feed.h"
#include "lua/bind/module.h"
#include "lua/bind_torch/job.h"
#include "lua/bind_torch/open.h"

namespace trinity::lua {

template <>
inline constexpr const char* kTypeName<const DataSet> = "data set";

namespace {

/// The names of devices in field `devices`.
std::vector<std::string> device_names(lua_State* L, Fields& fields) {
  std::vector<std::string> names;
  if (!fields.push_table("devices")) return names;
  for_each(L, lua_gettop(L), [&](int i) {
    if (lua_type(L, -1) != LUA_TSTRING)
      throw ArgumentError(fmt::format("{}: field 'devices': entry {}: expected a name, got {}",
                                      fields.owner(), i, type_name(L, -1)));
    names.emplace_back(lua_tostring(L, -1));
  });
  lua_pop(L, 1);
  return names;
}

/// data_set(path, {scale=, train_rows=}, graph) -> data set, which fits the inputs of the graph
int data_set_new(lua_State* L) {
  const auto path = string_arg(L, 1, "path");
  DataOptions options;
  table_arg(L, 2, "options");
  Fields fields(L, 2, "data");
  fields.take("scale", options.scale);
  options.train_rows = fields.integer("train_rows", 0, 0, int64_t{1} << 40);
  fields.refuse_unknown();
  auto made = std::make_shared<const DataSet>(read_dataset(path, options));
  const Feed fits(made, *handle_arg<const Graph>(L, 3), 0, 1);
  push_object(L, std::move(made));
  return 1;
}

ExecutorOptions executor_options(lua_State* L, int index) {
  table_arg(L, index, "options");
  Fields fields(L, index, "execution options");
  ExecutorOptions options;
  fields.take("seed", options.seed);
  fields.take("learning_rate", options.learning_rate);
  options.micro_batches = static_cast<int32_t>(fields.integer("micro_batches", 1, 1, 1 << 20));
  fields.take("double_precision", options.double_precision);
  fields.take("stream", options.stream);
  fields.push_any("data");
  if (!lua_isnil(L, -1)) options.data = handle_arg<const DataSet>(L, lua_gettop(L), "data");
  lua_pop(L, 1);
  fields.take("memory_limit_bytes", options.memory_limit_bytes);
  options.devices = device_names(L, fields);
  fields.push_any("job");
  if (!lua_isnil(L, -1)) options.job = handle_arg<Job>(L, lua_gettop(L), "job");
  lua_pop(L, 1);
  fields.refuse_unknown();
  return options;
}

/// executor(graph, placement, devices, order, options) -> executor; order: nil or a double array;
/// options: seed, learning_rate, micro_batches, devices (names), double_precision, stream, data (a
/// data set), memory_limit_bytes, job.
int executor_new(lua_State* L) {
  count_tensor_memory();  // below the executor's own count, whichever came first
  auto graph = handle_arg<const Graph>(L, 1);
  const auto placement = integers_arg(L, 2, "placement", "a placement");
  const auto devices = static_cast<int32_t>(integer_arg(L, 3, "devices", 1, 4096));
  std::span<const double> order;
  if (!lua_isnoneornil(L, 4)) order = numbers_arg(L, 4, "order");
  const auto options = executor_options(L, 5);
  std::vector<int32_t> device;
  for (const int32_t d : placement) device.push_back(d - 1);
  push_object(L, std::make_shared<Executor>(std::move(graph), device, devices, order, options));
  return 1;
}

/// Sets field `copies`: { task =, output =, from =, to =, bytes =, start_s =, end_s = } each.
void push_copies(lua_State* L, const std::vector<CopyRun>& copies) {
  push_list(L, copies, [&](const CopyRun& copy) {
    lua_createtable(L, 0, 7);
    set_field(L, "task", copy.task + 1);
    set_field(L, "output", copy.output + 1);
    set_field(L, "from", copy.from + 1);
    set_field(L, "to", copy.to + 1);
    set_field(L, "bytes", static_cast<double>(copy.bytes));
    set_field(L, "start_s", copy.start_s);
    set_field(L, "end_s", copy.end_s);
  });
  lua_setfield(L, -2, "copies");
}

/// executor:evaluate(graph) -> samples, loss, accuracy
int executor_evaluate(lua_State* L) {
  const auto found = object_arg<Executor>(L, 1).evaluate(handle_arg<const Graph>(L, 2, "graph"));
  lua_pushnumber(L, static_cast<double>(found.samples));
  lua_pushnumber(L, found.loss);
  lua_pushnumber(L, found.accuracy);
  return 3;
}

/// executor:epoch() -> steps of an epoch, held-out samples, samples of a step; 0 without data
int executor_epoch(lua_State* L) {
  const auto epoch = object_arg<Executor>(L, 1).epoch();
  for (const int64_t number : {epoch.steps, epoch.held_out_samples, epoch.samples_per_step})
    lua_pushnumber(L, static_cast<double>(number));
  return 3;
}

/// executor:save(path, numbers): weights, or, with numbers by name, a checkpoint that keeps these
/// too
int executor_save(lua_State* L) {
  std::map<std::string, double> numbers;
  const bool checkpoint = !lua_isnoneornil(L, 3);
  if (checkpoint) table_arg(L, 3, "numbers");
  if (checkpoint)
    for (lua_pushnil(L); lua_next(L, 3) != 0; lua_pop(L, 1)) {
      if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TNUMBER)
        throw WrongArgument(3, "numbers", "expected numbers by name");
      numbers[lua_tostring(L, -2)] = lua_tonumber(L, -1);
    }
  object_arg<Executor>(L, 1).save(luaL_checkstring(L, 2), checkpoint, numbers);
  return 0;
}

/// executor:load(path, checkpoint) -> steps that had been made, numbers by name
int executor_load(lua_State* L) {
  const auto course =
      object_arg<Executor>(L, 1).load(luaL_checkstring(L, 2), lua_toboolean(L, 3) != 0);
  lua_pushnumber(L, static_cast<double>(course.steps));
  lua_newtable(L);
  for (const auto& [name, number] : course.numbers) {
    lua_pushnumber(L, number);
    lua_setfield(L, -2, name.c_str());
  }
  return 2;
}

/// executor:weights() -> list of { name =, shape =, values = }
int executor_weights(lua_State* L) {
  push_list(L, object_arg<Executor>(L, 1).weights(), [&](const NamedValues& weight) {
    lua_createtable(L, 0, 3);
    set_field(L, "name", weight.name);
    push_list(L, weight.shape,
              [&](int64_t extent) { lua_pushnumber(L, static_cast<double>(extent)); });
    lua_setfield(L, -2, "shape");
    set_numbers(L, "values", weight.values);
  });
  return 1;
}

/// What happens in a step: a list of { name =, rounded =, age =, own_weight = }.
std::vector<Occasion> occasions_arg(lua_State* L, int index) {
  std::vector<Occasion> occasions;
  if (lua_isnoneornil(L, index)) return occasions;
  table_arg(L, index, "occasions");
  for_each(L, index, [&](int i) {
    if (!lua_istable(L, -1))
      throw ArgumentError(
          fmt::format("occasions: entry {}: expected a table, got {}", i, type_name(L, -1)));
    Fields fields(L, lua_gettop(L), "occasion");
    Occasion occasion;
    occasion.name = fields.string("name").value_or("");
    fields.take("rounded", occasion.rounded);
    occasion.age = fields.integer("age", 0, 0, int64_t{1} << 40);
    fields.take("own_weight", occasion.own_weight);
    fields.refuse_unknown();
    occasions.push_back(std::move(occasion));
  });
  return occasions;
}

/// executor:step([learning_rate [, occasions]]) -> what the next step took
int executor_step(lua_State* L) {
  auto& executor = object_arg<Executor>(L, 1);
  if (!lua_isnoneornil(L, 2)) executor.set_learning_rate(luaL_checknumber(L, 2));
  const auto step = executor.step(occasions_arg(L, 3));
  const auto& tasks = step.tasks;
  lua_newtable(L);
  set_field(L, "loss", step.loss);
  set_field(L, "step_time_s", step.step_time_s);
  set_field(L, "transferred_bytes", static_cast<double>(step.transferred_bytes));
  set_field(L, "read_s", step.read_s);
  set_numbers(L, "busy_s", step.busy_s);
  set_numbers(L, "peak_memory_bytes", step.peak_memory_bytes);
  const auto set_of_tasks = [&](const char* key, auto value) {
    push_list(L, tasks, [&](const TaskRun& task) { lua_pushnumber(L, value(task)); });
    lua_setfield(L, -2, key);
  };
  set_of_tasks("start_s", [](const TaskRun& task) { return task.start_s; });
  set_of_tasks("end_s", [](const TaskRun& task) { return task.end_s; });
  set_of_tasks("memory_bytes",
               [](const TaskRun& task) { return static_cast<double>(task.memory_bytes); });
  push_copies(L, step.copies);
  return 1;
}

int32_t operator_arg(lua_State* L, int index) {
  return static_cast<int32_t>(integer_arg(L, index, "operator", 1, kMaxOperators)) - 1;
}

/// executor:weight(operator, number) -> list of its values
int executor_weight(lua_State* L) {
  const auto number = static_cast<size_t>(integer_arg(L, 3, "number", 1, 1 << 20)) - 1;
  return push_numbers(L, object_arg<Executor>(L, 1).weight(operator_arg(L, 2), number));
}

/// executor:data(operator [, micro_batch]) -> list of what this input will hold in the next step
int executor_data(lua_State* L) {
  const int64_t micro_batch =
      lua_isnoneornil(L, 3) ? 1 : integer_arg(L, 3, "micro_batch", 1, 1 << 20);
  return push_numbers(L, object_arg<Executor>(L, 1).data(operator_arg(L, 2),
                                                         static_cast<int32_t>(micro_batch) - 1));
}

/// executor:written_out() -> { graph =, origin = (per operator that of the executed graph), order =
/// (tasks by device) }: what a simulator prices (engine/execute/run_layout.h)
int executor_written_out(lua_State* L) {
  auto made = std::make_shared<WrittenOut>(object_arg<Executor>(L, 1).written_out());
  lua_newtable(L);
  push_object<const Graph>(L, std::shared_ptr<const Graph>(made, &made->graph));
  lua_setfield(L, -2, "graph");
  push_list(L, made->origin, [&](int32_t op) { lua_pushinteger(L, op + 1); });
  lua_setfield(L, -2, "origin");
  push_list(L, made->order, [&](const std::vector<int32_t>& tasks) {
    push_list(L, tasks, [&](int32_t task) { lua_pushinteger(L, task + 1); });
  });
  lua_setfield(L, -2, "order");
  return 1;
}

/// executor:cores() -> list of the cores that the devices are bound to, -1 for none
int executor_cores(lua_State* L) { return push_numbers(L, object_arg<Executor>(L, 1).cores()); }

constexpr luaL_Reg kExecutor[] = {
    TRINITY_BIND("step", executor_step),       TRINITY_BIND("weight", executor_weight),
    TRINITY_BIND("weights", executor_weights), TRINITY_BIND("evaluate", executor_evaluate),
    TRINITY_BIND("epoch", executor_epoch),     TRINITY_BIND("save", executor_save),
    TRINITY_BIND("load", executor_load),       TRINITY_BIND("written_out", executor_written_out),
    TRINITY_BIND("data", executor_data),       TRINITY_BIND("cores", executor_cores)};
constexpr luaL_Reg kExecuteFunctions[] = {TRINITY_BIND("executor", executor_new),
                                          TRINITY_BIND("data_set", data_set_new)};

}  // namespace

void open_execute(lua_State* L) {
  register_functions(L, kExecuteFunctions);
  register_type<Executor>(L, kExecutor);
  register_type<const DataSet>(L, {});
}

}  // namespace trinity::lua
