#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// Attributes that define what an operator of a lowered graph computes, for the executor.
/// state_meaning() writes them, and the lowerings extend them if they find `source`. Graphs that
/// are only simulated have none.
///
/// state_meaning() writes
///   source            all operators: the name, which all copies and parts keep
///   gradient_outputs  a backward operator: the outputs of its forward operator whose gradients are
///                     its first inputs, in this order; none: it begins at a loss
///   gradient_inputs   the same: the inputs of its forward operator whose gradients it writes
///   gradient_weights  the same: 1 if its last output is the concatenated gradient of all trainable
///                     weights
///   optimiser         an update: "sgd", "momentum" or "adam"
///   index_bound       an input: its integers are below this
/// lower_splits() writes, for a part of an operator,
///   block_begin, block_whole  start of its first output in the tensor of which it is a block, and
///                             that tensor's shape
///   input_begin               start, in the whole tensor, of what it reads of its first input
///   weight<i>_begin, weight<i>_whole  the same for its i-th weight, from 0
///   term              index of the term of a sum that it writes, from 0; a bias is in the first
///                     term only
///   mean_share        a mean loss: its fraction of the rows
///   counts            a mean loss: the weight of its loss in a sum over all parts
///   classes           a loss of split logits: number of classes; the rest is padding
/// for operators that move and sum blocks
///   axes, starts, ends  of a Slice, as in ONNX; of a ReduceScatter: the piece of the sum that it
///                       writes
///   begins            an AllGather: start of its piece in the whole; a Concat: the same for all of
///                     its inputs, concatenated
///   arguments         number of leading inputs that are arguments; it only waits for the others
///   reduction         an AllReduce: "maximum", "target" or "total" of a loss of split logits,
///                     "statistics" of other rows that are cut; none: the sum
/// and for the steps of ring attention and of its gradient. These have no `source`: they are no
/// operator's gradients but accumulate the contribution of every block of keys and values
/// (execute/kernels)
///   ring_step         first, next, or last: whether it reads partial sums, and writes results
///   queries_begin, keys_begin  start of its queries, and of its keys and values, in the sequence
/// recompute() marks copies with `replay`. shard_states() writes, for an update, a gather and
/// owners of weights, `shares`: the number of shards; and for weights of which it has only a shard
/// weight<i>_shape, the shape of the whole block. replicate() writes
///   replica, replicas  all copies, and members of collectives between them
///   share             operators with `shares`, and gathers: index of its shard, from 0
///   shares            a ReduceScatter: for each sum, the member's shard; if missing, its replica's
///                     shard
///   mean_of           an update: number of replicas over whose batches its gradient is summed;
///                     none: all
///   reduction         an AllReduce or Broadcast after updates: "weights": the average (or the
///                     first member's weights) replaces those written by the updates of its inputs
///   every             the same, and updates: they sync in the last of this many steps; in
///                     the others these collectives do not run; 0: the updates write no weights,
///                     and their readers fetch the weights themselves
///   occasion          a Send of weights, and collectives that run only in steps in which the
///                     executor says so: "gradients", "send<place>", "merge<place>",
///                     "hand_out<place>". A gradient collective that does not run passes on its own
///                     gradient, as if all members had it. Sent weights may be merged in a later
///                     step: (w x + sum) / (w + members) with own weights x (Coquelin et al. 2022,
///                     equation 1) and a weight w given with the operation
///   terms             a Sum of a server: each output is the sum of this many inputs
///   turn              an update on a server: the replica whose gradients it applies, from 0. It
///                     reads bundles and writes the bundles that this replica continues with
/// If experts are sharded (graph/experts.h), the attributes of their weights refer to the rank
/// that a copy is on.
inline constexpr const char* kSource = "source";

/// The training graph with attributes that define what its operators compute. Throws ArgumentError
/// for graphs with collectives or recomputed operators, which have no such attributes themselves.
Graph state_meaning(const Graph& training);

/// Gradients that a backward operator computes, of one forward operator.
struct Gradient {
  std::vector<int64_t> outputs;  ///< outputs of the forward operator whose gradients it reads first
  std::vector<int64_t> inputs;   ///< inputs of the forward operator whose gradients it writes
  bool weights = false;          ///< its last output is the gradient of the weights
};

/// True if the operator has these attributes.
inline bool has_meaning(const Operator& op) { return op.attributes.contains(kSource); }
bool has_meaning(const Graph& graph);

/// Start of shard `share` of `elements` elements in `shares` equal shards, rounded up.
inline int64_t share_begin(int64_t elements, int64_t shares, int64_t share) {
  const int64_t length = (elements + shares - 1) / shares, begin = length * share;
  return begin < elements ? begin : elements;
}

/// Attributes of other types; empty, or `fallback`, if absent.
std::string text_attribute(const Operator& op, const std::string& name);
std::vector<int64_t> list_attribute(const Operator& op, const std::string& name);
double number_attribute(const Operator& op, const std::string& name, double fallback);

}  // namespace trinity
