#include <algorithm>

#include "lua/module.h"

namespace trinity::lua {
namespace {

DeviceType read_type(lua_State* L, const std::string& name, const std::string& owner) {
  Fields fields(L, -1, fmt::format("{}: device type '{}'", owner, name));
  DeviceType type;
  type.name = name;
  if (!fields.push_table("peak_flops_per_s"))
    throw ArgumentError(fields.owner() + ": field 'peak_flops_per_s' is missing");
  const int table = lua_gettop(L);
  lua_pushnil(L);
  while (lua_next(L, table)) {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TNUMBER)
      throw ArgumentError(fmt::format("{}: peak_flops_per_s: expected dtype = number, got {} = {}",
                                      fields.owner(), type_name(L, -2), type_name(L, -1)));
    type.peak_flops_per_s[parse_dtype(lua_tostring(L, -2))] = lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  type.memory_bandwidth_bytes_per_s = fields.required_number("memory_bandwidth_bytes_per_s");
  const auto bytes = [&](const char* key, double value) {
    if (!(value >= 0 && value < 1e18))
      throw ArgumentError(fmt::format("{}: field '{}': {} bytes", fields.owner(), key, value));
    return static_cast<int64_t>(value);
  };
  type.memory_bytes = bytes("memory_bytes", fields.required_number("memory_bytes"));
  type.reserved_memory_bytes =
      bytes("reserved_memory_bytes", fields.number("reserved_memory_bytes", 0));
  type.launch_s = fields.number("launch_s", 0);
  type.compute_efficiency = fields.number("compute_efficiency", type.compute_efficiency);
  type.memory_efficiency = fields.number("memory_efficiency", type.memory_efficiency);
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
    lua_pushnil(L);
    while (lua_next(L, types)) {
      if (lua_type(L, -2) == LUA_TSTRING) known.emplace_back(lua_tostring(L, -2));
      lua_pop(L, 1);
    }
    std::sort(known.begin(), known.end());
    throw ArgumentError(fmt::format("{}: unknown device type '{}'{} (known: {})", owner, name,
                                    suggestion(name, known), fmt::join(known, ", ")));
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
  link.latency_s = fields.number("latency_s", 0);
  fields.refuse_unknown();
  return link;
}

/// cluster{name=, device_types={name={...}}, devices={{name=, type=, speed=}}, links={{from=, to=,
/// bandwidth_bytes_per_s=, latency_s=}}, queue='sender'} -> cluster
int cluster_new(lua_State* L) {
  Fields fields(L, 1, "cluster");
  ClusterSpec spec;
  spec.name = fields.string("name", "unnamed");
  const auto owner = fmt::format("cluster '{}'", spec.name);
  spec.queue = parse_queue_model(fields.string("queue", "sender"));
  for (const char* key : {"device_types", "devices"})
    if (!fields.push_table(key))
      throw ArgumentError(fmt::format("{}: field '{}' is missing", owner, key));
  const int devices = lua_gettop(L), types = devices - 1;
  for_each(L, devices, [&](int i) {
    Fields device(L, -1, fmt::format("{}: device {}", owner, i));
    const auto name = device.required_string("name");
    const auto type = device.required_string("type");
    const double speed = device.number("speed", 1);
    device.refuse_unknown();
    spec.devices.push_back({name, type_index(L, types, type, spec, device.owner()), speed});
  });
  if (fields.push_table("links"))
    for_each(L, lua_gettop(L), [&](int i) {
      spec.links.push_back(read_link(L, fmt::format("{}: link {}", owner, i)));
    });
  fields.refuse_unknown();
  push_object<const Cluster>(L, std::make_shared<const Cluster>(std::move(spec)));
  return 1;
}

int cluster_summary(lua_State* L) {
  const auto& cluster = object_arg<const Cluster>(L, 1);
  lua_newtable(L);
  set_field(L, "name", cluster.name());
  set_field(L, "queue", std::string(queue_model_name(cluster.queue())));
  set_field(L, "fingerprint", fmt::format("{:016x}", cluster.fingerprint()));
  lua_newtable(L);
  for (int32_t d = 0; d < cluster.device_count(); ++d) {
    lua_newtable(L);
    set_field(L, "name", cluster.device(d).name);
    set_field(L, "type", cluster.type_of(d).name);
    set_field(L, "speed", cluster.device(d).speed);
    set_field(L, "capacity_bytes", static_cast<double>(cluster.capacity_bytes(d)));
    lua_rawseti(L, -2, d + 1);
  }
  lua_setfield(L, -2, "devices");
  return 1;
}

/// cluster:wire(from, to) -> latency_s, bandwidth_bytes_per_s of the route between two devices.
int cluster_wire(lua_State* L) {
  const auto& cluster = object_arg<const Cluster>(L, 1);
  const auto from = static_cast<int32_t>(integer_arg(L, 2, "from", 1, cluster.device_count())) - 1;
  const auto to = static_cast<int32_t>(integer_arg(L, 3, "to", 1, cluster.device_count())) - 1;
  if (from == to) throw ArgumentError("argument 3 ('to'): the same device as 'from'");
  lua_pushnumber(L, cluster.latency_s(from, to));
  lua_pushnumber(L, cluster.bandwidth_bytes_per_s(from, to));
  return 2;
}

constexpr luaL_Reg kCluster[] = {TRINITY_BIND("summary", cluster_summary),
                                 TRINITY_BIND("wire", cluster_wire),
                                 {nullptr, nullptr}};
constexpr luaL_Reg kFunctions[] = {TRINITY_BIND("cluster", cluster_new), {nullptr, nullptr}};

}  // namespace

void open_cluster(lua_State* L) {
  luaL_register(L, nullptr, kFunctions);
  register_type<const Cluster>(L, kCluster);
}

}  // namespace trinity::lua
