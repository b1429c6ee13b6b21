#pragma once

#include <cstdint>

#include "simulator/problem.h"

namespace trinity {

/// Bytes that the fullest device holds at its peak, whatever the placement (colocation units kept
/// together), dispatch rule, order, queue model and cluster; 0 where memory is not accounted. Near
/// linear in the size of the graph.
///
/// By slots it is the largest of
///   - what one operator needs at once: its unit's fixed bytes, its workspace, inputs and outputs.
///     (Of an operator that takes no time, inputs that a collective writes or that may be received
///     in no time are left out: they begin in the last slot of an instant, which may be after the
///     operator's);
///   - what must exist somewhere at one instant, spread evenly over the devices: all fixed bytes,
///     and for an operator v all tensors that an ancestor of v writes and v or a descendant of it
///     reads, the outputs of v and its workspace.
///
/// Proof of the second. Order the starts of all tasks by time, then by the order in which the
/// engine starts them: on each device this is the order of slots, and no task starts before one
/// that it depends on. Take a task of v, and on every device d the slot s(d) of the last task
/// started up to then (the first slot where none is). A tensor x of an ancestor u was allocated by
/// then: u has ended. Its reader w, v or a descendant, starts with v or after it. If w is on the
/// device of u, x is held from the slot of u, not after s(d), to that of w, not before s(d).
/// Elsewhere w reads a copy. If its transfer starts before the time at which v does, it lies in a slot of
/// the reader's device not after s, and is held until w; if not, x is held on its own device until
/// the slot of the transfer's end, which is not before s. So x is in the slot s(d) of some device, and
/// the levels of these slots add up to no less than all such tensors. Views have the bytes of what
/// they view and prolong it on their device: of a tensor and all its views one is held where any of
/// them is needed, so that they count once, and not at all where the origin is a Variable's
/// weights. What members of collectives write counts only as a view of what they read: it lies in
/// the slot of the collective's start, which by a tie in time may be after s(d). Of several
/// micro-batches the argument takes one, in which the last may be followed by operators that run
/// once: tensors that accumulate for them are held from the first micro-batch on. Edges from
/// operators that run once to others are left out then, as they bind no order. A stream's
/// mini-batches are runs of the graph like any other.
///
/// Operators along the path on which most bytes are written are tried as v, some evenly spaced and
/// then those around the best, and those that need most at once: in a training step the turn from
/// forward to backward, where all that backward reads must exist.
int64_t peak_memory_bound(const Problem& problem, int32_t micro_batches, bool stream);

/// Throws LimitError when no placement can fit: the fixed bytes exceed all devices together, or
/// what one operator needs at once exceeds every device.
void check_memory(const Problem& problem);

}  // namespace trinity
