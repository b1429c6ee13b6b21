#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace trinity {

struct StageReplicaOptions {
  /// Gradients of a stage are reduced in buckets (see ReplicaOptions::bucket_bytes).
  int64_t bucket_bytes = 25'000'000;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  /// Per stage, the same network at the part of the batch that one of its replicas has: costs and
  /// sizes of its copies are that graph's. Where this is empty or null they are those of the graph
  /// divided by the replicas, except weights, their gradients and updates, which stay whole;
  /// kernels that are too small to fill a device then cost less than they would.
  std::vector<const Graph*> at_share = {};
};

/// A pipeline of replicated stages as a graph, and where its operators come from.
struct StageReplicated {
  Graph graph;
  std::vector<int32_t> origin;   ///< per operator: the one it copies, -1 for an all-reduce
  std::vector<int32_t> stage;    ///< per operator
  std::vector<int32_t> replica;  ///< per operator: its replica of the stage, from 0
};

/// Replicated stages (PipeDream's plans; papers.md 6.8): stage s has replicas[s] copies, each of
/// which works on its part of every micro-batch; stage[o] numbers the stage of operator o from 0.
/// Copies are named "<name>@<replica>". A tensor that goes to a stage with another number of
/// replicas is cut into pieces "<name>@<replica>.<piece>" where the readers' parts of the batch
/// begin, and a reader reads those that its own part overlaps; bytes are shared out by samples.
/// (PipeDream's own replicas take whole mini-batches in turn; here each takes its part of every
/// one, so that a stage has as many of them under way as without replicas.) Between the gradients
/// that operators of phase update read and these updates stands an all-reduce "all_reduce<k>" per
/// bucket of a stage with several replicas, as in replicate().
///
/// Placing the result: every (stage, replica) on a device of its own; members of all-reduces too
/// (their stage and replica are given). pipeline_schedule() takes such stages.
///
/// Throws ArgumentError for lists of another length, stages without a number of replicas, fewer
/// than one replica, graphs at shares with other operators, a collective across stages with other
/// numbers of replicas, and tensors that have no samples to be cut by (weights that several stages
/// share, their gradients) between such stages; LimitError for more than kMaxOperators operators or
/// 1024 replicas of a stage.
StageReplicated replicate_stages(const Graph& graph, std::span<const int32_t> stage,
                                 std::span<const int32_t> replicas,
                                 const StageReplicaOptions& options = {});

}  // namespace trinity
