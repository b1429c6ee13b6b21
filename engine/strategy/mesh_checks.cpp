// Checks of a mesh, its schedule and the synchronisation of its replicas: check_mesh().
#include <algorithm>

#include "base/error.h"
#include "base/index.h"
#include "strategy/lower.h"
#include "strategy/mesh_schedule.h"

namespace trinity {
namespace {

void check_listed(const Mesh& mesh, const Cluster& cluster, const std::string& shown) {
  const auto& devices = mesh.devices;
  if (static_cast<int64_t>(devices.size()) != mesh.device_count())
    throw ArgumentError("{}, got {} in 'devices'", shown, devices.size());
  std::vector<bool> seen(at(cluster.device_count()), false);
  for (const int32_t device : devices) {
    if (device < 0 || device >= cluster.device_count())
      throw ArgumentError("devices: there is no device {} in cluster '{}' (1 to {})", int64_t{device} + 1,
                          cluster.name(), cluster.device_count());
    if (seen[device])
      throw ArgumentError("devices: device '{}' is listed twice", cluster.device(device).name);
    seen[device] = true;
  }
}

void check_sizes(const Mesh& mesh) {
  const std::pair<const char*, int32_t> sizes[] = {
      {"data", mesh.data},       {"tensor", mesh.tensor}, {"pipeline", mesh.pipeline},
      {"context", mesh.context}, {"expert", mesh.expert}, {"placement", mesh.placement}};
  for (const auto& [axis, size] : sizes)
    if (size < 1) throw ArgumentError("mesh: {}: expected at least 1, got {}", axis, size);
}

void check_devices(const Mesh& mesh, const Cluster& cluster) {
  check_sizes(mesh);
  const auto more = [](const char* axis, int32_t size) {
    return size > 1 ? fmt::format(" x {} {}", axis, size) : std::string();
  };
  const auto shown = fmt::format("mesh: data {} x tensor {} x pipeline {}{}{} are {} devices",
                                 mesh.data, mesh.tensor, mesh.pipeline,
                                 more("context", mesh.context), more("placement", mesh.placement),
                                 mesh.device_count());
  if (mesh.device_count() > cluster.device_count())
    throw ArgumentError("{}, cluster '{}' has {}", shown, cluster.name(), cluster.device_count());
  if (mesh.data % mesh.expert != 0)
    throw ArgumentError("mesh: expert = {} does not divide data = {}", mesh.expert, mesh.data);
  if (!mesh.devices.empty()) check_listed(mesh, cluster, shown);
  for (size_t i = 0; i < mesh.order.size(); ++i)
    if (std::find(mesh.order.begin(), mesh.order.begin() + static_cast<std::ptrdiff_t>(i),
                  mesh.order[i]) != mesh.order.begin() + static_cast<std::ptrdiff_t>(i))
      throw ArgumentError("order: axis '{}' is listed twice", choice_name(mesh.order[i]));
}

/// The divisors of replicas that may be runs of them: not 1, not all.
std::string runs_of(int32_t data) {
  std::vector<int32_t> found;
  for (int32_t inner = 2; inner < data && found.size() < 8; ++inner)
    if (data % inner == 0) found.push_back(inner);
  return found.empty() ? "none" : fmt::format("{}", fmt::join(found, ", "));
}

void check_inner(const Synchronisation& given, const Mesh& mesh) {
  const char* kind = choice_name(given.kind);
  if (given.inner < 2 || given.inner >= mesh.data || mesh.data % given.inner != 0)
    throw ArgumentError("sync: {}: expected an inner group from 2 replicas that is smaller than data = {} and divides "
                        "it, got inner = {} (possible: {})", kind, mesh.data, given.inner, runs_of(mesh.data));
  if (mesh.expert % given.inner != 0 && given.inner % mesh.expert != 0)
    throw ArgumentError("sync: {}: expected inner and expert of which one divides the other, got inner = {} and expert "
                        "= {}: inner groups would hold different numbers of copies of an expert", kind, given.inner,
                        mesh.expert);
}

/// Refuses ways of synchronisation that contradict other fields.
void check_synchronise(const Parallelism& parallelism) {
  const auto& given = parallelism.sync;
  const auto& mesh = parallelism.mesh;
  if (mesh.data == 1 || given.kind == Synchronise::all_reduce) return;
  const char* kind = choice_name(given.kind);
  const bool server = given.kind == Synchronise::parameter_server;
  const char* others = "zero_stage = 0, or kind all_reduce or hierarchical";
  if (parallelism.zero_stage > 0 && given.kind == Synchronise::local_sgd)
    throw ArgumentError("sync: {} cannot be combined with zero_stage = {}: replicas diverge between synchronizations, "
                        "so there is no common optimiser state to shard; use {}, or daso", kind, parallelism.zero_stage,
                        others);
  if (parallelism.zero_stage > 0 && server)
    throw ArgumentError("sync: {} cannot be combined with zero_stage = {}: servers hold the optimiser states, so "
                        "replicas have none to shard; use {}", kind, parallelism.zero_stage, others);
  if (mesh.expert > 1 && given.seldom())
    throw ArgumentError("sync: {} cannot be combined with mesh: expert = {}: experts would get tokens of replicas "
                        "whose other weights have diverged; use expert = 1, or kind all_reduce or hierarchical", kind,
                        mesh.expert);
  if (mesh.expert > 1 && server)
    throw ArgumentError("sync: {} cannot be combined with mesh: expert = {}: no server would see all copies of a "
                        "weight; use expert = 1, or kind all_reduce or hierarchical", kind, mesh.expert);
  if (server && given.asynchronous && mesh.pipeline > 1)
    throw ArgumentError("sync: {} with asynchronous = true cannot be combined with mesh: pipeline = {}: forward and "
                        "backward of a mini-batch would use different weights, since each stage pulls its own and "
                        "none keeps the old ones; use pipeline = 1, or asynchronous = false", kind, mesh.pipeline);
  if (server && given.servers > mesh.data)
    throw ArgumentError("sync: servers: expected 1 to data = {}, got {}", mesh.data, given.servers);
  if (given.in_runs()) check_inner(given, mesh);
}

/// Refuses missing slots of operators inside stages, and slots for experts.
void check_placed(const Parallelism& given) {
  const auto& mesh = given.mesh;
  if (mesh.placement == 1) return;
  if (given.inside.empty())
    throw ArgumentError("mesh: placement = {}: expected 'inside' with the slot of every operator in its stage, from 1 "
                        "to {}, got none", mesh.placement, mesh.placement);
  if (mesh.expert > 1)
    throw ArgumentError("mesh: placement = {} cannot be combined with expert = {}: each rank of experts would need "
                        "slots of its own; use expert = 1, or placement = 1", mesh.placement, mesh.expert);
}

/// Refuses states and activations on a host of which nothing is known.
void check_offload(const Parallelism& given, const Cluster& cluster) {
  if (given.optimizer_offload_fraction == 0 && given.activation_offload_fraction == 0) return;
  const char* word = given.optimizer_offload_fraction > 0 ? "optimizer_offload_fraction" : "activation_offload_fraction";
  const auto& devices = given.mesh.devices;
  for (int32_t rank = 0; rank < given.mesh.device_count(); ++rank) {
    const auto& type = cluster.type_of(devices.empty() ? rank : devices[at(rank)]);
    if (type.host_bandwidth_bytes_per_s == 0 || type.host_memory_bandwidth_bytes_per_s == 0)
      throw ArgumentError("{}: expected a device type with host_bandwidth_bytes_per_s and "
                          "host_memory_bandwidth_bytes_per_s, got '{}' without", word, type.name);
  }
}

}  // namespace

void check_inside(const Parallelism& given, const Graph& graph) {
  const auto& inside = given.inside;
  if (inside.empty()) return;
  if (inside.size() != at(graph.operator_count()))
    throw ArgumentError("inside: graph '{}' has {} operators, got slots of {}", graph.name(), graph.operator_count(),
                        inside.size());
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    if (inside[op] < 0 || inside[op] >= given.mesh.placement)
      throw ArgumentError("inside: operator '{}' is in slot {}, expected 1 to mesh: placement = {}", graph.op(op).name,
                          int64_t{inside[op]} + 1, given.mesh.placement);
    const int32_t first = graph.unit(graph.units()[op])[0];
    if (inside[first] != inside[op])
      throw ArgumentError("inside: operators '{}' and '{}' are colocated but in slots {} and {}", graph.op(first).name,
                          graph.op(op).name, inside[first] + 1, inside[op] + 1);
  }
}

void check_mesh(const Parallelism& parallelism, const Cluster& cluster) {
  check_devices(parallelism.mesh, cluster);
  check_placed(parallelism);
  check_pipeline(parallelism);
  check_synchronise(parallelism);
  check_offload(parallelism, cluster);
}

}  // namespace trinity
