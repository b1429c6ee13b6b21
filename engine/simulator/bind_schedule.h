#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

/// The turn of each operator (from 0; of members of collectives 0) in one micro-batch, if every
/// device ran first what is ready first (ties by number), messages waited for nobody, and
/// collectives took no time: the order in which devices of a stage run its operators where these are
/// placed one by one (pipeline_schedule()). Empty where they are not (places_operators()). devices:
/// the cluster's number of every device that `placement` names; empty: the same. O(edges log
/// operators).
std::vector<int32_t> turns_inside(const Problem& problem, std::span<const int32_t> placement,
                                  std::span<const int32_t> stage,
                                  std::span<const int32_t> devices = {});

}  // namespace trinity
