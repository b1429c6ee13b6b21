#include "strategy/strategy.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "strategy/lower.h"
#include "strategy/mesh_words.h"
#include "strategy/own_order.h"

namespace trinity {
namespace {

using Json = nlohmann::json;

/// A strategy file: what it is read against, and how its errors begin.
class Reader {
 public:
  Reader(const std::string& text, const std::string& source, const Graph& graph,
         const Cluster& cluster)
      : source_(source), graph_(graph), cluster_(cluster) {
    if (const auto fault = parse_json(text, parsed_)) fail(*fault);
    for (int32_t i = 0; i < graph.operator_count(); ++i) numbers_.emplace(graph.op(i).name, i);
  }

  LoadedStrategy read() {
    LoadedStrategy loaded;
    loaded.version = version();
    loaded.same_graph = same_fingerprint("graph", graph_.fingerprint());
    loaded.same_cluster = same_fingerprint("cluster", cluster_.fingerprint());
    if (loaded.version >= 3)
      loaded.made_for = read_scalars(member(json_, "made_for"), "made_for");
    try {
      if (json_.contains("mesh")) {
        loaded.strategy.parallelism = read_parallelism();
        loaded.strategy.placement = lower(loaded.strategy, graph_, cluster_).arranged.home;
      } else {
        read_placed(loaded.strategy);
      }
    } catch (const FileError&) {
      throw;
    } catch (const Error& error) {
      fail(error.what());
    }
    if (json_.contains("notes") && json_["notes"].is_object())
      for (const auto& [key, value] : json_["notes"].items())
        loaded.notes[key] = value.is_string() ? value.get<std::string>() : value.dump();
    return loaded;
  }

 private:
  /// Whether an operator has no entry of its own in an object by operator.
  using Left = bool (*)(const Operator&);

  /// A visitor that collects the names of fields, by object if they are nested.
  struct WordNames {
    std::map<std::string_view, std::vector<std::string_view>> known;
    std::string_view within = "strategy";

    void operator()(const MeshWord& word, auto) { known[within].push_back(word.name == within ? "name" : word.name); }
    void group(std::string_view name, auto words) {
      known[within].push_back(name);
      within = name;
      words();
      within = "strategy";
    }
  };

  /// A visitor that reads the fields of a file.
  struct WordReader {
    const Reader& reader;
    Parallelism& given;
    const WordNames& names;
    const Json* object = &reader.json_;
    std::string_view within = {};

    template <class Get>
    void operator()(const MeshWord& word, Get get) {
      const char* name = word.name == within ? "name" : word.name;
      if (!object->contains(name)) {
        if (word.always) reader.member(*object, name);
        return;
      }
      read((*object)[name], get(given), word, within.empty() ? name : fmt::format("{}: {}", within, name));
    }
    void group(std::string_view name, auto words) {
      const std::string key(name);
      if (name == "sync" && !object->contains(key)) return;
      object = &reader.member(reader.json_, key.c_str());
      reader.refuse_unknown(*object, key.c_str(), names.known.at(name));
      within = name;
      words();
      if (name == "sync") check_fields(given.sync);
      within = {};
      object = &reader.json_;
    }

   private:
    template <class Value>
    void read(const Json& json, Value&& value, const MeshWord& word, const std::string& what) {
      using Plain = std::remove_cvref_t<Value>;
      if constexpr (std::is_same_v<Plain, bool>)
        value = reader.truth(json, what);
      else if constexpr (std::is_floating_point_v<Plain>)
        value = reader.share(json, what);
      else if constexpr (std::is_integral_v<Plain>)
        value = static_cast<Plain>(reader.large_number(json, word.max, what, word.min));
      else if constexpr (std::is_enum_v<Plain>)
        value = parse_choice<Plain>(reader.word(json, what));
      else if constexpr (std::is_same_v<Plain, std::string>)
        value = reader.word(json, what);
      else if constexpr (std::is_same_v<Plain, PipelineOrder>)
        value = reader.read_tasks(json);
      else if constexpr (std::is_same_v<Plain, RecomputeWord<Parallelism>>)
        parse_recompute(reader.word(json, what), given);
      else if constexpr (std::is_same_v<Plain, std::map<std::string, OperatorChoice>>)
        value = reader.read_rules(json);
      else
        read_list(json, value, word, what);
    }
    template <class Value>
    void read_list(const Json& json, std::vector<Value>& list, const MeshWord& word, const std::string& what) {
      if constexpr (std::is_enum_v<Value>) {
        for (const auto& entry : reader.list(json, what)) list.push_back(parse_choice<Value>(reader.word(entry, what)));
      } else if (word.listed == Listed::places) {
        const auto place = [&](const Json& entry, const std::string& of) {
          return reader.whole_number(entry, given.mesh.placement, of) - 1;
        };
        list = reader.by_operator<int32_t>(json, word.name, place, [](const Operator&) { return true; });
        for (int32_t& each : list) each = std::max(each, 0);
      } else {
        for (const auto& entry : reader.list(json, what))
          list.push_back(word.listed == Listed::devices
                             ? reader.device_number(entry, what)
                             : static_cast<int32_t>(reader.large_number(entry, word.max, what, word.min)));
      }
    }
  };

  [[noreturn]] void fail(const std::string& what) const { throw FileError("{}: {}", source_, what); }
  template <class... Values>
    requires(sizeof...(Values) > 0)
  [[noreturn]] void fail(fmt::format_string<Values...> what, Values&&... values) const {
    fail(fmt::format(what, std::forward<Values>(values)...));
  }

  const Json& member(const Json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key)) fail("expected a field '{}'", key);
    return object.at(key);
  }

  /// The version of the file, whose format is checked.
  int32_t version() const {
    const auto& format = member(json_, "format");
    if (!format.is_string() || format.get_ref<const std::string&>() != kStrategyFormat)
      fail("expected format '{}', got {}", kStrategyFormat, format.dump());
    const auto& version = member(json_, "version");
    for (int32_t known = kStrategyVersion - 1; known <= kStrategyVersion; ++known)
      if (version == known) return known;
    fail("expected version {} or {}, got {}; search or plan again", kStrategyVersion - 1, kStrategyVersion,
         version.dump());
  }

  bool same_fingerprint(const char* part, uint64_t fingerprint) const {
    const auto& value = member(member(json_, part), "fingerprint");
    return value.is_string() && value.get<std::string>() == fingerprint_text(fingerprint);
  }

  int32_t operator_number(const std::string& name, const std::string& field) const {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& entry : numbers_) names.push_back(entry.first);
    fail("{}: graph '{}' has no operator '{}'{}", field, graph_.name(), name, suggestion(name, names));
  }

  int32_t device_number(const Json& value, const std::string& what) const {
    if (!value.is_string())
      fail("{}: expected a device name, got {}", what, value.dump());
    const auto name = value.get<std::string>();
    const int32_t device = cluster_.find(name);
    if (device < 0)
      fail("{}: no device '{}' in cluster '{}'{}", what, name, cluster_.name(),
           suggestion(name, cluster_.device_names()));
    return device;
  }

  int64_t large_number(const Json& value, int64_t high, const std::string& what, int64_t low = 1) const {
    if (!value.is_number_integer() || value < low || value > high)
      fail("{}: expected an integer from {} to {}, got {}", what, low, high, value.dump());
    return value.get<int64_t>();
  }

  double share(const Json& value, const std::string& what) const {
    if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= 1))
      fail("{}: expected a number from 0 to 1, got {}", what, value.dump());
    return value.get<double>();
  }

  int32_t whole_number(const Json& value, int32_t high, const std::string& what) const {
    return static_cast<int32_t>(large_number(value, high, what));
  }

  double priority(const Json& value, const std::string& what) const {
    if (value.is_number()) return value.get<double>();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    // Not value == "inf": nlohmann's asks for memory where nothing may be thrown.
    if (value.is_string() && value.get_ref<const std::string&>() == "inf") return kInfinity;
    if (value.is_string() && value.get_ref<const std::string&>() == "-inf") return -kInfinity;
    fail("{}: expected a number, got {}", what, value.dump());
  }

  /// read(value, "<field> of operator '<name>'") for every operator; the value stays -1 for those
  /// that are `left` out.
  template <class T, class Read>
  std::vector<T> by_operator(const Json& object, const char* field, Read read,
                             Left left = nullptr) const {
    if (!object.is_object()) fail("field '{}': expected an object", field);
    const auto count = static_cast<size_t>(graph_.operator_count());
    std::vector<T> values(count, -1);
    std::vector<bool> given(count, false);
    for (const auto& [name, value] : object.items()) {
      const auto at = static_cast<size_t>(operator_number(name, field));
      values[at] = read(value, fmt::format("{} of operator '{}'", field, name));
      given[at] = true;
    }
    for (int32_t i = 0; i < graph_.operator_count(); ++i)
      if (!given[i] && !(left && left(graph_.op(i))))
        fail("{}: operator '{}' of graph '{}' is missing", field, graph_.op(i).name, graph_.name());
    return values;
  }

  void refuse_unknown(const Json& object, const char* what,
                      std::span<const std::string_view> known) const {
    if (!object.is_object()) fail("field '{}': expected an object", what);
    for (const auto& entry : object.items())
      if (std::find(known.begin(), known.end(), entry.key()) == known.end()) {
        const std::vector<std::string> names(known.begin(), known.end());
        fail("{}: unknown field '{}'{} (known: {})", what, entry.key(), suggestion(entry.key(), names),
             fmt::join(names, ", "));
      }
  }

  void refuse_unknown(const Json& object, const char* what,
                      std::initializer_list<std::string_view> known) const {
    refuse_unknown(object, what, std::span<const std::string_view>(known.begin(), known.size()));
  }

  ScheduleSpec read_schedule(const Json& json) const {
    refuse_unknown(json, "schedule", {"micro_batches", "name", "order", "priority", "stage", "tasks"});
    ScheduleSpec spec;
    const auto& name = member(json, "name");
    if (!name.is_string())
      fail("schedule: name: expected a string, got {}", name.dump());
    spec.name = name.get<std::string>();
    if (json.contains("micro_batches"))
      spec.micro_batches = whole_number(json["micro_batches"], 1 << 30, "schedule: micro_batches");
    if (json.contains("priority"))
      spec.priority = by_operator<double>(
          json["priority"], "priority",
          [&](const Json& value, const std::string& what) { return priority(value, what); });
    if (json.contains("stage"))
      spec.stage = by_operator<int32_t>(
          json["stage"], "stage",
          [&](const Json& value, const std::string& what) {
            return whole_number(value, graph_.operator_count(), what) - 1;
          },
          [](const Operator& op) { return op.collective >= 0; });
    if (json.contains("order")) spec.order = read_order(json["order"], spec.micro_batches);
    if (json.contains("tasks")) spec.tasks = read_tasks(json["tasks"]);
    return spec;
  }

  PipelineOrder read_tasks(const Json& json) const {
    std::vector<std::string> rows;
    for (const auto& row : list(json, "schedule: tasks")) rows.push_back(word(row, "schedule: tasks"));
    try {
      return parse_order(rows);
    } catch (const ArgumentError& error) {
      fail("schedule: tasks: {}", error.what());
    }
  }

  std::vector<std::vector<int32_t>> read_order(const Json& object, int32_t micro_batches) const {
    if (!object.is_object()) fail("field 'order': expected an object");
    for (const auto& entry : object.items()) device_number(entry.key(), "order");
    std::vector<std::vector<int32_t>> order;
    for (const auto& name : cluster_.device_names()) {
      if (!object.contains(name))
        fail("order: device '{}' of cluster '{}' is missing", name, cluster_.name());
      const auto what = fmt::format("order of device '{}'", name);
      const auto& list = object.at(name);
      if (!list.is_array()) fail("{}: expected a list, got {}", what, list.dump());
      auto& tasks = order.emplace_back();
      for (const auto& entry : list) tasks.push_back(read_task(entry, micro_batches, what));
    }
    return order;
  }

  int32_t read_task(const Json& entry, int32_t micro_batches, const std::string& what) const {
    if (!entry.is_string())
      fail("{}: expected an operator's name, got {}", what, entry.dump());
    const auto text = entry.get<std::string>();
    if (micro_batches == 1) return operator_number(text, what);
    const auto at = text.rfind('@');
    const auto digits = at == std::string::npos ? std::string() : text.substr(at + 1);
    const bool number = !digits.empty() && digits.size() <= 10 &&
                        digits.find_first_not_of("0123456789") == std::string::npos;
    const int64_t micro = number ? std::stoll(digits) : 0;
    if (micro < 1 || micro > micro_batches)
      fail("{}: expected 'operator@micro-batch' with a micro-batch from 1 to {}, got '{}'", what, micro_batches, text);
    const int64_t task =
        (micro - 1) * graph_.operator_count() + operator_number(text.substr(0, at), what);
    return static_cast<int32_t>(std::min<int64_t>(task, std::numeric_limits<int32_t>::max()));
  }

  OperatorChoice read_rule(const Json& json, const std::string& name) const {
    operator_number(name, "operators");
    refuse_unknown(json, "operators", {"recompute", "split"});
    OperatorChoice rule;
    if (json.contains("recompute"))
      rule.recompute = truth(json["recompute"], fmt::format("recompute of operator '{}'", name));
    if (json.contains("split")) {
      if (!json["split"].is_string())
        fail("split of operator '{}': expected the name of a dimension, got {}", name, json["split"].dump());
      rule.split = json["split"].get<std::string>();
    }
    return rule;
  }

  std::map<std::string, OperatorChoice> read_rules(const Json& json) const {
    if (!json.is_object()) fail("field 'operators': expected an object");
    std::map<std::string, OperatorChoice> rules;
    for (const auto& [name, rule] : json.items()) rules[name] = read_rule(rule, name);
    return rules;
  }

  Parallelism read_parallelism() const {
    WordNames names;
    each_mesh_word(names);
    auto& known = names.known["strategy"];
    known.insert(known.end(), {"cluster", "format", "graph", "made_for", "notes", "version"});
    for (auto& group : names.known) std::sort(group.second.begin(), group.second.end());
    refuse_unknown(json_, "strategy", known);
    Parallelism given;
    each_mesh_word(WordReader{*this, given, names});
    return given;
  }

  bool truth(const Json& value, const std::string& what) const {
    if (!value.is_boolean()) fail("{}: expected true or false, got {}", what, value.dump());
    return value.get<bool>();
  }

  std::string word(const Json& value, const std::string& what) const {
    if (!value.is_string()) fail("{}: expected a string, got {}", what, value.dump());
    return value.get<std::string>();
  }

  const Json& list(const Json& json, const std::string& what) const {
    if (!json.is_array()) fail("{}: expected a list, got {}", what, json.dump());
    return json;
  }

  /// The device of every operator, its schedule and splits.
  void read_placed(Strategy& strategy) const {
    strategy.placement = by_operator<int32_t>(
        member(json_, "placement"), "placement",
        [&](const Json& value, const std::string& what) { return device_number(value, what); });
    if (json_.contains("schedule")) strategy.schedule = read_schedule(json_["schedule"]);
    check_placement(strategy.placement, graph_, cluster_);
    check_schedule(strategy.schedule, graph_, cluster_.device_count());
    refuse_unknown(json_, "strategy",
                   {"cluster", "format", "graph", "made_for", "notes", "placement", "schedule",
                    "splits", "version"});
    if (json_.contains("splits")) strategy.splits = read_splits(json_["splits"]);
    check_splits(strategy.splits, graph_, cluster_.device_count());
  }

  OperatorSplit read_split(const Json& json, int32_t op, const std::string& what) const {
    refuse_unknown(json, what.c_str(), {"copies", "devices", "factors"});
    OperatorSplit split;
    if (json.contains("copies"))
      split.copies = whole_number(json["copies"], 4096, fmt::format("{}: copies", what));
    if (json.contains("devices"))
      for (const auto& name : list(json["devices"], "devices"))
        split.devices.push_back(device_number(name, what));
    if (!json.contains("factors")) return split;
    const auto space = iteration_space(graph_, op);
    std::vector<std::string_view> known;
    for (const auto& dimension : space.dimensions) known.push_back(dimension.name);
    split.factors.assign(known.size(), 1);
    refuse_unknown(json["factors"], what.c_str(), known);
    for (const auto& [name, factor] : json["factors"].items())
      split.factors[space.find(name)] =
          whole_number(factor, 4096, fmt::format("{}: dimension '{}'", what, name));
    return split;
  }

  Splits read_splits(const Json& json) const {
    if (!json.is_object()) fail("field 'splits': expected an object");
    Splits splits(static_cast<size_t>(graph_.operator_count()));
    for (const auto& [name, split] : json.items()) {
      const int32_t op = operator_number(name, "splits");
      splits[op] = read_split(split, op, fmt::format("splits of operator '{}'", name));
    }
    return splits;
  }

  Scalar read_scalar(const Json& json, const std::string& what) const {
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number()) return json.get<double>();
    if (json.is_string()) return json.get<std::string>();
    fail("{}: expected a number, a string, true or false, got {}", what, json.dump());
  }

  Scalars read_scalars(const Json& json, const std::string& what) const {
    if (!json.is_object()) fail("{}: expected an object", what);
    Scalars scalars;
    for (const auto& [name, value] : json.items()) {
      const auto field = fmt::format("{}: '{}'", what, name);
      if (!value.is_object()) {
        scalars[name] = read_scalar(value, field);
        continue;
      }
      std::map<std::string, Scalar> group;
      for (const auto& [key, entry] : value.items()) group[key] = read_scalar(entry, field);
      scalars[name] = std::move(group);
    }
    return scalars;
  }

  std::string source_;
  const Graph& graph_;
  const Cluster& cluster_;
  TidyJson parsed_;
  const Json& json_ = parsed_.value;
  std::map<std::string, int32_t> numbers_;  // operators by name
};

}  // namespace

void check_placement(std::span<const int32_t> placement, const Graph& graph,
                     const Cluster& cluster) {
  const int32_t operators = graph.operator_count(), devices = cluster.device_count();
  if (placement.size() != static_cast<size_t>(operators))
    throw ArgumentError("a placement of graph '{}' needs {} entries, got {}", graph.name(), operators,
                        placement.size());
  const auto units = graph.units();  // flat, in contrast to the operators themselves
  for (int32_t i = 0; i < operators; ++i) {
    const int32_t device = placement[i];
    if (device < 0 || device >= devices)
      throw ArgumentError("operator '{}' is placed on device {}, expected 1 to {}", graph.op(i).name,
                          int64_t{device} + 1, devices);
    const int32_t first = graph.unit(units[i])[0];
    if (placement[first] != device)
      throw ArgumentError("operators '{}' and '{}' are colocated but placed on devices '{}' and '{}'",
                          graph.op(first).name, graph.op(i).name, cluster.device(placement[first]).name,
                          cluster.device(device).name);
  }
}

LoadedStrategy strategy_from_json(const std::string& text, const std::string& source,
                                  const Graph& graph, const Cluster& cluster) {
  return Reader(text, source, graph, cluster).read();
}

}  // namespace trinity
