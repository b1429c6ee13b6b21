#pragma once

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/index.h"
#include "graph/experts.h"
#include "graph/layers.h"
#include "graph/meaning.h"
#include "graph/nameless.h"
#include "graph/operator_types.h"
#include "graph/recompute.h"
#include "graph/replicas.h"
#include "graph/sharding.h"
#include "graph/split_backward.h"
#include "strategy/mesh_schedule.h"
#include "strategy/mesh_words.h"
#include "strategy/offload.h"
#include "strategy/sent_parts.h"
#include "strategy/shared_variables.h"
#include "strategy/splits.h"
#include "strategy/tensor_pattern.h"
#include "strategy/lower.h"

// Internal to strategy/lower: the steps from a training graph to one replica of a mesh.

namespace trinity::lowering {

/// The passes that turn a training graph into the graph of one replica of a mesh: layers to stages, operators to parts,
/// then recomputation, sharded states and messages. `given`, `graph` and `spread` must outlive it. Not thread-safe.
class Lowering {
 public:
  /// spread: [operator], the number of ranks of `expert` over which its weights are sharded; empty: none.
  Lowering(const Parallelism& given, const Graph& graph, std::span<const int32_t> spread)
      : given_(given),
        graph_(graph),
        layers_(repeated_layers(graph)),
        schedule_(schedule_of(given)),
        spread_(spread) {
    read_rules();
    share_out_layers();
  }

  /// With `parts` the graph of lower_lane(), nothing included.
  std::optional<LoweredGraph> run(LaneParts* parts) {
    if (!parts) return finish(*split(false));
    const auto found = parts->find(what_splits(), [&] {
      return std::make_shared<const std::optional<LoweredGraph>>(split(true));
    });
    if (!*found) return std::nullopt;
    return finish(**found);
  }

 private:
  /// True if gradients are scattered over parts of the sequence after every micro-batch: further
  /// reductions of them then come after that, once per step, on shards.
  bool scatters_first() const { return joins_context(given_) && given_.zero_stage >= 2; }

  /// The part of the mesh that split() depends on.
  Parallelism what_splits() const {
    Parallelism same = without(given_, kSplits);
    if (given_.mesh.context > 1) {  // joins_context() goes by these
      same.mesh.data = std::min(given_.mesh.data, 2);
      same.zero_stage = given_.zero_stage;
      same.sync = given_.sync;
    }
    same.schedule = is_v_shaped(schedule_) ? "v" : "";
    return same;
  }

  LoweredGraph finish(const LoweredGraph& whole) const {
    LoweredGraph made = given_.mesh.pipeline == 1 ? whole : share_variables(whole, given_.bucket_bytes, scatters_first());
    if (given_.recompute != Recompute::none || !repeated_.empty()) repeat(made);
    if (given_.scatter_gather) cut_sends(made);
    if (splits_backward(schedule_))
      cut_backward(made);
    else if (given_.overlap_tp_grad_allreduce && given_.mesh.tensor > 1)
      derive(made, overlap_sums(std::move(made.graph)));
    if (given_.optimizer_offload_fraction > 0)
      made.graph = offload_optimizer(std::move(made.graph), graph_, made.each(&OperatorRole::serves),
                                     given_.optimizer_offload_fraction);
    if (given_.activation_offload_fraction > 0)
      made.graph = offload_activations(std::move(made.graph), made.roles, layers_.count,
                                       given_.activation_offload_fraction);
    const std::vector<bool> joined_weights = weights_joined(made);
    if (shards_states(given_)) shard(made, joined_weights);
    made.joined = joined_collectives(made.graph);
    if (!made.joined.empty() && shards_states(given_)) gather_together(made, joined_weights);
    find_last_sends(made);
    describe(made);
    return made;
  }

  /// Choices for single operators, by their numbers.
  void read_rules() {
    for (const int32_t op : module_operators(given_, graph_, layers_)) repeated_[op] = true;
    std::vector<std::string> names;
    std::map<std::string, int32_t> numbers;
    for (int32_t op = 0; op < graph_.operator_count() && !given_.operators.empty(); ++op) {
      if (graph_.op(op).phase != Phase::forward) continue;
      names.push_back(graph_.op(op).name);
      numbers[names.back()] = op;
    }
    for (const auto& [name, rule] : given_.operators) {
      const auto found = numbers.find(name);
      if (found == numbers.end())
        throw ArgumentError("operators: graph '{}' has no forward operator '{}'{}", graph_.name(), name,
                            suggestion(name, names));
      if (rule.recompute) repeated_[found->second] = *rule.recompute;
      if (rule.split && given_.mesh.tensor > 1)
        said_[found->second] = dimension_of(found->second, *rule.split);
    }
  }

  int32_t dimension_of(int32_t op, const std::string& name) const {
    if (name.empty()) return -1;
    const auto space = iteration_space(graph_, op);
    const int32_t found = space.find(name);
    if (found >= 0 && space.dimensions[found].splits) return found;
    std::vector<std::string> others;
    for (const auto& dimension : space.dimensions)
      if (dimension.splits) others.push_back(dimension.name);
    throw ArgumentError(fmt::format("operators: split of operator '{}': {} dimension '{}'; {}",
                                    graph_.op(op).name,
                                    found < 0 ? "it has no" : "it cannot be split along", name,
                                    others.empty() ? std::string("it cannot be split")
                                                   : "use one of: " +
                                                         fmt::format("{}", fmt::join(others, ", "))));
  }

  int32_t virtual_stages() const { return given_.mesh.pipeline * given_.virtual_stages; }

  /// Layers of every virtual stage, and the stage of every operator.
  void share_out_layers() {
    const int32_t stages = virtual_stages(), count = layers_.count;
    if (count == 0 && (stages > 1 || given_.recompute == Recompute::full))
      throw ArgumentError("pipeline stages and recomputation need repeated layers, which graph '{}' does not have ({})",
                          graph_.name(), kLayerRule);
    per_stage_ = layers_per_stage(given_, count);
    std::vector<int32_t> of_layer;
    stage_.reserve(layers_.of.size());
    for (int32_t s = 0; s < stages; ++s) of_layer.insert(of_layer.end(), at(per_stage_[s]), s);
    for (const int32_t layer : layers_.of)
      stage_.push_back(layer < 0 ? 0 : layer >= count ? stages - 1 : of_layer[layer]);
  }

  /// The first device of an operator: the first one of its slot in its stage.
  int32_t first_device(int32_t op) const {
    const auto& mesh = given_.mesh;
    const int32_t place = mesh.placement > 1 ? given_.inside[at(op)] : 0;
    return device_of_chunk(schedule_, mesh.pipeline, stage_[at(op)]) * mesh.width() +
           place * mesh.parts();
  }

  /// The graph of one replica: every operator on the devices of a slot of its stage. one_of_kind: the graph of
  /// lower_lane().
  std::optional<LoweredGraph> split(bool one_of_kind) const {
    const int32_t width = given_.mesh.width(), t = given_.mesh.parts(), p = given_.mesh.pipeline;
    std::vector<int32_t> placement;
    placement.reserve(at(graph_.operator_count()));
    for (int32_t op = 0; op < graph_.operator_count(); ++op) placement.push_back(first_device(op));
    TensorParts parts{given_.mesh.tensor, given_.mesh.context, given_.sequence_parallel, said_, {}};
    const bool exchanges =
        given_.cp_comm_type == ContextKind::all_to_all && given_.mesh.context > 1;
    if (exchanges) parts.by_heads = attention_or_refuse("cp_comm_type: all_to_all", "to split by heads");
    const auto splits = tensor_splits(graph_, parts, placement);
    const SplitOptions options{.bucket_bytes = given_.bucket_bytes, .apart = spread_,
                               .runs = joins_context(given_) ? given_.mesh.tensor : 1, .exchanges = exchanges, .width = t,
                               .across_first = scatters_first(), .tensor = given_.mesh.tensor};
    std::optional<LoweredGraph> made;
    if (one_of_kind)
      made = lower_lanes(graph_, splits, placement, p * width, options);
    else
      made = lower_splits(graph_, splits, placement, p * width, options);
    if (!made) return made;
    auto& lanes = made->lanes;
    for (auto lane = static_cast<int32_t>(lanes.size()); lane < width; ++lane)  // in every slot the same
      lanes.push_back(one_of_kind ? lanes[at(lane - t)] + t : lane);
    for (auto& role : made->roles) {
      const bool source = graph_.op(role.serves).inputs.empty();
      const bool own = role.device / width == device_of_chunk(schedule_, p, stage_[role.serves]);
      role.stage = own || source ? stage_[role.serves] : stage_of_terms(role.serves);
      role.layer = layers_.of[role.serves];
      if (!spread_.empty()) role.spread = spread_[role.serves];
    }
    put_sources_at_readers(made->graph, made->roles);
    return made;
  }

  /// Sources are copied to every device that reads them, in the first stage that does so.
  void put_sources_at_readers(const Graph& graph, std::vector<OperatorRole>& roles) const {
    for (int32_t op = 0; op < graph.operator_count(); ++op) {
      if (!graph.op(op).inputs.empty() || is_variable(graph.op(op))) continue;
      const auto readers = graph.readers(op);
      if (readers.empty()) continue;
      int32_t& stage = roles[at(op)].stage;
      stage = virtual_stages();
      for (const int32_t reader : readers) stage = std::min(stage, roles[at(reader)].stage);
    }
  }

  /// The stage of a gradient accumulation that is not computed in the stage of its forward operator: the stage of its
  /// terms.
  int32_t stage_of_terms(int32_t sum) const {
    return stage_[graph_.tensor(graph_.op(sum).inputs[0]).producer];
  }

  std::vector<bool> attention_or_refuse(const char* word, const char* use) const {
    auto found = attention_core(graph_, layers_);
    if (std::none_of(found.begin(), found.end(), [](bool core) { return core; }))
      throw ArgumentError("{}: graph '{}' has no attention {}", word, graph_.name(), use);
    return found;
  }

  /// True if a tensor is all of what an operator of the original graph writes.
  bool is_whole(const LoweredGraph& made, int32_t op, size_t output) const {
    const auto& original = graph_.op(made.roles[op].serves).outputs;
    const auto& found = made.graph.tensor(made.graph.op(op).outputs[output]);
    return output < original.size() && graph_.tensor(original[output]).bytes == found.bytes;
  }

  /// Stages send each other parts of what tensor leaves whole.
  void cut_sends(LoweredGraph& made) const {
    if (given_.mesh.tensor == 1 || given_.mesh.pipeline == 1) return;
    std::vector<bool> whole(made.graph.tensors().size(), false);
    for (int32_t op = 0; op < made.graph.operator_count(); ++op)
      for (size_t k = 0; k < made.graph.op(op).outputs.size(); ++k)
        whole[made.graph.op(op).outputs[k]] = is_whole(made, op, k);
    send_parts(made, given_.mesh.tensor, whole);
  }

  /// The unit of recomputation: a layer, the part before all layers, the part after them.
  int32_t unit_of(int32_t layer) const { return layer < 0 ? layers_.count + 1 : layer; }
  std::vector<bool> units_with_rules() const {
    std::vector<bool> mixed(at(layers_.count + 2), false);
    for (const auto& [op, again] : repeated_)
      if (again) mixed[unit_of(layers_.of[op])] = true;
    return mixed;
  }

  void repeat(LoweredGraph& made) const {
    std::vector<bool> core;
    if (given_.recompute == Recompute::selective)
      core = attention_or_refuse("recompute: selective", "to recompute");
    std::vector<int32_t> unit;
    const auto mixed = units_with_rules();
    for (const auto& role : made.roles) {
      const int32_t op = role.serves;
      const int32_t forward = graph_.op(op).forward >= 0 ? graph_.op(op).forward : op;
      const int32_t layer = layers_.of[op];
      const bool whole = given_.recompute == Recompute::full || (!core.empty() && core[forward]);
      bool within = whole && layer >= 0 && layer < layers_.count;
      if (const auto said = repeated_.find(op); said != repeated_.end()) within = said->second;
      // The recomputed tensors are read by all backward operators of their unit.
      const bool reads = mixed[unit_of(layer)] && graph_.op(op).phase == Phase::backward;
      unit.push_back(within || reads ? unit_of(layer) : -1);
    }
    const auto device = made.each(&OperatorRole::device);
    RecomputeOptions options;
    options.device = device;
    derive(made, recompute(std::move(made.graph), unit, options));
  }

  /// The roles of operators derived from these: origin[operator] is one of `made`.
  static std::vector<OperatorRole> taken(const LoweredGraph& made, const std::vector<int32_t>& origin) {
    std::vector<OperatorRole> roles;
    roles.reserve(origin.size());
    for (const int32_t op : origin) roles.push_back(made.roles[op]);
    return roles;
  }
  static void derive(LoweredGraph& made, DerivedGraph next) {
    made.roles = taken(made, next.origin);
    made.graph = std::move(next.graph);
  }

  /// [collective]: whether it reduces gradients over parts of the sequence, once per step, so that it can be joined with
  /// the reduction over replicas; empty: none.
  std::vector<bool> joined_collectives(const Graph& graph) const {
    std::vector<bool> joined;
    if (!joins_context(given_)) return joined;
    for (const auto& collective : graph.collectives())
      joined.push_back(collective.kind == CollectiveKind::all_reduce && collective.axes == kOverContext &&
                       graph.op(collective.members[0]).phase == Phase::update);
    return joined;
  }

  /// The same, with the reductions of gradients that precede these.
  std::vector<bool> joined_or_before(const Graph& graph) const {
    auto joined = joined_collectives(graph);
    for (size_t c = 0; c < joined.size() && !scatters_first(); ++c)
      joined[c] = graph.op(graph.collectives()[c].members[0]).phase == Phase::update;
    return joined;
  }

  /// Per original operator: whether the gradients of its weights are reduced in such collectives.
  std::vector<bool> weights_joined(const LoweredGraph& made) const {
    const auto joined = joined_collectives(made.graph);
    std::vector<bool> weights(joined.empty() ? 0 : at(graph_.operator_count()), false);
    const auto with = [&](int32_t tensor) {
      return made.graph.op(made.graph.tensor(tensor).producer).collective;
    };
    for (int32_t op = 0; op < made.graph.operator_count() && !joined.empty(); ++op) {
      const auto& about = made.graph.op(op);
      if (about.phase != Phase::update || about.collective >= 0 || about.inputs.empty()) continue;
      const auto& before = made.graph.op(made.graph.tensor(about.inputs[0]).producer);
      int32_t sum = before.collective;
      if (sum >= 0 && !joined[at(sum)] && scatters_first()) sum = with(before.inputs[0]);
      if (sum >= 0 && joined[at(sum)]) weights[at(leader_of(made.roles[op].serves))] = true;
    }
    return weights;
  }
  int32_t leader_of(int32_t op) const {
    return graph_.op(op).forward >= 0 ? graph_.op(op).forward : op;
  }

  /// Numbers gathers of weights on each device as on the first of its parts: the gathers of one
  /// number hold the same.
  void gather_together(LoweredGraph& made, const std::vector<bool>& weights) const {
    std::map<int32_t, int32_t> on_device;
    std::map<std::pair<int32_t, int32_t>, int32_t> known;
    for (auto& role : made.roles) {
      if (role.gathered == 0 || !weights[at(leader_of(role.serves))]) continue;
      const int32_t parts = given_.mesh.parts();
      const int32_t first = role.device / parts * parts + role.device % given_.mesh.tensor;
      const auto key = std::pair(first, on_device[role.device]++);
      role.together = known.emplace(key, static_cast<int32_t>(known.size())).first->second;
    }
  }

  /// Every device keeps a share of its states (ZeRO); bytes of the gathers among what was made.
  /// weights: of original operators whether all of shard_group() share these out, or replicas
  /// alone; empty: all.
  void shard(LoweredGraph& made, const std::vector<bool>& weights) const {
    auto spread = made.each(&OperatorRole::spread);
    std::vector<int32_t> apart(spread.size(), 0);
    for (size_t op = 0; op < spread.size() && !weights.empty(); ++op) {
      if (weights[at(leader_of(made.roles[op].serves))]) continue;
      spread[op] *= given_.mesh.context;
      apart[op] = 1;  // the same number of ranks as shard experts, but others
    }
    const auto whole = joined_or_before(made.graph);
    const auto device = made.each(&OperatorRole::device);
    std::vector<int32_t> unit;
    unit.reserve(made.roles.size());
    for (const auto& role : made.roles) unit.push_back(role.layer < layers_.count ? role.layer : -1);
    const ShardingOptions options{given_.zero_stage, shard_group(given_), given_.bucket_bytes, device, unit,
                                  spread, apart, whole};
    auto sharded = shard_states(std::move(made.graph), options);
    made.roles = taken(made, sharded.near);
    for (size_t op = 0; op < made.roles.size(); ++op) {
      if (sharded.origin[op] < 0) made.roles[op].origin = -1;
      made.roles[op].gathered = sharded.gathered[op];
    }
    made.graph = std::move(sharded.graph);
  }

  /// Stages but the first reduce gradients when their last one for the stage before is on its way,
  /// as Megatron-LM does (pipeline_parallel/schedules.py: "Other pipeline stages do grad reduction
  /// during pipeline bubble"); not where gradients are scattered after every micro-batch, nor where
  /// weights have a pass of their own, which ends after all messages.
  void find_last_sends(LoweredGraph& made) const {
    const auto& mesh = given_.mesh;
    if (mesh.pipeline == 1 || mesh.data * mesh.context == 1 || given_.zero_stage > 1 ||
        splits_backward(schedule_))
      return;
    const auto& graph = made.graph;
    const auto leaves = [&](int32_t op) {
      if (graph.op(op).phase != Phase::backward || graph.op(op).collective >= 0) return false;
      return std::ranges::any_of(graph.readers(op), [&](int32_t reader) {
        return graph.op(reader).phase == Phase::backward &&
               made.roles[reader].device / mesh.width() != made.roles[op].device / mesh.width();
      });
    };
    std::map<std::pair<int32_t, int32_t>, int32_t> sends;  // by device and stage
    for (int32_t op = 0; op < graph.operator_count(); ++op)
      if (leaves(op)) sends[{made.roles[op].device, made.roles[op].stage}] = op;
    for (const auto& [place, op] : sends) made.roles[op].sends_last = true;
  }

  /// Splits off weight gradients (W), which wait until a device would be idle; not for operators
  /// that are no matmuls or choose experts (little work), nor for operators after the layers, whose
  /// logits would stay in memory (Qi et al. 2024, table 1, counts the matmuls of layers).
  void cut_backward(LoweredGraph& made) const {
    std::vector<bool> at_once;
    for (const auto& role : made.roles)
      at_once.push_back(role.layer >= layers_.count ||
                        !operator_rule(graph_.op(role.serves).type).matrix ||
                        chooses_experts(graph_, leader_of(role.serves)));
    derive(made, split_backward(std::move(made.graph), at_once));
  }

  /// Sets the fields that do not depend on the operators of the replica.
  void describe(LoweredGraph& made) const {
    made.of = given_;
    made.collective.resize(made.graph.collectives().size());
    std::iota(made.collective.begin(), made.collective.end(), 0);
    made.home.reserve(at(graph_.operator_count()));
    for (int32_t op = 0; op < graph_.operator_count(); ++op) made.home.push_back(first_device(op));
    made.layers = per_stage_;
    for (int32_t stage = 0; stage < virtual_stages(); ++stage)
      made.pipeline.push_back(device_of_chunk(schedule_, given_.mesh.pipeline, stage));
  }

  const Parallelism& given_;
  const Graph& graph_;
  Layers layers_;
  PipelineSchedule schedule_;
  std::span<const int32_t> spread_;  // per operator of the graph
  std::vector<int32_t> per_stage_, stage_;
  std::map<int32_t, bool> repeated_;  // [operator]: the dimension that a rule names
  std::map<int32_t, int32_t> said_;   // the same: TensorParts::said
};

}  // namespace trinity::lowering
