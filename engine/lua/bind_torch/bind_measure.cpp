#include "execute/measure.h"

#include <exception>
#include <thread>

#include "execute/executor.h"
#include "lua/bind/module.h"
#include "lua/bind_torch/open.h"

namespace trinity::lua {

namespace {

/// measure_copies(from, to, sizes, repeats) -> list of seconds, one a size
int measure_copies_of(lua_State* L) {
  const auto from = string_arg(L, 1, "from"), to = string_arg(L, 2, "to");
  table_arg(L, 3, "sizes");
  std::vector<int64_t> sizes;
  for_each(L, 3, [&](int i) {
    const double size = lua_isnumber(L, -1) ? lua_tonumber(L, -1) : 0;
    if (!(size >= 4 && size <= 0x1p32))
      throw WrongArgument(3, "sizes", fmt::format("entry {}: expected 4 to 2^32 bytes", i));
    sizes.push_back(static_cast<int64_t>(size));
  });
  const auto repeats = static_cast<int32_t>(integer_arg(L, 4, "repeats", 1, 10000));
  return push_numbers(L, measure_copies(from, to, sizes, repeats));
}

/// measure_rates(device) -> { flops_per_s =, memory_bytes_per_s = }
int measure_rates_of(lua_State* L) {
  const auto rates = measure_rates(string_arg(L, 1, "device"));
  lua_newtable(L);
  set_field(L, "flops_per_s", rates.flops_per_s);
  set_field(L, "memory_bytes_per_s", rates.memory_bytes_per_s);
  return 1;
}

/// What every executor's next step took, all at the same time in threads of their own.
std::vector<ExecutedStep> step_at_once(const std::vector<Executor*>& executors) {
  std::vector<ExecutedStep> steps(executors.size());
  std::vector<std::exception_ptr> failures(executors.size());
  std::vector<std::jthread> threads;  // joined where one cannot be had
  for (size_t i = 0; i < executors.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        steps[i] = executors[i]->step();
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  threads.clear();
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return steps;
}

void push_times(lua_State* L, const char* key, const std::vector<TaskRun>& tasks,
                double TaskRun::*time) {
  push_list(L, tasks, [&](const TaskRun& task) { lua_pushnumber(L, task.*time); });
  lua_setfield(L, -2, key);
}

/// step_together(executors) -> a list: per executor { step_time_s =, start_s = {}, end_s = {} } of
/// its next step, all executors running at the same time
int executors_step(lua_State* L) {
  table_arg(L, 1, "executors");
  const int count = static_cast<int>(lua_objlen(L, 1));
  if (count < 1 || count > 256)
    throw WrongArgument(1, "executors", fmt::format("expected 1 to 256 executors, got {}", count));
  std::vector<Executor*> executors;
  for (int i = 1; i <= count; ++i) {
    lua_rawgeti(L, 1, i);
    executors.push_back(&object_arg<Executor>(L, lua_gettop(L), "executors"));
  }
  push_list(L, step_at_once(executors), [&](const ExecutedStep& step) {
    lua_newtable(L);
    set_field(L, "step_time_s", step.step_time_s);
    push_times(L, "start_s", step.tasks, &TaskRun::start_s);
    push_times(L, "end_s", step.tasks, &TaskRun::end_s);
  });
  return 1;
}

constexpr luaL_Reg kMeasureFunctions[] = {TRINITY_BIND("measure_copies", measure_copies_of),
                                          TRINITY_BIND("measure_rates", measure_rates_of),
                                          TRINITY_BIND("step_together", executors_step)};

}  // namespace

void open_measure(lua_State* L) { register_functions(L, kMeasureFunctions); }

}  // namespace trinity::lua
