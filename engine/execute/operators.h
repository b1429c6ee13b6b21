#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "execute/program.h"
#include "libtorch/torch.h"

namespace trinity {

/// What operators compute, one at a time, and what they keep for that: weights, gradients that
/// add up over a step's micro-batches, and what autograd saved of a forward run. Operators of
/// different workers may run at once; nothing is shared between colocation units.
class Operators {
 public:
  using Tensors = std::vector<at::Tensor>;

  struct Options {
    uint64_t seed = 1;
    double learning_rate = 0.01;
    int32_t micro_batches = 1;
  };

  Operators(const Program& program, const Options& options);

  /// Draws the weights of an operator, on its device.
  void make_weights(int32_t op, const at::Device& device);
  /// Draws what an input holds in a micro-batch of the next step, before that begins.
  void make_data(int32_t op, int32_t micro_batch, const at::Device& device);
  Tensors data(int32_t op, int32_t micro_batch) const;
  /// Weights as they are; empty where another process has them.
  const Tensors& weights(int32_t op) const { return weights_[op]; }

  /// Runs an operator of any phase in a micro-batch. Outputs are as the graph has them; an
  /// update has none.
  Tensors run(int32_t op, int32_t micro_batch, Tensors inputs);
  /// Whether the first output of an operator is a loss: what gradients begin at.
  bool is_loss(int32_t op) const;
  /// Steps that have ended; numbers data and dropout.
  int64_t steps = 0;

 private:
  /// What a forward run leaves for its backward operator: where gradients enter and leave
  /// autograd's graph. Tensors are alive only where that graph has saved them, because the gradient
  /// needs them.
  struct Saved {
    std::vector<torch::autograd::Edge> inputs;   ///< of those that want gradients
    std::vector<torch::autograd::Edge> outputs;  ///< of all; without a function: has no gradient
  };

  size_t at(int32_t op, int32_t micro_batch) const {
    return static_cast<size_t>(micro_batch) * weights_.size() + static_cast<size_t>(op);
  }
  Tensors compute(int32_t op, int32_t micro_batch, Tensors inputs) const;
  void stand_in(int32_t op, Tensors& outputs) const;
  Tensors forward(int32_t op, int32_t micro_batch, Tensors inputs);
  Tensors backward(int32_t op, int32_t micro_batch, const Tensors& inputs);
  void add_gradients(int32_t forward, Tensors gradients);
  void update(int32_t op);

  const Program& program_;
  const Graph& graph_;
  Options options_;
  std::vector<Tensors> weights_, gradients_;  // per forward operator
  std::vector<int32_t> added_;                // micro-batches in gradients_
  std::vector<Tensors> data_;                 // per task
  std::vector<Saved> saved_;                  // per task
};

}  // namespace trinity
