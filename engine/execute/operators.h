#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "execute/occasion.h"
#include "execute/program.h"
#include "execute/weights.h"
#include "libtorch/torch.h"

namespace trinity {

/// What inputs hold: the whole tensor of an input in a batch, of the kind and shape that the graph
/// gives it; in the memory of `spare`, what it gave before, where nobody else has that any more.
/// Called by the workers' threads.
using DataSource = std::function<at::Tensor(const Operator& input, const Tensor& whole,
                                            int64_t batch, const at::Tensor& spare)>;

/// What operators compute, one at a time, and what they keep for that: weights, gradients that
/// add up over a step's micro-batches, and what autograd saved of a forward run. Operators of
/// different workers may run at once; nothing is shared between colocation units, except the shares
/// of weights that gathers read.
class Operators {
 public:
  using Tensors = std::vector<at::Tensor>;

  struct Options {
    uint64_t seed = 1;
    int32_t micro_batches = 1;
    at::ScalarType real = at::kFloat;
    DataSource source;  ///< none: drawn numbers
    bool stream = false;  ///< every micro-batch has an update of its own (PipeDream)
  };

  Operators(const Program& program, const Options& options);

  /// Draws the weights of an operator, on its device.
  void make_weights(int32_t op, const at::Device& device) { weights_.make(op, device); }
  /// Reads or draws what an input holds in a micro-batch of the next step, before that begins.
  void make_data(int32_t op, int32_t micro_batch, const at::Device& device);
  at::Tensor data(int32_t op, int32_t micro_batch) const { return data(op, micro_batch, steps); }
  /// Reads it beforehand for a later step: for one thread, while steps run.
  void read_ahead(int32_t op, int32_t micro_batch, int64_t step);
  Weights& weights() { return weights_; }
  const Weights& weights() const { return weights_; }

  /// The shares of the weights that a gather puts together, one behind the other, of a member; and
  /// how large they are together.
  at::Tensor shares_of(int32_t gather, size_t member) const;
  int64_t share_elements(int32_t gather, size_t member) const;
  /// Where the members of a gather do not see each other's weights: what the others have sent, by
  /// member, for the next run of it; undefined tensors stand for what is here.
  void set_sent_shares(int32_t gather, Tensors shares) { sent_[gather] = std::move(shares); }

  /// Runs an operator in a micro-batch on what RunLayout::reads() lists (of what is handed in to a
  /// collective no more than needed_of() says). Outputs are as the graph
  /// has them, or an empty tensor for what stays where it is: gradients and weights that only
  /// operators of their unit read.
  Tensors run(int32_t op, int32_t micro_batch, Tensors inputs);
  /// What the run of an operator adds to the loss of its micro-batch: 0 of most.
  double loss(int32_t op, int32_t micro_batch, const Tensors& outputs) const;
  /// What happens in the next step. Throws ArgumentError for what the graph knows nothing of.
  void set_occasions(const std::vector<Occasion>& given);
  /// What is said of an operator's occasion, null: it has none, or that is not in this step.
  const Occasion* occasion(int32_t op) const;
  bool runs(int32_t op) const {
    return program_.runs_in(op, steps) && (program_.occasion(op) < 0 || occasion(op));
  }
  /// Whether no reader of a tensor runs in the next step.
  bool is_idle(int32_t tensor) const;
  /// Whether what reads a tensor hands it on when it does not run.
  bool is_handed_on(int32_t tensor) const;
  /// What an operator that does not run hands on of its own inputs, which stand on its device.
  Tensors handed_on(int32_t op, const std::function<at::Tensor(int32_t tensor)>& own) const;
  /// Steps that have ended; numbers data and dropout.
  int64_t steps = 0;
  double learning_rate = 0.01;  ///< of the next step

 private:
  /// What a forward run leaves for its backward operators: where gradients enter and leave
  /// autograd's graph. Tensors are alive only where that graph has saved them, because the gradient
  /// needs them.
  struct Saved {
    std::vector<torch::autograd::Edge> inputs;   ///< by argument, of those that want gradients
    std::vector<torch::autograd::Edge> outputs;  ///< of all; without a function: has no gradient
    std::vector<torch::autograd::Edge> weights;  ///< of trainable ones
    int32_t left = 0;                            ///< backward operators that have not run
  };

  size_t at_task(int32_t op, int32_t micro_batch) const {
    return static_cast<size_t>(micro_batch) * added_.size() + static_cast<size_t>(op);
  }
  /// The number of a replica's micro-batch among all batches of all steps.
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
  std::vector<Tensors> gradients_;  // per forward operator whose gradient stays
  std::vector<int32_t> added_;      // micro-batches in gradients_
  std::vector<std::vector<bool>> wanted_;  // per forward operator: arguments that get gradients
  std::vector<Tensors> sent_;       // per operator: of gathers
  std::vector<at::Tensor> data_;    // per task
  /// The same of a later step, with its number; what was read so for the last two steps before it,
  /// of which the earlier has been used.
  struct Ahead {
    int64_t step = 0;
    at::Tensor read, last, spare;
  };
  std::vector<Ahead> ahead_;
  /// Of an input: its whole tensor, and where what this graph has of it begins in that, and its shape.
  struct Input {
    Tensor whole;
    std::vector<int64_t> begin, own;
  };
  std::map<int32_t, Input> inputs_;
  std::vector<Saved> saved_;        // per task
  std::vector<Occasion> happens_;        // by number of the program's; without a name: not
  std::vector<double> losses_;      // per task: of sums of losses
  std::vector<at::Tensor> statistics_;  // per task of a loss whose classes are cut: of all of them
};

}  // namespace trinity
