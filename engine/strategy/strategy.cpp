#include "strategy/strategy.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace trinity {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "trinity-strategy";
constexpr int kVersion = 1;

std::string hexadecimal(uint64_t value) { return fmt::format("{:016x}", value); }

/// Numbers travel as text that is already formatted; a note that parses as a number is one.
Json note_value(const std::string& text) {
  const auto value = Json::parse(text, nullptr, false);
  return value.is_number() || value.is_boolean() ? value : Json(text);
}

[[noreturn]] void malformed(const std::string& source, const std::string& what) {
  throw FileError(fmt::format("{}: {}", source, what));
}

const Json& member(const Json& object, const char* key, const std::string& source) {
  if (!object.is_object() || !object.contains(key))
    malformed(source, fmt::format("expected a field '{}'", key));
  return object.at(key);
}

Json parse(const std::string& text, const std::string& source) {
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    malformed(source, fmt::format("not valid JSON near byte {}", error.byte));
  }
}

int32_t device_number(const Json& value, const std::string& op, const std::string& source,
                      const Cluster& cluster) {
  if (!value.is_string())
    malformed(source, fmt::format("placement of operator '{}': expected a device name, got {}", op,
                                  value.dump()));
  const auto name = value.get<std::string>();
  const int32_t device = cluster.find(name);
  if (device < 0)
    malformed(source,
              fmt::format("placement of operator '{}': no device '{}' in cluster '{}'{}", op, name,
                          cluster.name(), suggestion(name, cluster.device_names())));
  return device;
}

std::vector<int32_t> read_placement(const Json& object, const std::string& source,
                                    const Graph& graph, const Cluster& cluster) {
  if (!object.is_object()) malformed(source, "field 'placement': expected an object");
  std::map<std::string, int32_t> numbers;
  for (int32_t i = 0; i < graph.operator_count(); ++i) numbers.emplace(graph.op(i).name, i);
  std::vector<int32_t> placement(static_cast<size_t>(graph.operator_count()), -1);
  for (const auto& [name, value] : object.items()) {
    const auto found = numbers.find(name);
    if (found == numbers.end()) {
      std::vector<std::string> names;
      for (const auto& entry : numbers) names.push_back(entry.first);
      malformed(source, fmt::format("placement: graph '{}' has no operator '{}'{}", graph.name(),
                                    name, suggestion(name, names)));
    }
    placement[static_cast<size_t>(found->second)] = device_number(value, name, source, cluster);
  }
  for (int32_t i = 0; i < graph.operator_count(); ++i)
    if (placement[static_cast<size_t>(i)] < 0)
      malformed(source, fmt::format("placement: operator '{}' of graph '{}' is missing",
                                    graph.op(i).name, graph.name()));
  return placement;
}

bool same_fingerprint(const Json& json, const char* part, const std::string& source,
                      uint64_t fingerprint) {
  const auto& value = member(member(json, part, source), "fingerprint", source);
  return value.is_string() && value.get<std::string>() == hexadecimal(fingerprint);
}

}  // namespace

void check_placement(std::span<const int32_t> placement, const Graph& graph,
                     const Cluster& cluster) {
  if (placement.size() != static_cast<size_t>(graph.operator_count()))
    throw ArgumentError(fmt::format("a placement of graph '{}' needs {} entries, got {}",
                                    graph.name(), graph.operator_count(), placement.size()));
  for (int32_t i = 0; i < graph.operator_count(); ++i) {
    const int32_t device = placement[static_cast<size_t>(i)];
    if (device < 0 || device >= cluster.device_count())
      throw ArgumentError(fmt::format("operator '{}' is placed on device {}, expected 1 to {}",
                                      graph.op(i).name, device + 1, cluster.device_count()));
    const int32_t first = graph.unit(graph.op(i).unit)[0];
    if (placement[static_cast<size_t>(first)] != device)
      throw ArgumentError(fmt::format(
          "operators '{}' and '{}' are colocated but placed on devices '{}' and '{}'",
          graph.op(first).name, graph.op(i).name,
          cluster.device(placement[static_cast<size_t>(first)]).name, cluster.device(device).name));
  }
}

std::string strategy_to_json(const Strategy& strategy, const Graph& graph, const Cluster& cluster,
                             const std::map<std::string, std::string>& notes) {
  check_placement(strategy.placement, graph, cluster);
  Json json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["graph"] = {{"name", graph.name()},
                   {"operators", graph.operator_count()},
                   {"fingerprint", hexadecimal(graph.fingerprint())}};
  json["cluster"] = {{"name", cluster.name()},
                     {"devices", cluster.device_names()},
                     {"fingerprint", hexadecimal(cluster.fingerprint())}};
  json["notes"] = Json::object();
  for (const auto& [key, value] : notes) json["notes"][key] = note_value(value);
  auto& placement = json["placement"] = Json::object();
  for (int32_t i = 0; i < graph.operator_count(); ++i)
    placement[graph.op(i).name] = cluster.device(strategy.placement[static_cast<size_t>(i)]).name;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

LoadedStrategy strategy_from_json(const std::string& text, const std::string& source,
                                  const Graph& graph, const Cluster& cluster) {
  const Json json = parse(text, source);
  const auto& format = member(json, "format", source);
  if (format != kFormat)
    malformed(source, fmt::format("expected format '{}', got {}", kFormat, format.dump()));
  const auto& version = member(json, "version", source);
  if (version != kVersion)
    malformed(source, fmt::format("expected version {}, got {}", kVersion, version.dump()));
  LoadedStrategy loaded;
  loaded.same_graph = same_fingerprint(json, "graph", source, graph.fingerprint());
  loaded.same_cluster = same_fingerprint(json, "cluster", source, cluster.fingerprint());
  loaded.strategy.placement =
      read_placement(member(json, "placement", source), source, graph, cluster);
  try {
    check_placement(loaded.strategy.placement, graph, cluster);
  } catch (const ArgumentError& error) {
    malformed(source, error.what());
  }
  if (json.contains("notes") && json["notes"].is_object())
    for (const auto& [key, value] : json["notes"].items())
      loaded.notes[key] = value.is_string() ? value.get<std::string>() : value.dump();
  return loaded;
}

}  // namespace trinity
