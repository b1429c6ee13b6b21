#pragma once

#include "search/placement/placement_space.h"

namespace trinity {

struct ScotchOptions {
  uint64_t seed = 1;
  double imbalance = 0.05;  ///< fraction by which a device may exceed its share
};

/// Static mapping by dual recursive bipartitioning (Pellegrini and Roman, HPCN Europe 1996) by the
/// Scotch library: minimises the sum over edges of bytes times the distance of their devices, such
/// that every device gets its share of work and memory together (PartitionWeights::combined).
/// Ignores precedence.
///
/// The target is the weighted complete graph of devices (archCmpltw) if all pairs have equal
/// distance. Otherwise it is decomposition-defined (archBuild) with an edge between any two
/// devices; their distance is the time of the mean tensor between them, averaged over both
/// directions, in tenths of the shortest one.
///
/// Deterministic: one thread, and the library's random numbers are seeded and reset for every call.
/// They are global, so calls are serialised.
///
/// Throws ArgumentError for an imbalance out of range, Error if Scotch fails.
Assignment scotch_map(const PlacementSpace& space, const ScotchOptions& options = {});

}  // namespace trinity
