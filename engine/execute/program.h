#pragma once

#include <memory>
#include <string>
#include <vector>

#include "execute/kernels.h"
#include "graph/graph.h"

namespace trinity {

/// What a backward operator does: the gradients of one forward operator.
struct Gradient {
  std::vector<int32_t>
      outputs;                  ///< outputs of the forward operator that have a gradient: the first
                                ///< inputs of the backward one, in this order. None: the loss
  std::vector<int32_t> inputs;  ///< tensors whose gradients are the backward operator's outputs
  bool weights = false;         ///< its last output is the gradient of the weights
};

/// A training graph as an executor runs it: every operator with its kernel or with what its
/// backward means, told from the graph alone (the lowering of graph/training.h).
class Program {
 public:
  /// Throws ArgumentError naming all operator types without a kernel, and for graphs with
  /// collectives or of profiles (their operators have no meaning beside their times).
  explicit Program(std::shared_ptr<const Graph> graph);

  const Graph& graph() const { return *graph_; }
  /// Null for backward operators with a gradient(), inputs and updates.
  Kernel kernel(int32_t op) const { return kernels_[op]; }
  /// Of a backward operator other than a sum.
  const Gradient& gradient(int32_t op) const { return gradients_[op]; }
  /// The backward operator of a forward one, or -1.
  int32_t backward(int32_t op) const { return backward_[op]; }
  bool is_input(int32_t op) const { return graph_->op(op).type == "Input"; }
  bool is_sum(int32_t op) const;
  /// Integers of an input lie below this: the least extent that any reader indexes with them.
  int64_t index_bound(int32_t tensor) const;

 private:
  void find_kernels();
  void find_gradients();
  void find_gradient(int32_t forward, std::vector<std::vector<int32_t>>& arrived);
  std::vector<int32_t> wanted_inputs(int32_t op) const;
  int64_t bound_of_reader(int32_t op, int32_t tensor) const;

  std::shared_ptr<const Graph> graph_;
  std::vector<Kernel> kernels_;
  std::vector<Gradient> gradients_;
  std::vector<int32_t> backward_;
  std::vector<bool> wanted_;     // of tensors: whether a gradient flows to them
  std::vector<int32_t> sum_of_;  // per tensor that a sum reads: its output
};

}  // namespace trinity
