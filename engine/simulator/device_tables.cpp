#include "simulator/device_tables.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "strategy/cost.h"

namespace trinity {
namespace {

/// Maximum number of devices with a table of all pairs: 4 MB.
constexpr int32_t kTabledDevices = 512;

DeviceTables::Wire rounded(const Wire& wire) {
  return {std::llround(wire.latency_s * 1e9), wire.bandwidth_bytes_per_s / 1e9};
}

void check_latency(const Cluster& cluster, const Wire& wire, const std::string& route) {
  if (!(wire.latency_s * 1e9 <= static_cast<double>(kLongestNs)))
    throw LimitError("cluster '{}': {} has a latency of {} s, more than the simulator's clock supports", cluster.name(),
                     route, wire.latency_s);
}

}  // namespace

DeviceTables::DeviceTables(std::shared_ptr<const Cluster> cluster, bool own_costs)
    : cluster_(std::move(cluster)), devices_(static_cast<size_t>(cluster_->device_count())) {
  find_classes(own_costs);
  find_contention();
  find_wires();
}

void DeviceTables::find_classes(bool own_costs) {
  std::map<std::pair<int32_t, double>, int32_t> classes;
  const auto kinds = cluster_->kinds();
  for (int32_t d = 0; d < cluster_->device_count(); ++d) {
    const auto& device = cluster_->device(d);
    if (const Device* before = d > 0 ? &cluster_->device(d - 1) : nullptr;
        before && before->type == device.type && before->speed == device.speed) {
      cost_class_.push_back(cost_class_.back());
      continue;
    }
    const auto [known, added] = classes.emplace(std::pair(own_costs ? device.type : kinds[device.type], device.speed),
                                                static_cast<int32_t>(first_.size()));
    cost_class_.push_back(known->second);
    if (added) first_.push_back(d);
  }
}

/// Finds whether two devices of a type with contention are on one node.
void DeviceTables::find_contention() {
  std::set<std::pair<std::string_view, int32_t>> seen;
  std::map<int32_t, bool> known;
  for (int32_t d = 0; d < cluster_->device_count(); ++d) {
    const auto& device = cluster_->device(d);
    const auto [contends, added] = known.try_emplace(device.type);
    if (added) contends->second = has_contention(cluster_->type_of(d));
    if (contends->second && !device.node.empty())
      contends_ = !seen.insert({device.node, device.type}).second || contends_;
  }
}

void DeviceTables::find_wires() {
  const auto note = [this](const Wire& wire) {
    longest_latency_ns_ = std::max(longest_latency_ns_, wire.latency_ns);
    shortest_latency_ns_ = std::min(shortest_latency_ns_, wire.latency_ns);
    least_bytes_per_ns_ = std::min(least_bytes_per_ns_, wire.bytes_per_ns);
    most_bytes_per_ns_ = std::max(most_bytes_per_ns_, wire.bytes_per_ns);
  };
  const int32_t devices = cluster_->device_count();
  if (devices > kTabledDevices) {
    cluster_->routes().for_each_wire([&](const trinity::Wire& wire) { note(rounded(wire)); });
    return;
  }
  for (int32_t a = 0; a < devices; ++a)
    for (int32_t b = 0; b < devices; ++b) {
      wires_.push_back(found_wire(a, b));
      if (a != b) note(wires_.back());
    }
  uniform_ = true;
  for (size_t at = 1; at < wires_.size() && uniform_; ++at)
    if (at % (devices_ + 1) != 0 && (wires_[at].latency_ns != wires_[1].latency_ns ||
                                     wires_[at].bytes_per_ns != wires_[1].bytes_per_ns))
      uniform_ = false;
}

DeviceTables::Wire DeviceTables::found_wire(int32_t from, int32_t to) const {
  return from == to ? Wire{} : rounded(cluster_->wire(from, to));
}

void DeviceTables::check_latencies() const {
  const int32_t devices = cluster_->device_count();
  if (devices > kTabledDevices)
    return cluster_->routes().for_each_wire(
        [this](const trinity::Wire& wire) { check_latency(*cluster_, wire, "a route"); });
  for (int32_t a = 0; a < devices; ++a)
    for (int32_t b = 0; b < devices; ++b)
      if (const auto wire = cluster_->wire(a, b); a != b && !(wire.latency_s < 1))
        check_latency(*cluster_, wire, fmt::format("the route from '{}' to '{}'", cluster_->device(a).name,
                                                   cluster_->device(b).name));
}

}  // namespace trinity
