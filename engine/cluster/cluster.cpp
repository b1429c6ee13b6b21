#include "cluster/cluster.h"

#include <algorithm>
#include <bit>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/hash.h"

namespace trinity {
namespace {

/// Length of a route: fewer hops first, then the wider bottleneck.
struct RouteLength {
  int32_t hops = 0;
  double bandwidth = std::numeric_limits<double>::infinity();
  double latency_s = 0;
};

bool shorter(const RouteLength& a, const RouteLength& b) {
  if (a.hops != b.hops) return a.hops < b.hops;
  if (a.bandwidth != b.bandwidth) return a.bandwidth > b.bandwidth;
  return a.latency_s < b.latency_s;
}

RouteLength extend(const RouteLength& a, const RouteLength& b) {
  return {a.hops + b.hops, std::min(a.bandwidth, b.bandwidth), a.latency_s + b.latency_s};
}

using RouteGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS,
                                         boost::no_property, RouteLength>;

constexpr int32_t kUnreachable = std::numeric_limits<int32_t>::max() / 4;

std::vector<RouteLength> routes_from(const RouteGraph& graph, size_t source) {
  std::vector<RouteLength> distance(boost::num_vertices(graph));
  boost::dijkstra_shortest_paths(graph, source,
                                 boost::weight_map(boost::get(boost::edge_bundle, graph))
                                     .distance_map(boost::make_iterator_property_map(
                                         distance.begin(), get(boost::vertex_index, graph)))
                                     .distance_compare(&shorter)
                                     .distance_combine(&extend)
                                     .distance_inf(RouteLength{kUnreachable, 0, 0})
                                     .distance_zero(RouteLength{}));
  return distance;
}

void check_rate(const std::string& owner, const char* field, double value) {
  if (!(value > 0) || std::isinf(value))
    throw ArgumentError(
        fmt::format("{}: {} must be a positive number, got {}", owner, field, value));
}

void check_type(const std::string& cluster, const DeviceType& type) {
  const auto owner = fmt::format("cluster '{}': device type '{}'", cluster, type.name);
  if (!type.peak_flops_per_s.contains(DType::float32))
    throw ArgumentError(owner + ": peak_flops_per_s needs an entry 'float32'");
  for (const auto& [dtype, rate] : type.peak_flops_per_s)
    check_rate(owner, fmt::format("peak_flops_per_s.{}", dtype_name(dtype)).c_str(), rate);
  check_rate(owner, "memory_bandwidth_bytes_per_s", type.memory_bandwidth_bytes_per_s);
  check_rate(owner, "memory_bytes", static_cast<double>(type.memory_bytes));
  check_rate(owner, "compute_efficiency", type.compute_efficiency);
  check_rate(owner, "memory_efficiency", type.memory_efficiency);
  if (!(type.launch_s >= 0) || std::isinf(type.launch_s))
    throw ArgumentError(
        fmt::format("{}: launch_s must not be negative, got {}", owner, type.launch_s));
  if (type.reserved_memory_bytes < 0 || type.reserved_memory_bytes >= type.memory_bytes)
    throw ArgumentError(fmt::format("{}: reserved_memory_bytes must lie in [0, {}), got {}", owner,
                                    type.memory_bytes, type.reserved_memory_bytes));
}

}  // namespace

QueueModel parse_queue_model(std::string_view name) {
  const std::vector<std::string> names = {"sender", "pair", "none"};
  for (size_t i = 0; i < names.size(); ++i)
    if (name == names[i]) return static_cast<QueueModel>(i);
  throw ArgumentError(fmt::format("unknown queue model '{}'{} (known: {})", name,
                                  suggestion(name, names), fmt::join(names, ", ")));
}

const char* queue_model_name(QueueModel queue) {
  constexpr const char* names[] = {"sender", "pair", "none"};
  return names[static_cast<size_t>(queue)];
}

Cluster::Cluster(ClusterSpec spec) : spec_(std::move(spec)) {
  check();
  fold_routes();
  fingerprint_ = compute_fingerprint();
}

void Cluster::check() const {
  if (spec_.devices.empty())
    throw ArgumentError(fmt::format("cluster '{}' has no devices", spec_.name));
  if (spec_.devices.size() > 4096)
    throw LimitError(fmt::format("cluster '{}' has {} devices, more than 4096", spec_.name,
                                 spec_.devices.size()));
  for (const auto& type : spec_.device_types) check_type(spec_.name, type);
  std::set<std::string> names;
  for (const auto& device : spec_.devices) {
    if (!names.insert(device.name).second)
      throw ArgumentError(
          fmt::format("cluster '{}': two devices are called '{}'", spec_.name, device.name));
    if (device.type < 0 || static_cast<size_t>(device.type) >= spec_.device_types.size())
      throw ArgumentError(
          fmt::format("cluster '{}': device '{}' has no type", spec_.name, device.name));
    check_rate(fmt::format("cluster '{}': device '{}'", spec_.name, device.name), "speed",
               device.speed);
  }
  for (const auto& link : spec_.links) {
    const auto owner =
        fmt::format("cluster '{}': link '{}' - '{}'", spec_.name, link.from, link.to);
    check_rate(owner, "bandwidth_bytes_per_s", link.bandwidth_bytes_per_s);
    if (!(link.latency_s >= 0) || std::isinf(link.latency_s))
      throw ArgumentError(
          fmt::format("{}: latency_s must not be negative, got {}", owner, link.latency_s));
    if (link.from == link.to) throw ArgumentError(owner + ": both ends are the same");
  }
}

void Cluster::fold_routes() {
  std::map<std::string, size_t> endpoint;
  for (size_t i = 0; i < spec_.devices.size(); ++i) endpoint[spec_.devices[i].name] = i;
  size_t count = spec_.devices.size();
  for (const auto& link : spec_.links)
    for (const auto* name : {&link.from, &link.to})
      if (endpoint.emplace(*name, count).second) ++count;
  RouteGraph graph(count);
  for (const auto& link : spec_.links)
    boost::add_edge(endpoint[link.from], endpoint[link.to],
                    RouteLength{1, link.bandwidth_bytes_per_s, link.latency_s}, graph);

  const size_t n = spec_.devices.size();
  latency_s_.assign(n * n, 0);
  bandwidth_bytes_per_s_.assign(n * n, 0);
  for (size_t from = 0; from < n && n > 1; ++from) {
    const auto length = routes_from(graph, from);
    for (size_t to = 0; to < n; ++to) {
      if (to == from) continue;
      if (length[to].hops >= kUnreachable)
        throw ArgumentError(fmt::format("cluster '{}': no route of links from '{}' to '{}'",
                                        spec_.name, spec_.devices[from].name,
                                        spec_.devices[to].name));
      latency_s_[from * n + to] = length[to].latency_s;
      bandwidth_bytes_per_s_[from * n + to] = length[to].bandwidth;
    }
  }
}

uint64_t Cluster::compute_fingerprint() const {
  Hasher hash;
  const auto add = [&hash](double value) { hash.add(std::bit_cast<uint64_t>(value)); };
  for (const auto& device : spec_.devices) {
    const auto& type = spec_.device_types[static_cast<size_t>(device.type)];
    hash.add(device.name).add(type.name);
    for (const auto& [dtype, rate] : type.peak_flops_per_s) {
      hash.add(static_cast<uint64_t>(dtype));
      add(rate);
    }
    hash.add(static_cast<uint64_t>(type.memory_bytes - type.reserved_memory_bytes));
    for (const double rate : {type.memory_bandwidth_bytes_per_s, type.launch_s, device.speed,
                              type.compute_efficiency, type.memory_efficiency})
      add(rate);
  }
  for (const double latency : latency_s_) add(latency);
  for (const double bandwidth : bandwidth_bytes_per_s_) add(bandwidth);
  hash.add(static_cast<uint64_t>(spec_.queue));
  return hash.value();
}

int32_t Cluster::find(std::string_view name) const {
  for (size_t i = 0; i < spec_.devices.size(); ++i)
    if (spec_.devices[i].name == name) return static_cast<int32_t>(i);
  return -1;
}

std::vector<std::string> Cluster::device_names() const {
  std::vector<std::string> names;
  for (const auto& device : spec_.devices) names.push_back(device.name);
  return names;
}

}  // namespace trinity
