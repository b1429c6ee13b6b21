#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace trinity {

struct ShardingOptions {
  int32_t level = 1;                  ///< 1 the optimiser's state, 2 gradients too, 3 weights too
  int32_t replicas = 2;               ///< that share it out, at least 2
  int64_t bucket_bytes = 25'000'000;  ///< of updated weights that are gathered together
  std::span<const int32_t> device;    ///< of every operator in one replica
  /// Level 3: weights of one number are gathered together where they are on one device; those of a
  /// negative number by themselves.
  std::span<const int32_t> unit;
  /// Of every operator over how many of them its weights are spread already (graph/experts.h), so
  /// that replicas / spread share them out; empty: none are.
  std::span<const int32_t> spread = {};
  /// Of every operator: weights of different numbers are not gathered together; empty: all have one.
  std::span<const int32_t> apart = {};
  /// Of every collective of phase update whether it comes before gradients are shared out (it sums
  /// what a collective of all replicas scatters, or is that); empty: none does.
  std::vector<bool> ahead = {};
};

/// A replica's graph of which every device holds a share.
struct Sharded {
  Graph graph;
  std::vector<int32_t> origin;  ///< per operator the original one; -1: a gather
  std::vector<int32_t> near;    ///< the same; of a gather one whose weights it gathers
  /// Of gathers the bytes that all replicas' copies of it gather together, else 0: for
  /// ReplicaOptions::gathered.
  std::vector<int64_t> gathered;
};

/// ZeRO (Rajbhandari et al. 2020, sections 5 and 7) for one replica of a training graph;
/// replicate() with the same level then reduces gradients by reduce-scatters and joins the gathers.
///
///   - An update does a share of the work and keeps a share of the optimiser's state.
///   - Levels 1 and 2: behind the updates an all-gather "weights<k>" a bucket of weights of a
///   device.
///   - From level 2 on, gradients that updates read are shares; collectives between them, too, but
///   those `ahead` of them.
///   - Level 3: weights are shares. A unit's are gathered ("<unit>/gather") before its forward
///     operators read them and again ("<unit>/gather_again") before its backward ones (and what
///     they compute again), as the unit ahead of it on its device begins; they go with their last
///     reader.
///
/// Shares are rounded up. Throws ArgumentError for another level, fewer than two replicas, lists of
/// another length.
Sharded shard_states(const Graph& graph, const ShardingOptions& options);

}  // namespace trinity
