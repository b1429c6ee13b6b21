#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "strategy/mesh.h"

namespace trinity {

/// The role of an operator in a lowered graph. Every pass of lowering copies it with the operator.
struct OperatorRole {
  int32_t device = 0;
  int32_t origin = -1;  ///< operator of the original graph; -1: it moves or reduces data
  int32_t serves = 0;   ///< operator of the original graph that it works for
  int32_t part = 0;     ///< of the operator that it serves; of a slice or join 0
  // Only for a mesh (strategy/lower.h):
  int32_t stage = 0;      ///< virtual stage
  int32_t layer = 0;      ///< layer that it works for, from 0; -1: before the layers; their number: after them
  int32_t spread = 1;     ///< number of ranks that its weights are sharded over
  int64_t gathered = 0;   ///< as in ReplicaOptions
  int32_t together = -1;  ///< the same
  /// It writes the last gradient that its device sends in its stage (ReplicaOptions::behind).
  bool sends_last = false;
  bool operator==(const OperatorRole&) const = default;
};

/// The graph to which a strategy lowers another: its operators split into parts, and operators that move and reduce their
/// blocks. Strategies of one structure share it.
struct LoweredGraph {
  Graph graph = {};
  std::vector<OperatorRole> roles = {};  ///< [operator]
  std::vector<int32_t> home = {};        ///< [original operator]: OperatorRole::device of its first part

  // Only for a mesh. The graph has one replica or several copies (copy_replica()); OperatorRole::device is
  // (stage x copies + copy) x width + part.
  Parallelism of = {};
  std::vector<int32_t> home_rank = {};  ///< with sharded experts: the first rank that has it
  std::vector<int32_t> layers = {};     ///< of every virtual stage
  std::vector<int32_t> pipeline = {};   ///< of every virtual stage: where on that axis it is, from 0
  /// With expert parallelism `origin` belongs to the first rank; this has for every rank the operator of that rank
  /// (SpreadExperts). Replicas that are copied have operators of their own ranks, and leave it empty.
  std::vector<std::vector<int32_t>> ranks = {};
  /// For every device of a replica's stage the first device that does the same; only these are built. From
  /// lower_replica() each device is the only one of its class. A collective over axes (Collective::axes) joins a group
  /// of devices of its stage, any other one its members, and the other devices of their classes have the same.
  std::vector<int32_t> lanes = {};
  /// [collective]: its number in the replica before operators were left out (kept()) or copied; -1: it joins one
  /// device's copies in the replicas, kJoins: the copies of several devices (`joined`).
  std::vector<int32_t> collective = {};
  static constexpr int32_t kJoins = -2;
  std::vector<bool> joined = {};  ///< as in ReplicaOptions; before replicas are copied
  /// The replicas that a collective joins if it is no copy: all, a group of `expert`, or the replicas with the same
  /// experts.
  enum class Among : uint8_t { all, run, alike };
  std::vector<Among> among = {};  ///< of every collective of copied replicas
  /// Per operator, if servers take replicas round-robin: the replica for which it runs; else empty.
  std::vector<int32_t> turn = {};

  int32_t device_of(int32_t op) const { return roles[static_cast<size_t>(op)].device; }
  /// A field of the roles. [operator]
  template <class Value>
  std::vector<Value> each(Value OperatorRole::*field) const {
    std::vector<Value> values;
    values.reserve(roles.size());
    for (const auto& role : roles) values.push_back(role.*field);
    return values;
  }
};

/// Axes of a mesh over which a collective joins the devices of a run (bits of Collective::axes).
inline constexpr int32_t kOverTensor = 1, kOverContext = 2;
/// The first device of a run (context x tensor, from 0) that a collective over these axes joins with one of the run.
inline int32_t first_over(int32_t axes, int32_t tensor, int32_t device) {
  const int32_t part = (axes & kOverTensor) != 0 ? 0 : device % tensor;
  return part + ((axes & kOverContext) != 0 ? 0 : device - device % tensor);
}

}  // namespace trinity
