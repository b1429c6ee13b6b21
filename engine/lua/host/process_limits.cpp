#include "lua/host/process_limits.h"

#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/late.h"
#include "base/process.h"
#include "base/units.h"

namespace trinity::lua {
namespace {

/// A line that is ready before it is needed: neither a signal handler nor a process without memory
/// can make one.
struct Notice {
  char text[200] = "";
  void set(const std::string& line) { std::snprintf(text, sizeof text, "%s\n", line.c_str()); }
  /// Async-signal-safe. Gives up where standard error is a full pipe.
  void say() const {
    pollfd out{STDERR_FILENO, POLLOUT, 0};
    if (poll(&out, 1, 0) <= 0) return;
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text, std::strlen(text));
  }
};

Notice g_time, g_memory;

void end_process(int, siginfo_t* info, void*) {
  if (info->si_code != SI_TIMER) return;
  g_time.say();
  _exit(1);
}

/// Handler of exceptions that nobody can catch: thrown where none may be, or while a thread ends.
void end_without_memory() {
  try {
    if (const auto error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    g_memory.say();
    _exit(1);
  } catch (...) {
  }
  std::abort();
}

/// Private writable memory of this process (VmData), which RLIMIT_DATA bounds.
size_t private_bytes() {
  std::istringstream status(system_text("/proc/self/status"));
  for (std::string word; status >> word;) {
    size_t kilobytes = 0;
    if (word == "VmData:" && status >> kilobytes) return kilobytes * 1024;
  }
  throw Error("cannot read /proc/self/status: the memory limit needs it");
}

/// Stacks of our pool, of LibTorch's, and of a few more threads.
size_t stacks_bytes() {
  rlimit stack{};
  const bool known = getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur != RLIM_INFINITY;
  const size_t one = known ? static_cast<size_t>(stack.rlim_cur) : size_t{8} << 20;
  return one * (2 * std::max(1U, std::thread::hardware_concurrency()) + 8);
}

/// Bytes by which the private memory of a late part may raise a limit, in addition to the known
/// need of its opening take (LibTorch with 300 libraries of Debian's: 60 MB).
constexpr rlim_t kLateBytes = rlim_t{512} << 20;

rlimit g_limit{};
rlim_t g_limit_before = 0;
size_t g_before_bytes = 0;

void set_limit(rlim_t bytes) {
  g_limit.rlim_cur = std::min(g_limit.rlim_max, bytes);
  if (setrlimit(RLIMIT_DATA, &g_limit) != 0)
    throw Error("cannot set the limit of memory: " + std::string(std::strerror(errno)));
}

/// The bytes that count towards the limit now.
size_t limited_bytes() { return g_limit.rlim_cur - mappable_bytes(g_limit.rlim_cur, true); }

/// A part that is opened late takes its memory in addition to the limit.
constexpr LateHooks kBesideLimit{
    [](size_t bytes) {
      g_before_bytes = limited_bytes();
      g_limit_before = g_limit.rlim_cur;
      set_limit(g_limit_before + kLateBytes + bytes);
    },
    [](size_t bytes) {
      const size_t now = limited_bytes(), taken = now - std::min(now, g_before_bytes);
      set_limit(g_limit_before + std::min<rlim_t>(taken, kLateBytes + bytes));
    }};

}  // namespace

HardTimeLimit::HardTimeLimit(double limit_s) {
  if (limit_s <= 0) return;
  g_time.set(
      fmt::format("trinity: time limit of {:.6g} s reached: what ran did not stop within {:g} s "
                  "more, and the process was ended",
                  limit_s, kGrace_s));
  struct sigaction action = {};
  action.sa_sigaction = end_process;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGRTMAX, &action, nullptr);
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGRTMAX;
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
    throw Error("cannot make a timer for the time limit: " + std::string(std::strerror(errno)));
  timer_ = timer;
  armed_ = true;
  const double seconds = std::min(limit_s + kGrace_s, 1e9), whole = std::floor(seconds);
  const itimerspec once{{0, 0},
                        {static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)}};
  timer_settime(timer, 0, &once, nullptr);
}

HardTimeLimit::~HardTimeLimit() {
  if (armed_) timer_delete(timer_);
}

void limit_process_memory(size_t limit_bytes) {
  g_memory.set("trinity: not enough memory");
  std::set_terminate(end_without_memory);
  if (limit_bytes == 0) return;
  g_memory.set(fmt::format("trinity: not enough memory (limit {})",
                           format_bytes(static_cast<int64_t>(limit_bytes))));
  const size_t most = private_bytes() + stacks_bytes() + limit_bytes + limit_bytes / 2;
  if (getrlimit(RLIMIT_DATA, &g_limit) != 0) throw Error("cannot read the limit of memory");
  const rlim_t late = 3 * kLateBytes + opening_bytes(kTorchPart);
  g_limit.rlim_max = std::min<rlim_t>(g_limit.rlim_max, most + late);
  set_limit(most);
  set_late_hooks(kBesideLimit);
  // Large blocks go back to the system once they are freed: glibc would keep them from the second
  // on, in pieces, and what is refused to a script would be short for all that follows.
  mallopt(M_MMAP_THRESHOLD, 1 << 18);
}

}  // namespace trinity::lua
