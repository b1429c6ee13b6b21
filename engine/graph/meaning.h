#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// Attributes that say what an operator of a lowered graph computes, for whoever runs it. They are
/// written by state_meaning(), and by the lowerings where they find `source`: a graph that is only
/// priced has none of them.
///
/// state_meaning() writes
///   source            of every operator: its name, which all its copies and parts keep
///   gradient_outputs  of a backward operator: the outputs of its forward operator whose gradients
///                     are its first inputs, in this order; none: it begins at a loss
///   gradient_inputs   the same: the inputs of its forward operator whose gradients it writes
///   gradient_weights  the same: 1 where its last output is the gradient of the weights, those of
///                     all trainable ones, one behind the other
///   optimiser         of an update: "sgd", "momentum" or "adam"
///   index_bound       of an input: whole numbers in it lie below this
/// lower_splits() writes, of a part of an operator,
///   block_begin, block_whole  where its first output begins in the tensor of which it is a block,
///                             and the shape of that
///   input_begin               where what it reads of its first input begins in the whole of that
///   weight<i>_begin, weight<i>_whole  the same of its i-th weight, from 0
///   term              which of the terms of a sum it writes, from 0; a bias is in the first alone
///   mean_share        of a mean loss: its share of the rows
///   counts            the same: what its loss counts in a sum over all parts
///   classes           of a loss of split logits: how many there are; behind them is padding
/// and of what moves and sums blocks
///   axes, starts, ends  of a Slice, as in ONNX; of a ReduceScatter: the piece of the sum it writes
///   begins            where in the whole its piece begins, of an AllGather; of a Concat the same
///                     of all of its inputs, one behind the other
///   arguments         how many of its first inputs an operator takes: it waits for the others
///   reduction         of an AllReduce: "maximum", "target" or "total" of a loss of split logits,
///                     "statistics" of other rows that are cut; none: the sum
/// and of the steps of attention in a ring and of its gradient, which have no `source`: they are no
/// operator's gradients but add up what every block of keys and values gives (kernels/ of execute/)
///   ring_step         first, next, or last: whether it finds sums, and writes results
///   queries_begin, keys_begin  where in the sequence its queries, and its keys and values, begin
/// recompute() writes `replay` of copies. shard_states() writes, of an update, a gather and what
/// owns weights, `shares`: how many have one, and of weights of which it has a share alone
/// weight<i>_shape, that of the whole block. replicate() writes
///   replica, replicas  of every copy, and of members of the collectives between them
///   share             of what has `shares`, and of gathers: which share it has, from 0
///   shares            of a ReduceScatter: of each sum a member gets its share; where none is said,
///                     that of its replica
///   mean_of           of an update: over how many replicas' batches its gradient is summed; none:
///                     over all
///   reduction         of an AllReduce and a Broadcast behind updates: "weights", the mean of all,
///                     or the first one's, become those that the updates of what it reads have made
///   every             of these, and of the updates: they meet in the last of so many steps; in the
///                     others the collectives do not run; 0: the updates write no weights, what
///                     reads them takes them itself
///   occasion          of a Send of weights and of collectives that run only in steps of which whoever
///                     runs the graph says so: "gradients", "send<place>", "merge<place>",
///                     "hand_out<place>". A collective of gradients that does not run hands on its own
///                     gradient, as if all members had it. What is sent may be merged in a later
///                     step: (w x + sum) / (w + members) of own weights x (Coquelin et al. 2022,
///                     equation 1), of a w that is said with it
///   terms             of a Sum of a server: of so many inputs each output is the sum
///   turn              of an update on a server: by the gradients of which replica, from 0. It reads
///                     those of bundles and writes the bundles that this replica goes on with
/// Where experts are shared out (graph/experts.h), the attributes of their weights are those of the
/// rank that a copy is on.
inline constexpr const char* kSource = "source";

/// The same training graph with attributes that say what its operators mean. Throws ArgumentError
/// for graphs with collectives or replayed operators, which do not say it themselves.
Graph state_meaning(const Graph& training);

/// Whether an operator says what it means.
inline bool has_meaning(const Operator& op) { return op.attributes.contains(kSource); }
bool has_meaning(const Graph& graph);

/// Where the `share`-th of `shares` equal parts, rounded up, of `elements` begins.
inline int64_t share_begin(int64_t elements, int64_t shares, int64_t share) {
  const int64_t length = (elements + shares - 1) / shares, begin = length * share;
  return begin < elements ? begin : elements;
}

/// Attributes of other kinds than integers; empty, or `fallback`, where there is none.
std::string text_attribute(const Operator& op, const std::string& name);
std::vector<int64_t> list_attribute(const Operator& op, const std::string& name);
double number_attribute(const Operator& op, const std::string& name, double fallback);

}  // namespace trinity
