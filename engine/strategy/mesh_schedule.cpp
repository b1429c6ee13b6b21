#include "strategy/mesh_schedule.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/index.h"
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

namespace {

constexpr int32_t kFrom = 8, kTo = 24;  // mini-batches between whose ends it is measured

/// What a device runs in every mini-batch, operators ascending.
struct DeviceWork {
  int32_t own = -1;                          // its replica
  std::vector<int32_t> compute, update;      // for its own replica
  std::vector<std::vector<int32_t>> serves;  // for others, by how far they come behind it
};

class RoundRobin {
 public:
  RoundRobin(const Graph& graph, std::span<const int32_t> placement, int32_t devices,
             std::span<const int32_t> turn)
      : graph_(graph), work_(at(devices)) {
    for (const int32_t replica : turn) replicas_ = std::max(replicas_, replica + 1);
    for (auto& device : work_) device.serves.resize(at(replicas_));
    for (int32_t op = 0; op < graph.operator_count(); ++op)
      if (graph.op(op).phase == Phase::forward) work_[placement[op]].own = turn[op];
    for (int32_t op = 0; op < graph.operator_count(); ++op)
      if (graph.op(op).collective < 0) add(op, placement[op], turn[op]);
  }

  Schedule run(int32_t micro_batches) {
    runs_ = std::max(kTo + 2, micro_batches);
    if (int64_t{runs_} * graph_.operator_count() > std::numeric_limits<int32_t>::max())
      throw LimitError(fmt::format("a stream of {} mini-batches of the {} operators of graph '{}' "
                                   "is more than 2^31 tasks",
                                   runs_, graph_.operator_count(), graph_.name()));
    result_.micro_batches = micro_batches;
    result_.dispatch = DispatchRule::order;
    result_.stream = runs_;
    result_.measured_from = kFrom;
    result_.measured_to = kTo;
    result_.weight_versions.assign(work_.size(), 1);
    result_.order_first.push_back(0);
    for (const auto& device : work_) {
      for (int32_t m = 0; device.own >= 0 && m < runs_; ++m) add_round(device, m);
      for (int32_t i = 1; i < replicas_; ++i) add_turn(device, i, runs_ - 1);
      result_.order_first.push_back(static_cast<int32_t>(result_.order.size()));
    }
    return std::move(result_);
  }

 private:
  void add(int32_t op, int32_t device, int32_t turn) {
    auto& work = work_[device];
    if (work.own < 0)
      throw ArgumentError(fmt::format("schedule '{}': operator '{}' is on device {}, which has no "
                                      "forward operators",
                                      kRoundRobin, graph_.op(op).name, device + 1));
    if (turn != work.own)
      work.serves[at((turn - work.own + replicas_) % replicas_)].push_back(op);
    else
      (runs_once(graph_.op(op)) ? work.update : work.compute).push_back(op);
  }

  void add_all(const std::vector<int32_t>& operators, int32_t micro_batch) {
    for (const int32_t op : operators)
      result_.order.push_back(micro_batch * graph_.operator_count() + op);
  }

  /// What a device does for the replica that comes so far behind its own. One with a lower number
  /// is taken in the round that begins.
  void add_turn(const DeviceWork& device, int32_t behind, int32_t after) {
    const int32_t micro_batch = device.own + behind < replicas_ ? after : after + 1;
    if (micro_batch >= 0 && micro_batch < runs_) add_all(device.serves[at(behind)], micro_batch);
  }

  void add_round(const DeviceWork& device, int32_t m) {
    size_t done = 0;
    for (int32_t behind = 1; behind <= replicas_; ++behind) {
      const size_t until = device.compute.size() * at(behind) / at(replicas_);
      for (; done < until; ++done)
        result_.order.push_back(m * graph_.operator_count() + device.compute[done]);
      if (behind < replicas_) add_turn(device, behind, m - 1);
    }
    add_all(device.update, m);
  }

  const Graph& graph_;
  std::vector<DeviceWork> work_;
  int32_t replicas_ = 0, runs_ = 0;
  Schedule result_;
};

}  // namespace

Schedule round_robin_schedule(const Graph& graph, std::span<const int32_t> placement,
                              int32_t devices, std::span<const int32_t> turn,
                              int32_t micro_batches) {
  const auto count = at(graph.operator_count());
  if (placement.size() != count || turn.size() != count)
    throw ArgumentError(fmt::format("schedule '{}': graph '{}' has {} operators, got {} devices and "
                                    "turns of {}",
                                    kRoundRobin, graph.name(), count, placement.size(),
                                    turn.size()));
  for (const int32_t device : placement)
    if (device < 0 || device >= devices)
      throw ArgumentError(fmt::format("schedule '{}': device {}, expected 1 to {}", kRoundRobin,
                                      device + 1, devices));
  return RoundRobin(graph, placement, devices, turn).run(micro_batches);
}

}  // namespace trinity
