#pragma once

#include <time.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "data/dataset.h"
#include "graph/graph.h"
#include "libtorch/torch.h"

namespace trinity {

/// Mini-batches of a data set for the inputs of a graph. Samples (of a text: rows with one symbol
/// per element of the inputs) are shuffled per epoch by the seed; the remainder of an epoch,
/// smaller than a step, is dropped. The samples of a step depend only on the seed and their number,
/// not on who reads them. Thread-safe.
class Feed {
 public:
  /// batches: micro-batches per step on all replicas. Throws ArgumentError if the graph's inputs do
  /// not fit the data: other extents, classes that the graph does not have, fewer samples than one
  /// step needs.
  Feed(std::shared_ptr<const DataSet> data, const Graph& graph, uint64_t seed, int64_t batches);

  /// Contents of `input` in batch number `batch` (counted through all steps); `whole` is its full
  /// tensor. Reuses the memory of `spare` if that was returned here and has no other owner.
  at::Tensor take(const Operator& input, const Tensor& whole, int64_t batch,
                  const at::Tensor& spare = {}) const;
  /// The same for held-out samples, in their order; starts again after the last.
  at::Tensor held_out(const Operator& input, const Tensor& whole, int64_t batch) const;
  int64_t steps_per_epoch() const { return steps_; }
  int64_t held_out_samples() const { return held_out_; }
  int64_t batch() const { return batch_; }
  int64_t samples_per_step() const { return batch_ * batches_; }

 private:
  void check(const Graph& graph);
  void check_input(const Operator& op, const Tensor& tensor) const;
  std::shared_ptr<const std::vector<int32_t>> order_of(int64_t epoch) const;
  at::Tensor read(const Operator& input, const Tensor& whole, std::span<const int32_t> samples,
                  bool held_out, const at::Tensor& spare) const;

  std::shared_ptr<const DataSet> data_;
  uint64_t seed_;
  int64_t batches_, batch_ = 1, length_ = 0;  ///< length_: symbols per sample of a text
  int64_t samples_ = 0, held_out_ = 0, steps_ = 0;
  mutable std::mutex mutex_;  // guards the order
  mutable int64_t epoch_ = -1;
  mutable std::shared_ptr<const std::vector<int32_t>> order_;
};

/// A thread that prefetches the next step's data while the present step runs.
class ReadAhead {
 public:
  /// `read` must not throw.
  explicit ReadAhead(std::function<void()> read) : read_(std::move(read)), thread_([this] { run(); }) {}
  ~ReadAhead() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Starts reading, unless already under way.
  void begin() {
    {
      const std::lock_guard lock(mutex_);
      reads_ = true;
    }
    changed_.notify_all();
  }
  /// Waits until reading is done; returns the CPU time that it took, in seconds.
  double wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !reads_; });
    return took_s_;
  }

 private:
  /// CPU seconds of this thread.
  static double processor_s() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return reads_ || ended_; });
      if (ended_) return;
      lock.unlock();
      const double before_s = processor_s();
      read_();
      lock.lock();
      took_s_ = processor_s() - before_s;
      reads_ = false;
      changed_.notify_all();
    }
  }

  std::function<void()> read_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reads_ = false, ended_ = false;
  double took_s_ = 0;
  std::thread thread_;
};

}  // namespace trinity
