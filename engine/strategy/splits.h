#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/iteration_space.h"
#include "strategy/lowered_graph.h"

namespace trinity {

/// How a forward operator is split; its backward and update operators follow it.
struct OperatorSplit {
  /// Parts along every dimension of its iteration space; empty: one part.
  std::vector<int32_t> factors;
  /// Number of parts that compute each block: each has a copy of the output, and no reduction joins them.
  int32_t copies = 1;
  /// Devices that it may use, from 0, each once, at least one per part; empty: the operator's placement if it has one
  /// part, else all devices.
  std::vector<int32_t> devices;
  /// Whether `devices` has exactly one device per part, in the order of the parts; else each part is on the device that
  /// holds most of its inputs.
  bool in_order = false;

  int64_t parts() const;
  bool operator==(const OperatorSplit&) const = default;
};

/// The `splits` part of a strategy: an entry per operator of the graph, or none (nothing is split).
/// Entries of backward and update operators that have a forward operator stay empty.
using Splits = std::vector<OperatorSplit>;

/// Throws ArgumentError unless `splits` is empty or has an entry per operator, with a factor per
/// dimension between 1 and its size (1 where it does not split), devices that exist, and at least
/// one of these per part; and for an entry of an operator that is split as its forward operator, a split source or a
/// member of a collective.
void check_splits(const Splits& splits, const Graph& graph, int32_t devices);

struct SplitOptions {
  /// Above 0: partial gradients of weights are reduced together, in buckets of at most this many
  /// bytes (or one gradient), as replicate() does.
  int64_t bucket_bytes = 0;
  /// With buckets, a number per operator of the graph, or empty: gradients of operators with different numbers are in
  /// different buckets.
  std::span<const int32_t> apart = {};
  /// With buckets: above 1, gradients that devices of several inner groups of this size (0 to runs - 1, ...) reduce are
  /// reduced within each group, then across groups.
  int32_t runs = 1;
  /// Devices that hold pieces of a tensor of which each reads an equal part of every piece use
  /// an all-to-all (else slices that are sent).
  bool exchanges = false;
  /// Above 1 devices are in groups of this size: among equal blocks a reader takes the one at its own position of
  /// another group.
  int32_t width = 1;
  /// With inner groups: gradients are reduced across groups first, then within each; shards that are scattered across
  /// groups are reduced one by one.
  bool across_first = false;
  /// Above 0: for a mesh. The devices of a group (`width`) form its axes context x tensor, with `tensor` of this size and
  /// innermost. Collectives state the axes that they span. Gradients are summed on the devices that hold all terms,
  /// instead of on the device of the forward operator. Data sources that operators on several devices read are on each of
  /// these devices, whether or not any of them is split. Every block along a split axis is as long as the longest, as if
  /// the axis were padded (Megatron-LM pads its vocabulary to equal parts): the padding is stored, computed and reduced,
  /// and has no effect.
  int32_t tensor = 0;
  bool of_mesh() const { return tensor > 0; }
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
LoweredGraph lower_splits(const Graph& graph, const Splits& splits, std::span<const int32_t> placement,
                          int32_t devices, const SplitOptions& options = {});

/// As lower_splits(), but for one pipeline group per equivalence class. Runs of SplitOptions::width devices do the same, and
/// every operator except sources has that many parts, one on each device of a run. The k-th devices of all runs are a pipeline
/// group: its operators read tensors of these devices, tensors that a group of a run's devices gathers or exchanges,
/// and tensors that arrive in a ring. Blocks are padded, so that all parts of an operator cost the same; pipeline
/// groups are in one class if they have the same position in rings, which span `context`. A collective has the members
/// that are built, and spans axes of the mesh: its groups that differ on other axes do the same. Returns nothing if
/// these conditions do not hold.
std::optional<LoweredGraph> lower_lanes(const Graph& graph, const Splits& splits, std::span<const int32_t> placement,
                                        int32_t devices, const SplitOptions& options);

}  // namespace trinity
