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

/// Reads the heartbeats of all ranks and judges them. Silence is measured between two reads, at
/// most one second each, so a judge that was suspended accuses nobody. Not thread-safe.
class Observer {
 public:
  Observer(JobStore& store, std::string prefix, int ranks);
  /// Throws Error if the store is gone.
  std::optional<std::string> look(const Timeouts& timeouts);
  bool all_have_left() const;
  const std::vector<Seen>& ranks() const { return ranks_; }

 private:
  JobStore& store_;
  std::string prefix_;
  std::vector<Seen> ranks_;
  double looked_s_ = -1;
};

/// Checks that the job's store answers: a call to a suspended process, or to something that is not
/// a store, may never return. Silence is measured as in Observer. Thread-safe.
class StoreWatch {
 public:
  /// `end` is called on an internal thread, once, after `timeout_s` without answered(). It does not
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
  std::string keeper = "rank 0";  ///< the process that hosts the store
  std::string prefix;             ///< prefix of all keys
  Timeouts timeouts;
};

/// The thread of a rank that writes its heartbeat, reads the verdict, and ends the process on one.
/// Ranks 0 and 1 also judge, rank 1 with longer timeouts. Thread-safe.
class Monitor {
 public:
  Monitor(std::unique_ptr<JobStore> store, const MonitorOptions& options);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// The script has started collective `number` of a scope.
  void note_begun(Scope scope, int64_t number);
  /// It waits for one; it has stopped waiting.
  void note_wait(const std::string& what, Scope scope, int64_t number);
  void note_done();
  void note_broken(const std::string& failure);
  /// Writes the last heartbeat and ends the thread.
  void leave();
  /// Makes `message` the verdict for all ranks, prints it once per job, and ends this process.
  [[noreturn]] void end_job(const std::string& message);
  /// Ends this process because the store has not answered for `silent_s`, or (0) is gone with its
  /// host. Rank 1 and the first rank of every node print the message.
  [[noreturn]] void end_without_store(double silent_s = 0) const;

 private:
  void run();
  void beat();
  std::string key(const std::string& name) const { return options_.prefix + name; }

  MonitorOptions options_;
  std::unique_ptr<JobStore> store_;
  Observer observer_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  Heartbeat heartbeat_;
  double wait_began_s_ = 0;
  bool leaving_ = false;
  std::mutex store_mutex_;
  std::unique_ptr<StoreWatch> watch_;  // until this rank has left
  std::thread thread_;
};

/// Ends this process with status 1, after flushing the script's output.
[[noreturn]] void end_process();

/// Seconds on a monotonic clock.
double steady_s();

}  // namespace trinity
