#include "lua/os_execute.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/stop.h"
#include "lua/check.h"

namespace trinity::lua {
namespace {

/// The shell with the command, with the signals of a fresh program.
pid_t start_shell(const char* command) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults, none;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGQUIT, SIGPIPE}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  char shell[] = "sh", option[] = "-c", end_of_options[] = "--";
  char* const words[] = {shell, option, end_of_options, const_cast<char*>(command), nullptr};
  pid_t child = 0;
  const int code = posix_spawn(&child, "/bin/sh", nullptr, &attributes, words, environ);
  posix_spawnattr_destroy(&attributes);
  if (code != 0) throw Error(fmt::format("cannot start /bin/sh: {}", std::strerror(code)));
  return child;
}

/// Gives a child that was asked to end a tenth of a second, then ends it.
void end_child(pid_t child) {
  kill(child, SIGINT);
  for (int i = 0; i < 20; ++i) {
    if (waitpid(child, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
}

int execute(lua_State* L) {
  if (lua_isnoneornil(L, 1)) {
    lua_pushinteger(L, access("/bin/sh", X_OK) == 0);
    return 1;
  }
  const auto command = string_arg(L, 1, "command");
  const pid_t child = start_shell(command.c_str());
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw Error(std::strerror(errno));
    if (!stop_flag()) continue;
    end_child(child);
    poll_stop();
  }
  lua_pushinteger(L, status);
  return 1;
}

}  // namespace

void install_execute(lua_State* L) {
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  lua_getfield(L, -1, "os");
  if (lua_istable(L, -1)) {
    lua_pushliteral(L, "os.execute");
    lua_pushboolean(L, 0);
    lua_pushcclosure(L, guard<execute>, 2);
    lua_setfield(L, -2, "execute");
  }
  lua_pop(L, 2);
}

}  // namespace trinity::lua
