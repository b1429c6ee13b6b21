#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace trinity {

struct ShardingOptions {
  int32_t level = 1;  ///< ZeRO stage: 1 optimiser state, 2 also gradients, 3 also weights
  int32_t replicas = 2;               ///< number of shards, at least 2
  int64_t bucket_bytes = 25'000'000;  ///< of updated weights that are gathered together
  std::span<const int32_t> device;    ///< [operator], within one replica
  /// ZeRO-3: [operator] weights with equal numbers on one device are gathered together; negative:
  /// alone.
  std::span<const int32_t> unit;
  /// [operator]: number of ranks that its weights are already sharded over (graph/experts.h), so
  /// that replicas / spread replicas shard them; empty: 1.
  std::span<const int32_t> spread = {};
  /// [operator]: weights with different numbers are not gathered together; empty: all are equal.
  std::span<const int32_t> apart = {};
  /// [collective of phase update]: it runs before gradients are sharded (it reduces the input of a
  /// collective of all replicas that scatters, or is that collective); empty: none.
  std::vector<bool> ahead = {};
};

/// A replica's graph with sharded state.
struct Sharded {
  Graph graph;
  std::vector<int32_t> origin;  ///< [operator]: the original one; -1: a gather
  std::vector<int32_t> near;    ///< the same; for a gather: an operator whose weights it gathers
  /// [operator]: bytes that the copies of a gather on all replicas gather together, else 0. Input
  /// of ReplicaOptions::gathered.
  std::vector<int64_t> gathered;
};

/// ZeRO (Rajbhandari et al. 2020, sections 5 and 7) for one replica of a training graph.
/// replicate() with the same stage then reduces gradients by reduce-scatters and joins the gathers.
///
///   - An update does a share of the work and keeps a shard of the optimiser state.
///   - Stages 1 and 2: after the updates, one all-gather "weights<k>" per bucket of a device's
///     weights.
///   - From stage 2 on: gradients that updates read are shards, and so are the tensors of
///     collectives between them, except those `ahead`.
///   - Stage 3: weights are shards. A unit's weights are gathered ("<unit>/gather") before its
///     forward operators read them and again ("<unit>/gather_again") before its backward (and
///     recomputed) ones, when the previous unit on its device begins. They are released after their
///     last reader.
///
/// Shards are rounded up. Throws ArgumentError for another stage, fewer than two replicas or lists
/// of the wrong length.
Sharded shard_states(Graph graph, const ShardingOptions& options);

}  // namespace trinity
