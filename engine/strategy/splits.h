#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/iteration_space.h"

namespace trinity {

/// How a forward operator is split; its backward and update operators follow it.
struct OperatorSplit {
  /// Parts along every dimension of its iteration space; empty: one part.
  std::vector<int32_t> factors;
  /// How many parts compute each block: each has a copy of what it writes, and no sum joins them.
  int32_t copies = 1;
  /// Devices that it may use, from 0, each once, at least one per part; empty: the operator's
  /// placement where it has one part, else all devices.
  std::vector<int32_t> devices;
  /// Whether `devices` has exactly one a part, in the order of the parts; else parts go where most
  /// of their inputs are.
  bool in_order = false;

  int64_t parts() const;
  bool operator==(const OperatorSplit&) const = default;
};

/// The `splits` part of a strategy: an entry per operator of the graph, or none (nothing is split).
/// Entries of backward and update operators that have a forward operator stay empty.
using Splits = std::vector<OperatorSplit>;

/// Throws ArgumentError unless `splits` is empty or has an entry per operator, with a factor per
/// dimension between 1 and its size (1 where it does not split), devices that exist, and at least
/// one of these per part; and for an entry at an operator that follows another, a split source
/// or member of a collective.
void check_splits(const Splits& splits, const Graph& graph, int32_t devices);

/// What an operator of a lowered graph is for. Every pass of lowering copies it with the operator.
struct OperatorRole {
  int32_t device = 0;
  int32_t origin = -1;  ///< operator of the original graph; -1: it moves or reduces data
  int32_t serves = 0;   ///< operator of the original graph that it works for
  int32_t part = 0;     ///< of the operator that it serves; of a slice or join 0
  // Of a mesh alone (strategy/lower.h):
  int32_t stage = 0;      ///< virtual stage
  int32_t layer = 0;      ///< layer that it works for, from 0; -1: before the layers; their number: after them
  int32_t spread = 1;     ///< number of ranks that its weights are sharded over
  int64_t gathered = 0;   ///< as in ReplicaOptions
  int32_t together = -1;  ///< the same
  /// It writes the last gradient that its device sends in its stage (ReplicaOptions::behind).
  bool sends_last = false;
  bool operator==(const OperatorRole&) const = default;
};

/// A strategy's graph: its operators cut into parts, with what moves and sums their blocks.
struct Lowered {
  Graph graph;
  std::vector<OperatorRole> roles;  ///< [operator]
  /// From lower_lanes(): for every pipeline group the first that does the same. Else empty.
  std::vector<int32_t> lanes = {};

  int32_t device_of(int32_t op) const { return roles[static_cast<size_t>(op)].device; }
  /// A field of the roles. [operator]
  template <class Value>
  std::vector<Value> each(Value OperatorRole::*field) const {
    std::vector<Value> values;
    values.reserve(roles.size());
    for (const auto& role : roles) values.push_back(role.*field);
    return values;
  }
};

/// Axes of a mesh over which a collective joins the devices of a run (bits of Collective::axes).
inline constexpr int32_t kOverTensor = 1, kOverContext = 2;

struct SplitOptions {
  /// Above 0: partial gradients of weights are reduced together, in buckets of at most this many
  /// bytes (or one gradient), as replicate() does.
  int64_t bucket_bytes = 0;
  /// With buckets, per operator of the graph or empty: gradients of operators of different numbers
  /// are in different ones.
  std::span<const int32_t> apart = {};
  /// A sum of gradients is made on the devices that hold all its terms, instead of where its
  /// forward operator is.
  bool sum_at_terms = false;
  /// Data sources that operators on several devices read stand at each of these, whether or not any
  /// of them is split.
  bool sources_at_readers = false;
  /// With buckets: above 1, gradients that devices of several runs of this length (0 to runs - 1,
  /// ...) sum are summed within each run, then across.
  int32_t runs = 1;
  /// Devices that hold pieces of a tensor of which each reads an equal part of every piece use
  /// an all-to-all (else slices that are sent).
  bool exchanges = false;
  /// Above 1 devices are in runs of this length: of equal blocks a reader takes the one in its own
  /// position of another run.
  int32_t width = 1;
  /// With runs: gradients are summed across these first, then within each: what is scattered across
  /// them is summed in shares.
  bool across_first = false;
  /// Above 0 the devices of a run (`width`) are the devices of a mesh's axes context x tensor, of which the
  /// latter is as long and innermost. Collectives state between which of them they are.
  int32_t tensor = 0;
  /// Every block along an axis that is cut is as long as the longest, as if there were more of it
  /// (Megatron-LM pads its vocabulary to equal parts): what lies beyond the end is held, computed
  /// and summed, and counts for nothing.
  bool padded = false;
};

/// Applies splits to a graph (a training step, or a forward graph):
///
///   - A part computes the block of the iteration space that its factors cut out, at its share of
///     the FLOP, and owns the blocks of the weights that it needs; parts of one block each own a
///     copy. Part p of an operator called x is "x@p"; one part keeps the name.
///   - A tensor that does not carry a split dimension arrives as partial sums: the parts that
///     differ along such dimensions alone join in an all-reduce (for weights it belongs to phase
///     update), or in a reduce-scatter where every device reads another piece of the sum and
///     nothing else. Gradients of one tensor by several readers are added up first where all of
///     them are partial sums, so that queries, keys and values take one. The mean loss is left in
///     parts, as data parallelism does.
///   - Split coupled dimensions of softmaxes and layer norms cost an all-reduce of two numbers a
///     row. The loss of split logits takes three, of a float32 each: the largest logit, the one of
///     the label, the sum of exponentials; its gradient none. Batch normalisation takes the
///     statistics of its part.
///   - A reader whose block lies on its device in one piece reads it there. Pieces that a group of
///     devices holds and all of them read whole (or an equal number of others, to which they are
///     sent first) are all-gathered, shared by the forward readers and by the backward ones: nobody
///     keeps it from one pass to the other, except tensors distributed to experts. Any other block
///     comes from parts that hold it: whole tensors as they are, others through a "Slice" on the
///     sender's device and a "Concat" of several pieces. Windows read a halo.
///   - The parts of an operator go to the devices that hold most of their inputs, parts
///     that find more first; if nothing decides, uniformly over its devices in the order listed.
///   - Data sources (inputs, constants) that a split operator reads stand wherever a block of them
///     is read.
///
/// With one part everywhere the result is the graph itself under `placement`. Throws what
/// check_splits() throws, ArgumentError for a placement of another length or a device that does not
/// exist, LimitError for more than kMaxOperators operators.
///
Lowered lower_splits(const Graph& graph, const Splits& splits, std::span<const int32_t> placement,
                     int32_t devices, const SplitOptions& options = {});

/// The same in pipeline groups, of which one of each kind is made: runs of `width` devices do the same, every
/// operator but sources has `width` parts, one on each device of a run. The k-th devices of all runs
/// are a pipeline group: what is on them reads what these hold, what a group of a run's devices gathers or
/// exchanges, or what comes round a ring. Blocks are padded, so that all parts of an operator cost
/// the same; pipeline groups are of one kind where they have the same place in rings, which go over `context`.
/// A collective has the members that are made, and is over axes of the mesh: its groups that differ
/// on other axes do the same. Nothing where that is not so.
std::optional<Lowered> lower_lanes(const Graph& graph, const Splits& splits,
                                   std::span<const int32_t> placement, int32_t devices,
                                   int32_t width, const SplitOptions& options);

}  // namespace trinity
