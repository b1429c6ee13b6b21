#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "distribute/lane.h"
#include "distribute/pulse.h"
#include "distribute/store.h"

namespace trinity {

/// Reads the pulses of all ranks and judges them. Silence is counted in what passes between two
/// looks, at most a second each, so that a judge that was itself stopped accuses nobody.
class Observer {
 public:
  Observer(JobStore& store, std::string prefix, int ranks);
  /// Throws Error when the store is gone.
  std::optional<std::string> look(const Patience& patience);
  bool all_have_left() const;
  const std::vector<Seen>& ranks() const { return ranks_; }

 private:
  JobStore& store_;
  std::string prefix_;
  std::vector<Seen> ranks_;
  double looked_s_ = -1;
};

struct MonitorOptions {
  int rank = 0, size = 1, node = 0, local_rank = 0;
  bool is_watched = false;  ///< `trinity launch` judges and speaks
  std::string prefix;       ///< of all keys
  Patience patience;
};

/// The thread of a rank that writes its pulse, looks for a verdict, and ends the process on one.
/// Ranks 0 and 1 also judge, the second more patiently, where no launcher does.
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
  /// Writes the last pulse and ends the thread.
  void leave();
  /// Seconds since the store last answered.
  double store_silence_s() const;
  /// Makes `message` the verdict for all ranks, says it once in the whole job, ends this process.
  [[noreturn]] void end_job(const std::string& message);
  /// Ends this process because rank 0 is gone with the store; rank 1 says so.
  [[noreturn]] void end_without_store(const std::string& message) const;

 private:
  void run();
  void beat();
  std::string key(const std::string& name) const { return options_.prefix + name; }

  MonitorOptions options_;
  std::unique_ptr<JobStore> store_;
  Observer observer_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Pulse pulse_;
  double wait_began_s_ = 0, store_answered_s_ = 0;
  bool leaving_ = false;
  std::mutex store_mutex_;
  std::thread thread_;
};

/// Seconds on a clock that only moves forward.
double steady_s();

}  // namespace trinity
