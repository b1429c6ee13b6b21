#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "base/collective.h"

namespace trinity {

class Cluster;
struct CollectiveCost;

/// What a library of collectives makes of a cluster's wires (NCCL, RCCL): it runs as many rings at
/// once as the links hold, pipelines chunks through rings and trees, has a second protocol for
/// small messages, and lets switches add up where they can.
///
/// With n members, N nodes of g (on average, where they differ), B1 what a
/// member sends inside its node, B2 what a node sends to the network, a1 and a2 the latencies of a
/// step, S bytes, a call of latency L and of W seconds on the wires takes
///
///   call_s + L + W + 2 sqrt(pipelining L W)                             in chunks, or
///   call_s + low_latency_hop L + W / low_latency_bandwidth              in small packets,
///
/// the less. The first is (sqrt(L) + sqrt(W))^2 for pipelining 1: the least over all numbers of
/// chunks of what it takes to pass them through L (Sanders, Speck, Traeff, Parallel Computing
/// 35(12), 2009, section 2). L and W of an all-reduce:
///
///   ring        2 (n - 1) steps, of which 2 N cross the network; 2 (n - 1)/n S / min(B1, B2), and
///               S / n / copy_bandwidth: the part that arrives last is copied where nothing is sent
///   tree        chains in nodes, a double binary tree between them (NCCL 2.4): 2 (g - 1) a1 +
///               2 log2(N) a2; S max(2 / B1, c / B2), c = 1 for two nodes, where every byte crosses
///               once each way, else 2
///   multicast   switches in nodes add up (NVLink SHARP), a tree between: multicast_s + 2 log2(N)
///               a2; S max((g + 1)/g / (multicast_bandwidth B1), c / B2): a member sends S and the
///               sum of its part, and receives as much
///   in_network  network switches add up (SHARP), chains in nodes: 2 (g - 1) a1 + 2 a2;
///               S max(2 / B1, 2 / B2): the ways up and down do not overlap
///
/// Rings carry out a reduce-scatter and an all-gather with half of both, a broadcast in n - 1 steps
/// with S / min(B1, B2) and nothing to copy; the other algorithms carry these out as the all-reduce
/// that does more. An all-to-all is a message to every other member: W is that of the plain algorithm
/// over exchange_bandwidth, and L one step for every kPeersAtOnce of them, in chunks; a member copies
/// the part that it keeps, S / n.
struct CollectiveLibrary {
  double call_s = 0;      ///< a call: launching it, and the members' meeting
  double pipelining = 0;  ///< how much of the steps' latency every chunk pays again, 0 to 4
  double low_latency_hop = 1;        ///< a step with small packets, in parts of the wire's latency
  double low_latency_bandwidth = 0;  ///< their bandwidth in parts of the wire's; 0: no such packets
  double copy_bandwidth = 0;         ///< bytes/s of a copy in a member's memory; 0: takes no time
  double exchange_bandwidth = 1;     ///< of all-to-alls, in parts of the wires' bandwidth
  double multicast_bandwidth = 0;    ///< of switches in nodes that add up, in parts of B1; 0: none
  double multicast_s = 0;            ///< their latency, up and down
  /// Maximum number of network cards that the rings of one node use.
  double rails = std::numeric_limits<double>::infinity();
  bool in_network = false;  ///< whether network switches add up
  bool trees = true;        ///< whether automatic may take the tree (NCCL_ALGO=Ring: it may not)
  /// B1 of a group that has some of its nodes' devices, in parts of that of all, above 0 to 1: other
  /// groups run beside it.
  double shared_bandwidth = 1;

  bool operator==(const CollectiveLibrary&) const = default;
};

/// Peers whose messages a kernel sends and receives at a time (NCCL 2.22 on, src/include/device.h:
/// NCCL_MAX_DEV_WORK_P2P_PER_BATCH).
inline constexpr double kPeersAtOnce = 8;

/// What a library sees of the members of a collective.
struct CollectiveMembers {
  double size = 1;              ///< n
  double nodes = 1;             ///< N
  double node_latency_s = 0;    ///< a1
  double node_bandwidth = std::numeric_limits<double>::infinity();     ///< B1
  double network_latency_s = 0; ///< a2
  double network_bandwidth = std::numeric_limits<double>::infinity();  ///< B2 of the cards in use
};

/// Throws ArgumentError naming `owner` and the field that is out of its range.
void check_library(std::string_view owner, const CollectiveLibrary& library);

/// Whether the library carries it out so: ring always, multicast and in_network where there are
/// switches for it, in_network between nodes only; of an all-to-all none of these but the ring.
bool library_applies(const CollectiveLibrary& library, const CollectiveMembers& members,
                     CollectiveKind kind, CollectiveAlgorithm algorithm);

/// The time by one of ring, tree, multicast, in_network, or the least of those that apply
/// (automatic). Not of an all-to-all. sent_bytes is not filled.
CollectiveCost library_cost(const CollectiveLibrary& library, const CollectiveMembers& members,
                            CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes);

/// Seconds in which each of `members` copies its part of `bytes`.
double copy_s(const CollectiveLibrary& library, double members, double bytes);

/// A call whose steps take latency_s and whose bytes take transfer_s, in chunks.
CollectiveCost in_chunks(const CollectiveLibrary& library, double latency_s, double transfer_s);

/// What rings and trees over the links that join members directly carry together: the least cut of
/// these links (by Edmonds' theorem as many trees as a cut has links run at once: Wang et al.,
/// "Blink", MLSys 2020, section 3). 0 where some are joined only through others or through switches.
double direct_bandwidth(const Cluster& cluster, std::span<const int32_t> members);

}  // namespace trinity
