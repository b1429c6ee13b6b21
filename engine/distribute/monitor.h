#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "distribute/communication_stream.h"
#include "distribute/heartbeat.h"
#include "distribute/store.h"

namespace trinity {

/// Reads the heartbeats of all ranks and judges them. Silence is counted in what passes between two
/// looks, at most a second each, so that a judge that was itself stopped accuses nobody.
class Observer {
 public:
  Observer(JobStore& store, std::string prefix, int ranks);
  /// Throws Error when the store is gone.
  std::optional<std::string> look(const Timeouts& timeouts);
  bool all_have_left() const;
  const std::vector<Seen>& ranks() const { return ranks_; }

 private:
  JobStore& store_;
  std::string prefix_;
  std::vector<Seen> ranks_;
  double looked_s_ = -1;
};

/// Sees to it that the job's store answers: a call to one whose process was stopped, or which is no
/// store at all, may never return. Silence is counted as Observer counts it.
class StoreWatch {
 public:
  /// `end` is called on a thread of this, once, after `timeout_s` without answered(). It does not
  /// return.
  StoreWatch(double timeout_s, std::function<void(double silent_s)> end);
  ~StoreWatch();
  StoreWatch(const StoreWatch&) = delete;
  StoreWatch& operator=(const StoreWatch&) = delete;
  void answered() { ++answers_; }

 private:
  void run();
  double patience_s_;
  std::function<void(double)> end_;
  std::atomic<int64_t> answers_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false;
  std::thread thread_;
};

struct MonitorOptions {
  int rank = 0, size = 1, node = 0, local_rank = 0;
  std::string host = "-";
  std::string keeper = "rank 0";  ///< who keeps the store
  std::string prefix;             ///< of all keys
  Timeouts timeouts;
};

/// The thread of a rank that writes its heartbeat, looks for a verdict, and ends the process on
/// one. Ranks 0 and 1 also judge, the second more patiently.
class Monitor {
 public:
  Monitor(std::unique_ptr<JobStore> store, const MonitorOptions& options);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// The script has begun collective `number` of a scope.
  void note_begun(Scope scope, int64_t number);
  /// It waits for one; it has stopped waiting.
  void note_wait(const std::string& what, Scope scope, int64_t number);
  void note_done();
  void note_broken(const std::string& failure);
  /// Writes the last heartbeat and ends the thread.
  void leave();
  /// Makes `message` the verdict for all ranks, says it once in the whole job, ends this process.
  [[noreturn]] void end_job(const std::string& message);
  /// Ends this process because the store has not answered for `silent_s`, or, 0, is gone with its
  /// keeper; rank 1 says so, and the first rank of every node.
  [[noreturn]] void end_without_store(double silent_s = 0) const;

 private:
  void run();
  void beat();
  std::string key(const std::string& name) const { return options_.prefix + name; }

  MonitorOptions options_;
  std::unique_ptr<JobStore> store_;
  Observer observer_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Heartbeat heartbeat_;
  double wait_began_s_ = 0;
  bool leaving_ = false;
  std::mutex store_mutex_;
  std::unique_ptr<StoreWatch> watch_;  // until this rank has left
  std::thread thread_;
};

/// Ends this process with status 1, after what the script has printed so far.
[[noreturn]] void end_process();

/// Seconds on a clock that only moves forward.
double steady_s();

}  // namespace trinity
