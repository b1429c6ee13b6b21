#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "graph/graph.h"
#include "strategy/chunk_order.h"

namespace trinity {

/// A pipeline or an order that contradicts its placement or its graph: no device could follow it.
/// Immutable.
class ScheduleError : public ArgumentError {
 public:
  using ArgumentError::ArgumentError;
};

/// Which of the ready tasks a free device runs next. A task is (micro-batch, operator), numbered
/// micro-batch * operators + operator.
enum class DispatchRule : uint8_t {
  fifo,      ///< the one ready first; ties by number
  lifo,      ///< the one ready last; ties by the larger number
  priority,  ///< the one of largest priority; ties by number
  order,     ///< a fixed sequence per device, whose head the device waits for
};

template <>
inline constexpr auto kWords<DispatchRule> = words("dispatch rule", "fifo", "lifo", "priority", "order");

/// How a placed graph is run: how often, and in which order on every device.
struct Schedule {
  int32_t micro_batches = 1;  ///< forward and backward run this often, update once at the end
  DispatchRule dispatch = DispatchRule::fifo;
  std::vector<int64_t> priority;     ///< DispatchRule::priority: per operator, the larger first
  std::vector<int32_t> order;        ///< DispatchRule::order: tasks, one device after the other
  /// DispatchRule::order: devices + 1 positions in `order`, or 2 * devices + 1. Each device then
  /// has a second sequence, whose head it runs first if that is ready, and never waits for.
  std::vector<int32_t> order_first;

  /// An asynchronous stream (PipeDream): the number of mini-batches to simulate, each with its
  /// updates; the step is the time of micro_batches of them in the steady state, measured between
  /// the ends of two of them (numbers from 0). 0: a synchronous step.
  int32_t stream = 0;
  int32_t measured_from = 0, measured_to = 0;
  /// Copies of its weights that a device keeps; empty: one each. A stage of PipeDream keeps one for
  /// every mini-batch that may be between its forward and its backward.
  std::vector<int32_t> weight_versions;
  /// Replaces an order that contradicts placement or graph: its plan counts as infeasible.
  bool contradicts = false;

  /// Number of times that forward and backward operators run in the simulation.
  int32_t runs() const { return stream > 0 ? stream : micro_batches; }

  bool operator==(const Schedule&) const = default;
};

uint64_t hash_value(const Schedule& schedule);

/// An immutable schedule with its hash.
struct FixedSchedule {
  explicit FixedSchedule(Schedule made) : schedule(std::move(made)), hash(hash_value(schedule)) {}

  const Schedule schedule;
  const uint64_t hash;
};

/// A schedule as scripts and strategy files state it; with a problem's costs it becomes a Schedule.
struct ScheduleSpec {
  /// A dispatch rule, a pipeline, or "critical_path": the priority of an operator is the longest
  /// path from its start to the end of the step.
  std::string name = "fifo";
  int32_t micro_batches = 1;
  std::vector<double> priority;  ///< "priority": per operator, the larger first
  std::vector<int32_t> stage;    ///< pipelines: per operator, from 0; empty: one per device
  std::vector<std::vector<int32_t>> order;  ///< "order": the tasks of every device
  PipelineOrder tasks = {};  ///< "order" with `stage`: the tasks of every pipeline rank (strategy/own_order.h)

  bool operator==(const ScheduleSpec&) const = default;
};

/// The schedule of replicas that servers take round-robin (field in_turn): used only by lowered
/// plans and therefore not in the names that users may choose.
inline constexpr const char* kRoundRobin = "round-robin";

/// Throws ArgumentError unless the name is known, only fields of this name are filled, and these
/// have one entry per operator (`priority`, no NaN; `stage`, any value for members of collectives,
/// which belong to no stage) or one list of existing tasks per device (`order`). Throws LimitError
/// beyond 2^30 tasks. Whether the order contradicts placement or graph is left to the simulator.
void check_schedule(const ScheduleSpec& spec, const Graph& graph, int32_t devices);

/// Operators that run once per step, whatever the number of micro-batches.
inline bool runs_once(const Operator& op) { return op.phase == Phase::update; }

/// The stage of every operator if every device is one stage. A device follows the devices that send
/// it tensors and get gradients back, otherwise devices are ordered by their first forward
/// operators (a label that the last stage reads does not make its device the first); only by this
/// if devices send each other such tensors in a cycle. Throws ArgumentError without forward
/// operators.
std::vector<int32_t> stages_by_device(const Graph& graph, std::span<const int32_t> placement);

/// True if an operator reads what one of its stage writes on another device: single operators are
/// placed inside it. Operators that only move or sum parts of others do not count, nor do devices
/// that do the same, as parts of attention in a ring.
bool places_operators(const Graph& graph, std::span<const int32_t> placement,
                      std::span<const int32_t> stage);

/// A pipeline's schedule: stage[o] numbers the stage of operator o from 0 (backward and update
/// operators carry the stage of their forward operator). A stage runs on one device, or on several:
/// its replicas, the parts of its split operators, operators placed one by one, which wait for each
/// other within a task; virtual stages are on the devices of device_of_chunk(), where p is the
/// number of stages with devices of their own. A device runs the tasks of chunk_order(), and the
/// operators of a task in ascending order. If operators wait for each other inside a stage
/// (places_operators()) they run by `turn`, one number per operator. Updates run last, or (pipedream) after the
/// backward operators of every mini-batch. The W tasks of a schedule are the operators that
/// find_weight_work() names (graph/split_backward.h). orders: tasks of each pipeline rank that
/// replace the tasks of `schedule`, with the same stages.
///
/// With p stages, stage s of `pipedream` (from 0) runs w = p - 1 - s forwards ahead and keeps
/// w + 1 versions of its weights. The stream is measured between the ends of mini-batches 4 p + 4
/// and 8 p + 8, and drains over p more.
///
/// Throws ScheduleError for orders with another number of ranks, or with stages or micro-batches
/// that do not exist; for stages on other devices than described above, stages against the order of
/// the graph, with which the schedule would deadlock (naming the operators), (interleaved)
/// micro-batches that are no multiple of the devices, (dualpipe-v) fewer than twice the devices, or
/// a backward operator that computes both gradients if the schedule splits them; ArgumentError for
/// lists of another length and numbers out of range; LimitError for more than 2^31 tasks.
Schedule pipeline_schedule(const Graph& graph, std::span<const int32_t> placement, int32_t devices,
                           std::span<const int32_t> stage, int32_t micro_batches,
                           PipelineSchedule schedule, std::span<const int32_t> turn = {},
                           const PipelineOrder& orders = {});

}  // namespace trinity
