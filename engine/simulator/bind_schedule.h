#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/problem.h"
#include "strategy/schedule.h"

namespace trinity {

/// The treatment of a plan whose schedule its placement or graph contradicts (ScheduleError).
enum class OnContradiction : uint8_t {
  fail,        ///< throw the error
  unschedule,  ///< simulate it first in, first out, and mark it infeasible (Metrics::unscheduled)
};

/// Resolves a schedule description for a placement, using the problem's costs where the schedule
/// needs them. Throws the ArgumentError, LimitError and (with `fail`) ScheduleError of
/// pipeline_schedule().
Schedule bind_schedule(const ScheduleSpec& spec, std::span<const int32_t> placement,
                       const Problem& problem, OnContradiction on_contradiction);

/// Start rank (from 0; 0 for members of collectives) of each operator in one micro-batch, if every
/// device ran first what is ready first (ties by number), messages waited for nothing and
/// collectives took no time. pipeline_schedule() orders a stage's operators by it if they are
/// placed one by one. Empty if they are not (places_operators()). devices: cluster index of every
/// device that `placement` names; empty: identical. O(edges log operators).
std::vector<int32_t> turns_inside(const Problem& problem, std::span<const int32_t> placement,
                                  std::span<const int32_t> stage,
                                  std::span<const int32_t> devices = {});

}  // namespace trinity
