#include <dlfcn.h>

#include <limits>
#include <map>

#include "base/workers.h"
#include "lua/bind/module.h"
#include "lua/host/interrupt.h"

namespace trinity::lua {
namespace {

/// True if this thread has used CUDA: its contexts do not survive fork(). Looks only at a driver
/// that is loaded already.
bool cuda_in_use() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!driver) return false;
  const auto get_context = reinterpret_cast<int (*)(void**)>(dlsym(driver, "cuCtxGetCurrent"));
  void* context = nullptr;
  const bool used = get_context && get_context(&context) == 0 && context;
  dlclose(driver);
  return used;
}

/// In a worker: work(item) -> text. A failure becomes a text that begins with '!', a result one
/// that begins with '='.
std::string call_work(lua_State* L, int item) {
  lua_pushvalue(L, 3);
  lua_pushinteger(L, item + 1);
  const bool failed = lua_pcall(L, 1, 1, 0) != 0;
  size_t size = 0;
  const char* text = lua_tolstring(L, -1, &size);
  std::string reply = failed || !text ? "!" : "=";
  text ? reply.append(text, size) : reply.append("internal error: the work function returned no "
                                                 "string");
  lua_pop(L, 1);
  return reply;
}

/// Output of items until print_output() prints it.
std::map<int, WorkerOutput> g_outputs;

/// In the parent: receive(item, text, failure, death) -> number of items wanted.
int call_receive(lua_State* L, const WorkerReply& reply) {
  lua_pushvalue(L, 4);
  lua_pushinteger(L, reply.item + 1);
  const bool answered = reply.death.empty() && !reply.payload.empty();
  for (const char kind : {'=', '!'}) {
    if (answered && reply.payload[0] == kind)
      lua_pushlstring(L, reply.payload.data() + 1, reply.payload.size() - 1);
    else
      lua_pushnil(L);
  }
  if (reply.output.bytes() > 0) g_outputs[reply.item + 1] = reply.output;
  answered ? lua_pushnil(L) : lua_pushstring(L, reply.death.c_str());
  lua_call(L, 4, 1);
  const double wanted = lua_tonumber(L, -1);
  lua_pop(L, 1);
  return wanted > 0 ? static_cast<int>(std::min(wanted, 2e9)) : 0;
}

/// run_workers(items, workers, work, receive): see base/workers.h, call_work and call_receive.
int parallel_run_workers(lua_State* L) {
  WorkerJob job;
  job.on_interrupt = interrupt_handler();
  job.items = static_cast<int>(integer_arg(L, 1, "items", 0, std::numeric_limits<int32_t>::max()));
  job.workers = static_cast<int>(integer_arg(L, 2, "workers", 1, 1024));
  function_arg(L, 3, "work");
  function_arg(L, 4, "receive");
  if (in_worker()) throw ArgumentError("a worker cannot start workers");
  if (cuda_in_use())
    throw ArgumentError(
        "CUDA is in use by this script, and workers cannot share it: evaluate in parallel before "
        "anything runs on a GPU, or with workers = 1");
  set_up_thread();  // OpenMP's threads would not be there in a worker
  luaL_checkstack(L, 16, nullptr);
  job.work = [L](int item) { return call_work(L, item); };
  job.receive = [L](const WorkerReply& reply) { return call_receive(L, reply); };
  g_outputs.clear();
  run_workers(job);
  return 0;
}

/// print_output(item, before): what the item printed, if anything, after before()
void parallel_print_output(lua_State* L) {
  const auto found = g_outputs.find(static_cast<int>(integer_arg(L, 1, "item", 1, INT32_MAX)));
  function_arg(L, 2, "before");
  if (found == g_outputs.end()) return;
  lua_pushvalue(L, 2);
  lua_call(L, 0, 0);
  found->second.write_to(stdout);
  std::fflush(stdout);
  g_outputs.erase(found);
}

constexpr luaL_Reg kParallelFunctions[] = {
    TRINITY_BIND("run_workers", parallel_run_workers), TRINITY_BIND("print_output", parallel_print_output),
    TRINITY_BIND("in_worker", in_worker), TRINITY_BIND("was_interrupted", was_interrupted),
    TRINITY_BIND("stop_status", stop_status), TRINITY_BIND("stop_name", stop_name)};

}  // namespace

void open_parallel(lua_State* L) { register_functions(L, kParallelFunctions); }

}  // namespace trinity::lua
