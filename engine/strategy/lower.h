#pragma once

#include <cstdint>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "strategy/mesh.h"
#include "strategy/schedule.h"

namespace trinity {

/// What a strategy makes of a graph: what is simulated and executed.
struct LoweredStrategy {
  Graph graph;
  std::vector<int32_t> placement;  ///< device of every operator, from 0
  ScheduleSpec schedule;           ///< with the virtual stage of every operator
  std::vector<int32_t> origin;     ///< operator of the original graph; -1: what moves or sums
  std::vector<int32_t> home;       ///< of every original operator: where its first part is
  std::vector<int32_t> layers;     ///< of every virtual stage
  /// Of every operator whether it is for what stands before the layers (0), for them (1), or for
  /// what stands behind them (2).
  std::vector<int32_t> part;
  std::vector<int32_t> pipeline;  ///< of every virtual stage: where on that axis it is, from 0
};

/// Lowers a training graph of repeated layers (graph/layers.h), in this order: operators are split
/// over `tensor` (tensor_splits()), layers are recomputed, the backward pass is cut in two where
/// the schedule wants it (split_backward()), replicas are added with all-reduces of gradients in
/// buckets (replicate()), micro-batches are scheduled (pipeline_schedule()).
///
/// Throws ArgumentError, with fields, sizes and the nearest values that would do: a mesh of more
/// devices than the cluster has; layers that do not divide over the stages, a list of stages of
/// another length or sum; virtual stages of a schedule that has none, or other than two of one in V
/// shape; micro-batches of interleaved that are no multiple of the pipeline, or fewer than fill a
/// zero-bubble schedule: the pipeline, twice that in V shape; a network without repeated layers
/// where there are stages or recomputation; and what tensor_splits() throws.
LoweredStrategy lower(const Parallelism& parallelism, const Graph& graph, const Cluster& cluster);

}  // namespace trinity
