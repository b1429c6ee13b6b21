#include "strategy/offload.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/index.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

constexpr const char* kFraction = "offload_fraction";  // attributes of an update
constexpr const char* kLink = "offload_link_share";

double real_attribute(const Operator& op, const char* name) {
  const auto* value = find_attribute<double>(op.attributes, name);
  return value ? *value : 0;
}

}  // namespace

/// An update reads and writes its states, and reads gradients and reads and writes weights of the weights' width
/// (graph/training.h); the gradients that are sent may be wider.
double link_share(const Graph& original, const Operator& update) {
  const double weights = (update.traffic_bytes - 2 * static_cast<double>(update.persistent_bytes)) / 3;
  double gradients = 0;
  for (const int32_t input : update.inputs) gradients += static_cast<double>(original.tensor(input).bytes);
  return update.traffic_bytes > 0 ? std::max(gradients, weights) / update.traffic_bytes : 0;
}

Graph offload_optimizer(Graph graph, const Graph& original, std::span<const int32_t> serves, double fraction) {
  GraphBuilder builder(std::move(graph));
  for (int32_t op = 0; op < builder.operator_count(); ++op) {
    auto& update = builder.op(op);
    if (update.type != "Update") continue;
    update.attributes[kLink] = link_share(original, original.op(serves[at(op)]));
    update.attributes[kFraction] = fraction;
    const auto states = static_cast<double>(update.persistent_bytes);
    update.persistent_bytes = static_cast<int64_t>(std::ceil(states * (1 - fraction)));
  }
  return builder.build();
}

double offloaded_fraction(const Operator& op) { return op.type == "Update" ? real_attribute(op, kFraction) : 0; }

double host_update_s(const Operator& update, const DeviceType& type, double link_share) {
  const double link = link_share > 0 ? link_share : real_attribute(update, kLink);
  return update.traffic_bytes *
         std::max(link / type.host_bandwidth_bytes_per_s, 1 / type.host_memory_bandwidth_bytes_per_s);
}

bool is_data(const Operator& op) { return op.type == "Input" || is_variable(op); }

int32_t stored_tensor(const Graph& graph, int32_t tensor, std::span<const OperatorRole> roles, int32_t device) {
  for (;;) {
    const int32_t writer = graph.tensor(tensor).producer;
    const auto& op = graph.op(writer);
    const int32_t input = tensor == op.outputs.front() ? overwritten(graph, op) : -1;
    if (input < 0 || (!roles.empty() && roles[at(writer)].device != device)) return tensor;
    tensor = input;
  }
}

namespace {

/// [tensor, device that holds it for backward operators]: the layer that keeps it, the writer's or else the first to
/// read it; -1: none.
std::map<std::pair<int32_t, int32_t>, int32_t> kept_tensors(const Graph& graph, std::span<const OperatorRole> roles,
                                                            int32_t layers) {
  std::map<std::pair<int32_t, int32_t>, int32_t> kept;
  for (int32_t reader = 0; reader < graph.operator_count(); ++reader) {
    if (graph.op(reader).phase != Phase::backward) continue;
    const auto& role = roles[at(reader)];
    const int32_t layer = role.layer < layers ? role.layer : -1;
    for (const int32_t input : graph.op(reader).inputs) {
      const int32_t tensor = stored_tensor(graph, input, roles, role.device), writer = graph.tensor(tensor).producer;
      if (graph.op(writer).phase != Phase::forward || is_data(graph.op(writer))) continue;
      const auto [found, added] = kept.try_emplace({tensor, role.device}, layer);
      if (!added && role.layer == roles[at(writer)].layer) found->second = layer;
    }
  }
  return kept;
}

}  // namespace

Graph offload_activations(Graph graph, std::span<const OperatorRole> roles, int32_t layers, double fraction) {
  const auto kept = kept_tensors(graph, roles, layers);
  GraphBuilder builder(std::move(graph));
  std::map<std::pair<int32_t, int32_t>, int64_t> copied;  // [device, layer]
  for (const auto& [place, layer] : kept) {
    auto& tensor = builder.tensor(place.first);
    tensor.host_bytes = static_cast<int64_t>(fraction * static_cast<double>(tensor.bytes));
    if (layer >= 0) copied[{place.second, layer}] += tensor.host_bytes;
  }
  for (const auto& [place, layer] : kept)
    if (layer < 0) builder.tensor(place.first).host_bytes = 0;
  std::map<int32_t, std::pair<int64_t, int64_t>> largest;  // [device]: of two layers
  for (const auto& [place, bytes] : copied) {
    auto& [most, next] = largest[place.first];
    next = std::max(next, std::min(most, bytes));
    most = std::max(most, bytes);
  }
  std::map<std::tuple<int32_t, int32_t, Phase>, int32_t> runs;
  for (int32_t o = 0; o < builder.operator_count(); ++o) {
    auto& op = builder.op(o);
    const auto& role = roles[at(o)];
    if (op.phase == Phase::update || op.collective >= 0 || !largest.contains(role.device)) continue;
    op.workspace_bytes += largest.at(role.device).first + largest.at(role.device).second;
    const auto found = copied.find({role.device, role.layer});
    if (found == copied.end()) continue;
    const auto [run, first] = runs.try_emplace({role.device, role.layer, op.phase}, static_cast<int32_t>(runs.size()));
    op.host_run = run->second;
    if (first) op.host_bytes = found->second;
  }
  return builder.build();
}

std::vector<double> wait_for_copies(const Graph& graph, const DeviceType& type, std::vector<double>& times_s) {
  std::vector<double> work_s, copy_s, waits_s;  // the first two: [run]
  for (size_t o = 0; o < times_s.size(); ++o) {
    const auto& op = graph.operators()[o];
    if (op.host_run < 0 || type.host_bandwidth_bytes_per_s == 0) continue;
    work_s.resize(std::max(work_s.size(), at(op.host_run) + 1), 0);
    copy_s.resize(work_s.size(), 0);
    work_s[at(op.host_run)] += times_s[o];
    copy_s[at(op.host_run)] += static_cast<double>(op.host_bytes) / type.host_bandwidth_bytes_per_s;
  }
  if (work_s.empty()) return waits_s;
  for (size_t o = 0; o < times_s.size(); ++o) {
    const int32_t run = graph.operators()[o].host_run;
    const double longer = run < 0 || work_s[at(run)] == 0 ? 1 : std::max(1.0, copy_s[at(run)] / work_s[at(run)]);
    waits_s.push_back((longer - 1) * times_s[o]);
    times_s[o] += waits_s.back();
  }
  return waits_s;
}

}  // namespace trinity
