#pragma once

#include <limits>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

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

/// What of a group of devices decides what collectives between them cost. Collectives on equal groups
/// cost the same.
class CollectiveGroup {
 public:
  int32_t size() const { return size_; }
  /// Whether an algorithm carries out a collective here (see collective_cost()).
  bool applies(CollectiveKind kind, CollectiveAlgorithm algorithm) const;
  /// As collective_cost(), for an algorithm that applies or automatic. Allocates nothing.
  CollectiveCost cost(CollectiveKind kind, CollectiveAlgorithm algorithm, int64_t bytes) const;

  bool operator==(const CollectiveGroup&) const = default;
  uint64_t hash() const;  ///< equal for equal groups

 private:
  friend class CollectiveGroups;
  friend class CollectivePricing;

  /// A step's latency and a device's bandwidth.
  struct Wires {
    double latency_s = 0;
    double bandwidth = std::numeric_limits<double>::infinity();
    bool operator==(const Wires&) const = default;
  };
  /// What rounds take in which every member of a group sends to every other one, round i to the one
  /// i places on, in all groups at once: a round's latency, and for each byte between two members
  /// the seconds of the channel that most pairs share.
  struct Exchange {
    double latency_s = 0, s_per_byte = 0;
    bool operator==(const Exchange&) const = default;
  };

  int32_t size_ = 0, nodes_ = 0;
  int32_t most_ = 0, least_ = 0;  // members of a node
  Wires flat_;                    // of the ring over all
  Wires inner_;                   // of a ring in every node, all at once
  Wires rails_;                   // of rings between nodes, one a member of the largest
  Wires leaders_;                 // of the ring over the nodes' first members
  // Of all rails that leave a node, over the network cards that a library uses.
  double out_ = std::numeric_limits<double>::infinity();
  // Where the cluster has a library: of a chain in every node, all at once, and what the links that
  // join a node's members directly carry together, the least of all nodes.
  const CollectiveLibrary* library_ = nullptr;
  Wires chains_;
  double direct_ = 0;
  bool shares_ = false;  // whether nodes have other devices, too
  bool exchanges_ = false;        // whether those below are known
  Exchange all_, inside_, between_;
};

/// Finds the groups of a cluster and keeps them: nothing is allocated for one that was asked for
/// before. For one thread.
class CollectiveGroups {
 public:
  explicit CollectiveGroups(const Cluster& cluster);

  /// devices: ascending, each once. exchanges: whether all-to-alls are to be priced. The reference
  /// holds until the next call.
  const CollectiveGroup& find(std::span<const int32_t> devices, bool exchanges);
  /// The same without keeping it.
  CollectiveGroup make(std::span<const int32_t> devices, bool exchanges);

 private:
  static constexpr size_t kMostKept = size_t{1} << 20;  ///< devices of all groups kept

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
  std::vector<int32_t> node_of_;    // per device
  std::vector<int32_t> node_size_;  // per node: its devices
  std::unordered_map<std::vector<int32_t>, CollectiveGroup, Hash, Equal> kept_;
  size_t kept_devices_ = 0;
  std::vector<int32_t> members_;     // of the group at hand, node after node
  std::vector<size_t> node_first_;   // where each begins, and the end
  std::vector<int32_t> node_count_;  // per node: its members; 0 but while sorting
  std::vector<int32_t> nodes_;       // in order of their first devices
  std::vector<int32_t> crossings_;   // per channel; 0 but while a group is made
  std::vector<int32_t> crossed_;     // channels with crossings
  std::vector<int32_t> own_;         // per channel; 0 but while cards of a node are counted
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
