#pragma once

#include "search/placement/placement_space.h"

namespace trinity {

struct MetisOptions {
  uint64_t seed = 1;
  double imbalance = 0.03;  ///< by how much a device may exceed its share of work or memory
};

/// Multilevel k-way partitioning (Karypis and Kumar, J. Parallel Distrib. Comput. 48, 1998) by the
/// METIS library: the least bytes between devices such that every device gets its share of the work
/// and, where memory is accounted, of memory (PartitionWeights). Ignores precedence.
///
/// Where a unit weighs more than half a device's share, METIS's own division into many parts can
/// run out of vertices (and prints so); devices and units are then halved one METIS bisection at a
/// time.
///
/// Deterministic. Each call is one of a forked copy of this process (base/apart.h): METIS takes
/// SIGTERM over for the whole process while it works, so that a stop asked for then was its error.
///
/// Throws ArgumentError for an imbalance out of range, LimitError when METIS runs out of memory.
Assignment metis_partition(const PlacementSpace& space, const MetisOptions& options = {});

}  // namespace trinity
