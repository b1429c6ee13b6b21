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

/// The time of a collective over `bytes` (the full size of the tensor; of an all-to-all what one
/// member has) between distinct `devices`. All-reduces, rings and broadcasts in a ring follow
/// manual/simulator.md "Collectives". Rings run in order of device number; a ring's latency is the
/// largest, its bandwidth the least over its edges, where a link (or switch) that several of its
/// edges cross is divided among them.
///
/// The other collectives by the same algorithms, n bytes on p devices in N nodes of g (a1, B1
/// inside, a2, B2 between nodes):
///   reduce-scatter, all-gather   halving-doubling and hierarchical: the half of the all-reduce
///     that they are (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005), (g-1) a1 + (g-1)/g n/B1 +
///     (N-1) a2 + (N-1)/N (n/g)/B2; tree: both ways' latency, one way's bytes; leader: shares to
///     the leader (g-1)/p n/B1, between leaders all but the least node's, and n/B1 to everyone
///   broadcast   halving-doubling and hierarchical: scatter, then all-gather (same source), in
///     between a chain of n/g between nodes; tree and leader: the way down, as a chain between
///     leaders
///   all-to-all  ring: p - 1 rounds, in each of which all send to the member as many places on
///     (same source, pairwise exchange); every channel carries what all pairs send over it.
///     Hierarchical: inside nodes by the member number of the receiver, then between members of one
///     number (Rajbhandari et al., DeepSpeed-MoE, ICML 2022)
/// So with every algorithm, and hence with the fastest, a reduce-scatter, an all-gather or a
/// broadcast takes no longer than an all-reduce, which does all that they do, and reduce-scatter
/// and all-gather together no less, since they are one (Traeff, Gropp, Thakur, Self-consistent MPI
/// performance guidelines, IEEE TPDS 21(5), 2010).
///
/// A cluster with a library of collectives (Cluster::library) has ring, tree and automatic from that,
/// and multicast and in_network beside them: cluster/library.h.
///
/// One device costs nothing. Throws ArgumentError for an algorithm that does not apply:
/// halving-doubling, tree and leader to an all-to-all, halving-doubling over a number that is no
/// power of two, hierarchical over nodes with different numbers of members, multicast and in_network
/// where no switches of a library add up.
CollectiveCost collective_cost(const Cluster& cluster, CollectiveKind kind,
                               CollectiveAlgorithm algorithm, std::span<const int32_t> devices,
                               int64_t bytes);

}  // namespace trinity
