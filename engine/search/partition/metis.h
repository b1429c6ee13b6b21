#pragma once

#include "search/placement/placement_space.h"

namespace trinity {

struct MetisOptions {
  uint64_t seed = 1;
  double imbalance = 0.03;  ///< fraction by which a device may exceed its share of work or memory
};

/// Multilevel k-way partitioning (Karypis and Kumar, J. Parallel Distrib. Comput. 48, 1998) by the
/// METIS library: minimises the bytes between devices such that every device gets its share of work
/// and, if memory is modelled, of memory (PartitionWeights). Ignores precedence.
///
/// If a unit weighs more than half a device's share, METIS's k-way division can run out of vertices
/// (and prints that); devices and units are then bisected recursively by METIS.
///
/// Deterministic. Each call runs in a forked process (base/apart.h), because METIS takes over
/// SIGTERM for the whole process while it works.
///
/// Throws ArgumentError for an imbalance out of range, LimitError if METIS runs out of memory.
Assignment metis_partition(const PlacementSpace& space, const MetisOptions& options = {});

}  // namespace trinity
