#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategy/schedule.h"

namespace trinity {

/// pipeline_schedule() with another order of tasks: `orders` has one list a place on the pipeline,
/// of the stages that it has by `schedule`, which says where stages are and whether weight parts are
/// tasks of their own. Throws what pipeline_schedule() throws, ScheduleError for another number of
/// lists.
Schedule pipeline_schedule(const Graph& graph, std::span<const int32_t> placement, int32_t devices,
                           std::span<const int32_t> stage, int32_t micro_batches,
                           PipelineSchedule schedule,
                           std::span<const std::vector<ChunkTask>> orders);

}  // namespace trinity
