#pragma once

#include <memory>
#include <string>
#include <vector>

#include "execute/kernels/kernels.h"
#include "graph/graph.h"

namespace trinity {

/// What an operator does when it runs.
enum class Duty : uint8_t {
  data,      ///< hands out what was read or drawn for it
  forward,   ///< its kernel, which keeps what gradients need
  replay,    ///< the same of its forward operator, once more
  gradient,  ///< gradients of its forward operator
  move,      ///< a kernel that has no gradient: sums of gradients, slices, concatenations
  update,    ///< an optimiser's step
  send,      ///< weights on their way to a merge, in this step or a later one
  fetch,     ///< takes the weights that another device's update has made
  reduce,    ///< a member of a collective
  gather,    ///< a member of a collective that puts shares of weights together
};

/// What a backward operator does: the gradients of one forward operator.
struct Gradient {
  std::vector<int64_t> outputs;  ///< of the forward operator, whose gradients it reads first
  std::vector<int64_t> inputs;   ///< of the forward operator, whose gradients it writes
  bool weights = false;          ///< its last output is the gradient of the weights
};

/// A training graph as an executor runs it: every operator with its kernel or with what it means
/// (graph/meaning.h).
class Program {
 public:
  /// A graph that does not say what it means is that of a training step as graph/training.h makes
  /// it. Throws ArgumentError naming all operator types without a kernel, and for graphs of
  /// profiles (their operators have no meaning beside their times), for operators that are cut
  /// along a dimension whose points need each other, and what state_meaning() throws.
  explicit Program(std::shared_ptr<const Graph> graph);

  const Graph& graph() const { return *graph_; }
  std::shared_ptr<const Graph> shared_graph() const { return graph_; }
  Duty duty(int32_t op) const { return duty_[op]; }
  /// Of what runs forward, is repeated, or moves.
  Kernel kernel(int32_t op) const { return kernels_[op]; }
  const Gradient& gradient(int32_t op) const { return gradients_[op]; }
  /// Operators that write gradients of a forward one: none, one, or an input and a weight part.
  int32_t gradient_parts(int32_t forward) const { return parts_[forward]; }
  /// Whether a forward operator, or its replay, keeps what gradients need.
  bool keeps(int32_t op) const;
  /// How many of its first inputs are arguments of its kernel: behind them stand gathered weights
  /// and what it waits for.
  size_t arguments(int32_t op) const;
  /// The gather whose output it reads, -1: none.
  int32_t gathered_by(int32_t op) const { return gathered_by_[op]; }
  /// The forward operators whose weights a gather puts together, in the order in which they stand
  /// in what it writes.
  const std::vector<int32_t>& owners(int32_t gather) const { return owners_[gather]; }
  bool is_input(int32_t op) const { return duty_[op] == Duty::data; }
  /// Whether its first output is a loss: what gradients begin at.
  bool is_loss(int32_t op) const { return is_loss_[op]; }
  /// What it counts in a sum over all parts of a replica.
  double loss_share(int32_t op) const { return loss_share_[op]; }
  /// The forward operator whose statistics a reduction has put together ("total"), -1: it is none.
  int32_t loss_of_total(int32_t op) const;
  /// Whether it is the loss of a part of the classes, of which it writes statistics by row.
  bool is_part_of_loss(int32_t op) const { return is_part_of_loss_[op]; }
  /// Whether updates, or what comes before them once a step, read a tensor: the sum over
  /// micro-batches of what backward operators write.
  bool adds_up(int32_t tensor) const { return adds_up_[tensor]; }
  /// Whether the gradient of an operator's weights goes nowhere but to its update: it then stays
  /// with the weights, and an empty tensor stands for it.
  bool keeps_gradient(int32_t forward) const { return keeps_gradient_[forward]; }
  /// Replicas of the batch.
  int32_t replicas() const { return replicas_; }
  /// Whether replicas differ between meetings.
  bool replicas_differ() const { return differ_; }
  /// Whether what meets does so in a step, numbered from 0; what meets in every step always does.
  bool meets(int32_t op, int64_t step) const {
    return every_[op] > 0 && (step + 1) % every_[op] == 0;
  }
  /// Of what runs on occasion the number of its name in occasions(), of others -1.
  int32_t occasion(int32_t op) const { return occasion_[op]; }
  const std::vector<std::string>& occasions() const { return occasions_; }
  /// Whether what it reads was sent, maybe in an earlier step.
  bool merges(int32_t op) const { return merges_[op]; }
  /// Whether an operator runs in a step in which all occasions are: all but collectives of steps
  /// in which nobody meets.
  bool runs_in(int32_t op, int64_t step) const {
    return duty_[op] != Duty::reduce || meets(op, step);
  }
  /// Whether only what does not run in a step reads a tensor.
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
  std::vector<bool> replays_;  // of forward operators: whether gradients need a replay
  std::vector<std::vector<int32_t>> owners_;
  std::vector<bool> is_loss_, is_part_of_loss_, keeps_gradient_;
  std::vector<double> loss_share_;
  std::vector<bool> adds_up_;  // of tensors
  std::vector<int64_t> every_;       // per operator: steps from meeting to meeting
  std::vector<int64_t> read_every_;  // per tensor: the same of all its readers; 1 where they differ
  std::vector<int32_t> occasion_;    // per operator
  std::vector<std::string> occasions_;
  std::vector<bool> merges_;         // per operator
  int32_t replicas_ = 1;
  bool differ_ = false;
};

}  // namespace trinity
