#include "lua/shell.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/stop.h"

namespace trinity::lua {
namespace {

/// Whether waitpid() has nothing more to wait for.
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

}  // namespace

pid_t start_shell(const std::string& command, std::optional<Redirection> redirection) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults, none;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGQUIT, SIGPIPE, SIGXFSZ}) sigaddset(&defaults, signal);
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
  if (code != 0) throw Error(fmt::format("cannot start /bin/sh: {}", std::strerror(code)));
  return child;
}

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

}  // namespace trinity::lua
