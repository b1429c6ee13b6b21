#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "base/door.h"

// Work in forked copies of this process. A worker starts with everything its parent has in memory;
// what it changes stays its own, and only bytes come back. A crash of a worker is a reply, not the
// end of the parent. Linux only (memfd_create, parent-death signal). By hand on purpose, for fork's
// sake: a worker inherits a Lua state and an engine, which no library of processes carries over.

namespace trinity {

/// What an item wrote to standard output: a part of a file on a disk ($TMPDIR, /tmp, /var/tmp or
/// the working directory, whichever is on one first), of any size. Where none is it lies in memory,
/// each item's and all of a job's in no more than RLIMIT_DATA.
class WorkerOutput {
 public:
  WorkerOutput() = default;
  WorkerOutput(std::shared_ptr<const Descriptor> file, int64_t from, int64_t bytes)
      : file_(std::move(file)), from_(from), bytes_(bytes) {}
  int64_t bytes() const { return bytes_; }
  /// Writes it on, a piece at a time.
  void write_to(std::FILE* out) const;
  std::string text() const;

 private:
  std::shared_ptr<const Descriptor> file_;
  int64_t from_ = 0, bytes_ = 0;
};

/// What became of one item.
struct WorkerReply {
  int item = 0;         ///< from 0
  std::string payload;  ///< what WorkerJob::work gave
  WorkerOutput output;  ///< what the item wrote to standard output
  /// How the worker ended before it replied ("signal 11 (Segmentation fault)", "exit status 3");
  /// payload is then empty, and output what had been written by then. Empty after a reply.
  std::string death;
};

struct WorkerJob {
  int items = 0;    ///< number of items
  int workers = 1;  ///< processes at most
  /// Runs item `i` in a worker. Must not throw: what it throws ends the worker with status 70.
  std::function<std::string(int item)> work;
  /// Takes replies in the parent, in the order in which items end. Returns how many items are
  /// wanted from now on: items from there on are not begun, and ended when they run.
  std::function<int(WorkerReply reply)> receive;
  /// A handler by which workers keep what they have when the user stops, for which they then get a
  /// tenth of a second; null: none.
  void (*on_interrupt)(int number) = nullptr;
};

/// Runs a job to its end. Each worker takes items one by one, in order, from the parent; one that
/// dies is replaced. Standard input is empty in workers, standard error is the parent's, SIGINT is
/// ignored (the parent ends them), and they die with the parent. Call it from the only thread that
/// is at work. On an exception, also from `receive`, all workers are ended first.
/// Throws Interrupted when stop_flag() is set (looked at every 50 ms), Error when no worker starts.
void run_workers(const WorkerJob& job);

/// Whether this process is a worker.
bool in_worker();

}  // namespace trinity
