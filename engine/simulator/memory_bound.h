#pragma once

#include <cstdint>

#include "simulator/problem.h"

namespace trinity {

/// Lower bound on the largest peak memory of a device in bytes. It holds for every placement that
/// keeps colocation units together, and for every dispatch rule, order, queue model and cluster.
/// Returns 0 if memory is not modelled. Near linear in the size of the graph.
///
/// With MemoryModel::slots the bound is the larger of:
///
///   (a) the need of one operator: its unit's fixed bytes, its workspace, inputs and outputs. For
///       an operator that takes no time, inputs that a collective writes or that may arrive in no
///       time are excluded, because they may begin in a later slot of the same instant;
///   (b) what must exist at one instant, averaged over the devices: all fixed bytes and, for an
///       operator v, its outputs, its workspace and all tensors that an ancestor of v writes and v
///       or a descendant of v reads.
///
/// Proof of (b). Order the starts of all tasks by time, then by the order in which the engine
/// starts them. On each device this is the order of slots, and no task starts before one that it
/// depends on. Take a task of v, and let s(d) be the slot of the last task that device d has
/// started by then (its first slot if there is none). Let an ancestor u of v write x, and let w (v
/// or a descendant) read it. x was allocated by then, because u has ended, and w starts with v or
/// later.
///
///   - If w is on the device of u, x is held from the slot of u, not after s(d), to the slot of w,
///   not
///     before s(d).
///   - Otherwise w reads a copy. If its transfer starts before v does, the copy's slot on the
///     reader's device is not after s, and it is held until w. If not, x is held on its own device
///     until the slot of the transfer's end, which is not before s.
///
/// So x is in slot s(d) of some device, and the levels of these slots add up to at least the bytes
/// of all such tensors.
///
/// Special cases. A view has the bytes of the tensor that it views and extends its life on the
/// device; a tensor and its views therefore count once, and not at all if the origin is a
/// Variable's weights. Outputs of members of collectives count only as a view of their inputs: they
/// begin in the slot of the collective's start, which may be after s(d) at a tie in time. With
/// several micro-batches the argument uses one micro-batch; tensors that accumulate are held from
/// the first micro-batch on, so operators that run once may follow the last. Edges from operators
/// that run once to others are then ignored, because they impose no order. A stream's mini-batches
/// are ordinary runs of the graph.
///
/// Candidates for v are operators along the path that writes the most bytes (equally spaced, then
/// the ones around the best) and the operators with the largest need. In a training step the best v
/// is the turn from forward to backward, where all that backward reads must exist.
int64_t peak_memory_bound(const Problem& problem, int32_t micro_batches, bool stream);

/// Throws LimitError if no placement can fit: the fixed bytes exceed the memory of all devices
/// together, or one operator needs more than every device has.
void check_memory(const Problem& problem);

}  // namespace trinity
