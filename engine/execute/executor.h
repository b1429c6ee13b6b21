#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "execute/occasion.h"
#include "execute/run_layout.h"
#include "graph/graph.h"

namespace trinity {

class Job;
struct DataSet;

struct ExecutorOptions {
  uint64_t seed = 1;            ///< for weights, data and dropout
  double learning_rate = 0.01;  ///< of updates; the graph defines the optimiser
  /// Number of forward and backward passes, each on its own data, before weights are updated once
  /// by the mean gradient.
  int32_t micro_batches = 1;
  /// [device]: "cpu:N", the N-th core from 0, or "cuda:N". Empty: "cpu:0", "cpu:1", ...
  std::vector<std::string> devices;
  bool double_precision = false;   ///< real numbers are float64 instead of float32
  std::shared_ptr<const DataSet> data;  ///< contents of inputs; null: random numbers
  /// Every micro-batch is a mini-batch with an update after its backward pass; passes in flight
  /// keep the weights that they began with (PipeDream, Narayanan et al. 2019, section 3.3).
  bool stream = false;
  int64_t memory_limit_bytes = 0;  ///< per CPU device, for its tensors; 0: none
  /// If every device is a process of a job: this process runs the device of its rank only, and
  /// tensors travel as messages. Null: all devices are threads of this process.
  std::shared_ptr<Job> job;
};

/// Measured times of a task in seconds since its step began, and its device's tensor memory after
/// it.
struct TaskRun {
  double start_s = 0, end_s = 0;
  int64_t memory_bytes = 0;
};

/// A tensor copied between devices; tasks are numbered as in RunLayout.
struct CopyRun {
  int32_t task = -1, output = 0;  ///< producer, and index of its output
  int32_t from = -1, to = -1;
  int64_t bytes = 0;
  double start_s = 0, end_s = 0;  ///< between processes including the wait for the sender
};

/// Measurements of one executed step on the devices of this process.
struct ExecutedStep {
  double loss = 0;         ///< sum over all losses, mean over micro-batches
  /// from the step's begin, when data is ready, to its last operator's end
  double step_time_s = 0;
  std::vector<TaskRun> tasks;
  std::vector<CopyRun> copies;             ///< by receiving device, in order of time
  std::vector<double> busy_s;              ///< per device: time in operators
  std::vector<int64_t> peak_memory_bytes;  ///< per device, see MemoryAccount
  int64_t transferred_bytes = 0;           ///< copied between devices
  /// CPU seconds of the thread that prefetched this step's data; 0 for a first step, and without
  /// data.
  double read_s = 0;
};

/// Quality of weights on held-out samples.
struct HeldOut {
  int64_t samples = 0;
  double loss = 0;      ///< mean
  double accuracy = 0;  ///< fraction of labels with the largest logit
};

/// A weight of the graph before lowering.
struct NamedValues {
  std::string name;  ///< "<operator>/<parameter>"
  std::vector<int64_t> shape;
  std::vector<double> values;
};

/// Executes a placed training graph: forward, backward and update, operator by operator with
/// LibTorch's kernels. A device is a worker: a thread with one core's worth of LibTorch, bound to a
/// core if there are enough. It runs its operators in a given order and copies inputs from other
/// workers. Weights, data and dropout depend only on the seed, the operator and the step, so every
/// placement computes bit-identical numbers if it runs micro-batches in the same order. A lowered
/// graph (strategy/lower.h) with meaning attributes (graph/meaning.h) computes the same as its
/// original would on one device with the micro-batches of all replicas, up to the order of
/// summation.
///
/// Not thread-safe: one caller at a time.
class Executor {
 public:
  /// `placement` and `order` as in RunLayout. Throws ArgumentError for graphs that cannot be
  /// executed (Program), missing devices, and the errors of RunLayout; Error if memory for weights
  /// is not available.
  Executor(std::shared_ptr<const Graph> graph, std::span<const int32_t> placement, int32_t devices,
           std::span<const double> order, const ExecutorOptions& options);
  ~Executor();

  /// Runs the next step. Throws Error that names the failed operator and its device; the executor
  /// is then unusable. Throws Interrupted when the user stops. occasions: conditional operations of
  /// this step; equal in all processes. Throws ArgumentError for unknown operations, and for merges
  /// of weights that were not sent.
  ExecutedStep step(const std::vector<Occasion>& occasions = {});
  void set_learning_rate(double rate);  ///< for the following steps

  /// Contents of input operator `op` in a micro-batch of the next step, flattened. Throws
  /// ArgumentError for any other operator.
  std::vector<double> data(int32_t op, int32_t micro_batch = 0) const;

  /// Values of a weight, flattened. Throws ArgumentError if there is none.
  std::vector<double> weight(int32_t op, size_t parameter) const;

  /// A pass over `data`; zeros without.
  struct Epoch {
    int64_t steps = 0, held_out_samples = 0;
    int64_t samples_per_step = 0;  ///< over all replicas; for text: rows of symbols
  };
  Epoch epoch() const;

  /// Evaluates the present weights on held-out samples in `graph`, the graph before lowering.
  /// Throws ArgumentError without data, and the errors of evaluate().
  HeldOut evaluate(std::shared_ptr<const Graph> graph) const;

  /// State that later steps depend on besides weights, optimiser state and options.
  struct Course {
    int64_t steps = 0;                      ///< number of steps made
    std::map<std::string, double> numbers;  ///< as given to save()
  };

  /// Writes weights to a file, or reads them. With `checkpoint` includes everything that later
  /// steps depend on, except options: also weights sent for a merge in a later step. Throws
  /// FileError, and ArgumentError for unknown weights or other shapes. With processes as workers
  /// all of them call it, and rank 0 writes.
  void save(const std::string& path, bool checkpoint,
            const std::map<std::string, double>& numbers = {}) const;
  Course load(const std::string& path, bool checkpoint);

  /// All trainable weights of the graph before lowering, by name, assembled from their shards.
  std::vector<NamedValues> weights() const;

  /// The executed program in a form that the simulator can evaluate.
  WrittenOut written_out() const;

  /// [device]: the core that its thread is bound to, or -1.
  const std::vector<int32_t>& cores() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace trinity
