#pragma once

#include <string>

#include "simulator/metrics.h"
#include "simulator/problem.h"

namespace trinity {

/// A simulated step as a Chrome trace (JSON object format) for Perfetto and chrome://tracing. Equal
/// inputs give equal bytes.
///
/// One process per device. Its thread "compute" holds the tasks. Transfers are on threads of the
/// sending device: "send" if a device has one send queue, otherwise "to <device>". Collectives are
/// on thread "collectives" of every member's device. If slices of one thread would overlap, the
/// later one goes to a further thread "... (2)", "... (3)". Arrows lead from a producer to its
/// transfer and on to the first reader that the copy serves. Counter "memory" is the level in
/// bytes, if memory is modelled.
///
/// Micro-batches count from 1. Times are microseconds with three decimals (exact nanoseconds).
/// `otherData` names graph and cluster; its step_time_s is the end of the last task. In names that
/// are not UTF-8, wrong bytes become U+FFFD.
std::string chrome_trace(const Problem& problem, const Timeline& timeline);

}  // namespace trinity
