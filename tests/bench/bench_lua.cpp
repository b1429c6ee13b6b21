// What scripts cost beside C++: runs tests/bench/bench_lua.lua with the loops below as `reference`.
//   ninja -C build bench_lua && build/bench_lua

#include <ctime>

#include "lua/module.h"
#include "lua/runtime.h"

namespace trinity::lua {
namespace {

const int32_t* integers_arg(lua_State* L, int index, const char* name) {
  if (const auto* span = find_struct<trinity_int32_span>(L, index, Magic::int32_span))
    return span->data;
  return reinterpret_cast<int32_t*>(
      struct_arg<trinity_int32_array>(L, index, Magic::int32_array, name, "an int32 array") + 1);
}

double* doubles_arg(lua_State* L, int index, const char* name) {
  return reinterpret_cast<double*>(
      struct_arg<trinity_double_array>(L, index, Magic::double_array, name, "a double array") + 1);
}

/// Keeps the compiler from leaving out a repetition whose results nobody reads.
void keep(const void* memory) { asm volatile("" : : "g"(memory) : "memory"); }

/// Seconds of processor time that `repetitions` of a loop take.
template <class Loop>
int push_seconds(lua_State* L, int repetitions, const void* written, Loop loop) {
  const auto start = std::clock();
  for (int i = 0; i < repetitions; ++i) {
    loop();
    keep(written);
  }
  lua_pushnumber(L, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  return 1;
}

struct Sizes {
  int repetitions, operators, devices;
};

Sizes sizes_args(lua_State* L) {
  const auto size = [L](int index, const char* name) {
    return static_cast<int>(integer_arg(L, index, name, 1, 1 << 30));
  };
  return {size(1, "repetitions"), size(2, "operators"), size(3, "devices")};
}

/// round_robin(repetitions, operators, devices, placement, depth) -> seconds
int round_robin(lua_State* L) {
  const auto n = sizes_args(L);
  auto* placement = const_cast<int32_t*>(integers_arg(L, 4, "placement"));
  const auto* depth = integers_arg(L, 5, "depth");
  return push_seconds(L, n.repetitions, placement, [&] {
    for (int i = 0; i < n.operators; ++i) placement[i] = depth[i] % n.devices + 1;
  });
}

/// flops_by_device(repetitions, operators, devices, placement, flops, load) -> seconds
int flops_by_device(lua_State* L) {
  const auto n = sizes_args(L);
  const auto* placement = integers_arg(L, 4, "placement");
  const auto* flops = doubles_arg(L, 5, "flops");
  auto* load = doubles_arg(L, 6, "load");
  return push_seconds(L, n.repetitions, load, [&] {
    for (int d = 0; d < n.devices; ++d) load[d] = 0;
    for (int i = 0; i < n.operators; ++i) load[placement[i] - 1] += flops[i];
  });
}

/// contiguous(repetitions, operators, devices, placement, flops, total) -> seconds
int contiguous(lua_State* L) {
  const auto n = sizes_args(L);
  auto* placement = const_cast<int32_t*>(integers_arg(L, 4, "placement"));
  const auto* flops = doubles_arg(L, 5, "flops");
  const double total = number_arg(L, 6, "total");
  return push_seconds(L, n.repetitions, placement, [&] {
    double done = 0;
    int device = 1;
    for (int i = 0; i < n.operators; ++i) {
      if (device < n.devices && done >= total * device / n.devices) ++device;
      placement[i] = device;
      done += flops[i];
    }
  });
}

constexpr luaL_Reg kReference[] = {TRINITY_BIND("round_robin", round_robin),
                                   TRINITY_BIND("flops_by_device", flops_by_device),
                                   TRINITY_BIND("contiguous", contiguous),
                                   {nullptr, nullptr}};

}  // namespace
}  // namespace trinity::lua

int main(int count, char** words) {
  try {
    trinity::Runtime runtime;
    lua_State* L = runtime.state();
    lua_newtable(L);
    trinity::lua::register_functions(L, trinity::lua::kReference, "reference");
    lua_getfield(L, LUA_GLOBALSINDEX, "package");
    lua_getfield(L, -1, "loaded");
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "bench.reference");
    lua_settop(L, 0);
    const auto script = runtime.home() + "/tests/bench/bench_lua.lua";
    const std::vector<std::string> arguments(words + 1, words + count);
    runtime.set_arguments(script, arguments, {words[0]});
    return runtime.run_file(script, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_lua: %s\n", error.what());
    return 1;
  }
}
