#pragma once

#include <limits>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/collective.h"
#include "base/token_routing.h"
#include "cluster/cluster.h"

namespace trinity {

/// Cost of a collective on given devices.
struct CollectiveCost {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;  ///< the algorithm chosen
  double latency_s = 0;   ///< part that does not depend on the size
  double transfer_s = 0;  ///< bytes / bandwidth
  double sent_bytes = 0;  ///< by every member, and received by every member

  double time_s() const { return latency_s + transfer_s; }
};

/// All properties of a group of devices that collective costs depend on. Collectives on equal
/// groups cost the same. Immutable.
class CollectiveGroup {
 public:
  int32_t size() const { return size_; }
  /// True if the algorithm can carry out the collective on this group (see collective_cost()).
  bool applies(CollectiveKind kind, CollectiveAlgorithm algorithm) const;
  /// As collective_cost(), for an algorithm that applies or automatic. A routing counts, and the library's call with
  /// it, if the library sends tokens once and the group has several nodes of equal numbers of members. Inside nodes
  /// members get every copy then, as in an all-to-all of one node, so that more nodes never take less time. Does not
  /// allocate.
  CollectiveCost cost(CollectiveKind kind, CollectiveAlgorithm algorithm, int64_t bytes,
                      const TokenRouting& routing = {}) const;

  bool operator==(const CollectiveGroup&) const = default;
  uint64_t hash() const;  ///< equal groups have equal hashes

 private:
  friend class CollectiveGroups;
  friend class CollectivePricing;

  /// Latency of a step and bandwidth of a device.
  struct Wires {
    double latency_s = 0;
    double bandwidth = std::numeric_limits<double>::infinity();
    bool operator==(const Wires&) const = default;
  };
  /// Pairwise exchange: in round i every member sends to the one i places on, in all groups at
  /// once. Latency of a round; seconds per byte (between two members) on the channel that the most
  /// pairs share.
  struct Exchange {
    double latency_s = 0, s_per_byte = 0;
    bool operator==(const Exchange&) const = default;
  };

  int32_t size_ = 0, nodes_ = 0;
  int32_t most_ = 0, least_ = 0;  // largest and smallest number of members per node
  Wires flat_;                    // ring over all members
  Wires inner_;                   // a ring in every node, all at once
  Wires rails_;                   // rings between nodes, one per member of the largest
  Wires leaders_;                 // ring over the nodes' first members
  // Total bandwidth out of a node over the NICs that the library uses.
  double out_ = std::numeric_limits<double>::infinity();
  // With a library: a chain in every node, all at once; and the total bandwidth of links that join
  // a node's members directly, minimum over nodes.
  const CollectiveLibrary* library_ = nullptr;
  Wires chains_;
  double direct_ = 0;
  bool shares_ = false;  // nodes also have other devices
  bool exchanges_ = false;        // the fields below are filled
  Exchange all_, inside_, between_;
};

/// Cache of groups of a cluster; a known group allocates nothing. Not thread-safe.
class CollectiveGroups {
 public:
  explicit CollectiveGroups(const Cluster& cluster);

  /// devices: ascending, distinct. exchanges: all-to-alls will be evaluated. The reference is valid
  /// until the next call.
  const CollectiveGroup& find(std::span<const int32_t> devices, bool exchanges);
  /// The same without caching it.
  CollectiveGroup make(std::span<const int32_t> devices, bool exchanges);

 private:
  static constexpr size_t kMostKept = size_t{1} << 20;  ///< total devices of all cached groups

  using Devices = std::span<const int32_t>;
  struct Hash {
    using is_transparent = void;
    size_t operator()(Devices devices) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(Devices a, Devices b) const;
  };

  void sort_by_node(Devices devices);
  Devices node(size_t n) const {
    return Devices(members_).subspan(node_first_[n], node_first_[n + 1] - node_first_[n]);
  }
  void cross(int32_t from, int32_t to, double& latency_s);
  void add_ring(Devices ring, CollectiveGroup::Wires& worst);
  void add_rails(size_t count, CollectiveGroup::Wires& worst);
  std::pair<int32_t, int32_t> rail(size_t i, size_t n) const;
  void count_own(size_t count, size_t n, int32_t step);
  size_t cards(size_t count, size_t n);
  double limited_out(size_t count, double most);
  void settle(CollectiveGroup::Wires& worst);
  template <class Member>
  void add_exchange(size_t count, Member member, CollectiveGroup::Exchange& all);
  void settle(CollectiveGroup::Exchange& all);
  void add_exchanges(CollectiveGroup& group, Devices devices);
  void add_library(CollectiveGroup& group);

  const Cluster& cluster_;
  const std::vector<int32_t>& node_of_;  // [device]
  std::vector<int32_t> node_size_;  // [node]: number of devices
  std::unordered_map<std::vector<int32_t>, CollectiveGroup, Hash, Equal> kept_;
  size_t kept_devices_ = 0;
  std::vector<int32_t> members_;     // of the current group, node after node
  std::vector<size_t> node_first_;   // start of each node, and the end
  std::vector<int32_t> node_count_;  // [node]: members; 0 except while sorting
  std::vector<int32_t> nodes_;       // in order of their first devices
  std::vector<int32_t> crossings_;   // [channel]; 0 except while a group is made
  std::vector<int32_t> crossed_;     // channels with crossings
  std::vector<int32_t> own_;         // [channel]; 0 except while a node's NICs are counted
};

/// Time of a collective over `bytes` (full size of the tensor; for an all-to-all the bytes of one
/// member) between distinct `devices`. All-reduces and ring broadcasts: manual/simulator.md
/// "Collectives". Rings run in order of device number. A ring's latency is the maximum and its
/// bandwidth the minimum over its edges; a link (or switch) that several edges cross is divided
/// among them.
///
/// The other collectives use the same algorithms. With n bytes on p devices in N nodes of g, and
/// (a1, B1) inside, (a2, B2) between nodes:
///   reduce-scatter, all-gather   halving-doubling and hierarchical: half of the all-reduce
///               (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005), (g-1) a1 + (g-1)/g n/B1 +
///               (N-1) a2 + (N-1)/N (n/g)/B2; tree: latency of both ways, bytes of one way; leader:
///               shards to the leader (g-1)/p n/B1, between leaders all but the smallest node's,
///               and n/B1 to everyone
///   broadcast   halving-doubling and hierarchical: scatter, then all-gather (same source), with a
///               chain of n/g between nodes in between; tree and leader: the way down, as a chain
///               between leaders
///   all-to-all  ring: p - 1 rounds, in round i everyone sends to the member i places on (same
///               source, pairwise exchange); every channel carries what all pairs send over it.
///               Hierarchical: inside nodes by the member number of the receiver, then between
///               members of one number (Rajbhandari et al., DeepSpeed-MoE, ICML 2022)
/// With a routing, a dispatcher of tokens carries out the all-to-all (DeepEP: Zhao et al., "Insights into DeepSeek-V3",
/// ISCA 2025, section 4.3): `bytes` has all copies of a member's tokens, of which each is sent once to every node that
/// has experts of it, to the member of the sender's number, and from there once to every member that has, while the
/// next tokens arrive. So the time is the greater of both ways, between nodes without the library's exchange_bandwidth,
/// call and chunks.
/// Consequently, with every algorithm and with the fastest one, a reduce-scatter, all-gather or
/// broadcast takes at most as long as an all-reduce, and reduce-scatter plus all-gather at least as
/// long (Traeff, Gropp, Thakur, Self-consistent MPI performance guidelines, IEEE TPDS 21(5), 2010).
///
/// With a collective library (Cluster::library), ring, tree and automatic follow it, and it adds
/// multicast and in_network: cluster/library.h.
///
/// One device costs nothing. Throws ArgumentError for a routing of another collective or of more experts than there are
/// (in one group or all), and for an algorithm that does not apply:
/// halving-doubling, tree and leader for an all-to-all, halving-doubling for a number that is not a
/// power of two, hierarchical for nodes with different numbers of members, multicast and in_network
/// without switches that reduce.
CollectiveCost collective_cost(const Cluster& cluster, CollectiveKind kind,
                               CollectiveAlgorithm algorithm, std::span<const int32_t> devices,
                               int64_t bytes, const TokenRouting& routing = {});

}  // namespace trinity
