#include "strategy/offload.h"

#include <algorithm>
#include <cmath>

#include "base/index.h"

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

}  // namespace trinity
