#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "distribute/heartbeat.h"

namespace trinity {

/// A collective in progress. It completes on the thread of its stream. Thread-safe.
class Work {
 public:
  Work(std::string what, Scope scope, int64_t number)
      : what_(std::move(what)), scope_(scope), number_(number) {}

  const std::string& what() const { return what_; }
  Scope scope() const { return scope_; }
  int64_t number() const { return number_; }

  bool is_done() const;
  /// Description of the failure; empty if there is none.
  std::string failure() const;
  /// Waits at most `seconds` for completion; returns true if complete.
  bool wait_for(double seconds) const;
  void finish(const std::string& failure);

 private:
  std::string what_;
  Scope scope_;
  int64_t number_;
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  bool done_ = false;
  std::string failure_;
};

/// Runs the collectives of one scope in order, on a thread of its own, while the script computes.
/// After a failure nothing more runs.
class CommunicationStream {
 public:
  CommunicationStream();
  /// Waits for queued collectives. With a broken connection this may block forever.
  ~CommunicationStream();
  CommunicationStream(const CommunicationStream&) = delete;
  CommunicationStream& operator=(const CommunicationStream&) = delete;

  void begin(std::shared_ptr<Work> work, std::function<void()> body);

 private:
  struct Item {
    std::shared_ptr<Work> work;
    std::function<void()> body;
  };
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace trinity
