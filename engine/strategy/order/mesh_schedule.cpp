#include "strategy/mesh_schedule.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/index.h"
#include "base/words.h"
#include "strategy/own_order.h"

namespace trinity {
namespace {

constexpr const char* kMeshSchedules[] = {
    "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-interleaved", "zb-v", "dualpipe-v", "order"};

void check_virtual_stages(const Parallelism& given, PipelineSchedule schedule) {
  const int32_t p = given.mesh.pipeline, v = given.virtual_stages;
  if (v > 1 && !takes_chunks(schedule))
    throw ArgumentError(
        "virtual_stages = {}: schedule '{}' expects one stage per device; use schedule '{}' for several", v,
        given.schedule, splits_backward(schedule) ? "zb-interleaved" : "interleaved");
  if (p == 1 && v > 1)
    throw ArgumentError("virtual_stages = {}: expected a mesh with pipeline > 1", v);
  if (p > 1 && is_v_shaped(schedule) && v != 2)
    throw ArgumentError("schedule '{}': expected virtual_stages = 2 (stages visit the devices forwards, then "
                        "backwards), got {}", given.schedule, v);
}

void check_micro_batches(const Parallelism& given, PipelineSchedule schedule) {
  const int32_t p = given.mesh.pipeline, m = given.micro_batches;
  const bool v_shaped = is_v_shaped(schedule);
  if (given.virtual_stages > 1 && !v_shaped && m % p != 0)
    throw ArgumentError("schedule '{}': expected micro_batches that pipeline = {} divides, got {} (nearest: {}{})",
                        given.schedule, p, m, m < p ? "" : fmt::format("{} or ", m / p * p), (m / p + 1) * p);
  if (p == 1 || !splits_backward(schedule)) return;
  const bool twice = v_shaped || schedule == PipelineSchedule::zb_h2;
  const int32_t least = v_shaped ? 2 * p : twice ? 2 * p - 1 : p;
  if (m < least)
    throw ArgumentError("schedule '{}': expected at least {} micro_batches, {}pipeline = {}, got {}: fewer do not fill "
                        "its bubble", given.schedule, least, v_shaped ? "twice " : twice ? "one less than twice " : "",
                        p, m);
}

/// Checks that a custom order fits this pipeline.
void check_tasks(const Parallelism& given) {
  if (given.tasks.empty())
    throw ArgumentError("schedule 'order': expected 'tasks' with one row per pipeline rank, got "
                        "none");
  if (std::ssize(given.tasks) != given.mesh.pipeline)
    throw ArgumentError("tasks: expected pipeline = {} rows, got {}", given.mesh.pipeline, given.tasks.size());
  try {
    check_order(given.tasks);
  } catch (const ArgumentError& error) {
    throw ArgumentError("tasks: {}", error.what());
  }
  const auto expect = [](const char* field, int32_t value, int32_t of_tasks) {
    if (value != of_tasks)
      throw ArgumentError("{}: expected {} (from 'tasks'), got {}", field, of_tasks, value);
  };
  expect("micro_batches", given.micro_batches, micro_batches_of(given.tasks));
  expect("virtual_stages", given.virtual_stages, virtual_stages_of(given.tasks));
}

}  // namespace

void check_pipeline(const Parallelism& given) {
  parse_word("schedule", given.schedule, kMeshSchedules);
  if (given.schedule == "order") return check_tasks(given);
  if (!given.tasks.empty())
    throw ArgumentError("tasks: expected schedule 'order', got '{}'", given.schedule);
  const auto schedule = parse_choice<PipelineSchedule>(given.schedule);
  check_virtual_stages(given, schedule);
  check_micro_batches(given, schedule);
}

void check_stages(const Parallelism& given) {
  const auto& stages = given.stages;
  if (static_cast<int64_t>(stages.size()) != int64_t{given.mesh.pipeline} * given.virtual_stages)
    return;  // refused where the number of layers is known
  for (size_t s = 0; s < stages.size(); ++s)
    if (stages[s] < (s > 0 && s + 1 < stages.size() ? 1 : 0))
      throw ArgumentError("stages: stage {} of {} has {} layers; expected at least 1 between the first stage and the "
                          "last one", s + 1, stages.size(), stages[s]);
}

std::vector<int32_t> layers_per_stage(const Parallelism& given, int32_t layers) {
  const int32_t stages = given.mesh.pipeline * given.virtual_stages;
  auto per_stage = given.stages;
  if (stages == 1 && per_stage.empty()) per_stage = {layers};
  if (per_stage.empty()) {
    if (layers % stages != 0)
      throw ArgumentError("mesh: {} layers do not divide over {} stages (pipeline {} x virtual_stages {}); 'stages' "
                          "gives the layers of each", layers, stages, given.mesh.pipeline, given.virtual_stages);
    per_stage.assign(at(stages), layers / stages);
  }
  const int64_t sum = std::accumulate(per_stage.begin(), per_stage.end(), int64_t{0});
  if (per_stage.size() != at(stages) || sum != layers)
    throw ArgumentError("stages: expected {} numbers of layers (pipeline {} x virtual_stages {}) with the sum {}, "
                        "got {} with the sum {}", stages, given.mesh.pipeline, given.virtual_stages, layers,
                        per_stage.size(), sum);
  return per_stage;
}

PipelineSchedule schedule_of(const Parallelism& given) {
  if (!given.tasks.empty()) return layout_of(given.tasks);
  const auto schedule = parse_choice<PipelineSchedule>(given.schedule);
  if (given.virtual_stages > 1) return schedule;
  if (given.mesh.pipeline == 1 && splits_backward(schedule)) return PipelineSchedule::one_f_one_b;
  if (schedule == PipelineSchedule::interleaved) return PipelineSchedule::one_f_one_b;
  return schedule == PipelineSchedule::zb_interleaved ? PipelineSchedule::zb_h1 : schedule;
}

PipelineOrder order_of(const Parallelism& given) {
  if (!given.tasks.empty()) return given.tasks;
  PipelineOrder order;
  for (int32_t place = 0; place < given.mesh.pipeline; ++place)
    order.push_back(chunk_order(schedule_of(given), given.mesh.pipeline, given.virtual_stages,
                                given.micro_batches, place));
  return order;
}

ScheduleBubble schedule_bubble(const Parallelism& given) {
  check_pipeline(given);
  ChunkTimes times;
  if (given.recompute == Recompute::full) times.input += times.forward;
  if (!given.tasks.empty())
    return schedule_bubble(given.tasks, given.virtual_stages, given.micro_batches, times);
  return schedule_bubble(schedule_of(given), given.mesh.pipeline, given.virtual_stages,
                         given.micro_batches, times);
}

namespace {

constexpr int32_t kFrom = 8, kTo = 24;  // measured between the ends of these mini-batches

/// Operators that a device runs in every mini-batch, ascending.
struct DeviceWork {
  std::vector<int32_t> own, updates;         // of its replica: forward and backward, then weights
  std::vector<std::vector<int32_t>> serves;  // by replica
};

class RoundRobin {
 public:
  RoundRobin(const Graph& graph, std::span<const int32_t> placement, int32_t devices,
             std::span<const int32_t> turn)
      : graph_(graph), turn_(turn), work_(at(devices)) {
    for (const int32_t replica : turn) replicas_ = std::max(replicas_, replica + 1);
    for (auto& device : work_) device.serves.resize(at(replicas_));
    for (int32_t op = 0; op < graph.operator_count(); ++op) {
      if (graph.op(op).collective >= 0) continue;
      auto& device = work_[placement[op]];
      auto& list = serves(op)                  ? device.serves[turn[op]]
                   : runs_once(graph.op(op)) ? device.updates
                                             : device.own;
      list.push_back(op);
    }
  }

  Schedule run(int32_t micro_batches) {
    const int32_t runs = std::max(kTo + 2, micro_batches);
    if (int64_t{runs} * graph_.operator_count() > std::numeric_limits<int32_t>::max())
      throw LimitError("a stream of {} mini-batches of the {} operators of graph '{}' is more than 2^31 tasks", runs,
                       graph_.operator_count(), graph_.name());
    result_.micro_batches = micro_batches;
    result_.dispatch = DispatchRule::order;
    result_.stream = runs;
    result_.measured_from = kFrom;
    result_.measured_to = kTo;
    result_.weight_versions.assign(work_.size(), 1);
    result_.order_first.push_back(0);
    for (const auto& device : work_)
      add_list(runs, [&](int32_t m) {
        for (const auto* list : {&device.own, &device.updates}) add_all(*list, m);
      });
    for (const auto& device : work_)
      add_list(runs, [&](int32_t m) {
        for (const auto& list : device.serves) add_all(list, m);
      });
    return std::move(result_);
  }

 private:
  /// True if an update waits for another replica's, or that one for it: both are a server's.
  bool serves(int32_t op) const {
    const auto& about = graph_.op(op);
    if (about.phase != Phase::update) return false;
    for (const int32_t input : about.inputs)
      if (turn_[graph_.tensor(input).producer] != turn_[op]) return true;
    return std::ranges::any_of(graph_.readers(op), [&](int32_t reader) { return turn_[reader] != turn_[op]; });
  }

  template <class Round>
  void add_list(int32_t runs, Round round) {
    for (int32_t m = 0; m < runs; ++m) round(m);
    result_.order_first.push_back(static_cast<int32_t>(result_.order.size()));
  }

  void add_all(const std::vector<int32_t>& operators, int32_t micro_batch) {
    for (const int32_t op : operators)
      result_.order.push_back(micro_batch * graph_.operator_count() + op);
  }

  const Graph& graph_;
  std::span<const int32_t> turn_;
  std::vector<DeviceWork> work_;
  int32_t replicas_ = 0;
  Schedule result_;
};

}  // namespace

Schedule round_robin_schedule(const Graph& graph, std::span<const int32_t> placement,
                              int32_t devices, std::span<const int32_t> turn,
                              int32_t micro_batches) {
  const auto count = at(graph.operator_count());
  if (placement.size() != count || turn.size() != count)
    throw ArgumentError("internal error: schedule '{}': graph '{}' has {} operators, got {} devices and turns of {}",
                        kRoundRobin, graph.name(), count, placement.size(), turn.size());
  for (const int32_t device : placement)
    if (device < 0 || device >= devices)
      throw ArgumentError("schedule '{}': device {}, expected 1 to {}", kRoundRobin, device + 1, devices);
  return RoundRobin(graph, placement, devices, turn).run(micro_batches);
}

}  // namespace trinity
