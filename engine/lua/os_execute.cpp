#include "lua/os_execute.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/stop.h"
#include "lua/check.h"
#include "lua/shell.h"

namespace trinity::lua {
namespace {

int execute(lua_State* L) {
  if (lua_isnoneornil(L, 1)) {
    lua_pushinteger(L, access("/bin/sh", X_OK) == 0);
    return 1;
  }
  const auto status = await_child(start_shell(string_arg(L, 1, "command")));
  if (!status) poll_stop();
  lua_pushinteger(L, status.value_or(-1));
  return 1;
}

/// This process's end of a pipe, and the command at the other one.
struct Pipe {
  int descriptor;
  pid_t child;
};

ssize_t read_pipe(void* cookie, char* buffer, size_t size) {
  const auto* pipe = static_cast<Pipe*>(cookie);
  for (;;) {
    const auto got = read(pipe->descriptor, buffer, size);
    if (got >= 0 || errno != EINTR || stop_flag()) return got;
  }
}

/// All of it: stdio takes less for an error.
ssize_t write_pipe(void* cookie, const char* buffer, size_t size) {
  const auto* pipe = static_cast<Pipe*>(cookie);
  size_t written = 0;
  while (written < size) {
    const auto now = write(pipe->descriptor, buffer + written, size - written);
    if (now >= 0)
      written += static_cast<size_t>(now);
    else if (errno != EINTR || stop_flag())
      return 0;
  }
  return static_cast<ssize_t>(written);
}

int close_pipe(void* cookie) {
  const auto* pipe = static_cast<Pipe*>(cookie);
  close(pipe->descriptor);
  await_child(pipe->child);
  delete pipe;
  return 0;
}

/// A stream whose closing waits for the command no longer than the script may run.
FILE* open_pipe(const std::string& command, bool reads) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return nullptr;
  const int ours = ends[reads ? 0 : 1], theirs = ends[reads ? 1 : 0];
  pid_t child = 0;
  try {
    child = start_shell(command, Redirection{theirs, reads ? 1 : 0});
  } catch (...) {
    close(ours);
    close(theirs);
    throw;
  }
  close(theirs);
  auto* pipe = new Pipe{ours, child};
  FILE* stream = fopencookie(pipe, reads ? "r" : "w", {read_pipe, write_pipe, nullptr, close_pipe});
  if (!stream) close_pipe(pipe);
  return stream;
}

constexpr char kOpenKey[] = "trinity.io.open";  // in the registry

/// popen(command, mode): io.open makes the handle, which then gets our stream: a handle of LuaJIT
/// begins with its FILE*, as those of Lua do.
int popen(lua_State* L) {
  const auto command = string_arg(L, 1, "command");
  const auto mode = lua_isnoneornil(L, 2) ? std::string("r") : string_arg(L, 2, "mode");
  if (mode != "r" && mode != "w")
    throw WrongArgument(2, "mode", fmt::format("expected 'r' or 'w', got '{}'", mode));
  lua_settop(L, 0);
  lua_getfield(L, LUA_REGISTRYINDEX, kOpenKey);
  lua_pushliteral(L, "/dev/null");
  lua_pushstring(L, mode.c_str());
  lua_call(L, 2, 3);
  if (lua_isnil(L, 1)) return 3;
  FILE* stream = open_pipe(command, mode == "r");
  if (!stream) throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  lua_settop(L, 1);
  auto** slot = static_cast<FILE**>(lua_touserdata(L, 1));
  fclose(*slot);
  *slot = stream;
  return 1;
}

void install(lua_State* L, const char* library, const char* field, const char* title,
             lua_CFunction function) {
  lua_getfield(L, -1, library);
  if (lua_istable(L, -1)) {
    lua_pushstring(L, title);
    lua_pushboolean(L, 0);
    lua_pushcclosure(L, function, 2);
    lua_setfield(L, -2, field);
  }
  lua_pop(L, 1);
}

}  // namespace

void install_execute(lua_State* L) {
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  lua_getfield(L, -1, "io");
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, "open");
    lua_setfield(L, LUA_REGISTRYINDEX, kOpenKey);
  }
  lua_pop(L, 1);
  install(L, "os", "execute", "os.execute", guard<execute>);
  install(L, "io", "popen", "io.popen", guard<popen>);
  lua_pop(L, 1);
}

}  // namespace trinity::lua
