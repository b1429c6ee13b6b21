#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// What keeps replicas alike.
enum class Meeting : uint8_t {
  gradients,  ///< reduced before the updates
  weights,    ///< averaged behind the updates
  apart,      ///< nothing
  servers,    ///< gradients are summed and weights updated by some, who hand them out
  in_turn,    ///< the same without sums: by one replica's gradient after the other's
};

struct ReplicaOptions {
  /// Gradients are reduced in buckets. A bucket closes when the next gradient would make it larger
  /// than this; a single larger gradient has its own.
  int64_t bucket_bytes = 25'000'000;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  /// replicate() only: device of every operator of the graph in one replica. A bucket holds
  /// gradients of one device; where this is empty, of one colocation unit.
  std::span<const int32_t> device_of = {};
  /// replicate_stages() only: per stage, the same network at the part of the batch that one of its
  /// replicas has; costs and sizes of its copies are that graph's. Where this is empty or null they
  /// are those of the graph divided by the replicas, except weights, their gradients and updates,
  /// which stay whole; kernels that are too small to fill a device then cost less than they would.
  std::vector<const Graph*> at_share = {};
  /// replicate() only: ZeRO's level, for graphs of shard_states(). From 1 on gradients end in a
  /// reduce-scatter instead of an all-reduce: at level 1 once a step, of what the updates
  /// themselves read; from 2 on after every micro-batch, of what the backward operators write.
  int32_t shard = 0;
  /// replicate() only: of every operator the bytes that its copies gather in a collective of their
  /// own, 0 of those that gather nothing; or empty.
  std::span<const int64_t> gathered = {};
  /// replicate() only: ranks that share out experts, and of every operator over how many of them
  /// its weights are spread (graph/experts.h); empty: none are. Replicas r and s hold the same
  /// weights of an operator where r and s are equal modulo its spread, and meet for these alone;
  /// exchanges join the replicas of every run of `ranks`.
  int32_t ranks = 1;
  std::span<const int32_t> spread = {};
  /// replicate() only.
  Meeting meeting = Meeting::gradients;
  /// replicate() only: above 1 replicas meet in two levels, runs of so many among themselves and
  /// across. Gradients: a reduce-scatter within, an all-reduce of the shares across, an all-gather
  /// within; sharded states are shared out within. Weights: gradients meet within in every step,
  /// weights of the first of every run across, who broadcasts them within; apart: gradients within.
  /// With `shard` these end in a reduce-scatter within; at level 3 weights that are shared out within
  /// meet across place by place.
  int32_t inner = 1;
  /// Of Meeting::servers and Meeting::in_turn: the first replicas, who take buckets in turn.
  int32_t servers = 1;
  int32_t every = 1;    ///< of Meeting::weights: steps from one meeting to the next
  /// Of Meeting::weights, graphs that say what they mean (graph/meaning.h): whoever runs the graph
  /// says in every step which place of the runs sends its weights, merges what was sent, and hands
  /// weights out within the runs, and whether gradients meet.
  bool on_occasion = false;
  /// Of Meeting::weights, graphs that say nothing: the step before has sent what is averaged, so that
  /// it begins with the step, and is merged with the updated weights.
  bool late = false;
  /// replicate() only, without other meetings and inner runs: how many replicas there are of which
  /// those that are asked for are made; 0: no others. Collectives are between those made.
  int32_t of = 0;
  /// With it: the numbers of those that are made among all; empty: they are the first.
  std::span<const int32_t> numbers = {};
  /// replicate() only, gradients that meet in one level: of every collective of the graph whether
  /// it reduces gradients that hold good for all replicas; its copies are then one collective of
  /// all their members, which from `shard` 1 on scatters the sum, and nothing else reduces what it
  /// reads or writes. Empty: none does.
  std::vector<bool> joined = {};
  /// With these: how many members such a collective has in a replica; 0: those that there are.
  int32_t joined_of = 0;
  /// With these: of every operator that gathers (`gathered`) its number among those of its device;
  /// the copies of those of one number gather together. -1: those of one operator do.
  std::span<const int32_t> together = {};
  /// replicate() only: of every operator the one behind which reductions of its gradients wait (what
  /// writes the last gradient that its stage sends), of a member of an all-reduce of phase update
  /// the one that itself waits for; -1, or empty: none. Such an operator's copies write a token of
  /// no bytes.
  std::span<const int32_t> behind = {};
};

/// Copies of a graph that train together as one graph, and where its operators come from.
struct Replicated {
  Graph graph;
  /// Per operator: the one it copies, -1 for an all-reduce; of one that reads nothing an update.
  std::vector<int32_t> origin;
  std::vector<int32_t> stage;    ///< per operator; 0 where there are no stages
  std::vector<int32_t> replica;  ///< per operator: its replica of the stage, from 0
  /// Per operator: whether its last output is the token that others wait for (`behind`).
  std::vector<bool> tells;
  /// Of Meeting::in_turn, per operator: the replica whose gradient it computes, applies or fetches
  /// the weights behind, which is not `replica` on a server; else empty.
  std::vector<int32_t> turn = {};
};

/// Data parallelism: `replicas` copies of every operator, tensor, colocation unit and collective,
/// named "<name>@<replica>" with replicas from 0, and an all-reduce per bucket of gradients between
/// them and the updates. Gradients are the tensors that operators of phase update read from
/// operators of phase backward; they fill the buckets in the order in which they are produced.
/// Bucket k is a collective "all_reduce<k>" of phase update with a member "all_reduce<k>@<replica>"
/// (type "AllReduce") in every replica, which reads the bucket's gradients there and writes as many
/// tensors of the same sizes; the updates read those. Every replica has the graph's batch. One
/// replica gives a copy of the graph.
///
/// Placing the result: a copy goes to its replica's device for `origin`; a member goes where the
/// producer of its first input goes, and shares its colocation unit when all gradients of the
/// bucket come from one unit.
///
/// Throws ArgumentError for fewer than one replica, a bucket of less than one byte, a `device_of`
/// of another length, LimitError for more than kMaxOperators operators.
Replicated replicate(const Graph& graph, int32_t replicas, const ReplicaOptions& options = {});

/// A pipeline of replicated stages (PipeDream's plans; Narayanan et al., SOSP 2019, section 3.1):
/// stage s has replicas[s] copies, each of which works on its part of every micro-batch; stage[o]
/// numbers the stage of operator o from 0. A tensor that goes to a stage with another number of
/// replicas is cut into pieces "<name>@<replica>.<piece>" where the readers' parts of the batch
/// begin, and a reader reads those that its own part overlaps; bytes are shared out by samples.
/// (PipeDream's own replicas take whole mini-batches in turn; here each takes its part of every
/// one, so that a stage has as many of them under way as without replicas.) Gradients of a stage
/// with several replicas are reduced as by replicate(), in buckets of one stage.
///
/// Placing the result: every (stage, replica) on a device of its own; members of all-reduces too
/// (their stage and replica are given). pipeline_schedule() takes such stages.
///
/// Throws ArgumentError for lists of another length, stages without a number of replicas, fewer
/// than one replica, graphs at shares with other operators, a collective across stages with other
/// numbers of replicas, and tensors that have no samples to be cut by (weights that several stages
/// share, their gradients) between such stages; LimitError for more than kMaxOperators operators.
Replicated replicate_stages(const Graph& graph, std::span<const int32_t> stage,
                            std::span<const int32_t> replicas, const ReplicaOptions& options = {});

}  // namespace trinity
