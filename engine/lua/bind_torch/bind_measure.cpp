#include "execute/measure.h"

#include <exception>
#include <thread>

#include "execute/executor.h"
#include "lua/bind/module.h"
#include "lua/bind_torch/open.h"

namespace trinity::lua {

namespace {

/// measure_copies(from, to, sizes, repeats) -> list of seconds, one per size
auto measure_copies_of(lua_State* L, Text<"from"> from, Text<"to"> to, Table<"sizes"> list,
                       Integer<"repeats", 1, 10000> repeats) {
  std::vector<int64_t> sizes;
  for_each(L, list, [&](int i) {
    const double size = lua_isnumber(L, -1) ? lua_tonumber(L, -1) : 0;
    if (!(size >= 4 && size <= 0x1p32))
      throw WrongArgument(3, "sizes", "entry {}: expected 4 to 2^32 bytes", i);
    sizes.push_back(static_cast<int64_t>(size));
  });
  return measure_copies(from, to, sizes, static_cast<int32_t>(repeats));
}

/// measure_rates(device) -> { flops_per_s =, memory_bytes_per_s = }
auto measure_rates_of(Text<"device"> device) {
  const auto rates = measure_rates(device);
  return record("flops_per_s", rates.flops_per_s, "memory_bytes_per_s", rates.memory_bytes_per_s);
}

/// Runs the next step of all executors at the same time, each in a thread of its own.
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

/// step_together(executors) -> a list: per executor { step_time_s =, start_s = {}, end_s = {} } of
/// its next step, all executors running at the same time
auto executors_step(lua_State* L, Table<"executors"> list) {
  const int count = static_cast<int>(lua_objlen(L, list));
  if (count < 1 || count > 256)
    throw WrongArgument(1, "executors", "expected 1 to 256 executors, got {}", count);
  std::vector<Executor*> executors;
  for_each(L, list, [&](int) { executors.push_back(&object_arg<Executor>(L, lua_gettop(L), "executors")); });
  return list_of(step_at_once(executors), [](const ExecutedStep& step) {
    return record("step_time_s", step.step_time_s, "start_s", list_of(step.tasks, &TaskRun::start_s), "end_s",
                  list_of(step.tasks, &TaskRun::end_s));
  });
}

constexpr luaL_Reg kMeasureFunctions[] = {
    TRINITY_BIND("measure_copies", measure_copies_of), TRINITY_BIND("measure_rates", measure_rates_of),
    TRINITY_BIND("step_together", executors_step)};

}  // namespace

void open_measure(lua_State* L) { register_functions(L, kMeasureFunctions); }

}  // namespace trinity::lua
