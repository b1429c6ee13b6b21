#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "strategy/mesh.h"
#include "strategy/schedule.h"
#include "strategy/splits.h"

namespace trinity {

// The head of a strategy file.
inline constexpr const char* kStrategyFormat = "trinity-strategy";
inline constexpr int kStrategyVersion = 3;  ///< earlier ones: strategy_to_json()
inline std::string fingerprint_text(uint64_t value) { return fmt::format("{:016x}", value); }

/// A number, a boolean or a string.
using Scalar = std::variant<bool, double, std::string>;

/// Scalars by name, and groups of such.
using Scalars = std::map<std::string, std::variant<Scalar, std::map<std::string, Scalar>>>;

/// How a graph is trained on a cluster: where its operators run, how often and in which order.
struct Strategy {
  std::vector<int32_t> placement;  ///< device of every operator, 0-based
  ScheduleSpec schedule;
  /// For a strategy that is the same for all layers this is all of it: `placement` has the device
  /// of the first part of every operator, `schedule` is empty.
  std::optional<Parallelism> parallelism = std::nullopt;
  Splits splits = {};  ///< of single operators; not with `parallelism`

  bool operator==(const Strategy&) const = default;
};

/// Equal for equal strategies, the same on every machine.
uint64_t hash_value(const Strategy& strategy);
uint64_t hash_value(const Parallelism& given);

/// Throws ArgumentError unless `placement` names a device of `cluster` for every operator and
/// keeps every colocation unit together.
void check_placement(std::span<const int32_t> placement, const Graph& graph,
                     const Cluster& cluster);

/// The strategy as JSON text ending in a newline: format and version, graph and cluster (name,
/// fingerprint), `made_for` (what evaluates it again: model, micro_batch, cluster and so on;
/// lib/trinity/strategy/made_for.lua), `notes` (method, seed, metrics: scalars, written in key
/// order), the schedule unless it is the default one, the device name of every operator by name, and
/// where there are any `splits` (by operator: factors by dimension, copies, devices). Equal inputs
/// give equal bytes. Throws what check_placement() and check_schedule() throw.
///
/// The schedule has fields name, micro_batches and, where they are filled, priority (a number, or
/// "inf" or "-inf", by operator), stage (from 1, by operator; not for members of collectives), and
/// order (a list of operators by device; "operator@micro-batch", from 1, when there are several).
/// With `parallelism` there are in place of the placement the fields mesh (axes above 1), schedule
/// (name, micro_batches, and virtual_stages, stages where they are given), recompute and
/// bucket_bytes, overlap_tp_grad_allreduce, scatter_gather, sequence_parallel, zero_stage and sync where they
/// are not the default, inside (by operator, from 1; those on the first place are left out). This is
/// version 3; version 2 lacks `made_for`.
std::string strategy_to_json(const Strategy& strategy, const Graph& graph, const Cluster& cluster,
                             const std::map<std::string, Scalar>& notes,
                             const Scalars& made_for = {});

struct LoadedStrategy {
  Strategy strategy;
  std::map<std::string, std::string> notes;
  Scalars made_for;
  int32_t version = 3;
  bool same_graph = false, same_cluster = false;  ///< whether the fingerprints agree
};

/// Reads what strategy_to_json() wrote. `source` names the text in errors. Throws FileError for
/// malformed JSON, another format or version, a strategy that lower() refuses, an operator that the
/// graph lacks or the file omits, an unknown device, a placement that check_placement() or a
/// schedule that check_schedule() refuses.
LoadedStrategy strategy_from_json(const std::string& text, const std::string& source,
                                  const Graph& graph, const Cluster& cluster);

}  // namespace trinity
