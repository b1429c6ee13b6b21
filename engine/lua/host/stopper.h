#pragma once

#include <signal.h>
#include <sys/types.h>
#include <time.h>

#include <atomic>
#include <lua.hpp>
#include <memory>
#include <optional>
#include <string>

// Stops a running script in any state: the mechanism of Ctrl-C (interrupt.h) and time
// limits (limits.h).
//
// A hook that raises an error before every instruction stops interpreted code, and no pcall helps
// against it because it stays set until the host takes it back. Compiled code does not look at
// hooks, but it looks at LuaJIT's profiler, when that was started before the code was compiled:
// a SIGPROF then brings it back to the interpreter. So the profiler is started with its timer off,
// and the signal is sent only when a script must stop; from then on a timer repeats both every
// 10 ms, for moments that miss one (the collector runs a finaliser, a read is about to block).

namespace trinity::lua {

enum class StopReason : int { none = 0, interrupted = 1, time_limit = 2 };

/// One state whose script can be stopped. Made and used on the thread that runs the state.
class Stopper : public std::enable_shared_from_this<Stopper> {
 public:
  explicit Stopper(lua_State* L);
  ~Stopper();
  Stopper(const Stopper&) = delete;
  Stopper& operator=(const Stopper&) = delete;

  /// The one of a state, made when nobody has it. It lives as long as somebody holds it.
  static std::shared_ptr<Stopper> of(lua_State* L);
  /// The one of a state or of a coroutine in it; nullptr when there is none.
  static Stopper* find(lua_State* L);

  /// From now on every instruction of the script raises an error, until release(). Safe in a
  /// signal handler on the thread of this.
  void stop(StopReason reason);
  /// Calls stop(interrupted) in `seconds`, unless release() comes before; later calls have no effect.
  void stop_in(double seconds);
  /// Lets the state run again.
  void release();
  /// True if stop() was ever called in this process.
  static bool has_stopped();
  /// LuaJIT's profiler serves one state of the process: moves it to this one, unless it serves a
  /// state of another thread. Without it compiled loops run on until they call something.
  void take_profiler();
  StopReason reason() const { return reason_.load(); }
  /// Safe in signal handlers.
  pid_t thread() const { return thread_; }
  /// Called in the child after fork(): the thread has another number, and timers are gone.
  void adopt_child();

  /// Whose signal a timer sends.
  struct Sender {
    Stopper* stopper;
    double limit_s;  // 0: the ticks after stop()
  };
  /// A one-shot timer that calls stop(time_limit) after `seconds`.
  class Alarm {
   public:
    Alarm(Stopper& stopper, double seconds);
    ~Alarm();
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;

   private:
    Sender sender_;
    timer_t timer_;
  };
  /// Remembers where the script was when it was first stopped: "exp.lua:12: ".
  void note_place(lua_State* L);
  /// Nothing before that; "" in a command of the program, whose lines are in no message.
  const std::optional<std::string>& place() const { return place_; }
  /// The seconds of the limit that stopped the script.
  double limit_s() const { return limit_s_.load(); }

 private:
  static void on_alarm(int, siginfo_t* info, void*);
  void arm();

  lua_State* L_;
  pid_t thread_;
  Sender ticks_sender_;
  timer_t ticks_;
  std::atomic<StopReason> reason_{StopReason::none};
  std::atomic<bool> is_due_{false};  // stop_in() was called
  std::atomic<double> limit_s_{0};
  std::optional<std::string> place_;
};

/// "interrupted", or "time limit of 2 s reached": why the script on `L` is being stopped.
std::string stop_text(lua_State* L);
/// The same with the script's position, once an instruction of the script was stopped, else "".
/// The host's lua_pcall then receives another error, which says less.
std::string stop_message(lua_State* L);

}  // namespace trinity::lua
