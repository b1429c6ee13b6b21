#include <algorithm>
#include <numeric>

#include "base/words.h"
#include "cluster/collectives.h"
#include "graph/operator_types.h"
#include "lua/bind/module.h"
#include "strategy/cost.h"

namespace trinity::lua {
namespace {

/// { [operator type] = { compute_efficiency =, memory_efficiency =, launch_s =, contention =,
/// dispatch_s = } }
std::map<std::string, Efficiency, std::less<>> read_efficiencies(lua_State* L,
                                                                 const std::string& owner) {
  std::map<std::string, Efficiency, std::less<>> operators;
  for_each_entry(L, -1, [&] {
    if (lua_type(L, -2) != LUA_TSTRING)
      throw ArgumentError("{}: operators: names are operator types, got {}", owner, type_name(L, -2));
    const std::string name = lua_tostring(L, -2);
    if (!is_cost_key(name))
      throw ArgumentError("{}: operators: unknown operator type '{}'{}", owner, name,
                          suggestion(name, operator_types()));
    Fields fields(L, -1, fmt::format("{}: operators.{}", owner, name));
    operators[name] = {fields.number("compute_efficiency"), fields.number("memory_efficiency"),
                       fields.number("launch_s"), fields.number("contention"),
                       fields.number("dispatch_s")};
    fields.refuse_unknown();
  });
  return operators;
}

DeviceType read_type(lua_State* L, const std::string& name, const std::string& owner) {
  Fields fields(L, -1, fmt::format("{}: device type '{}'", owner, name));
  DeviceType type;
  type.name = name;
  const auto read_peak = [&] {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TNUMBER)
      throw ArgumentError("{}: peak_flops_per_s: expected dtype = number, got {} = {}", fields.owner(),
                          type_name(L, -2), type_name(L, -1));
    type.peak_flops_per_s[parse_dtype(lua_tostring(L, -2))] = lua_tonumber(L, -1);
  };
  fields.required_table("peak_flops_per_s", [&] { for_each_entry(L, -1, read_peak); });
  type.memory_bandwidth_bytes_per_s = fields.required_number("memory_bandwidth_bytes_per_s");
  const auto bytes = [&](const char* key, double value) {
    if (!(value >= 0 && value < 1e18))
      throw ArgumentError("{}: field '{}': {} bytes", fields.owner(), key, value);
    return static_cast<int64_t>(value);
  };
  type.memory_bytes = bytes("memory_bytes", fields.required_number("memory_bytes"));
  type.reserved_memory_bytes =
      bytes("reserved_memory_bytes", fields.number("reserved_memory_bytes", 0));
  type.framework_bytes = bytes("framework_bytes", fields.number("framework_bytes", 0));
  fields.take("keeps_gradients", type.keeps_gradients, "launch_s", type.launch_s, "dispatch_s", type.dispatch_s,
              "half_width", type.half_width, "fuses_elementwise", type.fuses_elementwise, "joins_products",
              type.joins_products, "overlap", type.overlap, "compute_efficiency", type.compute_efficiency,
              "memory_efficiency", type.memory_efficiency, "contention", type.contention, "host_bandwidth_bytes_per_s",
              type.host_bandwidth_bytes_per_s, "host_memory_bandwidth_bytes_per_s",
              type.host_memory_bandwidth_bytes_per_s);
  fields.table("operators", [&] { type.operators = read_efficiencies(L, fields.owner()); });
  fields.refuse_unknown();
  return type;
}

/// The device types that devices name, in order of first mention.
int32_t type_index(lua_State* L, int types, const std::string& name, ClusterSpec& spec,
                   const std::string& owner) {
  for (size_t i = 0; i < spec.device_types.size(); ++i)
    if (spec.device_types[i].name == name) return static_cast<int32_t>(i);
  lua_getfield(L, types, name.c_str());
  if (lua_isnil(L, -1)) {
    std::vector<std::string> known;
    for_each_entry(L, types, [&] {
      if (lua_type(L, -2) == LUA_TSTRING) known.emplace_back(lua_tostring(L, -2));
    });
    std::sort(known.begin(), known.end());
    throw ArgumentError("{}: unknown device type '{}'{} (known: {})", owner, name, suggestion(name, known),
                        fmt::join(known, ", "));
  }
  spec.device_types.push_back(read_type(L, name, fmt::format("cluster '{}'", spec.name)));
  lua_pop(L, 1);
  return static_cast<int32_t>(spec.device_types.size()) - 1;
}

Link read_link(lua_State* L, const std::string& owner) {
  Fields fields(L, -1, owner);
  Link link;
  link.from = fields.required_string("from");
  link.to = fields.required_string("to");
  link.bandwidth_bytes_per_s = fields.required_number("bandwidth_bytes_per_s");
  fields.take("latency_s", link.latency_s);
  constexpr const char* kDuplex[] = {"full", "half"};
  link.half_duplex = parse_word("duplex", fields.string("duplex", "full"), kDuplex) == 1;
  fields.refuse_unknown();
  return link;
}

Switch read_switch(lua_State* L, const std::string& owner) {
  Fields fields(L, -1, owner);
  Switch entry;
  entry.name = fields.required_string("name");
  entry.bandwidth_bytes_per_s = fields.required_number("bandwidth_bytes_per_s");
  fields.refuse_unknown();
  return entry;
}

/// The lists of a description: its devices, links and switches, or the lists of each of `machines`.
class Listing {
 public:
  /// types: the index of the table of device types.
  Listing(int types, ClusterSpec& spec, std::string owner)
      : types_(types), spec_(spec), owner_(std::move(owner)) {}

  void read(Fields& fields) {
    lua_State* L = fields.state();
    if (fields.push_table("devices"))
      for_each(L, lua_gettop(L), [&](int i) { read_device(L, i); });
    if (fields.push_table("links"))
      for_each(L, lua_gettop(L), [&](int i) {
        spec_.links.push_back(read_link(L, fmt::format("{}: link {}", owner_, i)));
      });
    if (fields.push_table("switches"))
      for_each(L, lua_gettop(L), [&](int i) {
        spec_.switches.push_back(read_switch(L, fmt::format("{}: switch {}", owner_, i)));
      });
  }

 private:
  void read_device(lua_State* L, int i) {
    Fields device(L, -1, fmt::format("{}: device {}", owner_, i));
    const auto name = device.required_string("name");
    const auto type = device.required_string("type");
    const double speed = device.number("speed", 1);
    const auto node = device.string("node", "");
    device.refuse_unknown();
    spec_.devices.push_back(
        {name, type_index(L, types_, type, spec_, device.owner()), speed, node});
  }

  int types_;
  ClusterSpec& spec_;
  std::string owner_;
};

/// A name of `machines`: '*' stands for the machine's number.
std::string numbered(const std::string& name, const std::string& number) {
  const auto star = name.find('*');
  if (star == std::string::npos) return name;
  std::string result;
  result.reserve(name.size() + number.size());
  return result.append(name, 0, star).append(number).append(name, star + 1);
}

/// Appends a machine `count` times, with numbers from `first`.
void add_machines(const ClusterSpec& machine, int64_t first, int64_t count, ClusterSpec& spec) {
  const auto grow = [count](auto& list, size_t each) {
    list.reserve(list.size() + each * static_cast<size_t>(count));
  };
  grow(spec.devices, machine.devices.size());
  grow(spec.links, machine.links.size());
  grow(spec.switches, machine.switches.size());
  for (int64_t m = first; m < first + count; ++m) {
    const auto number = std::to_string(m);
    for (const auto& device : machine.devices)
      spec.devices.push_back({numbered(device.name, number), device.type, device.speed,
                              numbered(device.node, number)});
    for (const auto& link : machine.links)
      spec.links.push_back({numbered(link.from, number), numbered(link.to, number),
                            link.bandwidth_bytes_per_s, link.latency_s, link.half_duplex});
    for (const auto& entry : machine.switches)
      spec.switches.push_back({numbered(entry.name, number), entry.bandwidth_bytes_per_s});
  }
}

/// machines={{count=, first=0, devices={...}, links={...}, switches={...}}}
void read_machines(lua_State* L, int list, int types, const std::string& owner,
                   ClusterSpec& spec) {
  for_each(L, list, [&](int i) {
    const auto place = fmt::format("{}: machines {}", owner, i);
    Fields fields(L, -1, place);
    const int64_t count = fields.integer("count", 1, 1, kMostDevices);
    const int64_t first = fields.integer("first", 0, 0, kMostDevices);
    ClusterSpec machine;
    machine.name = spec.name;
    machine.device_types = std::move(spec.device_types);
    const int top = lua_gettop(L);
    Listing(types, machine, place).read(fields);
    fields.refuse_unknown();
    lua_settop(L, top);
    spec.device_types = std::move(machine.device_types);
    if (count * static_cast<int64_t>(machine.devices.size()) > kMostDevices)
      throw LimitError("{}: {} machines of {} devices are more than {} devices", place, count, machine.devices.size(),
                       kMostDevices);
    add_machines(machine, first, count, spec);
  });
}

/// {call_s=, pipelining=, low_latency_hop=, low_latency_bandwidth=, copy_bandwidth=,
/// exchange_bandwidth=, multicast_bandwidth=, multicast_s=, rails=, in_network=, trees=, shared_bandwidth=,
/// sends_tokens_once=} at the top of the stack; see cluster/library.h
CollectiveLibrary read_library(lua_State* L, const std::string& owner) {
  Fields fields(L, -1, owner + ": collectives");
  CollectiveLibrary library;
  fields.take_all("call_s", library.call_s, "pipelining", library.pipelining, "low_latency_hop", library.low_latency_hop,
                  "low_latency_bandwidth", library.low_latency_bandwidth, "copy_bandwidth", library.copy_bandwidth,
                  "exchange_bandwidth", library.exchange_bandwidth,
                  "multicast_bandwidth", library.multicast_bandwidth, "multicast_s", library.multicast_s, "rails",
                  library.rails, "in_network", library.in_network, "trees", library.trees, "shared_bandwidth",
                  library.shared_bandwidth, "sends_tokens_once", library.sends_tokens_once);
  return library;
}

/// cluster{name=, device_types={name={...}}, devices={{name=, type=, speed=, node=}},
/// links={{from=, to=, bandwidth_bytes_per_s=, latency_s=, duplex='full'}},
/// switches={{name=, bandwidth_bytes_per_s=}}, machines=read_machines(), queue='sender',
/// collectives=read_library()} -> cluster
auto cluster_new(lua_State* L) {
  Fields fields(L, 1, "cluster");
  ClusterSpec spec;
  spec.name = fields.string("name", "unnamed");
  const auto owner = fmt::format("cluster '{}'", spec.name);
  spec.queue = parse_choice<QueueModel>(fields.string("queue", "sender"));
  if (!fields.push_table("device_types"))
    throw ArgumentError("{}: field 'device_types' is missing", owner);
  const int types = lua_gettop(L);
  const bool machines = fields.push_table("machines");
  const int list = lua_gettop(L);
  if (!machines && !fields.push_table("devices"))
    throw ArgumentError("{}: field 'devices' is missing", owner);
  Listing(types, spec, owner).read(fields);
  if (machines) read_machines(L, list, types, owner, spec);
  fields.table("collectives", [&] { spec.collectives = read_library(L, owner); });
  fields.refuse_unknown();
  return std::make_shared<const Cluster>(std::move(spec));
}

auto cluster_fingerprint(const Cluster& cluster) { return fmt::format("{:016x}", cluster.fingerprint()); }

auto cluster_summary(const Cluster& cluster) {
  return record("name", cluster.name(), "queue", cluster.queue(), "device_count", cluster.device_count());
}

/// cluster:devices() -> {{name=, type=, speed=, node=, capacity_bytes=}}
auto cluster_devices(const Cluster& cluster) {
  std::vector<int32_t> all(static_cast<size_t>(cluster.device_count()));
  std::iota(all.begin(), all.end(), 0);
  return list_of(all, [&](int32_t d) {
    const auto& device = cluster.device(d);
    return record("name", device.name, "type", cluster.type_of(d).name, "speed", device.speed, "node", device.node,
                  "capacity_bytes", cluster.capacity_bytes(d));
  });
}

/// Arguments 2 and 3 as two different devices, 0-based.
std::pair<int32_t, int32_t> pair_args(lua_State* L, const Cluster& cluster) {
  const auto from = static_cast<int32_t>(integer_arg(L, 2, "from", 1, cluster.device_count())) - 1;
  const auto to = static_cast<int32_t>(integer_arg(L, 3, "to", 1, cluster.device_count())) - 1;
  if (from == to) throw WrongArgument(3, "to", "the same device as 'from'");
  return {from, to};
}

/// cluster:wire(from, to) -> latency_s, bandwidth_bytes_per_s of the route between two devices.
auto cluster_wire(lua_State* L, const Cluster& cluster) {
  const auto [from, to] = pair_args(L, cluster);
  return std::tuple(cluster.latency_s(from, to), cluster.bandwidth_bytes_per_s(from, to));
}

/// cluster:route(from, to) -> the names of the channels on the route, in order.
auto cluster_route(lua_State* L, const Cluster& cluster) {
  const auto [from, to] = pair_args(L, cluster);
  return list_of(cluster.route(from, to), [&](int32_t channel) { return cluster.channel_name(channel); });
}

/// {experts=, experts_per_token=, expert_groups=1, group_topk=expert_groups} of a table: a routing of tokens
TokenRouting read_routing(Fields& fields) {
  TokenRouting routing;
  routing.per_token = fields.integer("experts_per_token", 0, 1, TokenRouting::kMost);
  routing.experts = fields.integer("experts", routing.per_token, 1, int64_t{1} << 20);
  routing.groups = fields.integer("expert_groups", 1, 1, TokenRouting::kMost);
  routing.group_topk = fields.integer("group_topk", routing.groups, 1, TokenRouting::kMost);
  if (routing.per_token == 0 && (routing.experts > 0 || routing.groups > 1 || routing.group_topk > 1))
    throw ArgumentError("experts_per_token: expected with experts, expert_groups and group_topk, got nil");
  return routing;
}

/// token_destinations{parts=, a routing's fields} -> TokenRouting::destinations()
auto token_destinations(lua_State* L) {
  Fields fields(L, 1, "token_destinations");
  const auto routing = read_routing(fields);
  const int64_t parts = fields.integer("parts", 1, 1, int64_t{1} << 20);
  fields.refuse_unknown();
  return routing.destinations(parts);
}

/// cluster:collective{kind=, algorithm='automatic', devices={1-based numbers}, bytes=, a routing's fields} ->
/// {algorithm=, time_s=, latency_s=, transfer_s=, sent_bytes=}
auto cluster_collective(lua_State* L, const Cluster& cluster) {
  Fields fields(L, 2, "collective");
  const auto kind = parse_choice<CollectiveKind>(fields.required_string("kind"));
  const auto algorithm = parse_choice<CollectiveAlgorithm>(fields.string("algorithm", "automatic"));
  const int64_t bytes = fields.integer("bytes", -1, 0, int64_t{1} << 50);
  if (bytes < 0) throw ArgumentError("collective: field 'bytes' is missing");
  std::vector<int32_t> devices;
  fields.required_table("devices", [&] {
    for (const int64_t device : integers(L, -1, "collective: field 'devices'")) {
      if (device < 1 || device > cluster.device_count())
        throw ArgumentError("collective: field 'devices': expected 1 to {}, got {}", cluster.device_count(), device);
      devices.push_back(static_cast<int32_t>(device) - 1);
    }
  });
  const auto routing = read_routing(fields);
  fields.refuse_unknown();
  const auto cost = collective_cost(cluster, kind, algorithm, devices, bytes, routing);
  return record("algorithm", cost.algorithm, "time_s", cost.time_s(), "latency_s", cost.latency_s, "transfer_s",
                cost.transfer_s, "sent_bytes", cost.sent_bytes);
}

/// cost_key(graph, operator) -> the most special name under which a device type can state
/// efficiencies for it (strategy/cost.h); nil where none can
std::optional<std::string> cost_key_of(lua_State* L, const Graph& graph) {
  const auto op = static_cast<int32_t>(integer_arg(L, 2, "operator", 1, graph.operator_count()));
  const auto keys = cost_keys(graph.op(op - 1));
  return is_cost_key(keys.back()) ? std::optional(keys.back()) : std::nullopt;
}

constexpr luaL_Reg kCluster[] = {
    TRINITY_BIND("summary", cluster_summary), TRINITY_BIND("devices", cluster_devices),
    TRINITY_BIND("fingerprint", cluster_fingerprint), TRINITY_BIND("wire", cluster_wire),
    TRINITY_BIND("route", cluster_route), TRINITY_BIND("collective", cluster_collective)};
constexpr luaL_Reg kClusterFunctions[] = {
    TRINITY_BIND("cost_key", cost_key_of), TRINITY_BIND("cluster", cluster_new),
    TRINITY_BIND("token_destinations", token_destinations)};

}  // namespace

void open_cluster(lua_State* L) {
  register_functions(L, kClusterFunctions);
  register_type<const Cluster>(L, kCluster);
}

}  // namespace trinity::lua
