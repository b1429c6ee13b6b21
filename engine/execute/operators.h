#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "execute/occasion.h"
#include "execute/program.h"
#include "execute/weights.h"
#include "libtorch/torch.h"

namespace trinity {

/// Contents of an input in a batch, with the dtype and shape of the graph; `whole` is its full
/// tensor. Reuses the memory of `spare`, its earlier result, if that has no other owner. Called by
/// worker threads.
using DataSource = std::function<at::Tensor(const Operator& input, const Tensor& whole,
                                            int64_t batch, const at::Tensor& spare)>;

/// Runs operators, one at a time, and holds their state: weights, gradients that accumulate over a
/// step's micro-batches, and tensors that autograd saved in forward runs. Not thread-safe for one
/// operator. Operators of different workers may run concurrently: colocation units share nothing,
/// except weight shards that gathers read.
class Operators {
 public:
  using Tensors = std::vector<at::Tensor>;

  struct Options {
    uint64_t seed = 1;
    int32_t micro_batches = 1;
    at::ScalarType real = at::kFloat;
    DataSource source;  ///< none: random numbers
    bool stream = false;  ///< every micro-batch has an update of its own (PipeDream)
  };

  Operators(const Program& program, const Options& options);

  /// Initialises the weights of an operator, on its device.
  void make_weights(int32_t op, const at::Device& device) { weights_.make(op, device); }
  /// Reads or generates an input's data for a micro-batch of the next step, before the step begins.
  void make_data(int32_t op, int32_t micro_batch, const at::Device& device);
  at::Tensor data(int32_t op, int32_t micro_batch) const { return data(op, micro_batch, steps); }
  /// Prefetches it for a later step, on one thread while steps run.
  void read_ahead(int32_t op, int32_t micro_batch, int64_t step);
  Weights& weights() { return weights_; }
  const Weights& weights() const { return weights_; }

  /// The concatenated weight shards that a member contributes to a gather; and their size.
  at::Tensor shares_of(int32_t gather, size_t member) const;
  int64_t share_elements(int32_t gather, size_t member) const;
  /// For gathers whose members are processes: shards received from the others, by member, for the
  /// next run; undefined tensors are the local ones.
  void set_sent_shares(int32_t gather, Tensors shares) { sent_[gather] = std::move(shares); }

  /// Runs an operator in a micro-batch on the tensors of RunLayout::reads() (for a collective only
  /// the parts of needed_of()). Returns the graph's outputs; an empty tensor for gradients and
  /// weights that stay in place because only operators of the same unit read them.
  Tensors run(int32_t op, int32_t micro_batch, Tensors inputs);
  /// Contribution of an operator's run to the loss of its micro-batch; usually 0.
  double loss(int32_t op, int32_t micro_batch, const Tensors& outputs) const;
  /// Sets the conditional operations of the next step. Throws ArgumentError for unknown ones.
  void set_occasions(const std::vector<Occasion>& given);
  /// The condition of an operator in this step; null: it has none, or it does not happen.
  const Occasion* occasion(int32_t op) const;
  bool runs(int32_t op) const {
    return program_.runs_in(op, steps) && (program_.occasion(op) < 0 || occasion(op));
  }
  /// True if no reader of the tensor runs in the next step.
  bool is_idle(int32_t tensor) const;
  /// True if a reader that does not run passes the tensor on.
  bool is_handed_on(int32_t tensor) const;
  /// Inputs that an operator that does not run passes on; they are on its device.
  Tensors handed_on(int32_t op, const std::function<at::Tensor(int32_t tensor)>& own) const;
  /// Completed steps; numbers data and dropout.
  int64_t steps = 0;
  double learning_rate = 0.01;  ///< of the next step

 private:
  /// State of a forward run for its backward operators: where gradients enter and leave autograd's
  /// graph. A tensor stays alive only if that graph has saved it.
  struct Saved {
    std::vector<torch::autograd::Edge> inputs;   ///< by argument, of those that need gradients
    std::vector<torch::autograd::Edge> outputs;  ///< of all; without a function: no gradient
    std::vector<torch::autograd::Edge> weights;  ///< of trainable weights
    int32_t left = 0;                            ///< backward operators that have not run
  };

  size_t at_task(int32_t op, int32_t micro_batch) const {
    return static_cast<size_t>(micro_batch) * added_.size() + static_cast<size_t>(op);
  }
  /// Index of a replica's micro-batch among all batches of all steps.
  int64_t batch(int32_t op, int32_t micro_batch, int64_t step) const;
  at::Tensor data(int32_t op, int32_t micro_batch, int64_t step,
                  const at::Tensor& spare = {}) const;
  int32_t source_of(int32_t op) const;
  Tensors parameters(int32_t op, const Tensors& inputs) const;
  Tensors compute(int32_t op, int32_t micro_batch, Tensors inputs, Tensors parameters) const;
  void stand_in(int32_t op, Tensors& outputs) const;
  Tensors forward(int32_t op, int32_t micro_batch, Tensors inputs);
  Tensors backward(int32_t op, int32_t micro_batch, const Tensors& inputs);
  Tensors differentiate(int32_t op, int32_t micro_batch, const Tensors& inputs);
  Tensors gradients_of_loss(int32_t op, int32_t micro_batch, const Tensors& inputs);
  void use_losses(int32_t op, Tensors& inputs) const;
  double sum_of_losses(int32_t op, const Tensors& inputs) const;
  Tensors reduce(int32_t op, int32_t micro_batch, const Tensors& inputs);
  Tensors gather(int32_t op, const Tensors& inputs);
  Tensors update(int32_t op, int32_t micro_batch, const Tensors& inputs);
  Tensors fetch(int32_t op, const Tensors& inputs);
  void take_weights(int32_t op, const Tensors& outputs);
  int32_t updated_by(int32_t tensor) const;
  Tensors send(int32_t op) const;
  at::Tensor merged(int32_t op, size_t output, const Tensors& sent) const;
  Tensors sums_of_terms(int32_t op, const Tensors& inputs, int64_t terms) const;
  void add_gradients(int32_t forward, Tensors gradients);
  bool wants_gradient(int32_t forward, size_t argument) const;
  const std::vector<int32_t>& members_of(int32_t op) const;
  int32_t position(int32_t gather, int32_t owner, int64_t& begin) const;

  const Program& program_;
  const Graph& graph_;
  Options options_;
  Weights weights_;
  std::vector<Tensors> gradients_;  // per forward operator whose gradient stays in place
  std::vector<int32_t> added_;      // micro-batches accumulated in gradients_
  std::vector<std::vector<bool>> wanted_;  // per forward operator: arguments that need gradients
  std::vector<Tensors> sent_;       // per operator: for gathers
  std::vector<at::Tensor> data_;    // per task
  /// Prefetched data of a later step, with its number; and the data of the two previous steps, of
  /// which the earlier has been used.
  struct Ahead {
    int64_t step = 0;
    at::Tensor read, last, spare;
  };
  std::vector<Ahead> ahead_;
  /// An input: its full tensor, and the start and shape of this graph's part of it.
  struct Input {
    Tensor whole;
    std::vector<int64_t> begin, own;
  };
  std::map<int32_t, Input> inputs_;
  std::vector<Saved> saved_;        // per task
  std::vector<Occasion> happens_;        // index as in the program; without a name: does not happen
  std::vector<double> losses_;      // per task: of sums of losses
  // per task of a loss with split classes: statistics over all classes
  std::vector<at::Tensor> statistics_;
};

}  // namespace trinity
