#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace trinity {

/// How replicas are kept synchronised.
enum class Meeting : uint8_t {
  gradients,  ///< reduced before the updates
  weights,    ///< averaged after the updates
  apart,      ///< not at all
  servers,    ///< parameter servers: some replicas sum gradients, update weights and send them back
  in_turn,    ///< the same without sums: servers apply the gradient of one replica after the other
};

struct ReplicaOptions {
  /// Gradients are reduced in buckets of at most this size. A larger gradient has a bucket of its
  /// own.
  int64_t bucket_bytes = 25'000'000;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  /// replicate() only: [operator] device within one replica. A bucket holds gradients of one
  /// device; if empty, of one colocation unit.
  std::span<const int32_t> device_of = {};
  /// replicate_stages() only: per stage, the same network at the batch size that one of its
  /// replicas has; copies take costs and sizes from it. If empty or null, costs and sizes are those
  /// of the graph divided by the number of replicas, except weights, their gradients and updates,
  /// which stay whole. Kernels that are too small to fill a device are then underestimated.
  std::vector<const Graph*> at_share = {};
  /// replicate() only: ZeRO stage, for graphs of shard_states(). From stage 1 on gradients end in a
  /// reduce-scatter instead of an all-reduce: at stage 1 once per step, on the tensors that updates
  /// read; from stage 2 on after every micro-batch, on the tensors that backward operators write.
  int32_t zero_stage = 0;
  /// replicate() only: [operator] bytes that its copies gather in a collective of their own, 0 for
  /// operators that do not gather; or empty.
  std::span<const int64_t> gathered = {};
  /// replicate() only: number of ranks that experts are sharded over, and [operator] the number of
  /// ranks that its weights are sharded over (graph/experts.h; empty: none). Replicas r and s hold
  /// the same weights of an operator if r and s are equal modulo its spread, and only these are
  /// synchronised. Exchanges join every `ranks` consecutive replicas.
  int32_t ranks = 1;
  std::span<const int32_t> spread = {};
  /// replicate() only.
  Meeting meeting = Meeting::gradients;
  /// replicate() only: above 1, replicas synchronise in two levels: inner groups of this many
  /// consecutive replicas, and across groups.
  ///
  ///   - gradients: a reduce-scatter within, an all-reduce of the shards across, an all-gather
  ///     within; sharded states are sharded within.
  ///   - weights: gradients are reduced within in every step; the first replicas of the groups
  ///     average weights and broadcast them within.
  ///   - apart: gradients are reduced within.
  ///
  /// With `zero_stage` the reductions within end in a reduce-scatter. At ZeRO stage 3 each replica
  /// averages its shard with the corresponding replicas of the other groups.
  int32_t inner = 1;
  /// With servers, in turn or not: the first replicas are servers and take buckets
  /// round-robin.
  int32_t servers = 1;
  int32_t every = 1;    ///< Meeting::weights: steps from one synchronisation to the next
  /// Meeting::weights, graphs with meaning attributes (graph/meaning.h): synchronisation is
  /// conditional. Whoever runs the graph decides in every step which replica of the groups sends
  /// its weights, when sent weights are merged and broadcast within the groups, and whether
  /// gradients are reduced.
  bool on_occasion = false;
  /// Meeting::weights, graphs without these attributes: the averaged weights were sent by the
  /// previous step. The collective begins with the step, and its result is merged with the updated
  /// weights.
  bool late = false;
  /// replicate() only, with one synchronisation level: total number of replicas of which `replicas`
  /// are built; 0: all are built. Collectives join those that are built.
  int32_t of = 0;
  /// With `of`: indices of the built replicas; empty: the first ones.
  std::span<const int32_t> numbers = {};
  /// replicate() only, gradients with one level: [collective] true if it reduces gradients that are
  /// valid for all replicas. Its copies become one collective of all members, which from ZeRO stage
  /// 1 on scatters the sum; nothing else reduces its inputs or outputs. Empty: none.
  std::vector<bool> joined = {};
  /// With `joined`: number of members of such a collective per replica; 0: as in the graph.
  int32_t joined_of = 0;
  /// With `joined`: [operator that gathers (`gathered`)] an index on its device; the copies of all
  /// operators with one index gather together. -1: the copies of one operator do.
  std::span<const int32_t> together = {};
  /// replicate() only: [operator] the operator that reductions of its gradients wait for (the one
  /// that writes the last gradient that its stage sends); for a member of an all-reduce of phase
  /// update, the one that the member itself waits for; -1, or empty: none. The copies of such an
  /// operator write a token of 0 bytes.
  std::span<const int32_t> behind = {};
};

/// Replicas of a graph as one graph, and the origin of its operators.
struct Replicated {
  Graph graph;
  /// [operator]: the operator that it copies; -1 for an all-reduce; an update for an operator
  /// without inputs.
  std::vector<int32_t> origin;
  std::vector<int32_t> stage;    ///< [operator]; 0 without stages
  std::vector<int32_t> replica;  ///< [operator]: its replica of the stage, from 0
  /// Field in_turn: [operator] the replica whose gradient it computes or applies, or after whose
  /// gradient it fetches weights; differs from `replica` on a server. Empty otherwise.
  std::vector<int32_t> turn = {};
};

/// Data parallelism: `replicas` copies of every operator, tensor, colocation unit and collective,
/// named "<name>@<replica>" with replicas from 0, and one all-reduce per bucket of gradients
/// between them and the updates. Gradients are the tensors that operators of phase update read from
/// operators of phase backward; they fill the buckets in the order of their production. Bucket k is
/// a collective "all_reduce<k>" of phase update with a member "all_reduce<k>@<replica>" (type
/// "AllReduce") in every replica. The member reads the bucket's gradients and writes tensors of the
/// same sizes, which the updates read. Every replica has the graph's batch. One replica gives a
/// copy of the graph.
///
/// Placing the result: a copy goes to its replica's device for `origin`. A member goes where the
/// producer of its first input goes, and shares its colocation unit if all gradients of the bucket
/// come from one unit.
///
/// Throws ArgumentError for fewer than one replica, a bucket of less than one byte or a `device_of`
/// of the wrong length; LimitError for more than kMaxOperators operators.
Replicated replicate(const Graph& graph, int32_t replicas, const ReplicaOptions& options = {});

/// A pipeline of replicated stages (PipeDream's plans; Narayanan et al., SOSP 2019, section 3.1).
/// Stage s has replicas[s] copies, each of which works on its part of every micro-batch; stage[o]
/// is the stage of operator o, from 0. A tensor that goes to a stage with another number of
/// replicas is cut into pieces "<name>@<replica>.<piece>" where the readers' parts of the batch
/// begin; a reader reads the pieces that overlap its part. Bytes are divided by samples.
/// (PipeDream's replicas take whole mini-batches round-robin. Here each takes its part of every
/// one, so a stage has the same number of micro-batches in flight as without replicas.) Gradients
/// of a stage with several replicas are reduced as by replicate(), in buckets of one stage.
///
/// Placing the result: every (stage, replica) on a device of its own, members of all-reduces
/// included (their stage and replica are given). pipeline_schedule() accepts such stages.
///
/// Throws ArgumentError for lists of the wrong length, stages without a number of replicas, fewer
/// than one replica, graphs in `at_share` with other operators, a collective across stages with
/// different numbers of replicas, and tensors without samples (weights that several stages share,
/// their gradients) between such stages; LimitError for more than kMaxOperators operators.
Replicated replicate_stages(const Graph& graph, std::span<const int32_t> stage,
                            std::span<const int32_t> replicas, const ReplicaOptions& options = {});

}  // namespace trinity
