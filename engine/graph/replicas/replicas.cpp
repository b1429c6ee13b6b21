#include "graph/replicas.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/index.h"
#include "graph/replicas/copies.h"

namespace trinity {
namespace {

void check_share(const Graph& graph, const Graph& share, size_t s) {
  bool same = share.operator_count() == graph.operator_count() &&
              share.collectives().size() == graph.collectives().size();
  for (int32_t op = 0; same && op < graph.operator_count(); ++op)
    same = share.op(op).name == graph.op(op).name &&
           share.op(op).outputs.size() == graph.op(op).outputs.size();
  if (!same)
    throw ArgumentError("replicating the stages of graph '{}': the graph at the batch size of stage {} has other "
                        "operators", graph.name(), s + 1);
}

/// Checks that this number of copies of all operators and tensors can be numbered.
void check_copies(const Graph& graph, std::span<const int32_t> stage,
                  std::span<const int32_t> replicas) {
  size_t copies = 0, tensors = 0;
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    copies += at(replicas[stage[op]]);
    tensors += at(replicas[stage[op]]) * graph.op(op).outputs.size();
  }
  if (copies > kMaxOperators || tensors > std::numeric_limits<int32_t>::max())
    throw LimitError("replicating graph '{}': {} copies of operators are more than {}", graph.name(), copies,
                     kMaxOperators);
}

/// Checks that lists match the graph, and that inner groups and ranks divide the replicas.
void check_groups(const Graph& graph, int32_t replicas, const ReplicaOptions& options) {
  const auto owner = fmt::format("replicating graph '{}'", graph.name());
  const auto count = at(graph.operator_count());
  const auto check = [&](const char* what, size_t size) {
    if (size > 0 && size != count)
      throw ArgumentError("{}: expected the {} of {} operators, got {}", owner, what, count, size);
  };
  check("devices", options.device_of.size());
  check("spread", options.spread.size());
  check("gathered bytes", options.gathered.size());
  check("operators to wait for", options.behind.size());
  const int32_t all = std::max(replicas, options.of);
  if (options.ranks < 1 || all % options.ranks != 0)
    throw ArgumentError("{}: {} ranks do not divide {} replicas", owner, options.ranks, all);
  if (options.inner > 1 && replicas % options.inner != 0)
    throw ArgumentError("{}: inner groups of {} do not divide {} replicas", owner, options.inner, replicas);
  if (options.inner > 1 && options.inner % options.ranks != 0 && options.ranks % options.inner != 0)
    throw ArgumentError("{}: inner groups of {} replicas and {} ranks: neither divides the other", owner, options.inner,
                        options.ranks);
  const bool servers =
      options.meeting == Meeting::servers || options.meeting == Meeting::in_turn;
  if (servers && options.servers < 1)
    throw ArgumentError("{}: expected at least 1 server, got {}", owner, options.servers);
}

void check_bucket(const Graph& graph, const ReplicaOptions& options) {
  if (options.bucket_bytes < 1)
    throw ArgumentError("replicating graph '{}': bucket_bytes must be at least 1, got {}", graph.name(),
                        options.bucket_bytes);
}

void check_stages(const Graph& graph, std::span<const int32_t> stage,
                  std::span<const int32_t> replicas, const ReplicaOptions& options) {
  const auto owner = fmt::format("replicating the stages of graph '{}'", graph.name());
  if (stage.size() != at(graph.operator_count()))
    throw ArgumentError("{}: expected the stages of {} operators, got {}", owner, graph.operator_count(), stage.size());
  for (size_t s = 0; s < replicas.size(); ++s) {
    if (replicas[s] < 1)
      throw ArgumentError("{}: stage {} has {} replicas, expected at least 1", owner, s + 1, replicas[s]);
    if (s < options.at_share.size() && options.at_share[s])
      check_share(graph, *options.at_share[s], s);
  }
  for (int32_t op = 0; op < graph.operator_count(); ++op)
    if (stage[op] < 0 || at(stage[op]) >= replicas.size())
      throw ArgumentError("{}: operator '{}' is in stage {}, expected 1 to {}", owner, graph.op(op).name, stage[op] + 1,
                          replicas.size());
}

}  // namespace

Replicated replicate(const Graph& graph, int32_t replicas, const ReplicaOptions& options) {
  if (replicas < 1)
    throw ArgumentError("replicating graph '{}': expected at least 1 replica, got {}", graph.name(), replicas);
  check_bucket(graph, options);
  const auto count = at(graph.operator_count());
  check_groups(graph, replicas, options);
  const std::vector<int32_t> stage(count, 0);
  if (std::max(replicas, options.of) == 1 && options.joined.empty()) {
    std::vector<int32_t> origin(count);
    std::iota(origin.begin(), origin.end(), 0);
    return {graph, std::move(origin), stage, stage};
  }
  check_copies(graph, stage, {&replicas, 1});
  ReplicaOptions whole = options;
  whole.at_share = {&graph};
  const auto group = options.device_of.empty() ? graph.units() : options.device_of;
  return build_replicas(graph, stage, {&replicas, 1}, group, whole);
}

Replicated replicate_stages(const Graph& graph, std::span<const int32_t> stage,
                            std::span<const int32_t> replicas, const ReplicaOptions& options) {
  check_bucket(graph, options);
  check_stages(graph, stage, replicas, options);
  check_copies(graph, stage, replicas);
  return build_replicas(graph, stage, replicas, stage, options);
}

}  // namespace trinity
