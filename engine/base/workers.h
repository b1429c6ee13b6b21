#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "base/file.h"

// Work in forked copies of this process. A worker starts with the parent's memory; its changes stay
// private, and only bytes come back. A crash of a worker is a reply, not the end of the parent.
// Linux only (memfd_create, parent-death signal). An implementation of our own: a worker inherits a
// Lua state and an engine, which no process library supports.

namespace trinity {

/// Standard output of an item: a range of a file on a disk ($TMPDIR, /tmp, /var/tmp or the working
/// directory, the first that is on a disk), of any size. Without a disk it is in memory; each
/// item's output, and all output of a job, is then limited by RLIMIT_DATA. Immutable.
class WorkerOutput {
 public:
  WorkerOutput() = default;
  WorkerOutput(std::shared_ptr<const Descriptor> file, int64_t from, int64_t bytes)
      : file_(std::move(file)), from_(from), bytes_(bytes) {}
  int64_t bytes() const { return bytes_; }
  /// Copies it to `out`, piecewise.
  void write_to(std::FILE* out) const;
  std::string text() const;

 private:
  std::shared_ptr<const Descriptor> file_;
  int64_t from_ = 0, bytes_ = 0;
};

/// Result of one item.
struct WorkerReply {
  int item = 0;         ///< from 0
  std::string payload;  ///< result of WorkerJob::work
  WorkerOutput output;  ///< standard output of the item
  /// The end of a worker that did not reply ("signal 11 (Segmentation fault)", "exit status 3");
  /// payload is then empty, and output has the text written until then. Empty after a reply.
  std::string death;
};

struct WorkerJob {
  int items = 0;    ///< number of items
  int workers = 1;  ///< maximum number of processes
  /// Runs item `i` in a worker. Must not throw: an exception ends the worker with status 70.
  std::function<std::string(int item)> work;
  /// Receives replies in the parent, in the order in which items end. Returns the number of items
  /// wanted from now on: later items are not started, and killed if running.
  std::function<int(WorkerReply reply)> receive;
  /// Signal handler with which workers save partial results when the user stops, within a tenth of
  /// a second; null: none.
  void (*on_interrupt)(int number) = nullptr;
};

/// Runs a job to completion. Each worker takes items one by one, in order, from the parent; one
/// that dies is replaced. Workers have an empty standard input, the parent's standard error, ignore
/// SIGINT (the parent ends them), and die with the parent. Requires that no other thread works. If
/// an exception is thrown, also by `receive`, all workers are ended first. Throws Interrupted if
/// stop_flag() is set (polled every 50 ms), Error if no worker starts.
void run_workers(const WorkerJob& job);

/// True if this process is a worker.
bool in_worker();

}  // namespace trinity
