#include "lua/host/libraries.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "base/stop.h"
#include "lua/host/check.h"

namespace trinity::lua {
namespace {

/// True if waitpid() has nothing more to wait for.
bool has_ended(pid_t child, int& status) {
  const pid_t found = waitpid(child, &status, WNOHANG);
  return found == child || (found < 0 && errno != EINTR);
}

/// Gives a child that was asked to end a tenth of a second, then ends it.
void end_child(pid_t child) {
  int status = 0;
  kill(child, SIGINT);
  for (int i = 0; i < 20; ++i) {
    if (has_ended(child, status)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
}

/// The descriptor that replaces the standard input (0) or output (1) of a command.
struct Redirection {
  int descriptor;  // of this process
  int standard;
};

/// Starts `/bin/sh -c -- command` with the signals of a fresh program. Throws Error where the
/// system has no resources for it.
pid_t start_shell(const std::string& command, std::optional<Redirection> redirection = {}) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults, none;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGQUIT, SIGPIPE, SIGXFSZ}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (redirection)
    posix_spawn_file_actions_adddup2(&actions, redirection->descriptor, redirection->standard);
  char shell[] = "sh", option[] = "-c", end_of_options[] = "--";
  char* const words[] = {shell, option, end_of_options, const_cast<char*>(command.c_str()),
                         nullptr};
  pid_t child = 0;
  const int code = posix_spawn(&child, "/bin/sh", &actions, &attributes, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (code != 0) throw Error("cannot start /bin/sh: {}", std::strerror(code));
  return child;
}

/// Waits for a command's end: how it ended, as waitpid() reports. When the script must stop, the
/// command is asked to end by SIGINT, after 0.1 s by SIGKILL; nullopt then. Safe in destructors:
/// throws nothing. A child that somebody else has waited for has ended with 0.
std::optional<int> await_child(pid_t child) noexcept {
  // waitpid() alone would miss a signal that comes just before it: this looks at the flag now and
  // then. Kernels before 5.3 have no pidfd; there poll() is a pause.
  pollfd end = {static_cast<int>(syscall(SYS_pidfd_open, child, 0)), POLLIN, 0};
  const bool has_descriptor = end.fd >= 0;
  std::optional<int> result;
  for (int status = 0;;) {
    if (has_ended(child, status)) {
      result = status;
      break;
    }
    if (stop_flag()) {
      end_child(child);
      break;
    }
    poll(&end, has_descriptor ? 1 : 0, has_descriptor ? 50 : 2);
  }
  if (has_descriptor) close(end.fd);
  return result;
}

int execute(lua_State* L) {
  if (lua_isnoneornil(L, 1)) {
    return push_number(L, access("/bin/sh", X_OK) == 0);
  }
  const auto status = await_child(start_shell(string_arg(L, 1, "command")));
  if (!status) poll_stop();
  return push_number(L, status.value_or(-1));
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
/// begins with its FILE*, as Lua's handles do.
int popen(lua_State* L) {
  const auto command = string_arg(L, 1, "command");
  const auto mode = lua_isnoneornil(L, 2) ? std::string("r") : string_arg(L, 2, "mode");
  if (mode != "r" && mode != "w")
    throw WrongArgument(2, "mode", "expected 'r' or 'w', got '{}'", mode);
  lua_settop(L, 0);
  lua_getfield(L, LUA_REGISTRYINDEX, kOpenKey);
  lua_pushliteral(L, "/dev/null");
  lua_pushstring(L, mode.c_str());
  lua_call(L, 2, 3);
  if (lua_isnil(L, 1)) return 3;
  FILE* stream = open_pipe(command, mode == "r");
  if (!stream) throw Error("cannot make a pipe: {}", std::strerror(errno));
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
