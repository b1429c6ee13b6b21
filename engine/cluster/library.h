#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "base/collective.h"

namespace trinity {

class Cluster;
struct CollectiveCost;

/// Model of a collective library (NCCL, RCCL): it runs as many rings at once as the links allow,
/// pipelines chunks through rings and trees, has a second protocol for small messages, and uses
/// switches that reduce.
///
/// Notation: n members, N nodes of g members (on average), B1 bandwidth of a member inside its
/// node, B2 bandwidth of a node to the network, a1 and a2 latencies of a step, S bytes. A call of
/// latency L with W seconds of transfer takes the smaller of
///
///   call_s + L + W + 2 sqrt(pipelining L W)                             in chunks, or
///   call_s + low_latency_hop L + W / low_latency_bandwidth              in small packets,
///
/// The first is (sqrt(L) + sqrt(W))^2 for pipelining 1: the minimum over all numbers of chunks of
/// the time to pass them through L (Sanders, Speck, Traeff, Parallel Computing 35(12), 2009,
/// section 2). L and W of an all-reduce:
///
///   ring        2 (n - 1) steps, of which 2 N cross the network; 2 (n - 1)/n S / min(B1, B2), and
///               S / n / copy_bandwidth: the last part to arrive is copied while nothing is sent
///   tree        chains in nodes, a double binary tree between them (NCCL 2.4): 2 (g - 1) a1 + 2
///               log2(N) a2; S max(2 / B1, c / B2), c = 1 for two nodes, where every byte crosses
///               once each way, else 2
///   multicast   switches in nodes reduce (NVLink SHARP), a tree between nodes: multicast_s + 2
///               log2(N) a2; S max((g + 1)/g / (multicast_bandwidth B1), c / B2): a member sends S
///               and the reduction of its part, and receives the same
///   in_network  network switches reduce (SHARP), chains in nodes: 2 (g - 1) a1 + 2 a2; S max(2 /
///               B1, 2 / B2): the ways up and down do not overlap
///
/// Rings carry out a reduce-scatter and an all-gather with half of both, a broadcast in n - 1 steps
/// with S / min(B1, B2) and without a copy; the other algorithms carry these out as the all-reduce
/// that contains them. An all-to-all is a message to every other member: W as for the plain
/// algorithm over exchange_bandwidth, and L one step per kPeersAtOnce members, in chunks; a member
/// copies the part that it keeps, S / n. A dispatcher of tokens (collectives.h) has chunks of its own between nodes.
struct CollectiveLibrary {
  double call_s = 0;      ///< per call: launch and rendezvous of the members
  double pipelining = 0;  ///< fraction of the steps' latency that each chunk pays again, 0 to 4
  double low_latency_hop = 1;        ///< step latency with small packets, relative to the link's
  double low_latency_bandwidth = 0;  ///< their bandwidth relative to the link's; 0: not available
  double copy_bandwidth = 0;         ///< bytes/s of a copy in a member's memory; 0: free
  double exchange_bandwidth = 1;     ///< of all-to-alls, relative to the links' bandwidth
  double multicast_bandwidth = 0;    ///< of node switches that reduce, relative to B1; 0: none
  double multicast_s = 0;            ///< their latency, up and down
  /// Maximum number of NICs that the rings of one node use.
  double rails = std::numeric_limits<double>::infinity();
  bool in_network = false;  ///< network switches reduce
  bool sends_tokens_once = false;  ///< all-to-alls of experts by a dispatcher: collectives.h
  bool trees = true;        ///< automatic may use the tree (false: NCCL_ALGO=Ring)
  /// Fraction (0, 1] of B1 that a group with only some of its nodes' devices gets, because other
  /// groups run at the same time.
  double shared_bandwidth = 1;

  bool operator==(const CollectiveLibrary&) const = default;
};

/// Peers whose messages a kernel sends and receives at a time (NCCL 2.22 on, src/include/device.h:
/// NCCL_MAX_DEV_WORK_P2P_PER_BATCH).
inline constexpr double kPeersAtOnce = 8;

/// Properties of a collective's members that the library model uses.
struct CollectiveMembers {
  double size = 1;              ///< n
  double nodes = 1;             ///< N
  double node_latency_s = 0;    ///< a1
  double node_bandwidth = std::numeric_limits<double>::infinity();     ///< B1
  double network_latency_s = 0; ///< a2
  double network_bandwidth = std::numeric_limits<double>::infinity();  ///< B2 of the NICs in use
};

/// Throws ArgumentError that names `owner` and the field that is out of range.
void check_library(std::string_view owner, const CollectiveLibrary& library);

/// True if the library supports the algorithm: ring always; multicast and in_network if there are
/// switches for it, in_network only between nodes; for an all-to-all only ring.
bool library_applies(const CollectiveLibrary& library, const CollectiveMembers& members,
                     CollectiveKind kind, CollectiveAlgorithm algorithm);

/// Time by one of ring, tree, multicast, in_network, or the minimum over those that apply
/// (automatic). Not for an all-to-all. sent_bytes is not filled.
CollectiveCost library_cost(const CollectiveLibrary& library, const CollectiveMembers& members,
                            CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes);

/// Seconds in which each of `members` copies its part of `bytes`.
double copy_s(const CollectiveLibrary& library, double members, double bytes);

/// A call with latency latency_s and transfer time transfer_s, in chunks.
CollectiveCost in_chunks(const CollectiveLibrary& library, double latency_s, double transfer_s);

/// Total bandwidth of rings and trees over links that join members directly: the minimum cut of
/// these links (by Edmonds' theorem that many trees run at once: Wang et al., "Blink", MLSys 2020,
/// section 3). 0 if some members are joined only through others or through switches.
double direct_bandwidth(const Cluster& cluster, std::span<const int32_t> members);

}  // namespace trinity
