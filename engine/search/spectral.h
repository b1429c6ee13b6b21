#pragma once

#include "search/placement_space.h"

namespace trinity {

struct SpectralOptions {
  double imbalance = 0.05;  ///< by how much a device may exceed its share
};

/// Recursive spectral bisection (Pothen, Simon and Liou, SIAM J. Matrix Anal. Appl. 11, 1990; with
/// the normalised Laplacian of Shi and Malik, IEEE PAMI 22, 2000): sorts units by the eigenvector
/// of the second smallest eigenvalue of I - D^-1/2 A D^-1/2, A the bytes between units, divided by
/// D^1/2, and cuts the order where the fewest bytes cross among all places that give the first
/// devices their share of work and memory together (PartitionGraph::combined), within the
/// imbalance or the heaviest unit. Ignores precedence.
///
/// The eigenvector is that of inverse power iteration from the units' positions in the graph, with
/// conjugate gradients; at most 30 iterations of at most 300 steps each, so on long graphs it is
/// approximate. Deterministic.
///
/// Throws ArgumentError for an imbalance outside (0, 10].
Assignment spectral_partition(const PlacementSpace& space, const SpectralOptions& options = {});

}  // namespace trinity
