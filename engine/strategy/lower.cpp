#include "strategy/lower.h"

#include <algorithm>

#include "base/error.h"
#include "base/index.h"
#include "graph/experts.h"
#include "graph/meaning.h"
#include "graph/nameless.h"
#include "graph/replicas.h"
#include "strategy/lowering.h"
#include "strategy/mesh_schedule.h"
#include "strategy/splits.h"

namespace trinity {

using lowering::Lowering;

namespace {

/// Sets how replicas synchronise.
void set_meeting(const Parallelism& given, ReplicaOptions& options) {
  const auto& way = given.sync;
  options.algorithm = way.algorithm;
  options.ranks = given.mesh.expert;
  if (way.in_runs()) options.inner = way.inner;
  if (way.kind == Synchronise::parameter_server) {
    options.meeting = way.asynchronous ? Meeting::in_turn : Meeting::servers;
    options.servers = way.servers;
  }
  if (way.seldom()) options.meeting = way.every > 0 ? Meeting::weights : Meeting::apart;
  options.every = way.every;
  options.on_occasion = way.kind == Synchronise::daso && way.every > 0;
  options.late = options.on_occasion && way.asynchronous;
}

/// Choices for single operators, by the operators of the first rank; operators at the same position
/// on different ranks are not distinguished.
std::map<std::string, OperatorChoice> choices_of_rank(const Parallelism& given, const Graph& graph,
                                                      const SpreadExperts& spread) {
  auto choices = given.operators;
  const auto said = [&](const std::string& name) {
    const auto found = given.operators.find(name);
    return found == given.operators.end() ? OperatorChoice{} : found->second;
  };
  for (const auto& rank : spread.origin)
    for (size_t op = 0; op < rank.size() && !choices.empty(); ++op) {
      if (rank[op] == spread.origin[0][op]) continue;
      const auto &first = graph.op(spread.origin[0][op]).name, &other = graph.op(rank[op]).name;
      if (said(first) != said(other))
        throw ArgumentError("operators: '{}' and '{}' are one operator on two ranks of expert = {}: expected equal "
                            "choices for both", other, first, given.mesh.expert);
      choices.erase(other);
    }
  return choices;
}

/// Records the original weights that a copy on a rank has (graph/meaning.h): the weights of another
/// expert, or other rows of all experts' weights.
void state_expert(Operator& copy, const Operator& original, int64_t rank, int64_t ranks) {
  if (!has_meaning(copy)) return;
  copy.attributes[kSource] = text_attribute(original, kSource);
  for (size_t i = 0; i < copy.parameters.size() && i < original.parameters.size(); ++i) {
    const auto whole = fmt::format("weight{}_whole", i), begin = fmt::format("weight{}_begin", i);
    const auto stated = list_attribute(copy, fmt::format("weight{}_shape", i));
    auto shape = list_attribute(copy, whole), from = list_attribute(copy, begin);
    if (shape.empty()) shape = stated.empty() ? copy.parameters[i].shape.get() : stated;
    const auto& all = original.parameters[i].shape;
    if (shape.empty() || shape.size() != all.size() || shape[0] * ranks != all[0]) continue;
    if (from.empty()) from.assign(shape.size(), 0);
    from[0] += rank * shape[0];
    copy.attributes[whole] = all;
    copy.attributes[begin] = from;
  }
}

/// The same graph, with the attributes of state_expert() for copies that have an original.
Graph with_experts_stated(Graph made, const Graph& original, const std::vector<OperatorRole>& roles, const Mesh& mesh) {
  GraphBuilder builder(std::move(made));
  for (int32_t op = 0; op < builder.operator_count(); ++op) {
    const auto& role = roles[at(op)];
    const int32_t rank = role.device / mesh.width() % mesh.data % mesh.expert;
    if (role.origin >= 0) state_expert(builder.op(op), original.op(role.origin), rank, mesh.expert);
  }
  return builder.build();
}

/// Lowers a mesh with sharded experts: the operators of one rank, as every replica is one rank.
std::optional<LoweredGraph> lowered_rank(const Parallelism& given, const Graph& graph, LaneParts* parts) {
  auto spread = spread_experts(graph, given.mesh.expert);
  Parallelism one = given;
  one.operators = choices_of_rank(given, graph, spread);
  auto made = Lowering(one, spread.graph, spread.spread).run(parts);
  if (!made) return made;
  made->of = given;
  std::vector<int32_t> home(at(graph.operator_count()), -1), rank_of(home.size(), 0);
  for (size_t rank = 0; rank < spread.origin.size(); ++rank)
    for (size_t op = 0; op < spread.origin[rank].size(); ++op) {
      const int32_t of = spread.origin[rank][op];
      if (of < 0 || home[of] >= 0) continue;
      home[of] = made->home[op];
      rank_of[of] = static_cast<int32_t>(rank);
    }
  made->home = std::move(home);
  made->home_rank = std::move(rank_of);
  made->ranks = std::move(spread.origin);
  return made;
}

/// The graph with attention in rings: operators that are all of an attention and attend to their
/// own sequence.
Graph with_rings(const Graph& graph) {
  GraphBuilder builder(graph);
  bool any = false;
  const auto shape = [&](int32_t tensor) { return graph.tensor(tensor).shape; };
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    auto& copy = builder.op(op);
    const auto& of = copy.forward >= 0 ? graph.op(copy.forward) : graph.op(op);
    const bool attends = of.type == "Attention" && of.inputs.size() == 3 &&
                         shape(of.inputs[1]).size() == 3 && shape(of.outputs[0]).size() == 3 &&
                         shape(of.inputs[1])[1] == shape(of.outputs[0])[1];
    if (attends && has_meaning(copy) && !copy.attributes.contains("log_sum_exp"))
      throw ArgumentError("cp_comm_type: ring: attention '{}' has no attribute log_sum_exp, which its gradient in a "
                          "ring needs; use all_gather", copy.name);
    if (!attends || !copy.type.starts_with("Attention")) continue;
    copy.attributes["ring"] = int64_t{1};
    any = true;
  }
  if (!any)
    throw ArgumentError("cp_comm_type: ring: expected attention in one operator (kernels = 'flash'), graph '{}' has "
                        "none; use all_gather", graph.name());
  return builder.build();
}

/// The graph of one replica; with `parts` the graph of lower_lane(), if there is one.
std::optional<LoweredGraph> lowered(const Parallelism& given, const Graph& graph, LaneParts* parts) {
  std::optional<Graph> rings;
  if (goes_in_rings(given)) rings = with_rings(graph);
  const Graph& of = rings ? *rings : graph;
  return given.mesh.expert > 1 ? lowered_rank(given, of, parts) : Lowering(given, of, {}).run(parts);
}

/// Checks that tokens of experts are distributed once.
void check_experts(const Parallelism& given, const Graph& graph) {
  if (given.mesh.tensor == 1 || given.sequence_parallel) return;
  const auto experts = find_experts(graph);
  if (experts.empty()) return;
  throw ArgumentError("mesh: tensor = {} with the {} experts of '{}': every device of a tensor group would dispatch "
                      "the same tokens; use sequence_parallel = true", given.mesh.tensor, experts[0].experts,
                      experts[0].name);
}

/// Sets the stages of a split graph's operators.
void set_stages(LoweredGraph& low, const std::vector<int32_t>& stage, int32_t devices) {
  constexpr int32_t kNone = -1;
  std::vector<int32_t> of_device(at(devices), kNone);
  for (auto& role : low.roles) {
    if (role.origin < 0) continue;
    role.stage = stage[role.origin];
    if (auto& first = of_device[role.device]; first == kNone) first = role.stage;
  }
  for (auto& role : low.roles)
    if (role.origin < 0) role.stage = std::max(0, of_device[role.device]);
}

LoweredGraph split_graph(const Strategy& strategy, const Graph& graph, const Cluster& cluster) {
  const auto refuse = [](const char* field) {
    throw ArgumentError("field '{}' cannot be combined with 'splits', which change the numbers of operators; lower the "
                        "graph first", field);
  };
  if (!strategy.splits.empty() && !strategy.schedule.priority.empty()) refuse("priority");
  if (!strategy.splits.empty() && !strategy.schedule.order.empty()) refuse("order");
  const int32_t devices = cluster.device_count();
  auto result = lower_splits(graph, strategy.splits, strategy.placement, devices);
  if (!strategy.schedule.stage.empty()) set_stages(result, strategy.schedule.stage, devices);
  result.home = strategy.placement;
  return result;
}

}  // namespace

LoweredGraph lower_replica(const Parallelism& parallelism, const Graph& graph, const Cluster& cluster) {
  check_mesh(parallelism, cluster);
  check_stages(parallelism);
  check_inside(parallelism, graph);
  check_experts(parallelism, graph);
  return *lowered(parallelism, graph, nullptr);
}

std::optional<LoweredGraph> lower_lane(const Parallelism& parallelism, const Graph& graph, const Cluster& cluster,
                                       LaneParts& parts) {
  const Nameless nameless;
  check_mesh(parallelism, cluster);
  check_experts(parallelism, graph);
  return lowered(parallelism, graph, &parts);
}

namespace {

/// ReplicaOptions::behind.
std::vector<int32_t> last_sends(const LoweredGraph& replica) {
  std::map<std::pair<int32_t, int32_t>, int32_t> sends;  // by device and stage
  for (size_t op = 0; op < replica.roles.size(); ++op)
    if (const auto& role = replica.roles[op]; role.sends_last)
      sends[{role.device, role.stage}] = static_cast<int32_t>(op);
  std::vector<int32_t> behind;
  for (const auto& role : replica.roles) {
    if (sends.empty()) break;
    const auto found = sends.find({role.device, role.stage});
    behind.push_back(found == sends.end() ? -1 : found->second);
  }
  return behind;
}

}  // namespace

LoweredGraph copy_replica(const LoweredGraph& replica, int32_t copies, std::span<const int32_t> numbers) {
  const auto& mesh = replica.of.mesh;
  ReplicaOptions options;
  if (mesh.data > 1) set_meeting(replica.of, options);
  const bool sharded = shards_states(replica.of);
  if (mesh.data > 1 || sharded) options.joined = replica.joined;
  options.joined_of = mesh.context;
  const auto together = replica.each(&OperatorRole::together), behind = last_sends(replica);
  const auto gathered = replica.each(&OperatorRole::gathered);
  options.together = together;
  options.behind = behind;
  if (sharded) {
    options.gathered = gathered;
    options.zero_stage = replica.of.zero_stage;
  }
  options.bucket_bytes = replica.of.bucket_bytes;
  const auto device_of = replica.each(&OperatorRole::device);
  options.device_of = device_of;
  const auto spread = replica.each(&OperatorRole::spread);
  options.spread = spread;
  if (copies < mesh.data) {
    options.of = mesh.data;
    options.numbers = numbers;
  }
  auto made = replicate(replica.graph, copies, options);
  LoweredGraph result;
  const auto rank = [&](int32_t device, int32_t copy) {
    return (device / mesh.width() * copies + copy) * mesh.width() + device % mesh.width();
  };
  const auto origin = [&](int32_t found, int32_t copy) {
    if (replica.ranks.empty() || found < 0) return found;
    const int32_t number = numbers.empty() ? copy : numbers[at(copy)];
    return replica.ranks[at(number % mesh.expert)][found];
  };
  result.roles.reserve(at(made.graph.operator_count()));
  for (int32_t op = 0; op < made.graph.operator_count(); ++op) {
    int32_t of = made.origin[op], from = op;
    // A gradient accumulation is placed with its gradients, or with the updates that read its
    // result.
    const bool sum = of < 0 || (made.graph.op(op).inputs.empty() &&
                                made.graph.op(op).phase == Phase::update);
    while (of < 0) {
      from = made.graph.tensor(made.graph.op(from).inputs[0]).producer;
      of = made.origin[from];
    }
    auto& role = result.roles.emplace_back(replica.roles[of]);
    role.device = rank(role.device, made.replica[op]);
    role.origin = sum ? -1 : origin(role.origin, made.replica[op]);
  }
  for (const auto& collective : made.graph.collectives()) {
    const int32_t first = collective.members[0], of = made.origin[first];
    const int32_t inner = of < 0 ? -1 : replica.graph.op(of).collective;
    const bool joins = of >= 0 && together[of] >= 0;
    result.collective.push_back(inner >= 0 ? replica.collective[inner] : joins ? LoweredGraph::kJoins : -1);
    const bool exchange = of >= 0 && inner < 0 && is_exchange(replica.graph.op(of));
    result.among.push_back(exchange                             ? LoweredGraph::Among::run
                           : result.roles[at(first)].spread > 1 ? LoweredGraph::Among::alike
                                                                : LoweredGraph::Among::all);
  }
  result.turn = std::move(made.turn);
  result.graph = std::move(made.graph);
  result.home.reserve(replica.home.size());
  for (size_t op = 0; op < replica.home.size(); ++op) {
    const int32_t copy = replica.home_rank.empty() ? 0 : replica.home_rank[op];
    result.home.push_back(rank(replica.home[op], copies < mesh.data ? 0 : copy));
  }
  result.layers = replica.layers;
  result.pipeline = replica.pipeline;
  return result;
}

LoweredGraph lower_graph(const Strategy& strategy, const Graph& graph, const Cluster& cluster) {
  if (!strategy.parallelism) return split_graph(strategy, graph, cluster);
  const auto& given = *strategy.parallelism;
  auto made = copy_replica(lower_replica(given, graph, cluster), given.mesh.data);
  if (given.mesh.expert > 1 && has_meaning(graph)) {
    made.graph = with_experts_stated(std::move(made.graph), graph, made.roles, given.mesh);
  }
  return made;
}

LoweredStrategy lower(const Strategy& strategy, const Graph& graph, const Cluster& cluster) {
  LoweredStrategy result{lower_graph(strategy, graph, cluster), {}};
  result.arranged = arrange(result.made, strategy);
  return result;
}

}  // namespace trinity
