#pragma once

#include "search/placement/placement_space.h"

namespace trinity {

struct FmOptions {
  uint64_t seed = 1;
  double imbalance = 0.05;  ///< fraction by which a device may exceed its share
};

/// Partitioning by Fiduccia and Mattheyses (19th Design Automation Conference, 1982) on the
/// hypergraph of tensors (fm_refine.h): minimises the bytes sent such that every device gets its
/// share of work and memory together (PartitionGraph::combined). Ignores precedence.
///
/// A pass moves every cell once: each time the free cell with the largest gain (bytes of nets that
/// only it holds on its side, minus bytes of nets entirely on its side) whose move keeps or
/// improves the balance. Then all moves after the best moment are undone. Passes repeat until none
/// gains. Balance: r W - s <= |A| <= r W + s, with s the larger of the imbalance and the heaviest
/// cell (at most half a side). Gains are sorted into 4096 buckets, so two gains of one bucket may
/// go in either order; sums are exact.
///
/// Devices are bisected recursively. A bisection is the best of four refined ones: the first units
/// in graph order, and sets grown breadth-first from random units. At the end every pair of devices
/// is refined; this never increases the total. Deterministic.
///
/// Throws ArgumentError for an imbalance out of range.
Assignment fm_partition(const PlacementSpace& space, const FmOptions& options = {});

}  // namespace trinity
