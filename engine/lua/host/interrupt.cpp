#include "lua/host/interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "lua/host/stopper.h"

namespace trinity::lua {
namespace {

struct Watch {
  lua_State* state;
  std::shared_ptr<Stopper> stopper;
};

/// Ctrl-C, what schedulers send, and by option what Slurm is asked to send before.
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1};
static_assert(kInterruptedStatus == 128 + SIGINT && kEndedStatus == 128 + SIGTERM);

/// A request to end within this time of the first is the same one: launchers pass on what the
/// scheduler sends to every process of a job.
constexpr double kEcho_s = 1;
/// Nobody presses Ctrl-C twice within it; coreutils' timeout signals a process, then its group.
constexpr double kSamePress_s = 0.1;

/// Time that ranks of a job have to agree on a stop.
constexpr double kAgreement_s = 10;

/// All watched states, the latest last; changed with the signals held back.
std::vector<Watch> g_watches;
std::mutex g_mutex;
/// The latest stopper, for the handler, which reads it on its own thread only.
std::atomic<Stopper*> g_stopper{nullptr};
std::atomic<pid_t> g_thread{0};
struct sigaction g_previous[std::size(kSignals)] = {};
std::atomic<int> g_taken{1};  // of kSignals, the first ones
/// The first signal since start_afresh(), and its time; a request to end is kept.
std::atomic<int> g_signal{0};
std::atomic<double> g_asked_at_s{-1};
std::atomic<bool> g_is_ending{false};
std::atomic<int> g_agreeing{0};
std::atomic<bool> g_noted{false};
std::atomic<int> g_searches{0};
std::atomic<int> g_series{0};
std::atomic<bool> g_keeps_found{false};
std::atomic<bool> g_has_searched{false};
std::atomic<int> g_presses{0};
std::atomic<bool> g_interrupted{false};
std::atomic<int> g_last_status{0};

/// Holds the signals back in this thread; the handler passes them on to the thread of the state.
class HeldBack {
 public:
  HeldBack() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : kSignals) sigaddset(&set, number);
    pthread_sigmask(SIG_BLOCK, &set, &old_);
  }
  ~HeldBack() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }

 private:
  sigset_t old_;
};

double monotonic_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// True if a request to end repeats the first one's signal. Ends the process where it is a second.
bool is_echo(int number) {
  const double now_s = monotonic_s();
  const bool ends = number == SIGTERM || number == SIGUSR1;
  if (g_asked_at_s < 0) {
    g_asked_at_s = now_s;
    g_is_ending = ends;
    return false;
  }
  if (!ends && !g_is_ending) return now_s - g_asked_at_s < kSamePress_s;
  if (now_s - g_asked_at_s > kEcho_s) _exit(kEndedStatus);
  return true;
}

/// Time that a script has to finish with the best result of a search that Ctrl-C ended.
constexpr double kGrace_s = 5;

/// The first request is only noted where ranks have to agree on it.
void stop_script(Stopper& stopper, int number) {
  const int presses = ++g_presses;
  if (g_signal == 0) g_signal = number;
  if (presses >= 3) {
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
  }
  if (presses == 1 && g_agreeing > 0) {
    g_noted = true;
    stopper.stop_in(kAgreement_s);
    return;
  }
  if (!g_interrupted && keeps_what_is_found()) {
    g_presses = 0;
    g_interrupted = true;
    stopper.stop_in(kGrace_s);
    return;
  }
  g_interrupted = true;
  stop_flag() = true;
  const bool in_search = g_searches > 0 || g_series > 0;
  if (!in_search || presses >= 2) stopper.stop(StopReason::interrupted);
}

/// Async-signal-safe: atomics, tgkill, signal, clock_gettime, _exit, and Stopper's stop() and
/// stop_in().
void on_interrupt(int number) {
  const int saved = errno;
  const pid_t thread = g_thread;
  Stopper* stopper = g_stopper;
  if (thread != 0 && syscall(SYS_gettid) != thread)
    syscall(SYS_tgkill, getpid(), thread, number);
  else if (stopper && !is_echo(number))
    stop_script(*stopper, number);
  errno = saved;
}

void use_latest() {
  Stopper* latest = g_watches.empty() ? nullptr : g_watches.back().stopper.get();
  g_stopper = latest;
  g_thread = latest ? latest->thread() : 0;
}

void start_afresh() {
  g_presses = 0;
  g_signal = 0;
  if (!g_is_ending) g_asked_at_s = -1;
  g_noted = false;
  g_agreeing = 0;
  g_searches = 0;
  g_series = 0;
  g_keeps_found = false;
  g_has_searched = false;
  g_interrupted = false;
  stop_flag() = false;
}

/// Sets the flag after the given seconds, unless it is destroyed before.
class Limit {
 public:
  explicit Limit(double seconds) {
    try {
      thread_ = std::thread([this, seconds] { wait(seconds); });
    } catch (const std::system_error&) {
      // If no thread can be created, work ends by its own polls of the clock.
    }
  }
  ~Limit() { end(); }
  bool passed() const { return passed_; }
  /// From now on it sets nothing; whether it has passed. A forked child has no such thread.
  bool end() {
    if (getpid() != process_) {
      if (thread_.joinable()) thread_.detach();
      return passed_;
    }
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
    return passed_;
  }

 private:
  void wait(double seconds) {
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return over_; }))
      return;
    passed_ = true;
    stop_flag() = true;
  }

  pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::atomic<bool> passed_{false};
  std::thread thread_;
};

/// Limits of the thread that runs a script, the innermost last.
thread_local std::vector<std::unique_ptr<Limit>> g_limits;

/// True if Ctrl-C, or a time limit of the script, asked to stop and nobody took that back.
bool user_stops() {
  const Stopper* stopper = g_stopper;
  return g_presses > 0 || (g_interrupted && g_searches > 0) ||
         (stopper && stopper->reason() != StopReason::none);
}

bool limit_passed() {
  return std::any_of(g_limits.begin(), g_limits.end(),
                     [](const auto& limit) { return limit->passed(); });
}

/// Lets the script go on for a while, unless it must end itself.
void take_flag_back() {
  Stopper* stopper = g_stopper;
  if (stopper && stopper->reason() != StopReason::none) return;  // the script itself must end
  if (stopper && g_interrupted) stopper->stop_in(kGrace_s);
  g_presses = 0;
  stop_flag() = limit_passed();
}

/// Ends the watch; returns the stopper of the state that is now the latest.
std::shared_ptr<Stopper> end_watch(lua_State* L) {
  std::shared_ptr<Stopper> last, heir;  // the first may die here, after signals are let through
  const HeldBack held;
  const std::lock_guard lock(g_mutex);
  const auto at = std::find_if(g_watches.begin(), g_watches.end(),
                               [L](const Watch& watch) { return watch.state == L; });
  if (at == g_watches.end()) return nullptr;
  last = std::move(at->stopper);
  g_watches.erase(at);
  use_latest();
  if (g_watches.empty())
    for (int i = 0; i < g_taken; ++i) sigaction(kSignals[i], &g_previous[i], nullptr);
  else
    heir = g_watches.back().stopper;
  return heir;
}

}  // namespace

void begin_limit(double seconds) {
  constexpr double kLongest_s = 1e8;
  // Signals are for the threads that scripts run on.
  g_limits.reserve(g_limits.size() + 1);
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  auto limit = std::make_unique<Limit>(std::clamp(seconds, 0.0, kLongest_s));
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  g_limits.push_back(std::move(limit));
}

bool end_limit() {
  if (g_limits.empty()) return false;
  const auto limit = std::move(g_limits.back());
  g_limits.pop_back();
  // Without its thread nothing sets the flag any more.
  const bool passed = limit->end();
  if (passed && !limit_passed() && !user_stops()) stop_flag() = false;
  return passed;
}

bool stop_requested() { return stop_flag() && (!limit_passed() || user_stops()); }

void take_requests_to_end(bool and_usr1) { g_taken = and_usr1 ? 3 : 2; }

void watch_interrupts(lua_State* L) {
  auto stopper = Stopper::of(L);
  // After Stopper's handler: a forked child has a thread of another number.
  static const int registered = pthread_atfork(nullptr, nullptr, use_latest);
  static_cast<void>(registered);
  stopper->take_profiler();
  const HeldBack held;
  const std::lock_guard lock(g_mutex);
  if (g_watches.empty()) {
    struct sigaction action = {};
    action.sa_handler = on_interrupt;  // no SA_RESTART: a read that sleeps must wake up
    for (int i = 0; i < g_taken; ++i) sigaction(kSignals[i], &action, &g_previous[i]);
    start_afresh();
  }
  g_watches.push_back({L, std::move(stopper)});
  use_latest();
}

void unwatch_interrupts(lua_State* L) {
  if (const auto heir = end_watch(L); heir && heir->thread() == syscall(SYS_gettid))
    heir->take_profiler();
}

void (*interrupt_handler())(int) { return on_interrupt; }

bool was_interrupted() { return g_interrupted; }

int stop_status() {
  const int number = g_signal;
  return number == SIGTERM || number == SIGUSR1 ? kEndedStatus : kInterruptedStatus;
}

const char* stop_name() {
  const int number = g_signal;
  return number == SIGTERM ? "SIGTERM" : number == SIGUSR1 ? "SIGUSR1" : "Ctrl-C";
}

bool was_stopped() { return Stopper::has_stopped(); }

void forget_interrupt(lua_State* L) {
  const HeldBack held;
  start_afresh();
  if (auto* stopper = Stopper::find(L)) stopper->release();
}

void leave_on_interrupt(int status) {
  g_last_status = status;
  const HeldBack held;
  const std::lock_guard lock(g_mutex);
  for (int i = 0; i < g_taken; ++i) {
    g_previous[i] = {};
    g_previous[i].sa_handler = [](int) { _exit(g_last_status); };
    sigaction(kSignals[i], &g_previous[i], nullptr);
  }
}

void begin_search() {
  if (++g_searches == 1 && g_interrupted) stop_flag() = true;
}

void end_search() {
  g_has_searched = true;  // before a signal finds that no search runs
  if (--g_searches == 0) take_flag_back();
}

void begin_series() { ++g_series; }

void end_series() {
  if (--g_series == 0 && g_searches == 0) take_flag_back();
}

void keep_what_is_found() { g_keeps_found = true; }

bool keeps_what_is_found() { return g_keeps_found && g_has_searched && g_searches == 0; }

void begin_agreement() {
  if (++g_agreeing != 1 || !g_interrupted) return;
  g_noted = true;  // asked before: the others have to hear of it
  stop_flag() = limit_passed();
}

void end_agreement() {
  if (--g_agreeing == 0) g_noted = false;
}

int noted_status() { return g_noted ? stop_status() : 0; }

void accept_stop(int status) {
  if (g_signal == 0) g_signal = status == kEndedStatus ? SIGTERM : SIGINT;
  if (g_presses == 0) g_presses = 1;
  g_interrupted = true;
  stop_flag() = true;
}

}  // namespace trinity::lua
