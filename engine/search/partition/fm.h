#pragma once

#include "search/placement/placement_space.h"

namespace trinity {

struct FmOptions {
  uint64_t seed = 1;
  double imbalance = 0.05;  ///< by how much a device may exceed its share
};

/// Partitioning by Fiduccia and Mattheyses (19th Design Automation Conference, 1982) on the
/// hypergraph of tensors (hypergraph.h): the least bytes sent such that every device gets its share
/// of work and memory together (PartitionGraph::combined). Ignores precedence.
///
/// A pass moves every cell once: each time the free cell of the largest gain (bytes of nets that it
/// alone holds on its side minus bytes of nets wholly on its side) whose move keeps the balance, or
/// betters it; then all moves behind the best moment are undone. Passes repeat until none gains.
/// The balance is r W - s <= |A| <= r W + s, s the larger of the imbalance and the heaviest cell
/// (at most half a side). Gains lie in 4096 buckets, so of two gains in one bucket either may go
/// first; sums are exact.
///
/// Devices are halved recursively. A bisection is the best of four refined ones: the first units in
/// order of the graph, and sets grown breadth-first from random units. At the end every pair of
/// devices is refined in turn, which never makes the whole worse. Deterministic.
///
/// Throws ArgumentError for an imbalance out of range.
Assignment fm_partition(const PlacementSpace& space, const FmOptions& options = {});

}  // namespace trinity
