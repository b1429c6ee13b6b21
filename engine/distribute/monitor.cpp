#include "distribute/monitor.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/error.h"

namespace trinity {
namespace {

constexpr double kBeat_s = 0.4;
/// Time that the store's host stays after a verdict, for the others to read it.
constexpr double kLinger_s = 2;
/// Additional silence allowed for the store: the death of its host is noticed at once.
constexpr double kWatchExtra_s = 5;

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

void say(const std::string& message) {
  std::fprintf(stderr, "trinity: %s\n", message.c_str());  // unbuffered
}

/// Suppresses further errors after the verdict: launchers end the other ranks by a signal, which
/// scripts would report.
void silence_errors() {
  const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDERR_FILENO);
}

Timeouts second_judge(Timeouts timeouts) {
  timeouts.silent_s += 3;
  timeouts.waiting_s += 3;
  return timeouts;
}

}  // namespace

double steady_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Observer::Observer(JobStore& store, std::string prefix, int ranks)
    : store_(store), prefix_(std::move(prefix)), ranks_(static_cast<size_t>(ranks)) {}

std::optional<std::string> Observer::look(const Timeouts& timeouts) {
  const double now_s = steady_s();
  const double passed_s = looked_s_ < 0 ? 0 : std::min(1.0, now_s - looked_s_);
  looked_s_ = now_s;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const auto text = store_.get(fmt::format("{}heartbeat/{}", prefix_, r));
    auto heartbeat = text ? Heartbeat::parse(*text) : Heartbeat();
    ranks_[r].silent_s =
        heartbeat.beat == ranks_[r].heartbeat.beat ? ranks_[r].silent_s + passed_s : 0;
    ranks_[r].heartbeat = std::move(heartbeat);
  }
  return judge(ranks_, timeouts);
}

bool Observer::all_have_left() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const Seen& seen) { return seen.heartbeat.has_left; });
}

void end_process() {
  // The script's thread may hold stdout while printing and never release it.
  if (ftrylockfile(stdout) == 0) fflush_unlocked(stdout);
  _exit(1);
}

StoreWatch::StoreWatch(double timeout_s, std::function<void(double)> end)
    : patience_s_(timeout_s), end_(std::move(end)), thread_([this] { run(); }) {}

StoreWatch::~StoreWatch() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StoreWatch::run() {
  double silent_s = 0, looked_s = steady_s();
  int64_t seen = answers_;
  for (;;) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::milliseconds(250), [this] { return closing_; }))
      return;
    const double now_s = steady_s();
    const int64_t answers = answers_;
    silent_s = answers == seen ? silent_s + std::min(1.0, now_s - looked_s) : 0;
    seen = answers;
    looked_s = now_s;
    if (silent_s > patience_s_) end_(silent_s);
  }
}

Monitor::Monitor(std::unique_ptr<JobStore> store, const MonitorOptions& options)
    : options_(options),
      store_(std::move(store)),
      observer_(*store_, options.prefix, options.size),
      watch_(std::make_unique<StoreWatch>(
          options.timeouts.silent_s + kWatchExtra_s, [this](double silent_s) {
            end_without_store(silent_s);
          })) {
  heartbeat_.node = options.node;
  heartbeat_.local_rank = options.local_rank;
  heartbeat_.host = options.host;
  beat();
  thread_ = std::thread([this] { run(); });
}

Monitor::~Monitor() { leave(); }

void Monitor::note_begun(Scope scope, int64_t number) {
  const std::lock_guard lock(mutex_);
  heartbeat_.begun[static_cast<size_t>(scope)] = number;
}

void Monitor::note_wait(const std::string& what, Scope scope, int64_t number) {
  const std::lock_guard lock(mutex_);
  heartbeat_.what = what;
  heartbeat_.scope = scope;
  heartbeat_.number = number;
  wait_began_s_ = steady_s();
}

void Monitor::note_done() {
  const std::lock_guard lock(mutex_);
  heartbeat_.number = 0;
}

void Monitor::note_broken(const std::string& failure) {
  const std::lock_guard lock(mutex_);
  heartbeat_.broken = failure;
}

void Monitor::beat() {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    ++heartbeat_.beat;
    heartbeat_.waiting_s = heartbeat_.number > 0 ? steady_s() - wait_began_s_ : 0;
    text = heartbeat_.text();
  }
  const std::lock_guard lock(store_mutex_);
  store_->set(key(fmt::format("heartbeat/{}", options_.rank)), text);
}

void Monitor::run() {
  try {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, std::chrono::duration<double>(kBeat_s),
                              [this] { return leaving_; }))
          return;
      }
      beat();
      std::optional<std::string> verdict;
      {
        const std::lock_guard lock(store_mutex_);
        if (store_->get(key("verdict"))) {
          silence_errors();
          if (options_.rank == 0) sleep_s(kLinger_s);
          end_process();
        }
        if (options_.rank < 2)
          verdict = observer_.look(options_.rank == 0 ? options_.timeouts
                                                      : second_judge(options_.timeouts));
      }
      if (verdict) end_job(*verdict);
      watch_->answered();
    }
  } catch (const std::exception&) {
    end_without_store();
  }
}

void Monitor::leave() {
  {
    const std::lock_guard lock(mutex_);
    if (leaving_) return;
    leaving_ = true;
    heartbeat_.has_left = true;
    heartbeat_.number = 0;
  }
  changed_.notify_all();
  thread_.join();
  try {
    beat();
  } catch (const Error&) {  // the store is gone, and so are its readers
  }
  watch_.reset();
}

void Monitor::end_job(const std::string& message) {
  try {
    const std::lock_guard lock(store_mutex_);
    const bool is_first = store_->add(key("speakers"), 1) == 1;
    if (is_first) say(message);  // before others end and their launcher kills this one
    if (is_first) store_->set(key("verdict"), message);
  } catch (const Error&) {
    say(message);
  }
  silence_errors();
  if (options_.rank == 0) sleep_s(kLinger_s);
  end_process();
}

void Monitor::end_without_store(double silent_s) const {
  // One rank per machine: rank 1 may be gone with the host.
  if (options_.rank == 1 || options_.local_rank == 0)
    say(fmt::format("{}, which keeps the job's store, {}", options_.keeper,
                    silent_s == 0 ? "is gone"
                                  : fmt::format("has not answered for {:.0f} s", silent_s)));
  end_process();
}

}  // namespace trinity
