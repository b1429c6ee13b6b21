#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "strategy/mesh_words.h"
#include "strategy/own_order.h"
#include "strategy/strategy.h"

// strategy_to_json(), whose text strategy.cpp reads, and hash_value(): both visit all fields of a
// strategy.

namespace trinity {
namespace {

/// Whole numbers are written without a fraction.
void write_scalar(JsonWriter& json, const Scalar& scalar) {
  if (const auto* truth = std::get_if<bool>(&scalar)) {
    json.boolean(*truth);
    return;
  }
  if (const auto* word = std::get_if<std::string>(&scalar)) {
    json.text(*word);
    return;
  }
  const double number = std::get<double>(scalar);
  constexpr double kExact = 9007199254740992.0;
  if (!std::isfinite(number))
    json.text(fmt::format("{}", number));
  else if (std::floor(number) == number && std::abs(number) < kExact)
    json.integer(static_cast<int64_t>(number));
  else
    json.number(number);
}

void write_order(JsonWriter& json, const ScheduleSpec& spec, const Graph& graph,
                 const Cluster& cluster) {
  json.begin_object();
  for (size_t d = 0; d < spec.order.size(); ++d) {
    json.key(cluster.device(static_cast<int32_t>(d)).name).begin_list();
    for (const int32_t task : spec.order[d]) {
      const auto& name = graph.op(task % graph.operator_count()).name;
      const int32_t micro = task / graph.operator_count() + 1;
      json.text(spec.micro_batches == 1 ? name : fmt::format("{}@{}", name, micro));
    }
    json.end_list();
  }
  json.end_object();
}

/// {operator name: what write(number) writes} in order of the graph, for operators that are `in`.
template <class In, class Write>
void write_by_operator(JsonWriter& json, const Graph& graph, In in, Write write) {
  json.begin_object();
  for (int32_t i = 0; i < graph.operator_count(); ++i) {
    if (!in(graph.op(i))) continue;
    json.key(graph.op(i).name);
    write(static_cast<size_t>(i));
  }
  json.end_object();
}

bool everywhere(const Operator&) { return true; }

void write_priority(JsonWriter& json, double value) {
  if (std::isfinite(value))
    json.number(value);
  else
    json.text(value > 0 ? "inf" : "-inf");
}

void write_schedule(JsonWriter& json, const ScheduleSpec& spec, const Graph& graph,
                    const Cluster& cluster) {
  json.begin_object();
  json.key("name").text(spec.name);
  json.key("micro_batches").integer(spec.micro_batches);
  if (!spec.priority.empty())
    write_by_operator(json.key("priority"), graph, everywhere,
                      [&](size_t op) { write_priority(json, spec.priority[op]); });
  if (!spec.stage.empty())
    write_by_operator(
        json.key("stage"), graph, [](const Operator& op) { return op.collective < 0; },
        [&](size_t op) { json.integer(spec.stage[op] + 1); });
  if (!spec.tasks.empty()) json.key("tasks").texts(order_rows(spec.tasks));
  if (!spec.order.empty()) write_order(json.key("order"), spec, graph, cluster);
  json.end_object();
}

/// {operator name: {recompute, split}}, what there is.
void write_operators(JsonWriter& json, const std::map<std::string, OperatorChoice>& operators) {
  json.begin_object();
  for (const auto& [name, rule] : operators) {
    json.key(name).begin_object();
    if (rule.recompute) json.key("recompute").boolean(*rule.recompute);
    if (rule.split) json.key("split").text(*rule.split);
    json.end_object();
  }
  json.end_object();
}

/// A visitor that writes every field that is not the default, and those that are always written.
struct WordWriter {
  JsonWriter& json;
  const Parallelism& given;
  const Graph& graph;
  const Cluster& cluster;
  const Parallelism plain = {};
  std::string_view within = {};

  template <class Get>
  void operator()(const MeshWord& word, Get get) {
    if (!word.always && get(given) == get(plain)) return;
    json.key(word.name == within ? "name" : word.name);
    write(get(given), word.listed);
  }
  void group(std::string_view name, auto words) {
    if (name == "sync" && given.sync == plain.sync) return;
    json.key(name).begin_object();
    within = name;
    words();
    json.end_object();
  }

 private:
  template <class Value>
  void write(const Value& value, Listed listed) {
    if constexpr (std::is_same_v<Value, bool>)
      json.boolean(value);
    else if constexpr (std::is_integral_v<Value>)
      json.integer(value);
    else if constexpr (std::is_floating_point_v<Value>)
      json.number(value);
    else if constexpr (std::is_enum_v<Value>)
      json.text(choice_name(value));
    else if constexpr (std::is_same_v<Value, std::string>)
      json.text(value);
    else if constexpr (std::is_same_v<Value, PipelineOrder>)
      json.texts(order_rows(value));
    else if constexpr (std::is_same_v<Value, std::map<std::string, OperatorChoice>>)
      write_operators(json, value);
    else if constexpr (std::is_same_v<Value, RecomputeWord<const Parallelism>>)
      json.text(recompute_text(value.given));
    else
      write_list(value, listed);
  }
  template <class Value>
  void write_list(const std::vector<Value>& list, Listed listed) {
    if (listed == Listed::places) {  // {operator name: place from 1} of those that are not on the first
      json.begin_object();
      for (size_t op = 0; op < list.size(); ++op)
        if (static_cast<int32_t>(list[op]) > 0)
          json.key(graph.op(static_cast<int32_t>(op)).name).integer(static_cast<int32_t>(list[op]) + 1);
      json.end_object();
      return;
    }
    json.begin_list();
    for (const auto value : list)
      if constexpr (std::is_enum_v<Value>)
        json.text(choice_name(value));
      else if (listed == Listed::devices)
        json.text(cluster.device(value).name);
      else
        json.integer(value);
    json.end_list();
  }
};

void write_split(JsonWriter& json, const OperatorSplit& split, const IterationSpace& space,
                 const Cluster& cluster) {
  json.begin_object();
  if (std::any_of(split.factors.begin(), split.factors.end(), [](auto f) { return f > 1; })) {
    json.key("factors").begin_object();
    for (size_t d = 0; d < split.factors.size(); ++d)
      if (split.factors[d] > 1) json.key(space.dimensions[d].name).integer(split.factors[d]);
    json.end_object();
  }
  if (split.copies > 1) json.key("copies").integer(split.copies);
  if (!split.devices.empty()) {
    json.key("devices").begin_list();
    for (const int32_t device : split.devices) json.text(cluster.device(device).name);
    json.end_list();
  }
  json.end_object();
}

void write_scalars(JsonWriter& json, const Scalars& scalars) {
  json.begin_object();
  for (const auto& [name, value] : scalars) {
    json.key(name);
    if (const auto* scalar = std::get_if<Scalar>(&value)) {
      write_scalar(json, *scalar);
      continue;
    }
    json.begin_object();
    for (const auto& [key, entry] : std::get<1>(value)) write_scalar(json.key(key), entry);
    json.end_object();
  }
  json.end_object();
}

bool has_splits(const Strategy& strategy) {
  return std::any_of(strategy.splits.begin(), strategy.splits.end(),
                     [](const OperatorSplit& split) { return split != OperatorSplit{}; });
}

/// Field splits, where there are any.
void write_splits(JsonWriter& json, const Strategy& strategy, const Graph& graph,
                  const Cluster& cluster) {
  if (!has_splits(strategy)) return;
  json.key("splits").begin_object();
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    if (strategy.splits[op] == OperatorSplit{}) continue;
    json.key(graph.op(op).name);
    write_split(json, strategy.splits[op], iteration_space(graph, op), cluster);
  }
  json.end_object();
}

/// Fields schedule, where it is not the default, and placement.
void write_placed(JsonWriter& json, const Strategy& strategy, const Graph& graph,
                  const Cluster& cluster) {
  check_placement(strategy.placement, graph, cluster);
  check_schedule(strategy.schedule, graph, cluster.device_count());
  check_splits(strategy.splits, graph, cluster.device_count());
  if (strategy.schedule != ScheduleSpec{})
    write_schedule(json.key("schedule"), strategy.schedule, graph, cluster);
  write_by_operator(json.key("placement"), graph, everywhere,
                    [&](size_t op) { json.text(cluster.device(strategy.placement[op]).name); });
}

// --- Hashes

void add(Hasher& hash, double value) { hash.add(std::bit_cast<uint64_t>(value)); }

template <class Number>
void add(Hasher& hash, const std::vector<Number>& list) {
  hash.add(static_cast<uint64_t>(list.size()));
  for (const auto value : list) hash.add(static_cast<uint64_t>(value));
}

void add(Hasher& hash, const RecomputeWord<const Parallelism>& word) {
  hash.add(static_cast<uint64_t>(word.given.recompute) | uint64_t{word.given.recompute_modules} << 8);
}

void add(Hasher& hash, const PipelineOrder& order) {
  for (const auto& tasks : order) {
    hash.add(static_cast<uint64_t>(tasks.size()));
    for (const auto& task : tasks)
      hash.add(static_cast<uint64_t>(task.work)).add(static_cast<uint64_t>(task.chunk))
          .add(static_cast<uint64_t>(task.micro_batch));
  }
}

void add(Hasher& hash, const ScheduleSpec& schedule) {
  hash.add(schedule.name).add(static_cast<uint64_t>(schedule.micro_batches));
  for (const double priority : schedule.priority) add(hash, priority == 0 ? 0.0 : priority);
  add(hash, schedule.stage);
  for (const auto& tasks : schedule.order) add(hash, tasks);
  add(hash, schedule.tasks);
}

void add(Hasher& hash, const std::map<std::string, OperatorChoice>& operators) {
  for (const auto& [name, rule] : operators) {
    hash.add(name).add(uint64_t{rule.recompute.has_value()});
    hash.add(uint64_t{rule.recompute.value_or(false)}).add(uint64_t{rule.split.has_value()});
    hash.add(rule.split.value_or(""));
  }
}

/// A visitor of fields.
struct WordHasher {
  Hasher& hash;
  const Parallelism& given;

  template <class Get>
  void operator()(const MeshWord&, Get get) {
    add_value(get(given));
  }
  void group(const char*, auto words) { words(); }

 private:
  template <class Value>
  void add_value(const Value& value) {
    if constexpr (std::is_integral_v<Value> || std::is_enum_v<Value>)
      hash.add(static_cast<uint64_t>(value));
    else if constexpr (std::is_same_v<Value, std::string>)
      hash.add(value);
    else
      add(hash, value);
  }
};

void add(Hasher& hash, const Parallelism& given) { each_mesh_word(WordHasher{hash, given}); }

void add(Hasher& hash, const OperatorSplit& split) {
  add(hash, split.factors);
  add(hash, split.devices);
  hash.add(static_cast<uint64_t>(split.copies)).add(uint64_t{split.in_order});
}

}  // namespace

std::string strategy_to_json(const Strategy& strategy, const Graph& graph, const Cluster& cluster,
                             const std::map<std::string, Scalar>& notes, const Scalars& made_for) {
  JsonWriter json(1);
  json.begin_object();
  json.key("format").text(kStrategyFormat);
  json.key("version").integer(kStrategyVersion);
  json.key("graph").begin_object();
  json.key("name").text(graph.name());
  json.key("operators").integer(graph.operator_count());
  json.key("fingerprint").text(fingerprint_text(graph.fingerprint()));
  json.end_object().key("cluster").begin_object();
  json.key("name").text(cluster.name());
  json.key("devices").texts(cluster.device_names());
  json.key("fingerprint").text(fingerprint_text(cluster.fingerprint()));
  json.end_object();
  write_scalars(json.key("made_for"), made_for);
  json.key("notes").begin_object();
  for (const auto& [key, value] : notes) write_scalar(json.key(key), value);
  json.end_object();
  if (strategy.parallelism)
    each_mesh_word(WordWriter{json, *strategy.parallelism, graph, cluster});
  else
    write_placed(json, strategy, graph, cluster);
  write_splits(json, strategy, graph, cluster);
  return json.end_object().take() + "\n";
}

uint64_t hash_value(const Schedule& schedule) {
  Hasher hash;
  hash.add(static_cast<uint64_t>(schedule.micro_batches));
  hash.add(static_cast<uint64_t>(schedule.dispatch));
  for (const int32_t number : {schedule.stream, schedule.measured_from, schedule.measured_to})
    hash.add(static_cast<uint64_t>(number));
  hash.add(static_cast<uint64_t>(schedule.contradicts));
  add(hash, schedule.priority);
  for (const auto* list : {&schedule.order, &schedule.order_first, &schedule.weight_versions})
    add(hash, *list);
  return hash.value();
}

uint64_t hash_value(const Parallelism& given) {
  Hasher hash;
  add(hash, given);
  return hash.value();
}

uint64_t hash_value(const Strategy& strategy) {
  Hasher hash;
  add(hash, strategy.placement);
  add(hash, strategy.schedule);
  if (strategy.parallelism) add(hash, *strategy.parallelism);
  for (const auto& split : strategy.splits) add(hash, split);
  return hash.value();
}

}  // namespace trinity
