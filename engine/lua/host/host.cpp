#include "lua/host/host.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "lua/host/check.h"
#include "lua/host/stopper.h"

namespace trinity::lua {
namespace {

constexpr int kMostLevels = 100;  // lua_getstack counts from the top each time
constexpr size_t kMaxFrames = 16;
char g_key;  // its address is the registry's key

/// The error value at index 1 as a message.
void describe(lua_State* L, ScriptError& error) {
  if (lua_istable(L, 1)) {
    lua_getfield(L, 1, "message");
    if (lua_isstring(L, -1)) {
      error.message = text_at(L, -1);
      lua_getfield(L, 1, "usage");
      error.usage = lua_toboolean(L, -1) != 0;
      return;
    }
  }
  if (lua_isstring(L, 1)) {
    error.message = text_at(L, 1);
  } else if (luaL_callmeta(L, 1, "__tostring") && lua_isstring(L, -1)) {
    error.message = text_at(L, -1);
  } else {
    error.message = fmt::format("(error object is a {} value)", luaL_typename(L, 1));
  }
}

std::string describe_frame(const lua_Debug& frame) {
  const auto place = fmt::format("\t{}:{}: in ", frame.short_src, frame.currentline);
  if (frame.name) return fmt::format("{}function '{}'", place, frame.name);
  if (std::string_view(frame.what) == "main") return place + "main chunk";
  return fmt::format("{}function <{}:{}>", place, frame.short_src, frame.linedefined);
}

/// The frames of the script, innermost first: without C functions, without our library and without
/// our commands.
std::string script_frames(lua_State* L, const HostState& host) {
  const std::string library = "@" + host.home + "/lib/";
  const std::string commands = "@" + host.home + "/scripts/";
  const auto is_ours = [&](std::string_view source) {
    return source.starts_with(library) || (host.is_command && source.starts_with(commands));
  };
  std::vector<std::string> lines;
  lua_Debug frame;
  int level = 1;
  for (; level <= kMostLevels && lines.size() < kMaxFrames && lua_getstack(L, level, &frame);
       ++level) {
    lua_getinfo(L, "Snl", &frame);
    if (frame.currentline > 0 && !is_ours(frame.source))
      lines.push_back(describe_frame(frame));
  }
  if (lines.size() <= 1) return "";
  if (lua_getstack(L, level, &frame)) lines.emplace_back("\t...");
  return fmt::format("stack traceback:\n{}", fmt::join(lines, "\n"));
}

/// The message handler. Notes what happened in the HostState: no Lua memory is needed to keep it.
int on_error(lua_State* L) {
  HostState& host = *host_state(L);
  describe(L, host.error);
  lua_settop(L, 1);
  if (std::getenv("TRINITY_TRACEBACK")) {
    luaL_traceback(L, L, nullptr, 1);
    host.error.traceback = text_at(L, -1);
  } else if (!host.error.usage) {
    host.error.traceback = script_frames(L, host);
  }
  return 0;
}

/// Event "errfin" of LuaJIT: the error value, nil where the message handler has seen it.
int on_finaliser_error(lua_State* L) {
  HostState& host = *host_state(L);
  if (host.closing || host.exit_status || !stop_message(L).empty()) return 0;
  lua_settop(L, 1);
  if (!lua_isnil(L, 1)) describe(L, host.error);
  std::fprintf(stderr, "trinity: in a finaliser: %s\n",
               printable(host.error.message).c_str());
  return 0;
}

void raise_exit(lua_State* L, lua_Debug*) {
  lua_pushliteral(L, "the script called os.exit");
  lua_error(L);
}

/// os.exit(status, close): true and nothing are 0, false is 1. The hook stays armed until the host
/// has control again, so that no pcall keeps the script alive.
int exit_script(lua_State* L) {
  const int status =
      lua_isboolean(L, 1) ? !lua_toboolean(L, 1) : static_cast<int>(luaL_optinteger(L, 1, 0));
  host_state(L)->exit_status = status & 0xff;
  lua_sethook(L, raise_exit, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
  lua_pushliteral(L, "the script called os.exit");
  return lua_error(L);
}

}  // namespace

void set_host_state(lua_State* L, HostState* host) {
  lua_pushlightuserdata(L, &g_key);
  lua_pushlightuserdata(L, host);
  lua_rawset(L, LUA_REGISTRYINDEX);
}

HostState* host_state(lua_State* L) {
  lua_pushlightuserdata(L, &g_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  auto* host = static_cast<HostState*>(lua_touserdata(L, -1));
  lua_pop(L, 1);
  return host;
}

std::optional<ScriptError> call_script(lua_State* L, int arguments, int results) {
  HostState& host = *host_state(L);
  host.error = {};
  const int base = lua_gettop(L) - arguments;
  lua_pushcfunction(L, on_error);
  lua_insert(L, base);
  const int status = lua_pcall(L, arguments, results, base);
  lua_remove(L, base);
  if (status == 0) return std::nullopt;
  // Without memory, when the handler failed itself, and after a C++ exception Lua leaves a text.
  if (status != LUA_ERRRUN || host.error.message.empty()) host.error = {text_at(L, -1), "", false};
  if (auto stopped = stop_message(L); !stopped.empty())
    host.error = {std::move(stopped), "", false};
  lua_pop(L, 1);
  return std::move(host.error);
}

void report_finalisers(lua_State* L) {
  lua_getglobal(L, "jit");
  lua_getfield(L, -1, "attach");
  lua_pushcfunction(L, on_finaliser_error);
  lua_pushliteral(L, "errfin");
  lua_call(L, 2, 0);
  lua_pop(L, 1);
}

void install_exit(lua_State* L) {
  lua_getglobal(L, "os");
  lua_pushcfunction(L, exit_script);
  lua_setfield(L, -2, "exit");
  lua_pop(L, 1);
}

std::optional<int> take_exit(lua_State* L) {
  HostState& host = *host_state(L);
  if (host.exit_status) lua_sethook(L, nullptr, 0, 0);
  return std::exchange(host.exit_status, std::nullopt);
}

}  // namespace trinity::lua
