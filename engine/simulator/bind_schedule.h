#pragma once

#include <span>

#include "simulator/problem.h"
#include "strategy/schedule.h"

namespace trinity {

/// What happens to a plan whose schedule its placement or graph contradict (ScheduleError).
enum class OnContradiction : uint8_t {
  fail,        ///< the error is thrown
  unschedule,  ///< it is priced first in, first out, and does not fit (Metrics::unscheduled)
};

/// The schedule that a description stands for under a placement, with the problem's costs where it
/// asks for them. Throws ArgumentError, LimitError and (`fail`) ScheduleError of
/// pipeline_schedule().
Schedule bind_schedule(const ScheduleSpec& spec, std::span<const int32_t> placement,
                       const Problem& problem, OnContradiction on_contradiction);

}  // namespace trinity
