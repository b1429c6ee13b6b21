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

/// A pipeline or an order that its placement or its graph contradict: no device could keep to it.
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
  order,     ///< a fixed sequence a device, whose head the device waits for
};

/// Throws ArgumentError naming the accepted words.
DispatchRule parse_dispatch_rule(std::string_view name);
const char* dispatch_rule_name(DispatchRule rule);

/// How a placed graph is run: how often, and in which order on every device.
struct Schedule {
  int32_t micro_batches = 1;  ///< forward and backward run this often, update once at the end
  DispatchRule dispatch = DispatchRule::fifo;
  std::vector<int64_t> priority;     ///< DispatchRule::priority: per operator, the larger first
  std::vector<int32_t> order;        ///< DispatchRule::order: tasks, one device after the other
  /// DispatchRule::order: devices + 1 positions in `order`, or 2 * devices + 1. Each device then has
  /// a second sequence, aside, whose head it runs first where that is ready and does not wait for.
  std::vector<int32_t> order_first;

  /// An asynchronous stream (PipeDream): the number of mini-batches to simulate, each with its
  /// updates; the step is the time of micro_batches of them in the steady state, measured between
  /// the ends of two of them (numbers from 0). 0: a synchronous step.
  int32_t stream = 0;
  int32_t measured_from = 0, measured_to = 0;
  /// Copies of its weights that a device keeps; empty: one each. A stage of PipeDream keeps one for
  /// every mini-batch that may be between its forward and its backward.
  std::vector<int32_t> weight_versions;
  /// Stands in for an order that placement or graph contradict: its plan counts as not fitting.
  bool contradicts = false;

  /// How often forward and backward operators run in what is simulated.
  int32_t runs() const { return stream > 0 ? stream : micro_batches; }

  bool operator==(const Schedule&) const = default;
};

uint64_t hash_value(const Schedule& schedule);

/// A schedule that nobody changes any more, with its hash.
struct FixedSchedule {
  explicit FixedSchedule(Schedule made) : schedule(std::move(made)), hash(hash_value(schedule)) {}

  const Schedule schedule;
  const uint64_t hash;
};

/// A schedule as scripts and strategy files state it; a problem's costs make a Schedule of it.
struct ScheduleSpec {
  /// A dispatch rule, a pipeline, or "critical_path": the priority of an operator is the longest
  /// path from its start to the end of the step.
  std::string name = "fifo";
  int32_t micro_batches = 1;
  std::vector<double> priority;  ///< "priority": per operator, the larger first
  std::vector<int32_t> stage;    ///< pipelines: per operator, from 0; empty for one a device
  std::vector<std::vector<int32_t>> order;  ///< "order": the tasks of every device
  PipelineOrder tasks = {};  ///< "order" with `stage`: the tasks of every place on the pipeline (strategy/own_order.h)

  bool operator==(const ScheduleSpec&) const = default;
};

/// The schedule of replicas that servers take round-robin (field in_turn): of lowered plans only,
/// so that no list of names for users has it.
inline constexpr const char* kRoundRobin = "round-robin";

/// Throws ArgumentError unless the name is known, only fields of this name are filled, and these
/// have an entry an operator (`priority`, no NaN; `stage`, of any value for members of collectives,
/// which belong to no stage) or a list a device, of existing tasks (`order`). Throws LimitError
/// beyond 2^30 tasks. Whether the order contradicts placement or graph is left to the simulator.
void check_schedule(const ScheduleSpec& spec, const Graph& graph, int32_t devices);

/// Operators that run once a step however many micro-batches there are.
inline bool runs_once(const Operator& op) { return op.phase == Phase::update; }

/// The stage of every operator when every device is one stage. A device comes after those that send
/// it what their gradients come back for, otherwise by the first forward operator that it holds (a
/// label that the last stage reads makes it no first one); by this alone where devices send each
/// other such tensors in a circle. Throws ArgumentError without forward operators.
std::vector<int32_t> stages_by_device(const Graph& graph, std::span<const int32_t> placement);

/// Whether an operator reads what one of its stage writes on another device: single operators are
/// placed inside it. What only moves or sums parts of others does not count, nor do devices that do
/// the same, as parts of attention in a ring.
bool places_operators(const Graph& graph, std::span<const int32_t> placement,
                      std::span<const int32_t> stage);

/// A pipeline's schedule: stage[o] numbers the stage of operator o from 0 (backward and update
/// operators carry the stage of their forward operator). A stage runs on one device, or on several:
/// its replicas, the parts of its split operators, operators placed one by one, which wait for each
/// other within a task; stages that are chunks of one device are where
/// device_of_chunk() says, p being the stages that have devices of their own. A device goes by
/// chunk_order(); of a task it runs the operators in ascending order, where they wait for each other inside a
/// stage (places_operators()) by `turn`, a number an operator, or where it is empty in an order
/// in which collectives do not hold them up; updates last, or (pipedream)
/// after the backward ones of every mini-batch. Where a schedule has weight parts, they are the
/// operators that find_weight_work() names (graph/split_backward.h).
/// orders: what each place on the pipeline runs instead, of the stages that `schedule` has.
///
/// With p stages, stage s of `pipedream` (from 0) runs w = p - 1 - s forwards ahead and keeps
/// w + 1 versions of its weights. The stream is measured between the ends of mini-batches 4 p + 4
/// and 8 p + 8, and drains over p more.
///
/// Throws ScheduleError for orders of another number of places, or of stages or micro-batches that there are not; for
/// stages that devices do not hold as said, stages
/// against the order of the graph, where the schedule could not go on (naming the operators),
/// (interleaved) micro-batches that are no multiple of the devices, (dualpipe-v) fewer than twice
/// the devices, or a backward operator that writes both gradients where the schedule takes them
/// apart; ArgumentError for lists of another length and numbers out of range; LimitError for more
/// than 2^31 tasks.
Schedule pipeline_schedule(const Graph& graph, std::span<const int32_t> placement, int32_t devices,
                           std::span<const int32_t> stage, int32_t micro_batches,
                           PipelineSchedule schedule, std::span<const int32_t> turn = {},
                           const PipelineOrder& orders = {});

}  // namespace trinity
