#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "strategy/own_order.h"
#include "strategy/recompute_modules.h"
#include "strategy/strategy.h"
#include "strategy/strategy_format.h"

// What strategy_to_json() writes; strategy.cpp reads it.

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

/// Fields kind and, where they are not the default, algorithm, inner, every, servers, asynchronous.
void write_synchronise(JsonWriter& json, const Synchronisation& given) {
  const Synchronisation plain;
  json.key("sync").begin_object();
  json.key("kind").text(synchronise_name(given.kind));
  if (given.algorithm != plain.algorithm)
    json.key("algorithm").text(collective_algorithm_name(given.algorithm));
  if (given.inner != plain.inner) json.key("inner").integer(given.inner);
  if (given.every != plain.every) json.key("every").integer(given.every);
  if (given.servers != plain.servers) json.key("servers").integer(given.servers);
  if (given.asynchronous) json.key("asynchronous").boolean(true);
  json.end_object();
}

/// {operator name: place from 1} of those that are not on the first.
void write_inside(JsonWriter& json, const std::vector<int32_t>& inside, const Graph& graph) {
  json.begin_object();
  for (size_t op = 0; op < inside.size(); ++op)
    if (inside[op] > 0) json.key(graph.op(static_cast<int32_t>(op)).name).integer(inside[op] + 1);
  json.end_object();
}

/// Fields mesh, schedule, recompute, bucket_bytes and those beside them.
void write_parallelism(JsonWriter& json, const Parallelism& given, const Graph& graph,
                       const Cluster& cluster) {
  const Parallelism plain;
  json.key("mesh").begin_object();
  if (given.mesh.data > 1) json.key("data").integer(given.mesh.data);
  if (given.mesh.tensor > 1) json.key("tensor").integer(given.mesh.tensor);
  if (given.mesh.pipeline > 1) json.key("pipeline").integer(given.mesh.pipeline);
  if (given.mesh.context > 1) json.key("context").integer(given.mesh.context);
  if (given.mesh.expert > 1) json.key("expert").integer(given.mesh.expert);
  if (given.mesh.placement > 1) json.key("placement").integer(given.mesh.placement);
  json.end_object();
  if (!given.mesh.order.empty()) {
    json.key("order").begin_list();
    for (const Axis axis : given.mesh.order) json.text(axis_name(axis));
    json.end_list();
  }
  if (!given.mesh.devices.empty()) {
    json.key("devices").begin_list();
    for (const int32_t device : given.mesh.devices) json.text(cluster.device(device).name);
    json.end_list();
  }
  json.key("schedule").begin_object();
  json.key("name").text(given.schedule);
  json.key("micro_batches").integer(given.micro_batches);
  if (given.virtual_stages > 1) json.key("virtual_stages").integer(given.virtual_stages);
  if (!given.stages.empty()) json.key("stages").integers(given.stages);
  if (!given.tasks.empty()) json.key("tasks").texts(order_rows(given.tasks));
  json.end_object();
  if (given.recompute != plain.recompute)
    json.key("recompute").text(recompute_text(given));
  if (given.bucket_bytes != plain.bucket_bytes)
    json.key("bucket_bytes").integer(given.bucket_bytes);
  if (given.sequence_parallel) json.key("sequence_parallel").boolean(true);
  if (given.scatter_gather) json.key("scatter_gather").boolean(true);
  if (given.overlap_tp_grad_allreduce) json.key("overlap_tp_grad_allreduce").boolean(true);
  if (given.zero_stage > 0) json.key("zero_stage").integer(given.zero_stage);
  if (given.cp_comm_type != plain.cp_comm_type)
    json.key("cp_comm_type").text(context_kind_name(given.cp_comm_type));
  if (given.sync != plain.sync) write_synchronise(json, given.sync);
  if (!given.inside.empty()) write_inside(json.key("inside"), given.inside, graph);
  if (given.operators.empty()) return;
  json.key("operators").begin_object();
  for (const auto& [name, rule] : given.operators) {
    json.key(name).begin_object();
    if (rule.recompute) json.key("recompute").boolean(*rule.recompute);
    if (rule.split) json.key("split").text(*rule.split);
    json.end_object();
  }
  json.end_object();
}

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

void write_replication(JsonWriter& json, const Replication& replication) {
  json.begin_object();
  json.key("kind").text(replication.kind).key("replicas").integer(replication.replicas);
  if (!replication.options.empty()) write_scalars(json.key("options"), replication.options);
  json.end_object();
}

bool has_splits(const Strategy& strategy) {
  return std::any_of(strategy.splits.begin(), strategy.splits.end(),
                     [](const OperatorSplit& split) { return split != OperatorSplit{}; });
}

/// Fields splits and replication, where there are any.
void write_parts(JsonWriter& json, const Strategy& strategy, const Graph& graph,
                 const Cluster& cluster) {
  if (has_splits(strategy)) {
    json.key("splits").begin_object();
    for (int32_t op = 0; op < graph.operator_count(); ++op) {
      if (strategy.splits[op] == OperatorSplit{}) continue;
      json.key(graph.op(op).name);
      write_split(json, strategy.splits[op], iteration_space(graph, op), cluster);
    }
    json.end_object();
  }
  if (strategy.replication) write_replication(json.key("replication"), *strategy.replication);
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
    write_parallelism(json, *strategy.parallelism, graph, cluster);
  else
    write_placed(json, strategy, graph, cluster);
  write_parts(json, strategy, graph, cluster);
  return json.end_object().take() + "\n";
}

}  // namespace trinity
