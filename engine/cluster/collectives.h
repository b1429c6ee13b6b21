#pragma once

#include <span>

#include "base/collective.h"
#include "cluster/cluster.h"

namespace trinity {

/// What a collective costs on given devices.
struct CollectiveCost {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;  ///< the one taken
  double latency_s = 0;   ///< part that does not depend on the size
  double transfer_s = 0;  ///< bytes over bandwidth
  double sent_bytes = 0;  ///< by every member, and received by every member

  double time_s() const { return latency_s + transfer_s; }
};

/// The time of a collective over `bytes` (the full size of the tensor) between distinct `devices`,
/// by the formulas of simulator.md 5. Rings run in order of device number; a ring's latency is the
/// largest, its bandwidth the least over its edges, where a link (or switch) that several of its
/// edges cross is divided among them. One device costs nothing. Throws ArgumentError for an
/// algorithm that does not apply: another kind's, halving-doubling over a number that is no power
/// of two, hierarchical over nodes with different numbers of members.
CollectiveCost collective_cost(const Cluster& cluster, CollectiveKind kind,
                               CollectiveAlgorithm algorithm, std::span<const int32_t> devices,
                               int64_t bytes);

}  // namespace trinity
