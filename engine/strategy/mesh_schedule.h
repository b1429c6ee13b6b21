#pragma once

#include "strategy/chunk_order.h"
#include "strategy/mesh.h"
#include "strategy/schedule.h"

namespace trinity {

/// Throws ArgumentError with fields, sizes and the nearest values that would do: an unknown
/// schedule; virtual stages of a schedule that has none, or other than two of one in V shape;
/// micro-batches of an interleaved schedule that are no multiple of the pipeline, or fewer than a
/// zero-bubble schedule needs: as many as the pipeline has stages, twice that in V shape.
void check_pipeline(const Parallelism& given);

/// The order that it comes to: with one virtual stage a device nothing is interleaved, on one
/// device no schedule splits the backward pass.
PipelineSchedule schedule_of(const Parallelism& given);

/// The bubble of its schedule where all stages are equal, messages are free, and a forward pass,
/// gradients of inputs and gradients of weights take equally long; layers that are recomputed run
/// forward once more before the gradients of inputs, the core of attention counts nothing. Throws
/// what check_pipeline() and the other schedule_bubble() throw.
ScheduleBubble schedule_bubble(const Parallelism& given);

/// pipeline_schedule() with another order of tasks: `orders` has one list a place on the pipeline,
/// of the stages that it has by `schedule`, which says where stages are and whether weight parts
/// are tasks of their own. Throws ScheduleError, too, for another number of lists, and for tasks of
/// stages or micro-batches that there are not. (In schedule.cpp.)
Schedule pipeline_schedule(const Graph& graph, std::span<const int32_t> placement, int32_t devices,
                           std::span<const int32_t> stage, int32_t micro_batches,
                           PipelineSchedule schedule,
                           std::span<const std::vector<ChunkTask>> orders);

}  // namespace trinity
