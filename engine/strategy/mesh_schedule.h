#pragma once

#include "strategy/chunk_order.h"
#include "strategy/mesh.h"

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

}  // namespace trinity
