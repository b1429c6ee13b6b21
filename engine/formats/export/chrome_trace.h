#pragma once

#include <string>

#include "simulator/metrics.h"
#include "simulator/problem.h"

namespace trinity {

/// A simulated step as a Chrome trace (JSON object format), which Perfetto and chrome://tracing
/// open. Equal inputs give equal bytes.
///
/// One process a device. Its thread "compute" holds the tasks; transfers lie on threads of the
/// sending device, "send" where a device has one send queue and "to <device>" otherwise;
/// collectives on thread "collectives" of every device with a member. Where slices of one thread
/// would overlap, the later one goes to a further thread "... (2)", "... (3)". Arrows lead from a
/// producer to its transfer and on to the first reader that the copy serves. Counter "memory" is
/// the level in bytes, where memory is accounted.
///
/// Micro-batches count from 1. Times are microseconds with three decimals, whole nanoseconds
/// exactly. `otherData` names graph and cluster and gives the end of the last task as step_time_s.
/// Names that are no UTF-8 have the wrong bytes replaced by U+FFFD.
std::string chrome_trace(const Problem& problem, const Timeline& timeline);

}  // namespace trinity
