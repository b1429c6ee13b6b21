#include "formats/export/placement_export.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/json.h"

namespace trinity {
namespace {

constexpr const char* kFormat = "trinity.placement";
constexpr int kVersion = 1;

class PlacementWriter {
 public:
  PlacementWriter(const Strategy& strategy, const Graph& graph, const Cluster& cluster,
                  const std::vector<std::string>& device_names)
      : strategy_(strategy),
        graph_(graph),
        cluster_(cluster),
        names_(device_names.empty() ? cluster.device_names() : device_names) {
    check_placement(strategy.placement, graph, cluster);
    check_schedule(strategy.schedule, graph, cluster.device_count());
    if (names_.size() != static_cast<size_t>(cluster.device_count()))
      throw ArgumentError("cluster '{}' has {} devices, got {} names", cluster.name(), cluster.device_count(),
                          names_.size());
    std::set<std::string> seen;
    for (const auto& name : names_)
      if (!seen.insert(name).second)
        throw ArgumentError("two devices are called '{}'", name);
    for (int32_t o = 0; o < graph.operator_count(); ++o)
      if (graph.op(o).phase == Phase::forward) forward_.push_back(o);
    for (const int32_t op : forward_)
      if (auto path = module_path(graph.op(op)); !path.empty())
        modules_[std::move(path)].push_back(op);
  }

  std::string write() const {
    JsonWriter json(1);
    json.begin_object();
    json.key("format").text(kFormat).key("version").integer(kVersion);
    json.key("graph").begin_object();
    json.key("name").text(graph_.name()).key("operators").integer(graph_.operator_count());
    json.key("fingerprint").text(fmt::format("{:016x}", graph_.fingerprint()));
    json.end_object();
    write_devices(json.key("devices"));
    write_operators(json.key("operators"));
    write_modules(json.key("modules"), true);
    if (has_split_modules()) write_modules(json.key("split_modules"), false);
    const auto& schedule = strategy_.schedule;
    if (schedule != ScheduleSpec{}) {
      json.key("schedule").begin_object();
      json.key("name").text(schedule.name);
      json.key("micro_batches").integer(schedule.micro_batches).end_object();
    }
    if (!schedule.stage.empty() || is_pipeline(schedule.name)) write_stages(json.key("stages"));
    return json.end_object().take() + "\n";
  }

 private:
  int32_t device_of(int32_t op) const { return strategy_.placement[op]; }
  const std::string& name_of(int32_t device) const { return names_[device]; }

  void write_devices(JsonWriter& json) const {
    json.begin_list();
    for (int32_t d = 0; d < cluster_.device_count(); ++d) {
      const auto& device = cluster_.device(d);
      json.begin_object();
      json.key("name").text(name_of(d)).key("cluster_device").text(device.name);
      if (!device.node.empty()) json.key("node").text(device.node);
      json.end_object();
    }
    json.end_list();
  }

  void write_operators(JsonWriter& json) const {
    json.begin_object();
    for (const int32_t op : forward_) json.key(graph_.op(op).name).text(name_of(device_of(op)));
    json.end_object();
  }

  std::set<int32_t> devices_of(const std::vector<int32_t>& operators) const {
    std::set<int32_t> devices;
    for (const int32_t op : operators) devices.insert(device_of(op));
    return devices;
  }

  bool has_split_modules() const {
    return std::any_of(modules_.begin(), modules_.end(),
                       [&](const auto& module) { return devices_of(module.second).size() > 1; });
  }

  /// whole: modules on one device, with that device; else the others, with all their devices.
  void write_modules(JsonWriter& json, bool whole) const {
    json.begin_object();
    for (const auto& [path, operators] : modules_) {
      const auto devices = devices_of(operators);
      if ((devices.size() == 1) != whole) continue;
      json.key(path);
      if (!whole) json.begin_list();
      for (const int32_t device : devices) json.text(name_of(device));
      if (!whole) json.end_list();
    }
    json.end_object();
  }

  void write_stages(JsonWriter& json) const {
    const auto& given = strategy_.schedule.stage;
    const auto stage = given.empty() ? stages_by_device(graph_, strategy_.placement) : given;
    std::map<int32_t, std::vector<int32_t>> members;
    for (const int32_t op : forward_)
      if (graph_.op(op).collective < 0) members[stage[op]].push_back(op);
    json.begin_list();
    for (const auto& [number, operators] : members) {
      const int32_t device = device_of(operators[0]);
      json.begin_object();
      json.key("device").text(name_of(device)).key("operators").begin_list();
      for (const int32_t op : operators) {
        if (device_of(op) != device)
          throw ArgumentError("stage {}: operators '{}' and '{}' are on two devices", number + 1,
                              graph_.op(operators[0]).name, graph_.op(op).name);
        json.text(graph_.op(op).name);
      }
      json.end_list();
      write_modules_of(json.key("modules"), number, stage);
      json.end_object();
    }
    json.end_list();
  }

  void write_modules_of(JsonWriter& json, int32_t number, const std::vector<int32_t>& stage) const {
    json.begin_list();
    for (const auto& [path, operators] : modules_)
      if (std::all_of(operators.begin(), operators.end(),
                      [&](int32_t op) { return stage[op] == number; }))
        json.text(path);
    json.end_list();
  }

  const Strategy& strategy_;
  const Graph& graph_;
  const Cluster& cluster_;
  const std::vector<std::string> names_;
  std::vector<int32_t> forward_;                         // forward operators, ascending
  std::map<std::string, std::vector<int32_t>> modules_;  // their own operators
};

}  // namespace

std::string module_path(const Operator& op) {
  if (const auto found = op.attributes.find("module"); found != op.attributes.end())
    if (const auto* path = std::get_if<std::string>(&found->second)) return *path;
  if (!op.name.starts_with('/')) return "";
  std::string path, last;
  for (size_t at = 1, slash; (slash = op.name.find('/', at)) != std::string::npos; at = slash + 1) {
    const auto part = op.name.substr(at, slash - at);
    // Children of a Sequential repeat its name: "layer1/layer1.0".
    if (!last.empty() && part.starts_with(last + ".")) path.resize(path.size() - last.size());
    if (!path.empty() && !path.ends_with('.')) path += '.';
    path += part;
    last = part;
  }
  return path;
}

std::string placement_to_json(const Strategy& strategy, const Graph& graph, const Cluster& cluster,
                              const std::vector<std::string>& device_names) {
  return PlacementWriter(strategy, graph, cluster, device_names).write();
}

}  // namespace trinity
