#include "base/apart.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/hold.h"

namespace trinity {
namespace {

constexpr int kDone = 86;  // unlikely as a library's exit status

/// Memory shared by this process and its fork.
class SharedBytes {
 public:
  explicit SharedBytes(size_t bytes)
      : bytes_(bytes),
        at_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~SharedBytes() {
    if (*this) munmap(at_, bytes_);
  }
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;
  explicit operator bool() const { return at_ != MAP_FAILED; }
  void* get() const { return at_; }

 private:
  size_t bytes_;
  void* at_;
};

/// Main of the forked process: in a process group of its own, so that only its library's signals
/// reach it.
[[noreturn]] void live_apart(pid_t parent, const sigset_t& signals, void* memory, void* shared,
                             size_t bytes, const std::function<void()>& work) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  leave_lock_to_parent();
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) signal(number, SIG_IGN);
  for (const int number : {SIGSEGV, SIGFPE, SIGBUS, SIGILL, SIGABRT}) signal(number, SIG_DFL);
  pthread_sigmask(SIG_SETMASK, &signals, nullptr);
  work();
  std::memcpy(shared, memory, bytes);
  _exit(kDone);
}

}  // namespace

void call_apart(const char* what, void* memory, size_t bytes, const std::function<void()>& work) {
  const SharedBytes shared(bytes);
  if (!shared) throw LimitError("{}: not enough memory", what);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // until the fork has been set up
  const pid_t parent = getpid(), child = fork();
  if (child == 0) live_apart(parent, before, memory, shared.get(), bytes, work);
  const int reason = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0)
    throw Error("{}: cannot start a process: {}", what, std::strerror(reason));
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  if (ended != child)
    throw Error("{}: the status of its child process was collected elsewhere (is SIGCHLD set to SIG_IGN?)", what);
  if (WIFSIGNALED(status))
    throw Error("{}: ended with signal {} ({})", what, WTERMSIG(status), strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) != kDone)
    throw Error("{}: ended with exit status {}", what, WEXITSTATUS(status));
  std::memcpy(memory, shared.get(), bytes);
}

}  // namespace trinity
