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
  uint64_t seed = 1;            ///< of weights, data and dropout
  double learning_rate = 0.01;  ///< of updates, whose kind the graph names
  /// Forward and backward run this often on data of their own, then weights are updated once by
  /// the mean of the gradients.
  int32_t micro_batches = 1;
  /// Per device: "cpu:N", the N-th core from 0, or "cuda:N". Empty: "cpu:0", "cpu:1", ...
  std::vector<std::string> devices;
  bool double_precision = false;   ///< real numbers are float64 instead of float32
  std::shared_ptr<const DataSet> data;  ///< what inputs hold; null: drawn numbers
  /// Every micro-batch is a mini-batch whose update follows its backward pass, and what is under way
  /// keeps the weights that it began with (PipeDream, Narayanan et al. 2019, section 3.3).
  bool stream = false;
  int64_t memory_limit_bytes = 0;  ///< of the tensors of every device that is a processor; 0: none
  /// Where every device is a process of a job: this one runs the device of its rank alone, and
  /// tensors travel as messages. Null: all devices are threads of this process.
  std::shared_ptr<Job> job;
};

/// When a task ran, seconds since its step began, and what its device's tensors took after it.
struct TaskRun {
  double start_s = 0, end_s = 0;
  int64_t memory_bytes = 0;
};

/// A tensor copied between devices; tasks are numbered as in RunLayout.
struct CopyRun {
  int32_t task = -1, output = 0;  ///< its producer, and which of its outputs
  int32_t from = -1, to = -1;
  int64_t bytes = 0;
  double start_s = 0, end_s = 0;  ///< between processes with the waiting for the sender
};

/// What one executed step took on the devices of this process. Times are measured, bytes counted.
struct ExecutedStep {
  double loss = 0;         ///< the sum over all losses, the mean over micro-batches
  double step_time_s = 0;  ///< from its begin, when data is there, to its last operator's end
  std::vector<TaskRun> tasks;
  std::vector<CopyRun> copies;             ///< by device that received them, in order of time
  std::vector<double> busy_s;              ///< per device: in operators
  std::vector<int64_t> peak_memory_bytes;  ///< per device: see MemoryAccount
  int64_t transferred_bytes = 0;           ///< copied between devices
  /// Processor seconds of the thread that read this step's data ahead; 0 of a first step, and without
  /// data.
  double read_s = 0;
};

/// How weights do on samples that did not train.
struct HeldOut {
  int64_t samples = 0;
  double loss = 0, accuracy = 0;
};

/// A weight of the graph that a lowered one was made of.
struct NamedValues {
  std::string name;  ///< "<operator>/<parameter>"
  std::vector<int64_t> shape;
  std::vector<double> values;
};

/// Runs a placed training graph for real: forward, backward and update, operator by operator with
/// LibTorch's kernels. A device is a worker: a thread, bound to a core where there are enough,
/// with one core's worth of LibTorch, which runs its operators in a given order and copies what it
/// reads from others. Weights, data and dropout depend on the seed, the operator and the step
/// alone, never on the placement: every placement computes the same numbers, bit for bit, if it
/// runs micro-batches in the same order.
/// A lowered graph (strategy/lower.h) of one that says what it means (graph/meaning.h) computes what
/// that would on one device with as many micro-batches as there are on all replicas, up to the
/// order of sums.
class Executor {
 public:
  /// `placement` and `order` as RunLayout takes them. Throws ArgumentError for graphs that cannot
  /// be executed (Program), devices that are not there, and what RunLayout throws; Error where
  /// weights find no memory.
  Executor(std::shared_ptr<const Graph> graph, std::span<const int32_t> placement, int32_t devices,
           std::span<const double> order, const ExecutorOptions& options);
  ~Executor();

  /// Runs the next step. Throws Error naming the operator that failed and its device; the executor
  /// is of no use then. Throws Interrupted when the user stops.
  /// occasions: what happens in it beside what happens in every step; in all processes the same.
  /// Throws ArgumentError for those that the graph has not, and for merges of what nobody sent.
  ExecutedStep step(const std::vector<Occasion>& occasions = {});
  void set_learning_rate(double rate);  ///< of the steps that follow

  /// What input operator `op` will hold in a micro-batch of the next step, one number after the
  /// other. Throws ArgumentError for any other operator.
  std::vector<double> data(int32_t op, int32_t micro_batch = 0) const;

  /// A weight's values, one after the other. Throws ArgumentError where there is none.
  std::vector<double> weight(int32_t op, size_t parameter) const;

  /// A pass over `data`; zeros without.
  struct Epoch {
    int64_t steps = 0, held_out_samples = 0;
    int64_t samples_per_step = 0;  ///< on all replicas; of a text: rows of symbols
  };
  Epoch epoch() const;

  /// The accuracy on held-out samples of the present weights in `graph`, that of which a lowered
  /// one was made. Throws ArgumentError without data, and what evaluate() throws.
  HeldOut evaluate(std::shared_ptr<const Graph> graph) const;

  /// What a later step depends on beside weights, the optimiser's numbers and options.
  struct Course {
    int64_t steps = 0;                      ///< that had been made
    std::map<std::string, double> numbers;  ///< what the caller gave to save()
  };

  /// Weights, and with `checkpoint` all that a later step depends on beside the options and weights
  /// on their way from one step to a later one, to a file; and back. Throws FileError, and
  /// ArgumentError for weights that the graph lacks, or of other shapes. Where workers are processes
  /// all of them call it, and that of rank 0 writes.
  void save(const std::string& path, bool checkpoint,
            const std::map<std::string, double>& numbers = {}) const;
  Course load(const std::string& path, bool checkpoint);

  /// All trainable weights of the graph that was lowered, by name, put together from their parts.
  std::vector<NamedValues> weights() const;

  /// What is executed, as a simulator prices it.
  WrittenOut written_out() const;

  /// The core that each device's thread is bound to, -1 for none.
  const std::vector<int32_t>& cores() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace trinity
