#include "strategy/schedule.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/words.h"
#include "graph/layers.h"
#include "graph/operator_types.h"
#include "graph/split_backward.h"
#include "strategy/mesh_schedule.h"
#include "strategy/own_order.h"
#include "strategy/pieces.h"

namespace trinity {
namespace {

constexpr const char* kSchedules[] = {
    "fifo",        "lifo",  "critical_path", "priority",       "order", "gpipe",      "1f1b",
    "interleaved", "zb-h1", "zb-h2",         "zb-interleaved", "zb-v",  "dualpipe-v", "pipedream"};
constexpr int64_t kMostTasks = int64_t{1} << 30;

void check_length(const char* what, size_t length, const Graph& graph) {
  if (length != static_cast<size_t>(graph.operator_count()))
    throw ArgumentError("{} of graph '{}' need {} entries, got {}", what, graph.name(), graph.operator_count(), length);
}

/// Refuses fields that the named schedule does not use, and the lack of fields that it needs.
void check_fields(const ScheduleSpec& spec) {
  const auto needs = [&](const char* field, bool filled, bool allowed, bool needed) {
    if (filled && !allowed)
      throw ArgumentError("schedule '{}' takes no field '{}'", spec.name, field);
    if (!filled && needed)
      throw ArgumentError("schedule '{}' needs a field '{}'", spec.name, field);
  };
  const bool priority = spec.name == "priority", order = spec.name == "order";
  const bool tasks = !spec.tasks.empty();
  needs("priority", !spec.priority.empty(), priority, priority);
  needs("order", !spec.order.empty(), order && !tasks, order && !tasks);
  needs("tasks", tasks, order, false);
  const bool round_robin = spec.name == kRoundRobin;
  needs("stage", !spec.stage.empty(), is_pipeline(spec.name) || round_robin || tasks, round_robin || tasks);
}

void check_priority(const std::vector<double>& priority, const Graph& graph) {
  if (priority.empty()) return;
  check_length("priorities", priority.size(), graph);
  for (int32_t op = 0; op < graph.operator_count(); ++op)
    if (std::isnan(priority[op]))
      throw ArgumentError("the priority of operator '{}' is not a number (NaN)", graph.op(op).name);
}

void check_stage(const std::vector<int32_t>& stage, const Graph& graph) {
  if (stage.empty()) return;
  check_length("stages", stage.size(), graph);
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    const int32_t number = stage[op];
    if (graph.op(op).collective < 0 && (number < 0 || number >= graph.operator_count()))
      throw ArgumentError("operator '{}' is in stage {}, expected 1 to {}", graph.op(op).name, int64_t{number} + 1,
                          graph.operator_count());
  }
}

void check_order(const ScheduleSpec& spec, const Graph& graph, int32_t devices) {
  if (!spec.tasks.empty()) return check_order(spec.tasks);
  if (spec.order.empty()) return;
  if (spec.order.size() != static_cast<size_t>(devices))
    throw ArgumentError("an order needs {} lists of tasks, one per device, got {}", devices, spec.order.size());
  const int64_t tasks = int64_t{spec.micro_batches} * graph.operator_count();
  for (size_t d = 0; d < spec.order.size(); ++d)
    for (const int32_t task : spec.order[d])
      if (task < 0 || task >= tasks)
        throw ArgumentError("the order of device {} names task {}, expected 1 to {}", d + 1, int64_t{task} + 1, tasks);
}

/// The transfers between devices.
class DeviceLinks {
 public:
  DeviceLinks(const Graph& graph, std::span<const int32_t> placement, size_t devices) : devices_(devices) {
    for (int32_t op = 0; op < graph.operator_count(); ++op) {
      const auto& reader = graph.op(op);
      if (reader.phase == Phase::update || reader.collective >= 0) continue;
      for (const int32_t tensor : reader.inputs) {
        const int32_t from = graph.tensor(tensor).producer;
        if (placement[from] == placement[op] || graph.op(from).phase != reader.phase || graph.op(from).collective >= 0)
          continue;
        const bool forward = reader.phase == Phase::forward;
        if (forward) edges_.emplace_back(from, op);
        (forward ? forward_ : backward_).push_back(number(placement[from], placement[op]));
      }
    }
    for (auto* list : {&forward_, &backward_}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
  }

  /// Pairs of forward operators of which the second reads the first on another device.
  const std::vector<std::pair<int32_t, int32_t>>& edges() const { return edges_; }
  /// True if device `from` reads gradients of device `to`.
  bool returns(int32_t from, int32_t to) const {
    return std::binary_search(backward_.begin(), backward_.end(), number(to, from));
  }
  /// Pairs of devices of which the second reads what the first sends, and the first the gradients
  /// of the second: the first is an earlier stage.
  std::vector<std::pair<int32_t, int32_t>> before() const {
    std::vector<std::pair<int32_t, int32_t>> pairs;
    for (const uint64_t sent : forward_) {
      const auto from = static_cast<int32_t>(sent / devices_);
      const auto to = static_cast<int32_t>(sent % devices_);
      if (returns(from, to)) pairs.emplace_back(from, to);
    }
    return pairs;
  }

 private:
  uint64_t number(int32_t from, int32_t to) const {
    return static_cast<uint64_t>(from) * devices_ + static_cast<uint64_t>(to);
  }

  uint64_t devices_;
  std::vector<std::pair<int32_t, int32_t>> edges_;
  std::vector<uint64_t> forward_, backward_;  // pairs of devices, ascending
};

/// The operators of a stage that a device runs, in order.
struct Part {
  int32_t device = -1;
  int32_t first = -1;  // an operator on that device, for messages
  std::vector<int32_t> forward, backward;
  std::vector<int32_t> input, weight;  // parts of `backward`, where the schedule has them
};

/// All operators by their turns: an order in which devices that wait for each other can run them.
std::vector<int32_t> order_of_devices(std::span<const int32_t> turn) {
  std::vector<int32_t> of(turn.size());
  std::iota(of.begin(), of.end(), 0);
  std::stable_sort(of.begin(), of.end(), [&](int32_t a, int32_t b) { return turn[a] < turn[b]; });
  return of;
}

/// Writes the sequence of every device, for any number of micro-batches.
class Pipeline {
 public:
  Pipeline(const Graph& graph, std::span<const int32_t> placement, int32_t devices,
           std::span<const int32_t> stage, PipelineSchedule schedule, const PipelineOrder& orders,
           std::span<const int32_t> turn)
      : graph_(graph),
        schedule_(schedule),
        orders_(orders),
        updates_(static_cast<size_t>(devices)),
        rank_(static_cast<size_t>(devices), -1) {
    if (splits_backward(schedule)) find_weights();
    std::vector<int32_t> order;
    if (places_operators(graph, placement, stage)) order = order_of_devices(turn);
    if (order.size() != at(graph.operator_count())) {
      order.resize(at(graph.operator_count()));
      std::iota(order.begin(), order.end(), 0);
    }
    for (const int32_t op : order)
      if (graph.op(op).collective < 0) add(op, placement[at(op)], stage[at(op)]);
    placement_ = placement;
    stage_ = stage;
    check_stages();
  }

  /// The tasks of its pieces.
  Schedule run(int32_t micro_batches) {
    const auto pieces = this->pieces(micro_batches);
    result_.micro_batches = micro_batches_;
    result_.dispatch = DispatchRule::order;
    result_.order_first.push_back(0);
    for (size_t device = 0; device < rank_.size(); ++device) {
      for (const auto& [list, micro] : pieces.of(device))
        for (const int32_t op : pieces.list(at(list))) result_.order.push_back(micro * graph_.operator_count() + op);
      result_.order_first.push_back(static_cast<int32_t>(result_.order.size()));
    }
    return std::move(result_);
  }

  OrderPieces pieces(int32_t micro_batches) {
    runs_ = micro_batches_ = micro_batches;
    if (takes_chunks(schedule_) && used_ > 0) check_turns();
    if (!flushes()) begin_stream();
    check_orders();
    if (used_ > 1 && schedule_ != PipelineSchedule::gpipe && chunks() == 1 && orders_.empty())
      check_circles();
    OrderPieces result;
    result.micro_batches = micro_batches_;
    result.list_first.push_back(0);
    result.piece_first.push_back(0);
    for (size_t device = 0; device < rank_.size(); ++device) {
      if (rank_[device] >= 0) add_pieces(device, result);
      if (flushes() && !updates_[device].empty())
        result.pieces.push_back({add_list(updates_[device], result), runs_ - 1});
      result.piece_first.push_back(static_cast<int32_t>(result.pieces.size()));
    }
    return result;
  }

 private:
  void add(int32_t op, int32_t device, int32_t stage) {
    const auto& name = graph_.op(op).name;
    if (device < 0 || static_cast<size_t>(device) >= rank_.size())
      throw ArgumentError("operator '{}' is placed on device {}, expected 1 to {}", name, device + 1, rank_.size());
    if (stage < 0 || stage >= graph_.operator_count())
      throw ArgumentError("operator '{}' is in stage {}, expected 1 to {}", name, int64_t{stage} + 1,
                          graph_.operator_count());
    if (static_cast<size_t>(stage) >= stages_.size())
      stages_.resize(static_cast<size_t>(stage) + 1);
    Part& part = part_on(stages_[stage], device, op);
    if (runs_once(graph_.op(op)))
      updates_[device].push_back(op);
    else if (graph_.op(op).phase == Phase::forward)
      part.forward.push_back(op);
    else
      part.backward.push_back(op);
    if (weight_.empty() || graph_.op(op).phase != Phase::backward) return;
    (weight_[op] ? part.weight : part.input).push_back(op);
  }

  void find_weights() {
    if (const int32_t op = find_joined_backward(graph_); op >= 0)
      throw ScheduleError("schedule '{}': operator '{}' computes input and weight gradients together; use a mesh "
                          "strategy, which splits them", choice_name(schedule_), graph_.op(op).name);
    weight_ = find_weight_work(graph_);
  }

  /// The part of a stage on a device, added if `op` is its first operator there. Few devices share
  /// a stage, and consecutive operators are mostly on one of them.
  static Part& part_on(std::vector<Part>& parts, int32_t device, int32_t op) {
    for (auto& part : parts)
      if (part.device == device) return part;
    parts.push_back({device, op, {}, {}, {}, {}});
    return parts.back();
  }

  /// Checks that every device has one stage, or the chunks of device_of_chunk(), where p is the
  /// number of stages with devices of their own. Replicas, parts of split operators and operators
  /// that are placed one by one share a stage.
  void check_stages() {
    const bool several = takes_chunks(schedule_);
    for (size_t s = 0; s < stages_.size(); ++s) {
      if (stages_[s].empty()) throw ScheduleError("stage {} has no operators", s + 1);
      bool leads = false;  // whether a device of it has no earlier stage
      for (const Part& part : stages_[s]) {
        auto& rank = rank_[part.device];
        if (rank >= 0 && !several) refuse_shared_device(rank, s, part.device);
        if (rank >= 0) continue;
        leads = true;
        rank = static_cast<int32_t>(s);
      }
      used_ += leads;
    }
  }

  [[noreturn]] void refuse_shared_device(int32_t earlier, size_t stage, int32_t device) const {
    throw ScheduleError("schedule '{}': stages {} and {} are on device {}, expected a device for every stage",
                        choice_name(schedule_), earlier + 1, stage + 1, device + 1);
  }

  void check_turns() const {
    const char* name = choice_name(schedule_);
    const bool v_shaped = is_v_shaped(schedule_);
    for (size_t s = used_; s < stages_.size(); ++s) {
      const auto lead = at(device_of_chunk(schedule_, used(), static_cast<int32_t>(s)));
      for (const Part& part : stages_[s])
        if (at(rank_[part.device]) != lead)
          throw ScheduleError("schedule '{}': stage {} is on device {}, expected device {} as for stage {}: stages "
                              "visit the {} devices {}", name, s + 1, part.device + 1, stages_[lead].front().device + 1,
                              lead + 1, used_, v_shaped ? "forwards, then backwards" : "round-robin");
    }
    if (v_shaped && stages_.size() != 2 * used_)
      throw ScheduleError("schedule '{}': {} stages on {} devices, expected two per device", name, stages_.size(),
                          used_);
    if (stages_.size() % used_ != 0)
      throw ScheduleError("schedule '{}': {} stages on {} devices, expected a multiple of the devices", name,
                          stages_.size(), used_);
    if (!v_shaped && at(micro_batches_) % used_ != 0)
      throw ScheduleError("schedule '{}': {} micro-batches on {} devices, expected a multiple of the devices", name,
                          micro_batches_, used_);
    if (schedule_ == PipelineSchedule::dualpipe_v && at(micro_batches_) < 2 * used_)
      throw ScheduleError("schedule '{}': {} micro-batches on {} devices, expected at least {}", name, micro_batches_,
                          used_, 2 * used_);
  }

  /// If device v reads tensors of device u, and u their gradients, v must not run more
  /// micro-batches ahead than u: the last of these would wait for a backward pass that waits for
  /// it.
  void check_circles() {
    const auto ahead = [&](int32_t device) {
      const int32_t rank = rank_[device];
      return rank < 0 ? 0 : std::min<int64_t>(ahead_of(rank), runs_ - 1);
    };
    if (!links_) links_.emplace(graph_, placement_, rank_.size());
    for (const auto& [from, to] : links_->edges()) {
      const int32_t u = placement_[from], v = placement_[to];
      if (!links_->returns(u, v) || ahead(v) <= ahead(u)) continue;
      throw ScheduleError("the order contradicts graph '{}': operator '{}' in stage {} on device {} reads '{}' in "
                          "stage {} on device {}, and its gradient returns there; schedule '{}' expects stages in "
                          "topological order with one device each. Use field 'stage', or a mesh, whose stages follow "
                          "layers ({})", graph_.name(), graph_.op(to).name, stage_[to] + 1, v + 1, graph_.op(from).name,
                          stage_[from] + 1, u + 1, choice_name(schedule_), kLayerRule);
    }
  }

  int32_t used() const { return static_cast<int32_t>(used_); }
  int32_t chunks() const { return static_cast<int32_t>(stages_.size() / used_); }
  int64_t ahead_of(int32_t rank) const { return warm_up(schedule_, used(), chunks(), runs_, rank); }

  bool flushes() const { return schedule_ != PipelineSchedule::pipedream; }

  /// A stream that is long enough to settle before it is measured, and to end only after.
  void begin_stream() {
    const auto p = static_cast<int64_t>(used_);
    const int64_t from = 4 * p + 4, to = 2 * from, runs = to + p + 1;
    if (runs * graph_.operator_count() > std::numeric_limits<int32_t>::max())
      throw LimitError("schedule 'pipedream': a stream of {} mini-batches of the {} operators of graph '{}' is more "
                       "than 2^31 tasks", runs, graph_.operator_count(), graph_.name());
    runs_ = static_cast<int32_t>(runs);
    result_.stream = runs_;
    result_.measured_from = static_cast<int32_t>(from);
    result_.measured_to = static_cast<int32_t>(to);
    for (const int32_t rank : rank_)
      result_.weight_versions.push_back(rank < 0 ? 1 : static_cast<int32_t>(ahead_of(rank)) + 1);
  }

  static const std::vector<int32_t>& operators(const Part& part, ChunkWork work) {
    switch (work) {
      case ChunkWork::forward:
        return part.forward;
      case ChunkWork::input:
        return part.input;
      case ChunkWork::weight:
        return part.weight;
      case ChunkWork::backward:
        break;
    }
    return part.backward;
  }

  void check_orders() const {
    if (!orders_.empty() && orders_.size() != used_)
      throw ScheduleError("expected an order of {} ranks (one per device with stages), got {}", used_, orders_.size());
    for (const auto& order : orders_)
      for (const auto& task : order)
        if (at(task.chunk) >= stages_.size() || task.micro_batch < 0 ||
            task.micro_batch >= micro_batches_)
          throw ScheduleError("the order names micro-batch {} of stage {}, expected micro-batches below {} and stages "
                              "below {}", task.micro_batch, task.chunk, micro_batches_, stages_.size());
  }

  /// The tasks of a pipeline rank, in order.
  std::vector<ChunkTask> tasks_of(int32_t rank) const {
    if (orders_.empty()) return chunk_order(schedule_, used(), chunks(), runs_, rank);
    return orders_[at(rank)];
  }

  static int32_t add_list(const std::vector<int32_t>& operators, OrderPieces& result) {
    result.operators.insert(result.operators.end(), operators.begin(), operators.end());
    result.list_first.push_back(static_cast<int32_t>(result.operators.size()));
    return result.lists() - 1;
  }

  void add_pieces(size_t device, OrderPieces& result) const {
    std::map<const std::vector<int32_t>*, int32_t> number;  // of lists; order does not matter
    const auto add = [&](const std::vector<int32_t>& list, int32_t micro_batch) {
      if (list.empty()) return;
      const auto [found, added] = number.try_emplace(&list, -1);
      if (added) found->second = add_list(list, result);
      result.pieces.push_back({found->second, micro_batch});
    };
    for (const auto& task : tasks_of(rank_[device])) {
      for (const Part& part : stages_[task.chunk])
        if (at(part.device) == device) add(operators(part, task.work), task.micro_batch);
      if (task.work != ChunkWork::forward && !flushes()) add(updates_[device], task.micro_batch);
    }
  }

  const Graph& graph_;
  std::span<const int32_t> placement_, stage_;
  int32_t micro_batches_ = 0, runs_ = 0;
  PipelineSchedule schedule_;
  const PipelineOrder& orders_;  // in place of the schedule's; or empty
  std::vector<std::vector<Part>> stages_;
  std::vector<bool> weight_;                   // per operator; empty where weights are no tasks
  std::vector<std::vector<int32_t>> updates_;  // per device
  std::vector<int32_t> rank_;                  // per device: its first stage, -1 without one
  size_t used_ = 0;                            // stages that have devices of their own
  std::optional<DeviceLinks> links_;           // check_circles()
  Schedule result_;  // run()
};

/// Numbers devices so that each comes after those whose results it reads and sends gradients back
/// to, else as `stage_of_device` does; does not change them if that makes a cycle.
void sort_stages(const DeviceLinks& links, int32_t stages, std::vector<int32_t>& stage_of_device) {
  std::vector<std::vector<int32_t>> later(static_cast<size_t>(stages));
  std::vector<int32_t> missing(later.size(), 0), number(later.size(), -1);
  for (const auto& [from, to] : links.before()) {
    const int32_t after = stage_of_device[to];
    later[stage_of_device[from]].push_back(after);
    ++missing[after];
  }
  std::set<int32_t> ready;
  for (int32_t s = 0; s < stages; ++s)
    if (missing[s] == 0) ready.insert(s);
  int32_t next = 0;
  while (!ready.empty()) {
    const int32_t stage = *ready.begin();
    ready.erase(ready.begin());
    number[stage] = next++;
    for (const int32_t after : later[stage])
      if (--missing[after] == 0) ready.insert(after);
  }
  if (next < stages) return;
  for (auto& stage : stage_of_device)
    if (stage >= 0) stage = number[stage];
}

}  // namespace

bool places_operators(const Graph& graph, std::span<const int32_t> placement,
                      std::span<const int32_t> stage) {
  const auto moves = [](const Operator& op) {
    return op.collective >= 0 || op.inputs.empty() || op.type == "Slice" || op.type == "Concat" ||
           op.type == "Identity" || runs_once(op);
  };
  std::map<std::pair<int32_t, int32_t>, Hasher> done;  // by stage and device
  for (int32_t op = 0; op < graph.operator_count(); ++op)
    if (!moves(graph.op(op))) done[{stage[op], placement[op]}].add(graph.op(op).type);
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    if (moves(graph.op(op))) continue;
    for (const int32_t input : graph.op(op).inputs) {
      const int32_t from = graph.tensor(input).producer;
      if (placement[from] != placement[op] && stage[from] == stage[op] && !moves(graph.op(from)) &&
          done[{stage[op], placement[from]}].value() != done[{stage[op], placement[op]}].value())
        return true;
    }
  }
  return false;
}

void check_schedule(const ScheduleSpec& spec, const Graph& graph, int32_t devices) {
  if (spec.name != kRoundRobin) parse_word("schedule", spec.name, kSchedules);
  if (spec.micro_batches < 1)
    throw ArgumentError("a schedule needs at least 1 micro-batch, got {}", spec.micro_batches);
  if (int64_t{spec.micro_batches} * graph.operator_count() > kMostTasks)
    throw LimitError("{} operators in {} micro-batches are more than 2^30 tasks", graph.operator_count(),
                     spec.micro_batches);
  check_fields(spec);
  check_priority(spec.priority, graph);
  check_stage(spec.stage, graph);
  check_order(spec, graph, devices);
}

std::vector<int32_t> stages_by_device(const Graph& graph, std::span<const int32_t> placement) {
  check_length("placements", placement.size(), graph);
  std::vector<int32_t> stage_of_device;
  int32_t stages = 0;
  // Devices without forward operators follow, by the first operator they hold.
  for (const bool forward : {true, false}) {
    for (int32_t op = 0; op < graph.operator_count(); ++op) {
      const int32_t device = placement[op];
      if (device < 0)
        throw ArgumentError("operator '{}' is placed on device {}, expected 1 or more", graph.op(op).name, device + 1);
      if (forward && graph.op(op).phase != Phase::forward) continue;
      const auto d = static_cast<size_t>(device);
      if (d >= stage_of_device.size()) stage_of_device.resize(d + 1, -1);
      if (stage_of_device[d] < 0) stage_of_device[d] = stages++;
    }
    if (stages == 0)
      throw ArgumentError("graph '{}' has no forward operators", graph.name());
  }
  sort_stages(DeviceLinks(graph, placement, stage_of_device.size()), stages, stage_of_device);
  std::vector<int32_t> stage;
  for (const int32_t device : placement) stage.push_back(stage_of_device[device]);
  return stage;
}

namespace {

void check_pipeline(const Graph& graph, std::span<const int32_t> placement, int32_t devices,
                    std::span<const int32_t> stage, int32_t micro_batches) {
  check_length("placements", placement.size(), graph);
  check_length("stages", stage.size(), graph);
  if (devices < 1)
    throw ArgumentError("a schedule needs at least 1 device, got {}", devices);
  if (micro_batches < 1)
    throw ArgumentError("a schedule needs at least 1 micro-batch, got {}", micro_batches);
  if (int64_t{micro_batches} * graph.operator_count() > std::numeric_limits<int32_t>::max())
    throw LimitError("{} micro-batches of the {} operators of graph '{}' are more than 2^31 tasks", micro_batches,
                     graph.operator_count(), graph.name());
}

}  // namespace

Schedule pipeline_schedule(const Graph& graph, std::span<const int32_t> placement, int32_t devices,
                           std::span<const int32_t> stage, int32_t micro_batches,
                           PipelineSchedule schedule, std::span<const int32_t> turn,
                           const PipelineOrder& orders) {
  check_pipeline(graph, placement, devices, stage, micro_batches);
  return Pipeline(graph, placement, devices, stage, schedule, orders, turn).run(micro_batches);
}

std::function<OrderPieces(int32_t)> pipeline_pieces(const Graph& graph, std::span<const int32_t> placement,
                                                    int32_t devices, std::span<const int32_t> stage,
                                                    PipelineSchedule schedule, std::span<const int32_t> turn,
                                                    const PipelineOrder& orders) {
  check_pipeline(graph, placement, devices, stage, 1);
  const auto made = std::make_shared<Pipeline>(graph, placement, devices, stage, schedule, orders, turn);
  return [=, &graph](int32_t micro_batches) {
    check_pipeline(graph, placement, devices, stage, micro_batches);
    return made->pieces(micro_batches);
  };
}

}  // namespace trinity
