// Random meshes, with graphs and clusters for them.
#pragma once

#include <memory>
#include <vector>

#include "support/build.h"
#include "support/layered.h"

namespace trinity::test {

/// Residual blocks of two matmuls as a training step; operators between them sometimes have no
/// cost, so that many events share an instant. `alike`: all blocks are equal; experts: one branch of
/// operators each.
inline std::shared_ptr<const Graph> blocks(RandomStream& random, int layers, bool alike = false,
                                           bool experts = false) {
  const auto times = alike ? 1 + random.below(3) : 0;
  const bool sums = alike && random.below(2) == 0;
  const bool free = random.below(2) == 0, chosen = random.below(3) == 0;
  const auto adapt = [&](Operator& op) {
    const bool product = !op.parameters.empty();
    if (product) op.flops = 1e9 * static_cast<double>(alike ? times : 1 + random.below(3));
    if (!product && free) op.measured_time_s = op.measured_backward_time_s = 0;
    if (chosen) op.measured_time_s = op.measured_backward_time_s = 1e-6;
  };
  const auto residual = [&] { return alike ? sums : random.below(2) == 0; };
  LayeredOptions options;
  if (alike) options = {random.below(3) == 0, random.below(3) == 0};
  options.experts = experts;
  return std::make_shared<const Graph>(layered_graph(layers, adapt, residual, options));
}

/// Decoders that support context parallelism, with stated costs; with experts after some dense
/// layers, or in all layers.
inline std::shared_ptr<const Graph> decoder(RandomStream& random, int layers, int64_t experts = 0,
                                            bool dense = false) {
  const auto times = 1 + random.below(3);
  const bool free = random.below(3) == 0;
  const auto adapt = [&](Operator& op) {
    if (!op.parameters.empty()) op.flops *= static_cast<double>(times);
    if (op.parameters.empty() && free) op.measured_time_s = op.measured_backward_time_s = 0;
  };
  DecoderOptions options;
  options.num_kv_heads = random.below(3) == 0 ? 4 : 8;
  options.vocabulary = random.below(2) == 0 ? 64 : 67;
  options.tied = random.below(2) == 0;
  options.mask = random.below(3) == 0;
  options.experts = experts;
  if (dense) options.dense = 1 + static_cast<int>(random.below(3));
  return std::make_shared<const Graph>(decoder_graph(layers, adapt, options));
}

/// Machines whose devices are additionally linked in pairs.
inline ClusterSpec meshed(int nodes, int members) {
  auto spec = node_spec(nodes, members, 1e10, 1e10, 1e-6, 5e-6);
  for (int n = 0; n < nodes; ++n)
    for (int a = 0; a < members; ++a)
      for (int b = a + 1; b < members; ++b)
        spec.links.push_back(
            {fmt::format("n{}/d{}", n, a), fmt::format("n{}/d{}", n, b), 4e10, 2e-6});
  return spec;
}

/// Makes one device or link slower than all others.
inline void break_one(RandomStream& random, ClusterSpec& spec) {
  if (random.below(2) == 0)
    spec.devices[random.below(spec.devices.size())].speed = 0.7;
  else
    spec.links[random.below(spec.links.size())].bandwidth_bytes_per_s *= 0.3;
}

/// Hosts to which a tensor is copied in about the time of an operator.
inline void know_hosts(ClusterSpec& spec) {
  for (auto& type : spec.device_types)
    type.host_bandwidth_bytes_per_s = type.host_memory_bandwidth_bytes_per_s = 5e5;
}

inline std::shared_ptr<const Cluster> cluster_of(RandomStream& random, int devices) {
  ClusterSpec spec;
  const int members = 1 << random.below(4), nodes = (devices + members - 1) / members;
  switch (random.below(4)) {
    case 0:
      spec = uniform_spec(devices, 1e10, 1e-6);
      break;
    case 1:
      spec = node_spec(nodes, members, 1e11, 2e10, 1e-6, 5e-6);
      break;
    case 2:
      spec = meshed(nodes, members);
      break;
    default:
      spec = rail_spec(nodes, members);
  }
  hold_framework(random, spec);
  if (random.below(3) == 0) {  // types that differ only by name
    spec.device_types.push_back(spec.device_types[0]);
    spec.device_types[1].name = "other";
    for (auto& device : spec.devices) device.type = static_cast<int32_t>(random.below(2));
  }
  constexpr QueueModel kAnyQueue[] = {QueueModel::sender, QueueModel::pair,  QueueModel::route,
                                    QueueModel::route,  QueueModel::route, QueueModel::none,
                                    QueueModel::fair,   QueueModel::receiver};
  spec.queue = kAnyQueue[random.below(8)];
  if (random.below(3) == 0) break_one(random, spec);
  know_hosts(spec);
  return std::make_shared<const Cluster>(std::move(spec));
}

inline Parallelism mesh_of(RandomStream& random) {
  Parallelism given;
  const auto pick = [&](std::initializer_list<int32_t> list) {
    return *(list.begin() + random.below(list.size()));
  };
  given.mesh.data = pick({1, 2, 2, 3, 4, 8});
  given.mesh.tensor = pick({1, 2, 4});
  given.mesh.pipeline = pick({1, 2, 4});
  given.micro_batches = pick({1, 2, 4, 8});
  given.zero_stage = pick({0, 0, 1, 2, 3});
  given.sequence_parallel = random.below(2) == 0;
  given.scatter_gather = random.below(2) == 0;
  given.overlap_tp_grad_allreduce = random.below(2) == 0;
  given.bucket_bytes = pick({1, 3000, 25'000'000});
  given.activation_offload_fraction = pick({0, 0, 1}) * 0.6;
  given.recompute = random.below(3) == 0 ? Recompute::full : Recompute::none;
  constexpr const char* kSchedules[] = {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v"};
  given.schedule = kSchedules[random.below(6)];
  if (given.schedule == "interleaved" && given.mesh.pipeline > 1)
    given.virtual_stages = pick({1, 2});
  if (given.schedule == "zb-v" && given.mesh.pipeline > 1) given.virtual_stages = 2;
  constexpr Axis kAxes3[] = {Axis::tensor, Axis::data, Axis::pipeline};
  if (random.below(2) == 0) given.mesh.order = {kAxes3[random.below(3)]};
  return given;
}

/// Adds context parallelism.
inline void share_sequence(RandomStream& random, Parallelism& given) {
  given.mesh.context = random.below(2) == 0 ? 2 : 4;
  given.mesh.data = std::min(given.mesh.data, 3);
  given.scatter_gather = given.overlap_tp_grad_allreduce = false;
  constexpr ContextKind kKinds[] = {ContextKind::all_gather, ContextKind::ring,
                                    ContextKind::all_to_all};
  given.cp_comm_type = kKinds[random.below(3)];
}

/// Shards experts among some of many replicas; a first stage with a few more layers.
inline void share_experts(RandomStream& random, Parallelism& given, int32_t layers) {
  const auto pick = [&](std::initializer_list<int32_t> list) {
    return *(list.begin() + random.below(list.size()));
  };
  given.mesh.expert = pick({2, 2, 4});
  given.mesh.tensor = pick({1, 1, 1, 2});
  given.mesh.context = pick({1, 1, 1, 2});
  given.mesh.pipeline = pick({2, 4, 8});
  given.mesh.data = given.mesh.expert * pick({1, 2, 3, 4, 6});
  if (given.mesh.pipeline == 8) given.mesh.data = std::min(given.mesh.data, 8);
  given.mesh.order.clear();
  given.sequence_parallel = given.mesh.tensor > 1;
  given.scatter_gather = given.overlap_tp_grad_allreduce = false;
  given.micro_batches = 8;
  given.virtual_stages = given.schedule == "zb-v" || given.schedule == "interleaved" ? 2 : 1;
  const int32_t chunks = given.mesh.pipeline * given.virtual_stages;
  given.stages.assign(static_cast<size_t>(chunks), layers / chunks);
  given.stages.front() += layers % chunks;
}

/// The same on a mesh whose stages' devices are equivalent except for shared links.
inline void share_nodes(RandomStream& random, Parallelism& given) {
  const auto pick = [&](std::initializer_list<int32_t> list) {
    return *(list.begin() + random.below(list.size()));
  };
  share_sequence(random, given);
  given.mesh.tensor = pick({1, 1, 2, 2, 4});
  given.mesh.context = given.mesh.tensor == 4 ? 2 : pick({2, 2, 4});
  given.mesh.pipeline = 4;
  given.mesh.data = pick({2, 3, 3, 4});
  given.mesh.order.clear();
  given.micro_batches = 8;
  given.virtual_stages = given.schedule == "zb-v" || given.schedule == "interleaved" ? 2 : 1;
  given.zero_stage = static_cast<int32_t>(random.below(4));
}

/// Nodes that hold one or two replicas' devices of a stage, each with its own link to other nodes,
/// or all with one.
inline std::shared_ptr<const Cluster> nodes_of(RandomStream& random, const Mesh& mesh) {
  const int members = mesh.width() * (random.below(3) == 0 ? 2 : 1);
  const int nodes = (static_cast<int>(mesh.device_count()) + members - 1) / members;
  ClusterSpec spec = random.below(4) == 0 ? node_spec(nodes, members, 1e11, 2e10, 1e-6, 5e-6)
                                          : rail_spec(nodes, members);
  spec.queue = random.below(3) == 0 ? QueueModel::pair : QueueModel::route;
  if (mesh.expert > 1 && random.below(2) == 0) spec.collectives.emplace().sends_tokens_once = true;
  know_hosts(spec);
  return std::make_shared<const Cluster>(std::move(spec));
}

/// Unequal stages with at least one layer.
inline void unequal_stages(RandomStream& random, Parallelism& given, int32_t layers) {
  given.stages.assign(static_cast<size_t>(given.mesh.pipeline * given.virtual_stages), 1);
  for (auto left = layers - static_cast<int32_t>(given.stages.size()); left > 0; --left)
    ++given.stages[random.below(given.stages.size())];
}

/// Decoders whose norms' gradients share buckets: of a stage, of a device, or of unlimited size.
inline void share_buckets(RandomStream& random, Parallelism& given, int32_t layers) {
  const auto pick = [&](std::initializer_list<int32_t> list) {
    return *(list.begin() + random.below(list.size()));
  };
  constexpr const char* kSchedules[] = {"1f1b", "1f1b", "gpipe", "interleaved", "zb-h1", "zb-v",
                                        "dualpipe-v"};
  given.schedule = kSchedules[random.below(7)];
  const bool rounds = given.schedule == "interleaved" || is_v_shaped(schedule_of(given));
  given.virtual_stages = rounds ? 2 : 1;
  given.mesh.pipeline = pick({2, 3, 4, 4, 5, 6});
  given.mesh.tensor = 2;
  given.mesh.context = pick({1, 1, 1, 2});
  given.mesh.data = pick({1, 2, 2, 3});
  given.mesh.order.clear();
  given.micro_batches = 2 * given.mesh.pipeline;
  given.sequence_parallel = random.below(6) > 0;
  given.scatter_gather = given.overlap_tp_grad_allreduce = false;
  given.bucket_bytes = pick({500, 1000, 1500, 3000, 6000, 20'000, 25'000'000});
  given.recompute = static_cast<Recompute>(random.below(3));
  given.zero_stage = pick({0, 0, 1, 2, 3});
  unequal_stages(random, given, layers);
  const auto stages = static_cast<int32_t>(given.stages.size());
  if (random.below(3) > 0 && layers % stages == 0) given.stages.clear();
}

inline void place_inside(RandomStream& random, const Graph& graph, Parallelism& given) {
  given.mesh.placement = 2 + static_cast<int32_t>(random.below(2));
  std::vector<int32_t> of_unit;
  for (int32_t unit = 0; unit < graph.unit_count(); ++unit)
    of_unit.push_back(static_cast<int32_t>(random.below(static_cast<size_t>(given.mesh.placement))));
  for (const int32_t unit : graph.units()) given.inside.push_back(of_unit[static_cast<size_t>(unit)]);
}

}  // namespace trinity::test
