#include "lua/host/stopper.h"

#include <errno.h>
#include <luajit.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/stop.h"
#include "lua/host/check.h"

namespace trinity::lua {
namespace {

constexpr double kTick_s = 0.01;

/// Address that marks the state's Stopper in the registry.
const char kRegistryKey = 0;

std::mutex g_mutex;             // guards what follows
Stopper* g_profiled = nullptr;  // whose state has the profiler
std::vector<std::weak_ptr<Stopper>> g_stoppers;
struct sigaction g_previous_alarm = {};
std::atomic<bool> g_has_stopped{false};
int g_alarm_users = 0;

pid_t this_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

/// Runs before every instruction of a script that must stop. Throws a C++ exception and no Lua
/// error, because a Lua error calls the handler of an xpcall first, without hooks: one that loops
/// would never be stopped. The message that Lua makes of it says nothing, so the host asks for
/// ours.
void raise_stop(lua_State* L, lua_Debug*) {
  if (auto* stopper = Stopper::find(L)) stopper->note_place(L);
  throw Interrupted();
}

void ignore_sample(void*, lua_State*, int, int) {}

/// True if LuaJIT or somebody else handles SIGPROF: it ends the process otherwise.
bool profiler_listens() {
  struct sigaction action;
  return sigaction(SIGPROF, nullptr, &action) == 0 && action.sa_handler != SIG_DFL &&
         action.sa_handler != SIG_IGN;
}

/// A timer whose signals go to this thread with `value`.
timer_t thread_timer(Stopper::Sender* sender) {
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGALRM;
  event.sigev_value.sival_ptr = sender;
  event._sigev_un._tid = this_thread();
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
    throw Error("cannot make a timer for the script: " + std::string(strerror(errno)));
  return timer;
}

void in_child() {
  for (const auto& entry : g_stoppers)
    if (const auto stopper = entry.lock()) stopper->adopt_child();
}

void set_timer(timer_t timer, double first_s, double period_s) {
  const auto spec = [](double seconds) {
    const double whole = std::floor(seconds);
    return timespec{static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
  };
  const itimerspec times{spec(period_s), spec(first_s)};
  timer_settime(timer, 0, &times, nullptr);
}

}  // namespace

std::shared_ptr<Stopper> Stopper::of(lua_State* L) {
  static const int registered = pthread_atfork(nullptr, nullptr, in_child);
  static_cast<void>(registered);
  if (auto* known = find(L)) return known->shared_from_this();
  auto made = std::make_shared<Stopper>(L);
  const std::lock_guard lock(g_mutex);
  std::erase_if(g_stoppers, [](const auto& entry) { return entry.expired(); });
  g_stoppers.push_back(made);
  return made;
}

Stopper* Stopper::find(lua_State* L) {
  lua_pushlightuserdata(L, const_cast<char*>(&kRegistryKey));
  lua_rawget(L, LUA_REGISTRYINDEX);
  auto* found = static_cast<Stopper*>(lua_touserdata(L, -1));
  lua_pop(L, 1);
  return found;
}

Stopper::Stopper(lua_State* L)
    : L_(L), thread_(this_thread()), ticks_sender_{this, 0}, ticks_(thread_timer(&ticks_sender_)) {
  lua_pushlightuserdata(L, const_cast<char*>(&kRegistryKey));
  lua_pushlightuserdata(L, this);
  lua_rawset(L, LUA_REGISTRYINDEX);
  {
    const std::lock_guard lock(g_mutex);
    if (g_alarm_users++ == 0) {
      struct sigaction action = {};
      action.sa_sigaction = on_alarm;
      action.sa_flags = SA_SIGINFO;  // no SA_RESTART: a read that sleeps must wake up
      sigaction(SIGALRM, &action, &g_previous_alarm);
    }
  }
  take_profiler();
}

void Stopper::take_profiler() {
  const std::lock_guard lock(g_mutex);
  if (g_profiled == this || (g_profiled && g_profiled->thread_ != thread_)) return;
  if (g_profiled) luaJIT_profile_stop(g_profiled->L_);
  luaJIT_profile_start(L_, "li1000", ignore_sample, nullptr);
  const itimerval off = {};
  setitimer(ITIMER_PROF, &off, nullptr);
  g_profiled = this;
}

Stopper::~Stopper() {
  release();
  timer_delete(ticks_);
  lua_pushlightuserdata(L_, const_cast<char*>(&kRegistryKey));
  lua_pushnil(L_);
  lua_rawset(L_, LUA_REGISTRYINDEX);
  const std::lock_guard lock(g_mutex);
  if (g_profiled == this) {
    luaJIT_profile_stop(L_);
    g_profiled = nullptr;
  }
  if (--g_alarm_users == 0) sigaction(SIGALRM, &g_previous_alarm, nullptr);
}

/// Async-signal-safe: lua_sethook is what LuaJIT's own program calls here, too. Taking the hook
/// away first makes LuaJIT build its tables again, should a signal have hit it while it did so.
void Stopper::arm() {
  lua_sethook(L_, nullptr, 0, 0);
  lua_sethook(L_, raise_stop, LUA_MASKCOUNT, 1);
  if (profiler_listens()) raise(SIGPROF);
}

bool Stopper::has_stopped() { return g_has_stopped; }

void Stopper::stop(StopReason reason) {
  g_has_stopped = true;
  if (reason_ == StopReason::none) reason_ = reason;
  stop_flag() = true;
  arm();
  set_timer(ticks_, kTick_s, kTick_s);
}

void Stopper::stop_in(double seconds) {
  if (is_due_ || reason_ != StopReason::none) return;
  is_due_ = true;
  set_timer(ticks_, seconds, 0);
}

void Stopper::release() {
  set_timer(ticks_, 0, 0);
  is_due_ = false;
  lua_sethook(L_, nullptr, 0, 0);
  place_.reset();
  if (reason_.exchange(StopReason::none) != StopReason::none) stop_flag() = false;
}

void Stopper::on_alarm(int, siginfo_t* info, void*) {
  if (info->si_code != SI_TIMER) return;
  const int saved = errno;
  const auto* sender = static_cast<Sender*>(info->si_value.sival_ptr);
  auto& stopper = *sender->stopper;
  if (sender->limit_s > 0) {
    stopper.limit_s_ = sender->limit_s;
    stopper.stop(StopReason::time_limit);
  } else if (stopper.reason_ != StopReason::none) {
    stopper.arm();
  } else if (stopper.is_due_) {
    stopper.stop(StopReason::interrupted);
  }
  errno = saved;
}

void Stopper::adopt_child() {
  thread_ = this_thread();
  ticks_ = thread_timer(&ticks_sender_);
  if (reason_ != StopReason::none) set_timer(ticks_, kTick_s, kTick_s);
}

Stopper::Alarm::Alarm(Stopper& stopper, double seconds)
    : sender_{&stopper, seconds}, timer_(thread_timer(&sender_)) {
  set_timer(timer_, seconds, 0);
}

Stopper::Alarm::~Alarm() { timer_delete(timer_); }

void Stopper::note_place(lua_State* L) {
  if (place_) return;
  push_position(L, 0);
  place_ = lua_tostring(L, -1);
  lua_pop(L, 1);
}

std::string stop_message(lua_State* L) {
  const auto* stopper = Stopper::find(L);
  return stopper && stopper->place() ? *stopper->place() + stop_text(L) : "";
}

std::string stop_text(lua_State* L) {
  const auto* stopper = Stopper::find(L);
  if (!stopper || stopper->reason() != StopReason::time_limit) return "interrupted";
  return fmt::format("time limit of {:.6g} s reached", stopper->limit_s());
}

}  // namespace trinity::lua
