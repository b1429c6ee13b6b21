#include "cluster/cluster.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <unordered_set>

#include "base/error.h"
#include "base/hash.h"
#include "base/stop.h"
#include "base/utf8.h"

namespace trinity {
namespace {

bool is_rate(double value) { return value > 0 && !std::isinf(value); }

void check_rate(const std::string& owner, const char* field, double value) {
  if (!is_rate(value))
    throw ArgumentError("{}: {} must be a positive number, got {}", owner, field, value);
}

void check_contention(const std::string& owner, double contention) {
  if (!(contention >= 1 && contention <= 1000))
    throw ArgumentError("{}: contention must lie in [1, 1000], got {}", owner, contention);
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
  check_contention(owner, type.contention);
  for (const auto& [name, reached] : type.operators) {
    const auto of = fmt::format("{}: operators.{}", owner, name);
    if (reached.compute) check_rate(of, "compute_efficiency", *reached.compute);
    if (reached.memory) check_rate(of, "memory_efficiency", *reached.memory);
    if (reached.contention) check_contention(of, *reached.contention);
    if (reached.launch_s && (!(*reached.launch_s >= 0) || std::isinf(*reached.launch_s)))
      throw ArgumentError("{}: launch_s must not be negative, got {}", of, *reached.launch_s);
    if (reached.dispatch_s && (!(*reached.dispatch_s >= 0) || std::isinf(*reached.dispatch_s)))
      throw ArgumentError("{}: dispatch_s must not be negative, got {}", of, *reached.dispatch_s);
  }
  if (type.host_bandwidth_bytes_per_s != 0)
    check_rate(owner, "host_bandwidth_bytes_per_s", type.host_bandwidth_bytes_per_s);
  if (type.host_memory_bandwidth_bytes_per_s != 0)
    check_rate(owner, "host_memory_bandwidth_bytes_per_s", type.host_memory_bandwidth_bytes_per_s);
  if (!(type.launch_s >= 0) || std::isinf(type.launch_s))
    throw ArgumentError("{}: launch_s must not be negative, got {}", owner, type.launch_s);
  if (!(type.dispatch_s >= 0) || std::isinf(type.dispatch_s))
    throw ArgumentError("{}: dispatch_s must not be negative, got {}", owner, type.dispatch_s);
  if (!(type.half_width >= 0) || std::isinf(type.half_width))
    throw ArgumentError("{}: half_width must not be negative, got {}", owner, type.half_width);
  if (!(type.overlap >= 0 && type.overlap <= 1))
    throw ArgumentError("{}: overlap must lie in [0, 1], got {}", owner, type.overlap);
  if (type.reserved_memory_bytes < 0 || type.reserved_memory_bytes >= type.memory_bytes)
    throw ArgumentError("{}: reserved_memory_bytes must lie in [0, {}), got {}", owner, type.memory_bytes,
                        type.reserved_memory_bytes);
  const int64_t open = type.memory_bytes - type.reserved_memory_bytes;
  if (type.framework_bytes < 0 || type.framework_bytes >= open)
    throw ArgumentError("{}: framework_bytes must lie in [0, {}), got {}", owner, open, type.framework_bytes);
}

void check_devices(const ClusterSpec& spec) {
  std::unordered_set<std::string_view> names;
  names.reserve(spec.devices.size());
  for (const auto& device : spec.devices) {
    check_utf8("device", device.name);
    check_utf8("node", device.node);
    const auto owner = [&] {
      return fmt::format("cluster '{}': device '{}'", spec.name, device.name);
    };
    if (!names.insert(device.name).second)
      throw ArgumentError("cluster '{}': two devices are called '{}'", spec.name, device.name);
    if (device.type < 0 || static_cast<size_t>(device.type) >= spec.device_types.size())
      throw ArgumentError(owner() + " has no type");
    if (!is_rate(device.speed)) check_rate(owner(), "speed", device.speed);
  }
}

void check_links(const ClusterSpec& spec) {
  for (const auto& link : spec.links) {
    const auto owner = [&] {
      return fmt::format("cluster '{}': link '{}' - '{}'", spec.name, link.from, link.to);
    };
    if (!is_rate(link.bandwidth_bytes_per_s))
      check_rate(owner(), "bandwidth_bytes_per_s", link.bandwidth_bytes_per_s);
    if (!(link.latency_s >= 0) || std::isinf(link.latency_s))
      throw ArgumentError("{}: latency_s must not be negative, got {}", owner(), link.latency_s);
    if (link.from == link.to) throw ArgumentError(owner() + ": expected two different ends, got "
                                                            "the same");
  }
}

void check_switches(const ClusterSpec& spec) {
  if (spec.switches.empty()) return;
  std::set<std::string> ends, names, devices;
  for (const auto& link : spec.links) ends.insert({link.from, link.to});
  for (const auto& device : spec.devices) devices.insert(device.name);
  for (const auto& entry : spec.switches) {
    check_utf8("switch", entry.name);
    const auto owner = fmt::format("cluster '{}': switch '{}'", spec.name, entry.name);
    if (!names.insert(entry.name).second) throw ArgumentError(owner + " is defined twice");
    if (devices.contains(entry.name))
      throw ArgumentError(owner + " has the name of a device");
    if (!ends.contains(entry.name))
      throw ArgumentError("{} is not connected to any link{}", owner,
                          suggestion(entry.name, {ends.begin(), ends.end()}));
    check_rate(owner, "bandwidth_bytes_per_s", entry.bandwidth_bytes_per_s);
  }
}

void add(Hasher& hash, double value) { hash.add(std::bit_cast<uint64_t>(value)); }

}  // namespace

Cluster::Cluster(ClusterSpec spec)
    : spec_(checked(std::move(spec))), routes_(spec_), node_of_(numbered_nodes(spec_.devices)) {}

std::vector<int32_t> Cluster::numbered_nodes(const std::vector<Device>& devices) {
  std::map<std::string_view, int32_t> known;
  std::vector<int32_t> node_of;
  node_of.reserve(devices.size());
  std::string_view last;  // devices of a node are mostly contiguous
  for (const auto& device : devices) {
    const auto count = static_cast<int32_t>(known.size());
    const bool again = count > 0 && device.node == last;
    node_of.push_back(again ? node_of.back() : known.emplace(device.node, count).first->second);
    last = device.node;
  }
  return node_of;
}

ClusterSpec Cluster::checked(ClusterSpec spec) {
  spec.name = to_utf8(spec.name);
  if (spec.devices.empty())
    throw ArgumentError("cluster '{}' has no devices", spec.name);
  if (spec.devices.size() > kMostDevices)
    throw LimitError("cluster '{}' has {} devices, more than {}", spec.name, spec.devices.size(), kMostDevices);
  for (const auto& type : spec.device_types) {
    check_utf8("device type", type.name);
    for (const auto& [name, reached] : type.operators) check_utf8("operator type", name);
    check_type(spec.name, type);
  }
  check_devices(spec);
  check_links(spec);
  check_switches(spec);
  if (spec.collectives)
    check_library(fmt::format("cluster '{}'", spec.name), *spec.collectives);
  for (auto& device : spec.devices)
    if (const auto slash = device.name.find('/'); device.node.empty() && slash != std::string::npos)
      device.node = device.name.substr(0, slash);
  return spec;
}

uint64_t Cluster::fingerprint() const {
  Hasher hash;
  for (const auto& device : spec_.devices) {
    const auto& type = spec_.device_types[device.type];
    hash.add(device.name).add(type.name).add(device.node);
    for (const auto& [dtype, rate] : type.peak_flops_per_s) {
      hash.add(static_cast<uint64_t>(dtype));
      add(hash, rate);
    }
    hash.add(static_cast<uint64_t>(type.memory_bytes - type.reserved_memory_bytes));
    for (const double rate : {type.memory_bandwidth_bytes_per_s, type.launch_s, device.speed,
                              type.compute_efficiency, type.memory_efficiency})
      add(hash, rate);
    if (type.contention != 1) add(hash, type.contention);
    if (type.dispatch_s != 0) add(hash.add(std::string_view("dispatch")), type.dispatch_s);
    if (type.half_width != 0) add(hash.add(std::string_view("width")), type.half_width);
    if (type.host_bandwidth_bytes_per_s != 0)
      add(hash.add(std::string_view("host")), type.host_bandwidth_bytes_per_s);
    if (type.host_memory_bandwidth_bytes_per_s != 0)
      add(hash.add(std::string_view("host memory")), type.host_memory_bandwidth_bytes_per_s);
    if (type.overlap != 1) add(hash.add(std::string_view("overlap")), type.overlap);
    if (type.framework_bytes != 0)
      hash.add(std::string_view("framework")).add(static_cast<uint64_t>(type.framework_bytes));
    if (type.keeps_gradients) hash.add(std::string_view("gradients"));
    if (type.joins_products) hash.add(std::string_view("joins"));
    if (type.fuses_elementwise) hash.add(std::string_view("fuses"));
    for (const auto& [name, reached] : type.operators) {
      hash.add(name);
      for (const auto& rate : {reached.compute, reached.memory, reached.launch_s})
        add(hash, rate.value_or(-1));
      if (reached.contention) add(hash, *reached.contention);
      if (reached.dispatch_s) add(hash.add(std::string_view("dispatch")), *reached.dispatch_s);
    }
  }
  device_count() > kPairedDevices ? add_pieces(hash) : add_pairs(hash);
  hash.add(static_cast<uint64_t>(spec_.queue));
  if (const auto& library = spec_.collectives) {
    for (const double value :
         {library->call_s, library->pipelining, library->low_latency_hop,
          library->low_latency_bandwidth, library->multicast_bandwidth, library->multicast_s,
          library->rails})
      add(hash, value);
    hash.add(static_cast<uint64_t>(library->in_network));
    if (library->sends_tokens_once) hash.add(std::string_view("tokens once"));
    if (!library->trees) hash.add(std::string_view("rings"));
    if (library->shared_bandwidth != 1) add(hash, library->shared_bandwidth);
    if (library->exchange_bandwidth != 1)
      add(hash.add(std::string_view("exchanges")), library->exchange_bandwidth);
    if (library->copy_bandwidth != 0)
      add(hash.add(std::string_view("copies")), library->copy_bandwidth);
  }
  return hash.value();
}

void Cluster::add_pairs(Hasher& hash) const {
  const auto for_all_pairs = [this](auto visit) {
    for (int32_t from = 0; from < device_count(); ++from) {
      poll_stop();
      for (int32_t to = 0; to < device_count(); ++to) visit(from, to);
    }
  };
  for_all_pairs([&](int32_t from, int32_t to) { add(hash, wire(from, to).latency_s); });
  for_all_pairs([&](int32_t from, int32_t to) { add(hash, wire(from, to).bandwidth_bytes_per_s); });
  for (const auto& channel : channels()) add(hash, channel.bandwidth_bytes_per_s);
  uint64_t crossed = 0;
  hash.add(crossed);
  for_all_pairs([&](int32_t from, int32_t to) { hash.add(crossed += route(from, to).size()); });
  for_all_pairs([&](int32_t from, int32_t to) {
    for (const int32_t channel : route(from, to)) hash.add(static_cast<uint64_t>(channel));
  });
}

void Cluster::add_pieces(Hasher& hash) const {
  std::map<int32_t, std::vector<int32_t>> of_piece;
  // per table: devices of its first two pieces
  std::map<int32_t, std::pair<int32_t, int32_t>> of_table;
  for (int32_t d = 0; d < device_count(); ++d) {
    of_piece[routes_.piece(d)].push_back(d);
    const auto found = of_table.try_emplace(routes_.table(d), d, d).first;
    auto& [first, second] = found->second;
    if (routes_.piece(first) == routes_.piece(second)) second = d;
  }
  const auto add_route = [&](int32_t from, int32_t to) {
    add(hash, wire(from, to).latency_s);
    add(hash, wire(from, to).bandwidth_bytes_per_s);
    hash.add(static_cast<uint64_t>(route(from, to).size()));
    for (const int32_t channel : route(from, to)) hash.add(static_cast<uint64_t>(channel));
  };
  for (int32_t from = 0; from < device_count(); ++from) {
    poll_stop();
    const int32_t own = routes_.piece(from);
    for (const int32_t to : of_piece[own]) add_route(from, to);
    for (const auto& [table, devices] : of_table)
      for (const int32_t to : {devices.first, devices.second})
        if (routes_.piece(to) != own) add_route(from, to), add_route(to, from);
  }
  for (const auto& channel : channels()) add(hash, channel.bandwidth_bytes_per_s);
}

std::string Cluster::plain_name(const Channel& channel) const {
  if (channel.link < 0) return spec_.switches[channel.limit].name;
  const Link& link = spec_.links[channel.link];
  if (link.half_duplex) return fmt::format("{} - {}", link.from, link.to);
  return channel.back ? fmt::format("{} -> {}", link.to, link.from)
                      : fmt::format("{} -> {}", link.from, link.to);
}

std::string Cluster::channel_name(int32_t channel) const {
  const auto name = plain_name(channels()[channel]);
  int same = 1;
  for (int32_t before = 0; before < channel; ++before)
    same += plain_name(channels()[before]) == name ? 1 : 0;
  return same == 1 ? name : fmt::format("{} #{}", name, same);
}

std::vector<int32_t> Cluster::kinds() const {
  const auto& types = spec_.device_types;
  std::vector<int32_t> result;
  for (size_t i = 0; i < types.size(); ++i) {
    const auto same = std::find_if(types.begin(), types.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](DeviceType other) {
                                     other.name = types[i].name;
                                     return other == types[i];
                                   });
    result.push_back(static_cast<int32_t>(same - types.begin()));
  }
  return result;
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
