#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "cluster/cluster.h"
#include "graph/graph.h"
#include "strategy/lowered_graph.h"
#include "strategy/strategy.h"

namespace trinity {

/// Placement and schedule of a lowered graph.
struct Arrangement {
  std::vector<int32_t> placement;  ///< device of every operator, from 0
  std::vector<int32_t> home;       ///< [original operator]: device of its first part
  ScheduleSpec schedule;           ///< with the virtual stage of every operator
};

/// The lowered graph of a strategy, which is simulated and executed.
struct LoweredStrategy {
  LoweredGraph made;
  Arrangement arranged;
};

/// The part of a strategy that determines the lowered graph: strategies in which it is equal share the graph, whatever
/// their placement and number of micro-batches.
Strategy structure_of(const Strategy& strategy);

/// A step of a strategy, and the number of equal steps in a cycle.
struct CycleStep {
  Strategy strategy;
  int32_t count = 1;
};

/// The steps from one synchronisation of replicas to the next: first the one in which they
/// synchronise, then the others. One step if they synchronise in every step.
std::vector<CycleStep> cycle_of(const Strategy& strategy);

/// Throws the errors of lower() that concern a strategy's mesh and schedule on a cluster.
void check_mesh(const Parallelism& parallelism, const Cluster& cluster);
/// Throws ArgumentError unless `inside` is empty or names a slot of the axis `placement` for every operator and keeps
/// every colocation unit together.
void check_inside(const Parallelism& given, const Graph& graph);

/// True if all replicas of a mesh are equal and synchronise in every step, by an all-reduce.
bool copies_are_alike(const Parallelism& given);
/// True if gradients are reduced over parts of the sequence and replicas at once, as all of these hold the
/// same weights (Megatron-LM's groups of data and context, torchtitan's mesh dp_shard_cp); for experts over the devices
/// that hold the same ones (Megatron-Core's expert data parallel groups have ranks of context).
bool joins_context(const Parallelism& given);
/// Number of devices that ZeRO shards states over: all replicas (with their parts of the sequence, if gradients are
/// reduced over both), or the devices of an inner group.
int32_t shard_group(const Parallelism& given);
inline bool shards_states(const Parallelism& given) {
  return given.zero_stage > 0 && shard_group(given) > 1;
}
/// True if keys and values are sent in rings, so that parts of the sequence send each other tensors.
bool goes_in_rings(const Parallelism& given);
/// The graph of such a mesh in two steps. Throws what lower() throws.
LoweredGraph lower_replica(const Parallelism& parallelism, const Graph& graph, const Cluster& cluster);
/// The latest results of the pass that splits operators (strategy/lowering.h), by the fields that it depends on. Meshes
/// of one graph that differ in replicas, sharded states, recomputation or order share a result. Thread-safe
/// (base/thread_pool.h).
class LaneParts : public Latest<Parallelism, const std::optional<LoweredGraph>> {
 public:
  LaneParts() : Latest(4) {}
};

/// The graph of one device per equivalence class of every stage (the first one), if stages have the same classes and
/// devices send only to their own position in other stages or to the next one in a ring (lower_lanes()); otherwise
/// nothing. `parts` belongs to the graph. Throws what lower_replica() throws; graphs have no names (graph/nameless.h),
/// and so may messages.
std::optional<LoweredGraph> lower_lane(const Parallelism& parallelism, const Graph& graph, const Cluster& cluster,
                                       LaneParts& parts);
/// `copies` of the mesh's replicas, at most all of them, with the collectives between all replicas; numbers: which
/// ones, if experts are sharded and they are not the first.
LoweredGraph copy_replica(const LoweredGraph& replica, int32_t copies, std::span<const int32_t> numbers = {});
/// The part that keeps some operators. Throws the errors of subgraph().
LoweredGraph kept(LoweredGraph whole, const std::vector<bool>& operators);
/// Repeats a graph of lower_lane() on all of these devices, which are whole pipeline groups. Each does what the device
/// of its class does; collectives join the devices of a group. `collective` says which one they repeat.
LoweredGraph repeated(const LoweredGraph& replica, const std::vector<bool>& devices);

/// The first half of lower().
LoweredGraph lower_graph(const Strategy& strategy, const Graph& graph, const Cluster& cluster);

/// The second half of lower(): `made` comes from a strategy of the same structure.
Arrangement arrange(const LoweredGraph& made, const Strategy& strategy);

/// Lowers a training graph. One of repeated layers (graph/layers.h) is lowered by its mesh, in this
/// order: attention goes in rings (cp_comm_type), experts are sharded over `expert`
/// (spread_experts()), operators go to their devices inside stages (`inside`), each is split over
/// `tensor` there (tensor_splits()), layers are recomputed, tensors between stages are cut in parts
/// (scatter_gather), the backward pass is split into B and W where the schedule needs it
/// (split_backward()), replicas are added with all-reduces of gradients in buckets (replicate()),
/// micro-batches are scheduled (pipeline_schedule()). Any other graph is lowered by the splits of
/// its operators (lower_splits()); slices, joins and collectives belong to the stage that their
/// device works for.
///
/// Throws ArgumentError, with fields, sizes and the nearest valid values: a mesh of more devices
/// than the cluster has; layers that do not divide over the stages, a list of stages of another
/// length or sum, or with one of no layers between others; virtual stages of a schedule that has
/// none, or other than two of one in V shape; micro-batches of interleaved that are no multiple of
/// the pipeline, or fewer than fill a zero-bubble schedule (check_pipeline()); experts without
/// `expert`'s divisors, or over `tensor` without sequence_parallel; `placement` above one without
/// `inside`, or with `expert`; whatever check_inside() refuses; a kind of synchronisation with
/// fields that contradict it; a network without repeated layers with stages or recomputation;
/// splits together with priorities or an order, which number the operators; and the errors of
/// tensor_splits() and lower_splits().
LoweredStrategy lower(const Strategy& strategy, const Graph& graph, const Cluster& cluster);

}  // namespace trinity
