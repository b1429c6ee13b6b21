#pragma once

#include "strategy/chunk_order.h"
#include "strategy/mesh.h"
#include "strategy/schedule.h"

namespace trinity {

/// Throws ArgumentError with fields, sizes and the nearest valid values: an unknown schedule; tasks
/// without schedule "order", and the other way round; whatever check_order() refuses; virtual
/// stages of a schedule that has none, or other than two of one in V shape; micro-batches of an
/// interleaved schedule that are no multiple of the pipeline, or fewer than a zero-bubble schedule
/// needs: one per stage of the pipeline, twice that in V shape, one less than that for zb-h2.
void check_pipeline(const Parallelism& given);

/// Throws ArgumentError for a stage without layers that would have no operators: only the first and
/// the last stage have operators outside of layers.
void check_stages(const Parallelism& given);

/// The number of layers of every virtual stage of a network with this many. Throws ArgumentError where they do not divide
/// over the stages, or `stages` has other numbers.
std::vector<int32_t> layers_per_stage(const Parallelism& given, int32_t layers);

/// The effective schedule: with one virtual stage per device nothing is interleaved, and on one
/// device no schedule splits the backward pass.
PipelineSchedule schedule_of(const Parallelism& given);

/// The work of every position of a pipeline.
PipelineOrder order_of(const Parallelism& given);

/// The bubble of its schedule if all stages are equal, messages are free, and F, B and W take
/// equally long; recomputed layers run forward once more before B, the core of attention costs
/// nothing. Throws what check_pipeline() and the other schedule_bubble() throw.
ScheduleBubble schedule_bubble(const Parallelism& given);

/// Replicas that servers take round-robin, as a stream of mini-batches without a flush: turn[o] is
/// the replica, from 0, for which operator o runs. A device runs forward and backward of a
/// mini-batch, then pulls its weights; a server's device also has a second list
/// (Schedule::order_first) of the operators that update weights by one replica after the other. The
/// step is measured from the end of mini-batch 8 to the end of mini-batch 24, numbers from 0.
///
/// Throws ArgumentError for lists of another length and devices out of range, LimitError for more
/// than 2^31 tasks.
Schedule round_robin_schedule(const Graph& graph, std::span<const int32_t> placement,
                              int32_t devices, std::span<const int32_t> turn,
                              int32_t micro_batches);

}  // namespace trinity
