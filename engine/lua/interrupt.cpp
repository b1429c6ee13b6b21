#include "lua/interrupt.h"

#include <signal.h>

#include <atomic>

namespace trinity::lua {
namespace {

lua_State* g_state = nullptr;
std::atomic<int> g_searches{0};
std::atomic<int> g_presses{0};
std::atomic<bool> g_interrupted{false};

void raise_interrupted(lua_State* L, lua_Debug*) {
  lua_sethook(L, nullptr, 0, 0);
  luaL_where(L, 0);
  lua_pushstring(L, "interrupted");
  lua_concat(L, 2);
  lua_error(L);
}

/// Async-signal-safe: atomics, and lua_sethook, which LuaJIT's own program calls here too.
void on_interrupt(int) {
  g_interrupted = true;
  stop_flag() = true;
  const int presses = ++g_presses;
  if (presses >= 3) signal(SIGINT, SIG_DFL);
  if (g_searches == 0 || presses >= 2)
    lua_sethook(g_state, raise_interrupted, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

}  // namespace

void watch_interrupts(lua_State* L) {
  g_state = L;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

bool was_interrupted() { return g_interrupted; }

void begin_search() { ++g_searches; }

void end_search() {
  if (--g_searches == 0) {
    stop_flag() = false;
    g_presses = 0;
  }
}

}  // namespace trinity::lua
