#include "execute/executor.h"
#include "lua/module.h"

namespace trinity::lua {

template <>
struct TypeName<Executor> {
  static constexpr auto value = "executor";
};

namespace {

/// executor(graph, placement, devices, order, options) -> executor; order: nil or a double array;
/// options: seed, learning_rate.
int executor_new(lua_State* L) {
  auto graph = handle_arg<const Graph>(L, 1);
  const auto* placement =
      struct_arg<trinity_int32_array>(L, 2, Magic::int32_array, "placement", "a placement");
  const auto devices = static_cast<int32_t>(integer_arg(L, 3, "devices", 1, 4096));
  std::span<const double> order;
  if (!lua_isnoneornil(L, 4)) {
    const auto* given =
        struct_arg<trinity_double_array>(L, 4, Magic::double_array, "order", "a double array");
    order = {reinterpret_cast<const double*>(given + 1), static_cast<size_t>(given->length)};
  }
  table_arg(L, 5, "options");
  Fields fields(L, 5, "execution options");
  ExecutorOptions options;
  options.seed = static_cast<uint64_t>(fields.integer("seed", 1, 0, int64_t{1} << 53));
  options.learning_rate = fields.number("learning_rate", options.learning_rate);
  fields.refuse_unknown();
  std::vector<int32_t> device;
  const auto* first = reinterpret_cast<const int32_t*>(placement + 1);
  for (int64_t i = 0; i < placement->length; ++i) device.push_back(first[i] - 1);
  push_object(L, std::make_shared<Executor>(std::move(graph), device, devices, order, options));
  return 1;
}

void push_list(lua_State* L, const char* key, size_t count,
               const std::function<double(size_t)>& at) {
  lua_createtable(L, static_cast<int>(count), 0);
  for (size_t i = 0; i < count; ++i) {
    lua_pushnumber(L, at(i));
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  lua_setfield(L, -2, key);
}

/// executor:step() -> what the next step took
int executor_step(lua_State* L) {
  const auto step = object_arg<Executor>(L, 1).step();
  lua_newtable(L);
  set_field(L, "loss", step.loss);
  set_field(L, "step_time_s", step.step_time_s);
  set_field(L, "transferred_bytes", static_cast<double>(step.transferred_bytes));
  push_list(L, "busy_s", step.busy_s.size(), [&](size_t i) { return step.busy_s[i]; });
  push_list(L, "peak_memory_bytes", step.peak_memory_bytes.size(),
            [&](size_t i) { return static_cast<double>(step.peak_memory_bytes[i]); });
  push_list(L, "start_s", step.operators.size(),
            [&](size_t i) { return step.operators[i].start_s; });
  push_list(L, "end_s", step.operators.size(), [&](size_t i) { return step.operators[i].end_s; });
  return 1;
}

template <class Number>
int push_numbers(lua_State* L, const std::vector<Number>& values) {
  lua_createtable(L, static_cast<int>(values.size()), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    lua_pushnumber(L, static_cast<double>(values[i]));
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
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

/// executor:data(operator) -> list of what this input will hold in the next step
int executor_data(lua_State* L) {
  return push_numbers(L, object_arg<Executor>(L, 1).data(operator_arg(L, 2)));
}

constexpr luaL_Reg kExecutor[] = {TRINITY_BIND("step", executor_step),
                                  TRINITY_BIND("weight", executor_weight),
                                  TRINITY_BIND("data", executor_data),
                                  {nullptr, nullptr}};
constexpr luaL_Reg kFunctions[] = {TRINITY_BIND("executor", executor_new), {nullptr, nullptr}};

}  // namespace

void open_execute(lua_State* L) {
  register_functions(L, kFunctions);
  register_type<Executor>(L, kExecutor);
}

}  // namespace trinity::lua
