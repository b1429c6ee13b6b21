#pragma once

#include <memory>
#include <string>
#include <vector>

#include "execute/kernels/kernels.h"
#include "graph/graph.h"
#include "graph/meaning.h"

namespace trinity {

/// Action of an operator when it runs.
enum class Duty : uint8_t {
  data,      ///< returns prefetched or generated data
  forward,   ///< its kernel, which keeps what gradients need
  replay,    ///< the kernel of its forward operator again
  gradient,  ///< gradients of its forward operator
  move,      ///< a kernel without gradient: gradient sums, slices, concatenations
  update,    ///< an optimiser step
  send,      ///< sends weights to a merge, in this step or a later one
  fetch,     ///< fetches weights that another device has updated
  reduce,    ///< member of a collective
  gather,    ///< member of a collective that gathers weight shards
};

/// A training graph prepared for execution: every operator with its kernel or its meaning
/// (graph/meaning.h). Immutable and thread-safe.
class Program {
 public:
  /// A graph without meaning attributes must be a training step of graph/training.h. Throws
  /// ArgumentError that names all operator types without a kernel; for graphs of profiles (their
  /// operators have only times); for operators that are split along a dimension whose points depend
  /// on each other; and the errors of state_meaning().
  explicit Program(std::shared_ptr<const Graph> graph);

  const Graph& graph() const { return *graph_; }
  Duty duty(int32_t op) const { return duty_[op]; }
  /// Kernel of an operator that runs forward, recomputes, or moves data.
  Kernel kernel(int32_t op) const { return kernels_[op]; }
  const Gradient& gradient(int32_t op) const { return gradients_[op]; }
  /// Number of backward operators of a forward operator: 0, 1, or 2 with split B and W operators.
  int32_t gradient_parts(int32_t forward) const { return parts_[forward]; }
  /// True if a forward operator, or its recomputation, keeps tensors for gradients.
  bool keeps(int32_t op) const;
  /// Number of leading inputs that are arguments of its kernel; gathered weights and tokens that it
  /// waits for follow.
  size_t arguments(int32_t op) const;
  /// The gather whose output it reads; -1: none.
  int32_t gathered_by(int32_t op) const { return gathered_by_[op]; }
  /// The forward operators whose weights a gather assembles, in the order of its outputs.
  const std::vector<int32_t>& owners(int32_t gather) const { return owners_[gather]; }
  bool is_input(int32_t op) const { return duty_[op] == Duty::data; }
  /// True if its first output is a loss, where gradients begin.
  bool is_loss(int32_t op) const { return is_loss_[op]; }
  /// Weight of its loss in a sum over all parts of a replica.
  double loss_share(int32_t op) const { return loss_share_[op]; }
  /// The forward operator whose statistics a reduction combines ("total"); -1: other operators.
  int32_t loss_of_total(int32_t op) const;
  /// True for a loss of a part of the classes, which writes statistics per row.
  bool is_part_of_loss(int32_t op) const { return is_part_of_loss_[op]; }
  /// True if updates, or operators of phase update before them, read the tensor: it is summed over
  /// micro-batches.
  bool adds_up(int32_t tensor) const { return adds_up_[tensor]; }
  /// True if only its update reads the gradient of an operator's weights: the gradient then stays
  /// with the weights, and an empty tensor represents it.
  bool keeps_gradient(int32_t forward) const { return keeps_gradient_[forward]; }
  /// Number of replicas of the batch.
  int32_t replicas() const { return replicas_; }
  /// True if replicas differ between synchronisations.
  bool replicas_differ() const { return differ_; }
  /// True if the operator synchronises in this step (from 0); always for operators without a
  /// period.
  bool meets(int32_t op, int64_t step) const {
    return every_[op] > 0 && (step + 1) % every_[op] == 0;
  }
  /// Index in occasions() of a conditional operator's condition; -1: unconditional.
  int32_t occasion(int32_t op) const { return occasion_[op]; }
  const std::vector<std::string>& occasions() const { return occasions_; }
  /// True if its input was sent, possibly in an earlier step.
  bool merges(int32_t op) const { return merges_[op]; }
  /// True if the operator runs in a step with all conditions true: all except periodic collectives
  /// of other steps.
  bool runs_in(int32_t op, int64_t step) const {
    return duty_[op] != Duty::reduce || meets(op, step);
  }
  /// True if only operators that do not run in the step read the tensor.
  bool is_idle(int32_t tensor, int64_t step) const { return (step + 1) % read_every_[tensor] != 0; }

 private:
  void find_duties();
  Duty duty_of(const Operator& op) const;
  bool reads_replays(const Operator& op) const;
  void find_kernels();
  void find_readers();
  void find_losses();
  void find_gathers();
  void find_meetings();
  void find_occasions();
  void check_splits() const;

  std::shared_ptr<const Graph> graph_;
  std::vector<Duty> duty_;
  std::vector<Kernel> kernels_;
  std::vector<Gradient> gradients_;
  std::vector<int32_t> parts_, gathered_by_;
  std::vector<bool> replays_;  // per forward operator: gradients need a recomputation
  std::vector<std::vector<int32_t>> owners_;
  std::vector<bool> is_loss_, is_part_of_loss_, keeps_gradient_;
  std::vector<double> loss_share_;
  std::vector<bool> adds_up_;  // per tensor
  std::vector<int64_t> every_;       // per operator: steps from one synchronisation to the next
  std::vector<int64_t> read_every_;  // per tensor: period of all its readers; 1 if they differ
  std::vector<int32_t> occasion_;    // per operator
  std::vector<std::string> occasions_;
  std::vector<bool> merges_;         // per operator
  int32_t replicas_ = 1;
  bool differ_ = false;
};

}  // namespace trinity
