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

/// Mini-batches of a data set for the inputs of a graph. Samples (of a text: rows of as many symbols
/// as the inputs have) go in an order that the seed gives for every epoch; what is left over in an
/// epoch, less than a step has, is left out. Which samples a step has depends on the seed and on
/// how many they are, not on who reads them.
class Feed {
 public:
  /// `batch` samples a micro-batch, `batches` micro-batches a step on all replicas. Throws
  /// ArgumentError where a graph's inputs do not fit the data: other extents, classes that the
  /// graph does not have, fewer samples than a step has.
  Feed(std::shared_ptr<const DataSet> data, const Graph& graph, uint64_t seed, int64_t batches);

  /// Input `input`, whose whole tensor is given, in a batch, numbered through all steps; in the memory
  /// of `spare` where that is one that this gave and nobody else has any more.
  at::Tensor take(const Operator& input, const Tensor& whole, int64_t batch,
                  const at::Tensor& spare = {}) const;
  /// The same of the held-out samples, in their order; beyond the last they begin anew.
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
  int64_t batches_, batch_ = 1, length_ = 0;  ///< length_: symbols of a text's sample
  int64_t samples_ = 0, held_out_ = 0, steps_ = 0;
  mutable std::mutex mutex_;  // of the order
  mutable int64_t epoch_ = -1;
  mutable std::shared_ptr<const std::vector<int32_t>> order_;
};

/// A thread that reads what the next step needs while this one runs.
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

  /// Begins to read, where that is not under way.
  void begin() {
    {
      const std::lock_guard lock(mutex_);
      reads_ = true;
    }
    changed_.notify_all();
  }
  /// Waits until all that was begun is read; how long that kept the processor, in seconds.
  double wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !reads_; });
    return took_s_;
  }

 private:
  /// Of this thread.
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
