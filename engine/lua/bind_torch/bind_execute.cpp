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
  const auto read = [&](int i) {
    if (lua_type(L, -1) != LUA_TSTRING)
      throw ArgumentError("{}: field 'devices': entry {}: expected a name, got {}", fields.owner(), i,
                          type_name(L, -1));
    names.emplace_back(lua_tostring(L, -1));
  };
  fields.table("devices", [&] { for_each(L, lua_gettop(L), read); });
  return names;
}

/// data_set(path, {scale=, train_rows=}, graph) -> data set, which fits the inputs of the graph
auto data_set_new(lua_State* L, Text<"path"> path) {
  DataOptions options;
  table_arg(L, 2, "options");
  Fields fields(L, 2, "data");
  fields.take("scale", options.scale);
  options.train_rows = fields.integer("train_rows", 0, 0, int64_t{1} << 40);
  fields.refuse_unknown();
  auto made = std::make_shared<const DataSet>(read_dataset(path, options));
  const Feed fits(made, *handle_arg<const Graph>(L, 3), 0, 1);
  return made;
}

ExecutorOptions executor_options(lua_State* L, int index) {
  table_arg(L, index, "options");
  Fields fields(L, index, "execution options");
  ExecutorOptions options;
  fields.take("seed", options.seed, "learning_rate", options.learning_rate);
  options.micro_batches = static_cast<int32_t>(fields.integer("micro_batches", 1, 1, 1 << 20));
  fields.take("double_precision", options.double_precision, "stream", options.stream);
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
auto executor_new(lua_State* L) {
  count_tensor_memory();  // below the executor's own count, whichever came first
  auto graph = handle_arg<const Graph>(L, 1);
  const auto placement = integers_arg(L, 2, "placement", "a placement");
  const auto devices = static_cast<int32_t>(integer_arg(L, 3, "devices", 1, 4096));
  std::span<const double> order;
  if (!lua_isnoneornil(L, 4)) order = numbers_arg(L, 4, "order");
  const auto options = executor_options(L, 5);
  std::vector<int32_t> device;
  for (const int32_t d : placement) device.push_back(d - 1);
  return std::make_shared<Executor>(std::move(graph), device, devices, order, options);
}

/// executor:evaluate(graph) -> samples, loss, accuracy
auto executor_evaluate(lua_State* L, Executor& executor) {
  const auto found = executor.evaluate(handle_arg<const Graph>(L, 2, "graph"));
  return std::tuple(found.samples, found.loss, found.accuracy);
}

/// executor:epoch() -> steps of an epoch, held-out samples, samples of a step; 0 without data
auto executor_epoch(Executor& executor) {
  const auto epoch = executor.epoch();
  return std::tuple(epoch.steps, epoch.held_out_samples, epoch.samples_per_step);
}

/// executor:save(path, numbers): weights, or, with numbers by name, a checkpoint that keeps these
/// too
void executor_save(lua_State* L) {
  std::map<std::string, double> numbers;
  const bool checkpoint = !lua_isnoneornil(L, 3);
  const auto read = [&] {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TNUMBER)
      throw WrongArgument(3, "numbers", "expected numbers by name");
    numbers[lua_tostring(L, -2)] = lua_tonumber(L, -1);
  };
  if (checkpoint) table_arg(L, 3, "numbers");
  if (checkpoint) for_each_entry(L, 3, read);
  object_arg<Executor>(L, 1).save(luaL_checkstring(L, 2), checkpoint, numbers);
}

/// executor:load(path, checkpoint) -> steps that had been made, numbers by name
auto executor_load(lua_State* L, Executor& executor, Given<"path"> path, bool checkpoint) {
  const auto course = executor.load(luaL_checkstring(L, path), checkpoint);
  return std::tuple(course.steps, course.numbers);
}

/// executor:weights() -> list of { name =, shape =, values = }
auto executor_weights(Executor& executor) {
  return list_of(executor.weights(), [](const NamedValues& weight) {
    return record("name", weight.name, "shape", weight.shape, "values", weight.values);
  });
}

/// Reads the conditional operations of a step: a list of { name =, rounded =, age =, own_weight = }.
std::vector<Occasion> occasions_arg(lua_State* L, int index) {
  std::vector<Occasion> occasions;
  if (lua_isnoneornil(L, index)) return occasions;
  table_arg(L, index, "occasions");
  for_each(L, index, [&](int i) {
    if (!lua_istable(L, -1))
      throw ArgumentError("occasions: entry {}: expected a table, got {}", i, type_name(L, -1));
    Fields fields(L, lua_gettop(L), "occasion");
    Occasion occasion;
    occasion.name = fields.string("name").value_or("");
    fields.take("rounded", occasion.rounded);
    occasion.age = fields.integer("age", 0, 0, int64_t{1} << 40);
    fields.take_all("own_weight", occasion.own_weight);
    occasions.push_back(std::move(occasion));
  });
  return occasions;
}

/// executor:step([learning_rate [, occasions]]) -> what the next step took; copies: a list of { task =, output =, from =,
/// to =, bytes =, start_s =, end_s = }
auto executor_step(lua_State* L, Executor& executor) {
  if (!lua_isnoneornil(L, 2)) executor.set_learning_rate(luaL_checknumber(L, 2));
  const auto step = executor.step(occasions_arg(L, 3));
  const auto copy_of = [](const CopyRun& copy) {
    return record("task", copy.task + 1, "output", copy.output + 1, "from", copy.from + 1, "to", copy.to + 1, "bytes",
                  copy.bytes, "start_s", copy.start_s, "end_s", copy.end_s);
  };
  return record("loss", step.loss, "step_time_s", step.step_time_s, "transferred_bytes", step.transferred_bytes, "read_s",
                step.read_s, "busy_s", step.busy_s, "peak_memory_bytes", step.peak_memory_bytes, "start_s",
                list_of(step.tasks, &TaskRun::start_s), "end_s", list_of(step.tasks, &TaskRun::end_s), "memory_bytes",
                list_of(step.tasks, &TaskRun::memory_bytes), "copies", list_of(step.copies, copy_of));
}

using OperatorNumber = Integer<"operator", 1, int64_t{kMaxOperators}>;

/// executor:weight(operator, number) -> list of its values
auto executor_weight(Executor& executor, OperatorNumber op, Integer<"number", 1, 1 << 20> number) {
  return executor.weight(static_cast<int32_t>(op) - 1, static_cast<size_t>(number) - 1);
}

/// executor:data(operator [, micro_batch]) -> list of what this input will hold in the next step
auto executor_data(Executor& executor, OperatorNumber op, Optional<Integer<"micro_batch", 1, 1 << 20>> micro_batch) {
  return executor.data(static_cast<int32_t>(op) - 1, static_cast<int32_t>(micro_batch ? int64_t{*micro_batch} : 1) - 1);
}

/// executor:written_out() -> { graph =, origin = (per operator its operator of the executed graph),
/// order = (tasks by device) }: the simulator's input (engine/execute/run_layout.h)
auto executor_written_out(Executor& executor) {
  auto made = std::make_shared<WrittenOut>(executor.written_out());
  const auto tasks = [](const std::vector<int32_t>& of) { return from_1(of); };
  return record("graph", std::shared_ptr<const Graph>(made, &made->graph), "origin", from_1(made->origin), "order",
                list_of(made->order, tasks));
}

/// executor:cores() -> list of the cores that the devices are bound to, -1 for none
auto executor_cores(Executor& executor) { return executor.cores(); }

constexpr luaL_Reg kExecutor[] = {
    TRINITY_BIND("step", executor_step), TRINITY_BIND("weight", executor_weight),
    TRINITY_BIND("weights", executor_weights), TRINITY_BIND("evaluate", executor_evaluate),
    TRINITY_BIND("epoch", executor_epoch), TRINITY_BIND("save", executor_save), TRINITY_BIND("load", executor_load),
    TRINITY_BIND("written_out", executor_written_out), TRINITY_BIND("data", executor_data),
    TRINITY_BIND("cores", executor_cores)};
constexpr luaL_Reg kExecuteFunctions[] = {
    TRINITY_BIND("executor", executor_new), TRINITY_BIND("data_set", data_set_new)};

}  // namespace

void open_execute(lua_State* L) {
  register_functions(L, kExecuteFunctions);
  register_type<Executor>(L, kExecutor);
  register_type<const DataSet>(L, {});
}

}  // namespace trinity::lua
