#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace trinity {

struct ExecutorOptions {
  uint64_t seed = 1;            ///< of weights, data and dropout
  double learning_rate = 0.01;  ///< of updates: stochastic gradient descent
};

/// When an operator ran, seconds since its step began.
struct OperatorRun {
  double start_s = 0, end_s = 0;
};

/// What one executed step took. Times are measured, bytes are counted.
struct ExecutedStep {
  double loss = 0;                         ///< the sum over all losses
  double step_time_s = 0;                  ///< wall clock
  std::vector<OperatorRun> operators;      ///< per operator
  std::vector<double> busy_s;              ///< per device
  std::vector<int64_t> peak_memory_bytes;  ///< per device: tensors that are alive, with the weights
  int64_t transferred_bytes = 0;           ///< copied between devices
};

/// Runs a placed training graph for real: forward, backward and update, operator by operator with
/// LibTorch's kernels. A device is a worker: a thread with one core's worth of LibTorch, which runs
/// its operators in a given order and copies what it reads from others. Weights, data and dropout
/// depend on the seed, the operator and the step alone, never on the placement: every placement
/// computes the same numbers, bit for bit.
class Executor {
 public:
  /// `placement` gives every operator's device in [0, devices), `order` a key per operator by whose
  /// size a device runs its operators (a simulated start time); equal keys, and an empty order, go
  /// by number. Throws ArgumentError for graphs that cannot be executed (Program), counts that
  /// differ, and operators of a colocation unit on two devices.
  Executor(std::shared_ptr<const Graph> graph, std::span<const int32_t> placement, int32_t devices,
           std::span<const double> order, const ExecutorOptions& options);
  ~Executor();

  /// Runs the next step. Throws Error naming the operator that failed; the executor is of no use
  /// then. Throws Interrupted when the user stops.
  ExecutedStep step();

  /// What input operator `op` will hold in the next step, one number after the other. Throws
  /// ArgumentError for any other operator.
  std::vector<double> data(int32_t op) const;

  /// A weight's values, one after the other. Throws ArgumentError where there is none.
  std::vector<float> weight(int32_t op, size_t parameter) const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace trinity
