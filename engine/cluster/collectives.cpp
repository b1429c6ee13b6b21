#include "cluster/collectives.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "cluster/library.h"

namespace trinity {
namespace {

using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;

/// Devices that form a ring, or that sit in one node.
using Group = std::vector<int32_t>;

/// A step's latency and a device's bandwidth.
struct Wires {
  double latency_s = 0;
  double bandwidth = std::numeric_limits<double>::infinity();
};

/// Calls visit(from, to) for every edge of a ring, or of a chain, which lacks the edge back.
template <class Visit>
void for_each_edge(const Group& ring, bool chain, Visit visit) {
  const size_t edges = chain ? ring.size() - 1 : ring.size();
  for (size_t i = 0; i < edges && ring.size() > 1; ++i)
    visit(ring[i], ring[(i + 1) % ring.size()]);
}

/// The worst wires over rings that run at once: what several edges cross is divided among them.
Wires worst_wires(const Cluster& cluster, const std::vector<Group>& rings, bool chain = false) {
  Wires worst;
  std::vector<int32_t> crossings(cluster.channels().size(), 0);
  for (const Group& ring : rings)
    for_each_edge(ring, chain, [&](int32_t from, int32_t to) {
      worst.latency_s = std::max(worst.latency_s, cluster.latency_s(from, to));
      for (const int32_t channel : cluster.route(from, to)) ++crossings[channel];
    });
  for (size_t c = 0; c < crossings.size(); ++c)
    if (crossings[c] > 0)
      worst.bandwidth =
          std::min(worst.bandwidth, cluster.channels()[c].bandwidth_bytes_per_s / crossings[c]);
  return worst;
}

/// What rounds take in which every member of a group sends to every other one, round i to the one i
/// places on, in all groups at once: a round's latency, and for each byte between two members the
/// seconds of the channel that most pairs share.
struct Exchange {
  double latency_s = 0, s_per_byte = 0;
};

Exchange exchange(const Cluster& cluster, const std::vector<Group>& groups) {
  Exchange all;
  std::vector<int32_t> crossings(cluster.channels().size(), 0);
  for (const Group& group : groups)
    for (const int32_t from : group)
      for (const int32_t to : group) {
        if (from == to) continue;
        all.latency_s = std::max(all.latency_s, cluster.latency_s(from, to));
        for (const int32_t channel : cluster.route(from, to)) ++crossings[channel];
      }
  for (size_t c = 0; c < crossings.size(); ++c)
    all.s_per_byte =
        std::max(all.s_per_byte, crossings[c] / cluster.channels()[c].bandwidth_bytes_per_s);
  return all;
}

/// One collective to be priced by several algorithms.
class Pricing {
 public:
  Pricing(const Cluster& cluster, Kind kind, std::span<const int32_t> devices, int64_t bytes)
      : cluster_(cluster),
        kind_(kind),
        devices_(devices.begin(), devices.end()),
        bytes_(static_cast<double>(bytes)) {
    std::sort(devices_.begin(), devices_.end());
    std::map<std::string_view, size_t> known;
    for (const int32_t device : devices_) {
      const auto [entry, added] = known.emplace(cluster.device(device).node, nodes_.size());
      if (added) nodes_.emplace_back();
      nodes_[entry->second].push_back(device);
    }
    flat_ = worst_wires(cluster, {devices_});
  }

  /// Throws ArgumentError unless the algorithm applies.
  void require(Algorithm algorithm) const {
    const auto name = collective_algorithm_name(algorithm);
    if (switches_add_up(algorithm) && !by_library(algorithm)) refuse_switches(name);
    if (!carries_out(algorithm))
      throw ArgumentError(fmt::format(
          "collective algorithm '{}' does not carry out {}, expected all_reduce, reduce_scatter, "
          "all_gather or broadcast",
          name, collective_kind_name(kind_)));
    if (algorithm == Algorithm::halving_doubling && !power_of_two())
      throw ArgumentError(fmt::format(
          "collective algorithm '{}' expects a power of two of devices, got {}", name, size()));
    if (algorithm == Algorithm::hierarchical && !members_per_node()) refuse_nodes(name);
  }

  bool applies(Algorithm algorithm) const {
    if (switches_add_up(algorithm)) return by_library(algorithm);
    return carries_out(algorithm) && (algorithm != Algorithm::halving_doubling || power_of_two()) &&
           (algorithm != Algorithm::hierarchical || members_per_node());
  }

  CollectiveCost price(Algorithm algorithm) const {
    if (size() > 1 && by_library(algorithm)) return price_by_library(algorithm);
    return price_plainly(algorithm);
  }

 private:
  CollectiveCost price_plainly(Algorithm algorithm) const {
    CollectiveCost cost;
    cost.algorithm = algorithm;
    if (size() == 1) return cost;
    switch (algorithm) {
      case Algorithm::automatic:
        return fastest();
      case Algorithm::ring:
        ring(cost);
        break;
      case Algorithm::halving_doubling:
        halving_doubling(cost);
        break;
      case Algorithm::tree:
        tree(cost);
        break;
      case Algorithm::hierarchical:
        hierarchical(cost);
        break;
      case Algorithm::leader:
        leader(cost);
        break;
      case Algorithm::multicast:
      case Algorithm::in_network:
        break;  // only by a library
    }
    cost.sent_bytes = sent_bytes();
    return cost;
  }

  size_t size() const { return devices_.size(); }
  bool power_of_two() const { return std::has_single_bit(size()); }
  /// (p - 1) / p
  static double part(size_t p) { return static_cast<double>(p - 1) / static_cast<double>(p); }
  /// How often the data go round the ring.
  double ring_trips() const { return kind_ == Kind::all_reduce ? 2 : 1; }
  /// One of the halves of an all-reduce.
  bool half() const { return kind_ == Kind::reduce_scatter || kind_ == Kind::all_gather; }
  bool broadcast() const { return kind_ == Kind::broadcast; }
  double sent_bytes() const { return ring_trips() * (broadcast() ? 1 : part(size())) * bytes_; }

  static bool switches_add_up(Algorithm algorithm) {
    return algorithm == Algorithm::multicast || algorithm == Algorithm::in_network;
  }

  /// Whether the cluster's library prices this algorithm; the others keep the plain formulas.
  bool by_library(Algorithm algorithm) const {
    const auto& library = cluster_.library();
    if (!library) return false;
    if (kind_ == Kind::all_to_all) return !switches_add_up(algorithm);
    return algorithm == Algorithm::automatic || algorithm == Algorithm::ring ||
           algorithm == Algorithm::tree ||
           (switches_add_up(algorithm) &&
            library_applies(*library, library_members(), kind_, algorithm));
  }

  [[noreturn]] void refuse_switches(const char* algorithm) const {
    throw ArgumentError(fmt::format(
        "collective algorithm '{}' expects members whose switches add up, by `collectives` of the "
        "cluster, and no all_to_all; got {} over {} devices in {} nodes of cluster '{}'",
        algorithm, collective_kind_name(kind_), size(), nodes_.size(), cluster_.name()));
  }

  CollectiveCost price_by_library(Algorithm algorithm) const {
    CollectiveCost cost;
    if (kind_ == Kind::all_to_all) {
      const auto plain = price_plainly(algorithm);
      cost = in_chunks(*cluster_.library(), plain.latency_s, plain.transfer_s);
      cost.algorithm = plain.algorithm;
    } else {
      cost = library_cost(*cluster_.library(), library_members(), kind_, algorithm, bytes_);
    }
    cost.sent_bytes = sent_bytes();
    return cost;
  }

  /// Where nodes have different sizes every member counts as a node.
  CollectiveMembers library_members() const {
    CollectiveMembers members;
    members.size = members.nodes = static_cast<double>(size());
    const auto g = members_per_node();
    if (!g) {
      members.network_latency_s = flat_.latency_s;
      members.network_bandwidth = flat_.bandwidth;
      return members;
    }
    members.nodes = static_cast<double>(nodes_.size());
    if (*g > 1) {
      const Wires inner = worst_wires(cluster_, nodes_, broadcast());
      double direct = std::numeric_limits<double>::infinity();
      for (const Group& node : nodes_) direct = std::min(direct, direct_bandwidth(cluster_, node));
      members.node_latency_s = inner.latency_s;
      members.node_bandwidth = std::max(inner.bandwidth, direct);
    }
    if (nodes_.size() > 1) {
      const Wires outer = outer_wires(*g);
      members.network_latency_s = outer.latency_s;
      members.network_bandwidth = outer.bandwidth * static_cast<double>(*g);
    }
    return members;
  }

  /// What sums over all and hands out carries out any collective that does less.
  bool carries_out(Algorithm algorithm) const {
    return kind_ != Kind::all_to_all || algorithm == Algorithm::automatic ||
           algorithm == Algorithm::ring || algorithm == Algorithm::hierarchical;
  }

  /// Members of every node, when all have equally many.
  std::optional<size_t> members_per_node() const {
    for (const Group& node : nodes_)
      if (node.size() != nodes_[0].size()) return std::nullopt;
    return nodes_[0].size();
  }

  [[noreturn]] void refuse_nodes(const char* algorithm) const {
    const auto other = *std::find_if(nodes_.begin(), nodes_.end(), [&](const Group& node) {
      return node.size() != nodes_[0].size();
    });
    throw ArgumentError(fmt::format(
        "collective algorithm '{}' expects as many devices in every node, got {} in node '{}' and "
        "{} in node '{}'",
        algorithm, nodes_[0].size(), cluster_.device(nodes_[0][0]).node, other.size(),
        cluster_.device(other[0]).node));
  }

  /// The least time of all that apply; the first in order where equal.
  CollectiveCost fastest() const {
    CollectiveCost best = price_plainly(Algorithm::ring);
    for (const auto algorithm : {Algorithm::halving_doubling, Algorithm::tree,
                                 Algorithm::hierarchical, Algorithm::leader}) {
      if (!applies(algorithm)) continue;
      const auto cost = price_plainly(algorithm);
      if (cost.time_s() < best.time_s()) best = cost;
    }
    return best;
  }

  void ring(CollectiveCost& cost) const {
    if (kind_ == Kind::all_to_all) return add_exchange(cost, {devices_});
    const double whole = broadcast() ? 1 : part(size());
    cost.latency_s = ring_trips() * static_cast<double>(size() - 1) * flat_.latency_s;
    cost.transfer_s = ring_trips() * whole * bytes_ / flat_.bandwidth;
  }

  /// A broadcast scatters by halving, then gathers by doubling.
  void halving_doubling(CollectiveCost& cost) const {
    const double trips = half() ? 1 : 2;
    cost.latency_s = trips * static_cast<double>(std::bit_width(size()) - 1) * flat_.latency_s;
    cost.transfer_s = trips * part(size()) * bytes_ / flat_.bandwidth;
  }

  /// Nodes of different sizes: as if every member were a node. An all-gather's shares climb and
  /// come down like an all-reduce's sums, but no edge carries a share both ways; a broadcast comes
  /// down.
  void tree(CollectiveCost& cost) const {
    const auto equal = members_per_node();
    const double inside = equal ? static_cast<double>(*equal - 1) * inner_wires().latency_s : 0;
    const double outside = equal ? outer_wires(*equal).latency_s : flat_.latency_s;
    const size_t nodes = equal ? nodes_.size() : size();
    const double ways = broadcast() ? 1 : 2, copies = kind_ == Kind::all_reduce ? 2 : 1;
    cost.latency_s = ways * (inside + static_cast<double>(std::bit_width(nodes - 1)) * outside);
    cost.transfer_s = copies * bytes_ / (0.9 * flat_.bandwidth);
  }

  /// A broadcast scatters in the first node, goes on in a chain for every share, and gathers in the
  /// nodes.
  void hierarchical(CollectiveCost& cost) const {
    if (kind_ == Kind::all_to_all) {
      add_exchange(cost, nodes_);
      return add_exchange(cost, rails(nodes_[0].size()));
    }
    const size_t g = nodes_[0].size();
    const Wires inner = inner_wires(), outer = outer_wires(g);
    const double share = bytes_ / static_cast<double>(g);
    const double inside = half() ? 1 : 2, outside = kind_ == Kind::all_reduce ? 2 : 1;
    const double whole = broadcast() ? 1 : part(nodes_.size());
    cost.latency_s = inside * static_cast<double>(g - 1) * inner.latency_s +
                     outside * static_cast<double>(nodes_.size() - 1) * outer.latency_s;
    cost.transfer_s =
        inside * part(g) * bytes_ / inner.bandwidth + outside * whole * share / outer.bandwidth;
  }

  /// The largest node sets the pace inside. An all-gather brings the shares of a node to its
  /// leader, who hands out all of them in the end; a reduce-scatter is the same backwards. Between
  /// leaders every link carries all shares but those of the node that it leads to.
  void leader(CollectiveCost& cost) const {
    size_t g = 1, least = size();
    for (const Group& node : nodes_) {
      g = std::max(g, node.size());
      least = std::min(least, node.size());
    }
    const Wires inner = inner_wires(), outer = outer_wires(1);
    const double members = static_cast<double>(size());
    const double inside = broadcast() ? 1 : 2, outside = kind_ == Kind::all_reduce ? 2 : 1;
    const double others = broadcast() ? 1
                          : half()    ? static_cast<double>(size() - least) / members
                                      : part(nodes_.size());
    cost.latency_s = inside * static_cast<double>(g - 1) * inner.latency_s +
                     outside * static_cast<double>(nodes_.size() - 1) * outer.latency_s;
    cost.transfer_s = outside * bytes_ / inner.bandwidth;
    if (half())
      cost.transfer_s += static_cast<double>(g - 1) / members * bytes_ / inner.bandwidth;
    cost.transfer_s += outside * others * bytes_ / outer.bandwidth;
  }

  /// All-to-alls of bytes_ in every group, at once.
  void add_exchange(CollectiveCost& cost, const std::vector<Group>& groups) const {
    const Exchange all = exchange(cluster_, groups);
    const auto members = static_cast<double>(groups[0].size());
    cost.latency_s += (members - 1) * all.latency_s;
    cost.transfer_s += bytes_ / members * all.s_per_byte;
  }

  /// A ring in every node, all at once.
  Wires inner_wires() const { return worst_wires(cluster_, nodes_); }

  /// The first `count` members of the nodes, rail i joining member i of every node.
  std::vector<Group> rails(size_t count) const {
    std::vector<Group> rails(count);
    for (size_t i = 0; i < count; ++i)
      for (const Group& node : nodes_) rails[i].push_back(node[i]);
    return rails;
  }

  /// Rings between the nodes, all at once.
  Wires outer_wires(size_t count) const { return worst_wires(cluster_, rails(count)); }

  const Cluster& cluster_;
  Kind kind_;
  Group devices_;
  double bytes_;
  std::vector<Group> nodes_;  // in order of their first devices
  Wires flat_;                // of the ring over all devices
};

void check_arguments(const Cluster& cluster, std::span<const int32_t> devices, int64_t bytes) {
  if (devices.empty()) throw ArgumentError("a collective needs at least one device");
  if (bytes < 0)
    throw ArgumentError(fmt::format("a collective's bytes must not be negative, got {}", bytes));
  std::set<int32_t> seen;
  for (const int32_t device : devices) {
    if (device < 0 || device >= cluster.device_count())
      throw ArgumentError(fmt::format("a collective names device {}, expected 1 to {}", device + 1,
                                      cluster.device_count()));
    if (!seen.insert(device).second)
      throw ArgumentError(
          fmt::format("a collective names device '{}' twice", cluster.device(device).name));
  }
}

}  // namespace

CollectiveCost collective_cost(const Cluster& cluster, CollectiveKind kind,
                               CollectiveAlgorithm algorithm, std::span<const int32_t> devices,
                               int64_t bytes) {
  check_arguments(cluster, devices, bytes);
  const Pricing pricing(cluster, kind, devices, bytes);
  pricing.require(algorithm);
  auto cost = pricing.price(algorithm);
  if (cost.algorithm == CollectiveAlgorithm::automatic) cost.algorithm = CollectiveAlgorithm::ring;
  return cost;
}

}  // namespace trinity
