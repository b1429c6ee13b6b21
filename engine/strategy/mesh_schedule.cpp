#include "strategy/mesh_schedule.h"

#include <algorithm>

#include "base/error.h"
#include "base/words.h"

namespace trinity {
namespace {

constexpr const char* kMeshSchedules[] = {"gpipe",          "1f1b", "interleaved", "zb-h1",
                                          "zb-interleaved", "zb-v", "dualpipe-v"};

void check_virtual_stages(const Parallelism& given, PipelineSchedule schedule) {
  const int32_t p = given.mesh.pipeline, v = given.virtual_stages;
  if (v > 1 && !takes_chunks(schedule))
    throw ArgumentError(fmt::format(
        "virtual_stages = {}: schedule '{}' has one a device; schedule '{}' has several", v,
        given.schedule, splits_backward(schedule) ? "zb-interleaved" : "interleaved"));
  if (p == 1 && v > 1)
    throw ArgumentError(fmt::format("virtual_stages = {}: expected a mesh with pipeline > 1", v));
  if (p > 1 && is_v_shaped(schedule) && v != 2)
    throw ArgumentError(
        fmt::format("schedule '{}': expected virtual_stages = 2, which go over the devices forth "
                    "and back, got {}",
                    given.schedule, v));
}

void check_micro_batches(const Parallelism& given, PipelineSchedule schedule) {
  const int32_t p = given.mesh.pipeline, m = given.micro_batches;
  const bool v_shaped = is_v_shaped(schedule);
  if (given.virtual_stages > 1 && !v_shaped && m % p != 0)
    throw ArgumentError(fmt::format(
        "schedule '{}': expected micro_batches that pipeline = {} divides, got {} (nearest: {}{})",
        given.schedule, p, m, m < p ? "" : fmt::format("{} or ", m / p * p), (m / p + 1) * p));
  if (p == 1 || !splits_backward(schedule)) return;
  const int32_t least = v_shaped ? 2 * p : p;
  if (m < least)
    throw ArgumentError(fmt::format(
        "schedule '{}': expected at least {} micro_batches, {}pipeline = {}, got {}: fewer do not "
        "fill its bubble",
        given.schedule, least, v_shaped ? "twice " : "", p, m));
}

}  // namespace

void check_pipeline(const Parallelism& given) {
  parse_word("schedule", given.schedule, kMeshSchedules);
  const auto schedule = parse_pipeline_schedule(given.schedule);
  check_virtual_stages(given, schedule);
  check_micro_batches(given, schedule);
}

PipelineSchedule schedule_of(const Parallelism& given) {
  const auto schedule = parse_pipeline_schedule(given.schedule);
  if (given.virtual_stages > 1) return schedule;
  if (given.mesh.pipeline == 1 && splits_backward(schedule)) return PipelineSchedule::one_f_one_b;
  if (schedule == PipelineSchedule::interleaved) return PipelineSchedule::one_f_one_b;
  return schedule == PipelineSchedule::zb_interleaved ? PipelineSchedule::zb_h1 : schedule;
}

ScheduleBubble schedule_bubble(const Parallelism& given) {
  check_pipeline(given);
  ChunkTimes times;
  if (given.recompute == Recompute::full) times.input += times.forward;
  return schedule_bubble(schedule_of(given), given.mesh.pipeline, given.virtual_stages,
                         given.micro_batches, times);
}

}  // namespace trinity
