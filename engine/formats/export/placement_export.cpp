#include "formats/export/placement_export.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/tidy_json.h"

namespace trinity {
namespace {

using Json = nlohmann::ordered_json;

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
      throw ArgumentError(fmt::format("cluster '{}' has {} devices, got {} names", cluster.name(),
                                      cluster.device_count(), names_.size()));
    std::set<std::string> seen;
    for (const auto& name : names_)
      if (!seen.insert(name).second)
        throw ArgumentError(fmt::format("two devices are called '{}'", name));
    for (int32_t o = 0; o < graph.operator_count(); ++o)
      if (graph.op(o).phase == Phase::forward) forward_.push_back(o);
    for (const int32_t op : forward_)
      if (auto path = module_path(graph.op(op)); !path.empty())
        modules_[std::move(path)].push_back(op);
  }

  std::string write() const {
    Tidy<Json> whole;
    Json& json = whole.value;
    json["format"] = kFormat;
    json["version"] = kVersion;
    json["graph"] = {{"name", graph_.name()},
                     {"operators", graph_.operator_count()},
                     {"fingerprint", fmt::format("{:016x}", graph_.fingerprint())}};
    json["devices"] = devices();
    json["operators"] = operators();
    json["modules"] = modules(true);
    if (auto split = modules(false); !split.empty()) json["split_modules"] = std::move(split);
    const auto& schedule = strategy_.schedule;
    if (schedule != ScheduleSpec{})
      json["schedule"] = {{"name", schedule.name}, {"micro_batches", schedule.micro_batches}};
    if (!schedule.stage.empty() || is_pipeline(schedule.name)) json["stages"] = stages();
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  int32_t device_of(int32_t op) const { return strategy_.placement[op]; }
  const std::string& name_of(int32_t device) const { return names_[device]; }

  Json devices() const {
    Json list = Json::array();
    for (int32_t d = 0; d < cluster_.device_count(); ++d) {
      const auto& device = cluster_.device(d);
      Json entry = {{"name", name_of(d)}, {"cluster_device", device.name}};
      if (!device.node.empty()) entry["node"] = device.node;
      list.push_back(std::move(entry));
    }
    return list;
  }

  Json operators() const {
    Json::object_t entries;  // appended: its [] looks at every entry
    for (const int32_t op : forward_)
      entries.emplace_back(graph_.op(op).name, name_of(device_of(op)));
    return entries;
  }

  /// Modules on one device with that device, or those on several with all of theirs.
  Json modules(bool whole) const {
    Json::object_t entries;
    for (const auto& [path, operators] : modules_) {
      std::set<int32_t> devices;
      for (const int32_t op : operators) devices.insert(device_of(op));
      if ((devices.size() == 1) != whole) continue;
      Json list = Json::array();
      for (const int32_t device : devices) list.push_back(name_of(device));
      entries.emplace_back(path, whole ? list[0] : list);
    }
    return entries;
  }

  Json stages() const {
    const auto& given = strategy_.schedule.stage;
    const auto stage = given.empty() ? stages_by_device(graph_, strategy_.placement) : given;
    std::map<int32_t, std::vector<int32_t>> members;
    for (const int32_t op : forward_)
      if (graph_.op(op).collective < 0) members[stage[op]].push_back(op);
    Json list = Json::array();
    for (const auto& [number, operators] : members) {
      const int32_t device = device_of(operators[0]);
      Json names = Json::array();
      for (const int32_t op : operators) {
        if (device_of(op) != device)
          throw ArgumentError(fmt::format("stage {}: operators '{}' and '{}' are on two devices",
                                          number + 1, graph_.op(operators[0]).name,
                                          graph_.op(op).name));
        names.push_back(graph_.op(op).name);
      }
      list.push_back({{"device", name_of(device)},
                      {"operators", std::move(names)},
                      {"modules", modules_of(number, stage)}});
    }
    return list;
  }

  Json modules_of(int32_t number, const std::vector<int32_t>& stage) const {
    Json list = Json::array();
    for (const auto& [path, operators] : modules_)
      if (std::all_of(operators.begin(), operators.end(),
                      [&](int32_t op) { return stage[op] == number; }))
        list.push_back(path);
    return list;
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
    // A Sequential's children carry its name again: "layer1/layer1.0".
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
