#include "strategy/lower.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/index.h"
#include "base/words.h"
#include "graph/layers.h"
#include "graph/operator_types.h"
#include "graph/recompute.h"
#include "graph/replicas.h"
#include "graph/sharding.h"
#include "graph/split_backward.h"
#include "strategy/mesh_schedule.h"
#include "strategy/shared_variables.h"
#include "strategy/splits.h"
#include "strategy/tensor_pattern.h"

namespace trinity {
namespace {

/// A graph on its way: where its operators run, and which original ones they are made of or for.
struct Made {
  Graph graph;
  std::vector<int32_t> device;  ///< within one replica: stage of the pipeline x tensor + part
  std::vector<int32_t> origin, serves;
  std::vector<int32_t> stage;  ///< virtual stage
};

class Lowering {
 public:
  Lowering(const Parallelism& given, const Graph& graph, const Cluster& cluster)
      : given_(given), graph_(graph), layers_(repeated_layers(graph)) {
    check_devices(cluster);
    check_pipeline(given);
    schedule_ = schedule_of(given);
    share_out_layers();
  }

  LoweredStrategy run() {
    Made made = split();
    share(made);
    if (given_.recompute != Recompute::none) repeat(made);
    if (splits_backward(schedule_)) cut_backward(made);
    return replicated(std::move(made));
  }

 private:
  int32_t virtual_stages() const { return given_.mesh.pipeline * given_.virtual_stages; }

  void check_devices(const Cluster& cluster) const {
    const auto& mesh = given_.mesh;
    const auto shown = fmt::format(
        "mesh: data {} x tensor {} x pipeline {}{} are {} devices", mesh.data, mesh.tensor,
        mesh.pipeline, mesh.context > 1 ? fmt::format(" x context {}", mesh.context) : "",
        mesh.device_count());
    if (mesh.device_count() > cluster.device_count())
      throw ArgumentError(
          fmt::format("{}, cluster '{}' has {}", shown, cluster.name(), cluster.device_count()));
    if (mesh.data % mesh.expert != 0)
      throw ArgumentError(
          fmt::format("mesh: expert = {} does not divide data = {}", mesh.expert, mesh.data));
    if (mesh.expert > 1)
      throw ArgumentError(
          fmt::format("mesh: expert = {}: graph '{}' has no experts that trinity could share out",
                      mesh.expert, graph_.name()));
    if (!mesh.devices.empty()) check_listed(cluster, shown);
    for (size_t i = 0; i < mesh.order.size(); ++i)
      if (std::find(mesh.order.begin(), mesh.order.begin() + static_cast<std::ptrdiff_t>(i),
                    mesh.order[i]) != mesh.order.begin() + static_cast<std::ptrdiff_t>(i))
        throw ArgumentError(
            fmt::format("order: axis '{}' is there twice", axis_name(mesh.order[i])));
  }

  void check_listed(const Cluster& cluster, const std::string& shown) const {
    const auto& devices = given_.mesh.devices;
    if (static_cast<int64_t>(devices.size()) != given_.mesh.device_count())
      throw ArgumentError(fmt::format("{}, 'devices' lists {}", shown, devices.size()));
    std::vector<bool> seen(at(cluster.device_count()), false);
    for (const int32_t device : devices) {
      if (device < 0 || device >= cluster.device_count())
        throw ArgumentError(fmt::format("devices: there is no device {} in cluster '{}' (1 to {})",
                                        int64_t{device} + 1, cluster.name(),
                                        cluster.device_count()));
      if (seen[device])
        throw ArgumentError(
            fmt::format("devices: device '{}' is listed twice", cluster.device(device).name));
      seen[device] = true;
    }
  }

  /// Layers of every virtual stage, and the stage of every operator.
  void share_out_layers() {
    const int32_t stages = virtual_stages(), count = layers_.count;
    per_stage_ = given_.stages;
    if (stages == 1 && per_stage_.empty()) per_stage_ = {count};
    if (count == 0 && (stages > 1 || given_.recompute == Recompute::full))
      throw ArgumentError(fmt::format(
          "graph '{}' repeats no layers (operators called 'layer_1/...', 'layer_2/...'), by which "
          "stages and recomputation go",
          graph_.name()));
    if (per_stage_.empty()) {
      if (count % stages != 0)
        throw ArgumentError(fmt::format(
            "mesh: {} layers do not divide over {} stages (pipeline {} x virtual_stages {}); "
            "'stages' gives the layers of each",
            count, stages, given_.mesh.pipeline, given_.virtual_stages));
      per_stage_.assign(at(stages), count / stages);
    }
    const int64_t sum = std::accumulate(per_stage_.begin(), per_stage_.end(), int64_t{0});
    if (per_stage_.size() != at(stages) || sum != count)
      throw ArgumentError(fmt::format(
          "stages: expected {} numbers of layers (pipeline {} x virtual_stages {}) with "
          "the sum {}, got {} with the sum {}",
          stages, given_.mesh.pipeline, given_.virtual_stages, count, per_stage_.size(), sum));
    std::vector<int32_t> of_layer;
    for (int32_t s = 0; s < stages; ++s) of_layer.insert(of_layer.end(), at(per_stage_[s]), s);
    for (const int32_t layer : layers_.of)
      stage_.push_back(layer < 0 ? 0 : layer >= count ? stages - 1 : of_layer[layer]);
  }

  /// The graph of one replica: every stage on `tensor` devices.
  Made split() const {
    const int32_t t = given_.mesh.width(), p = given_.mesh.pipeline;
    std::vector<std::vector<int32_t>> devices_of;
    std::vector<int32_t> placement;
    for (const int32_t stage : stage_) {
      std::vector<int32_t> devices(at(t));
      std::iota(devices.begin(), devices.end(), device_of_chunk(schedule_, p, stage) * t);
      placement.push_back(devices[0]);
      devices_of.push_back(std::move(devices));
    }
    const auto splits = tensor_splits(
        graph_, {given_.mesh.tensor, given_.mesh.context, given_.sequence_parallel}, devices_of);
    auto lowered =
        lower_splits(graph_, splits, placement, p * t, {given_.bucket_bytes, true, true});
    std::vector<int32_t> stage;
    for (size_t op = 0; op < lowered.serves.size(); ++op) {
      const int32_t serves = lowered.serves[op];
      const bool source = graph_.op(serves).inputs.empty();
      const bool own = lowered.placement[op] / t == device_of_chunk(schedule_, p, stage_[serves]);
      stage.push_back(own || source ? stage_[serves] : stage_of_terms(serves));
    }
    put_sources_at_readers(lowered, stage);
    return {std::move(lowered.graph), std::move(lowered.placement), std::move(lowered.origin),
            std::move(lowered.serves), std::move(stage)};
  }

  /// A source stands on every device that reads it: there, in the first stage that does.
  void put_sources_at_readers(const Lowered& lowered, std::vector<int32_t>& stage) const {
    const auto& graph = lowered.graph;
    for (int32_t op = 0; op < graph.operator_count(); ++op) {
      if (!graph.op(op).inputs.empty() || is_variable(graph.op(op))) continue;
      const auto [first, last] = boost::out_edges(op, graph.csr());
      if (first == last) continue;
      stage[at(op)] = virtual_stages();
      for (auto edge = first; edge != last; ++edge)
        stage[at(op)] = std::min(stage[at(op)], stage[at(boost::target(*edge, graph.csr()))]);
    }
  }

  /// Where a sum of gradients is made that is not made in the stage of its forward operator: in
  /// that of its terms.
  int32_t stage_of_terms(int32_t sum) const {
    return stage_[graph_.tensor(graph_.op(sum).inputs[0]).producer];
  }

  /// A copy of a tied weight for every stage that reads it.
  void share(Made& made) const {
    if (given_.mesh.pipeline == 1) return;
    auto shared = share_variables(made.graph, made.device);
    Made after{std::move(shared.graph), std::move(shared.device), {}, {}, {}};
    for (size_t op = 0; op < shared.origin.size(); ++op) {
      after.origin.push_back(shared.sums[op] ? -1 : made.origin[shared.origin[op]]);
      after.serves.push_back(made.serves[shared.origin[op]]);
      after.stage.push_back(made.stage[shared.with[op]]);
    }
    made = std::move(after);
  }

  /// The operators between two products of activations: scores, softmax, weighted values.
  std::vector<bool> attention_core() const {
    const auto count = at(graph_.operator_count());
    std::vector<bool> after(count, false), before(count, false);
    const auto is_core = [&](int32_t op) {
      const auto& about = graph_.op(op);
      if (about.type != "MatMul" || !about.parameters.empty()) return false;
      return std::none_of(about.inputs.begin(), about.inputs.end(), [&](int32_t input) {
        return graph_.op(graph_.tensor(input).producer).inputs.empty();
      });
    };
    const auto same_layer = [&](int32_t a, int32_t b) { return layers_.of[a] == layers_.of[b]; };
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      if (graph_.op(op).phase != Phase::forward) continue;
      after[op] = is_core(op);
      for (const int32_t input : graph_.op(op).inputs) {
        const int32_t from = graph_.tensor(input).producer;
        if (after[from] && same_layer(from, op)) after[op] = true;
      }
    }
    for (int32_t op = graph_.operator_count() - 1; op >= 0; --op) {
      if (graph_.op(op).phase != Phase::forward) continue;
      if (is_core(op)) before[op] = true;
      if (!before[op]) continue;
      for (const int32_t input : graph_.op(op).inputs) {
        const int32_t from = graph_.tensor(input).producer;
        if (same_layer(from, op)) before[from] = true;
      }
    }
    for (size_t op = 0; op < count; ++op) after[op] = after[op] && before[op];
    return after;
  }

  void repeat(Made& made) const {
    std::vector<bool> core;
    if (given_.recompute == Recompute::selective) core = attention_core();
    std::vector<int32_t> unit;
    for (const int32_t op : made.serves) {
      const int32_t forward = graph_.op(op).forward >= 0 ? graph_.op(op).forward : op;
      const int32_t layer = layers_.of[op];
      const bool within = layer >= 0 && layer < layers_.count && (core.empty() || core[forward]);
      unit.push_back(within ? layer : -1);
    }
    RecomputeOptions options;
    options.device = made.device;
    auto again = recompute(made.graph, unit, options);
    const auto of = [&](const std::vector<int32_t>& list) {
      std::vector<int32_t> taken;
      for (const int32_t origin : again.origin) taken.push_back(list[origin]);
      return taken;
    };
    made = {std::move(again.graph), of(made.device), of(made.origin), of(made.serves),
            of(made.stage)};
  }

  /// Every device keeps a share of its states (ZeRO); bytes of the gathers among what was made.
  std::vector<int64_t> shard(Made& made) const {
    ShardingOptions options{given_.shard, given_.mesh.data, given_.bucket_bytes, made.device, {}};
    std::vector<int32_t> unit;
    for (const int32_t op : made.serves) {
      const int32_t layer = layers_.of[op];
      unit.push_back(layer >= 0 && layer < layers_.count ? layer : -1);
    }
    options.unit = unit;
    auto sharded = shard_states(made.graph, options);
    Made after{std::move(sharded.graph), {}, {}, {}, {}};
    for (size_t op = 0; op < sharded.near.size(); ++op) {
      const int32_t near = sharded.near[op];
      after.device.push_back(made.device[near]);
      after.origin.push_back(sharded.origin[op] < 0 ? -1 : made.origin[near]);
      after.serves.push_back(made.serves[near]);
      after.stage.push_back(made.stage[near]);
    }
    made = std::move(after);
    return std::move(sharded.gathered);
  }

  /// Weight parts of their own, which wait until a device would be idle; but of what is no product,
  /// which is little work, and of what stands behind the layers, whose logits would be kept for so
  /// long (Qi et al. 2024, table 1, counts the products of layers).
  void cut_backward(Made& made) const {
    std::vector<bool> at_once;
    for (const int32_t op : made.serves)
      at_once.push_back(layers_.of[op] >= layers_.count ||
                        !operator_rule(graph_.op(op).type).matrix);
    auto cut = split_backward(made.graph, at_once);
    made.graph = std::move(cut.graph);
    for (auto* list : {&made.device, &made.origin, &made.serves, &made.stage}) {
      std::vector<int32_t> taken;
      for (const int32_t origin : cut.origin) taken.push_back((*list)[origin]);
      *list = std::move(taken);
    }
  }

  /// Replicas of what was made, on the devices of the mesh.
  LoweredStrategy replicated(Made made) const {
    const auto& mesh = given_.mesh;
    ReplicaOptions options;
    std::vector<int64_t> gathered;
    if (given_.shard > 0 && mesh.data > 1) {
      gathered = shard(made);
      options.shard = given_.shard;
      options.gathered = gathered;
    }
    options.bucket_bytes = given_.bucket_bytes;
    options.device_of = made.device;
    auto copies = replicate(made.graph, mesh.data, options);
    LoweredStrategy result;
    for (int32_t op = 0; op < copies.graph.operator_count(); ++op) {
      int32_t of = copies.origin[op];
      const bool sum = of < 0;  // goes where its gradients are
      if (sum) of = copies.origin[copies.graph.tensor(copies.graph.op(op).inputs[0]).producer];
      const int32_t device = made.device[of];
      result.placement.push_back(
          mesh.device(device / mesh.width(), copies.replica[op], device % mesh.width()));
      result.origin.push_back(sum ? -1 : made.origin[of]);
      result.schedule.stage.push_back(made.stage[of]);
      const int32_t layer = layers_.of[made.serves[of]];
      result.part.push_back(layer < 0 ? 0 : layer < layers_.count ? 1 : 2);
    }
    result.graph = std::move(copies.graph);
    result.schedule.name = pipeline_schedule_name(schedule_);
    result.schedule.micro_batches = given_.micro_batches;
    for (const int32_t stage : stage_)
      result.home.push_back(mesh.device(device_of_chunk(schedule_, mesh.pipeline, stage), 0, 0));
    result.layers = per_stage_;
    for (int32_t stage = 0; stage < virtual_stages(); ++stage)
      result.pipeline.push_back(device_of_chunk(schedule_, mesh.pipeline, stage));
    return result;
  }

  const Parallelism& given_;
  const Graph& graph_;
  Layers layers_;
  PipelineSchedule schedule_ = PipelineSchedule::one_f_one_b;
  std::vector<int32_t> per_stage_, stage_;
};

}  // namespace

LoweredStrategy lower(const Parallelism& parallelism, const Graph& graph, const Cluster& cluster) {
  return Lowering(parallelism, graph, cluster).run();
}

}  // namespace trinity
