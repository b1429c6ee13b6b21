#include "cluster/collectives.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/index.h"
#include "cluster/library.h"

namespace trinity {

using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;

uint64_t CollectiveGroup::hash() const {
  Hasher hash;
  for (const int32_t number : {size_, nodes_, most_, least_}) hash.add(static_cast<uint64_t>(number));
  for (const double number : {flat_.latency_s, flat_.bandwidth, inner_.bandwidth, rails_.bandwidth,
                              leaders_.bandwidth, all_.latency_s, all_.s_per_byte})
    hash.add(std::bit_cast<uint64_t>(number + 0.0));  // +0 and -0 hash equally
  return hash.value();
}

/// Costs of one collective on a group under several algorithms.
class CollectivePricing {
 public:
  CollectivePricing(const CollectiveGroup& group, Kind kind, int64_t bytes)
      : group_(group), kind_(kind), bytes_(static_cast<double>(bytes)) {}

  bool carries_out(Algorithm algorithm) const {
    return kind_ != Kind::all_to_all || algorithm == Algorithm::automatic ||
           algorithm == Algorithm::ring || algorithm == Algorithm::hierarchical;
  }
  bool power_of_two() const { return std::has_single_bit(size()); }
  /// True if all nodes have the same number of members.
  bool equal_nodes() const { return group_.most_ == group_.least_; }

  bool applies(Algorithm algorithm) const {
    if (switches_add_up(algorithm)) return by_library(algorithm);
    return carries_out(algorithm) && (algorithm != Algorithm::halving_doubling || power_of_two()) &&
           (algorithm != Algorithm::hierarchical || equal_nodes());
  }

  static bool switches_add_up(Algorithm algorithm) {
    return algorithm == Algorithm::multicast || algorithm == Algorithm::in_network;
  }
  /// True if the cluster's library defines the cost of this algorithm; the plain formulas apply
  /// otherwise.
  bool by_library(Algorithm algorithm) const {
    if (group_.library_ == nullptr) return false;
    if (kind_ == Kind::all_to_all) return !switches_add_up(algorithm);
    return algorithm == Algorithm::automatic || algorithm == Algorithm::ring ||
           algorithm == Algorithm::tree ||
           (switches_add_up(algorithm) &&
            library_applies(*group_.library_, library_members(), kind_, algorithm));
  }

  CollectiveCost price(Algorithm algorithm) const {
    if (size() > 1 && by_library(algorithm)) return price_by_library(algorithm);
    return price_plainly(algorithm);
  }

  /// All-to-all of a dispatcher that sends a token once per node (collective_cost()); inside_copies: of a token, which
  /// all members of the receiving nodes get together.
  CollectiveCost price_once(const TokenRouting& routing, double inside_copies) const {
    CollectiveCost cost;
    cost.algorithm = Algorithm::hierarchical;
    if (size() == 1) return cost;
    const auto* library = group_.library_;
    const double token_bytes = bytes_ / static_cast<double>(routing.per_token);
    const double inside_bytes = token_bytes * inside_copies;
    const double between_bytes = token_bytes * routing.destinations(group_.nodes_);
    CollectiveCost inside, between;
    add_exchange(inside, group_.inside_, static_cast<size_t>(group_.most_), inside_bytes);
    add_exchange(between, group_.between_, nodes(), between_bytes);
    if (library) {  // as of other all-to-alls: members copy what they keep, in chunks
      const double sent_s = inside.transfer_s / library->exchange_bandwidth;
      inside.transfer_s =
          in_chunks(*library, inside.latency_s, sent_s + copy_s(*library, group_.most_, inside_bytes)).transfer_s;
      if (nodes() == 1) inside.latency_s += library->call_s;
    }
    cost.latency_s = inside.latency_s + between.latency_s;
    cost.transfer_s = std::max(inside.transfer_s, between.transfer_s);
    cost.algorithm = Algorithm::hierarchical;
    cost.sent_bytes = part(static_cast<size_t>(group_.most_)) * inside_bytes + part(nodes()) * between_bytes;
    return cost;
  }

 private:
  CollectiveCost price_by_library(Algorithm algorithm) const {
    CollectiveCost cost;
    if (kind_ == Kind::all_to_all) {
      const auto plain = price_plainly(algorithm);
      const double kept_s = copy_s(*group_.library_, static_cast<double>(size()), bytes_);
      const double sent_s = plain.transfer_s / group_.library_->exchange_bandwidth;
      cost = in_chunks(*group_.library_, plain.latency_s, sent_s + kept_s);
      cost.algorithm = plain.algorithm;
    } else {
      cost = library_cost(*group_.library_, library_members(), kind_, algorithm, bytes_);
    }
    cost.sent_bytes = sent_bytes();
    return cost;
  }

  CollectiveMembers library_members() const {
    CollectiveMembers members;
    members.size = static_cast<double>(size());
    members.nodes = static_cast<double>(nodes());
    if (group_.most_ > 1) {
      const auto& inner = broadcast() ? group_.chains_ : group_.inner_;
      members.node_latency_s = inner.latency_s;
      members.node_bandwidth = std::max(inner.bandwidth, group_.direct_);
      if (group_.shares_) members.node_bandwidth *= group_.library_->shared_bandwidth;
    }
    if (nodes() > 1) {
      members.network_latency_s = group_.rails_.latency_s;
      members.network_bandwidth = group_.out_;
    }
    return members;
  }

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
        break;  // only with a library
    }
    cost.sent_bytes = sent_bytes();
    return cost;
  }

  size_t size() const { return static_cast<size_t>(group_.size_); }
  size_t nodes() const { return static_cast<size_t>(group_.nodes_); }
  /// (p - 1) / p
  static double part(size_t p) { return static_cast<double>(p - 1) / static_cast<double>(p); }
  /// Number of times that the data travels around the ring.
  double ring_trips() const { return kind_ == Kind::all_reduce ? 2 : 1; }
  /// True for the two halves of an all-reduce.
  bool half() const { return kind_ == Kind::reduce_scatter || kind_ == Kind::all_gather; }
  bool broadcast() const { return kind_ == Kind::broadcast; }
  double sent_bytes() const { return ring_trips() * (broadcast() ? 1 : part(size())) * bytes_; }

  /// The minimum over all algorithms that apply; ties: the first in order.
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
    if (kind_ == Kind::all_to_all) return add_exchange(cost, group_.all_, size(), bytes_);
    const double whole = broadcast() ? 1 : part(size());
    cost.latency_s = ring_trips() * static_cast<double>(size() - 1) * group_.flat_.latency_s;
    cost.transfer_s = ring_trips() * whole * bytes_ / group_.flat_.bandwidth;
  }

  /// A broadcast scatters by recursive halving, then gathers by doubling.
  void halving_doubling(CollectiveCost& cost) const {
    const double trips = half() ? 1 : 2;
    cost.latency_s =
        trips * static_cast<double>(std::bit_width(size()) - 1) * group_.flat_.latency_s;
    cost.transfer_s = trips * part(size()) * bytes_ / group_.flat_.bandwidth;
  }

  /// With nodes of different sizes every member counts as a node. The shards of an all-gather go up
  /// and down the tree like an all-reduce's sums, but no edge carries a shard both ways; a
  /// broadcast only goes down.
  void tree(CollectiveCost& cost) const {
    const bool equal = equal_nodes();
    const double inside =
        equal ? static_cast<double>(group_.most_ - 1) * group_.inner_.latency_s : 0;
    const double outside = equal ? group_.rails_.latency_s : group_.flat_.latency_s;
    const size_t count = equal ? nodes() : size();
    const double ways = broadcast() ? 1 : 2, copies = kind_ == Kind::all_reduce ? 2 : 1;
    cost.latency_s = ways * (inside + static_cast<double>(std::bit_width(count - 1)) * outside);
    cost.transfer_s = copies * bytes_ / (0.9 * group_.flat_.bandwidth);
  }

  /// A broadcast scatters in the first node, passes every shard along a chain of nodes, and gathers
  /// in the nodes.
  void hierarchical(CollectiveCost& cost) const {
    const auto g = static_cast<size_t>(group_.most_);
    if (kind_ == Kind::all_to_all) {
      add_exchange(cost, group_.inside_, g, bytes_);
      return add_exchange(cost, group_.between_, nodes(), bytes_);
    }
    const auto &inner = group_.inner_, &outer = group_.rails_;
    const double share = bytes_ / static_cast<double>(g);
    const double inside = half() ? 1 : 2, outside = kind_ == Kind::all_reduce ? 2 : 1;
    const double whole = broadcast() ? 1 : part(nodes());
    cost.latency_s = inside * static_cast<double>(g - 1) * inner.latency_s +
                     outside * static_cast<double>(nodes() - 1) * outer.latency_s;
    cost.transfer_s =
        inside * part(g) * bytes_ / inner.bandwidth + outside * whole * share / outer.bandwidth;
  }

  /// The largest node determines the time inside nodes. An all-gather collects a node's shards at
  /// its leader, who distributes all of them at the end; a reduce-scatter is the reverse. Between
  /// leaders every link carries all shards except the shards of the node that it leads to.
  void leader(CollectiveCost& cost) const {
    const auto g = static_cast<size_t>(group_.most_), least = static_cast<size_t>(group_.least_);
    const auto &inner = group_.inner_, &outer = group_.leaders_;
    const double members = static_cast<double>(size());
    const double inside = broadcast() ? 1 : 2, outside = kind_ == Kind::all_reduce ? 2 : 1;
    const double others = broadcast() ? 1
                          : half()    ? static_cast<double>(size() - least) / members
                                      : part(nodes());
    cost.latency_s = inside * static_cast<double>(g - 1) * inner.latency_s +
                     outside * static_cast<double>(nodes() - 1) * outer.latency_s;
    cost.transfer_s = outside * bytes_ / inner.bandwidth;
    if (half())
      cost.transfer_s += static_cast<double>(g - 1) / members * bytes_ / inner.bandwidth;
    cost.transfer_s += outside * others * bytes_ / outer.bandwidth;
  }

  /// All-to-alls of `bytes` in every group of `count` members, in parallel. A library's kernel serves
  /// several peers at a time (library.h).
  void add_exchange(CollectiveCost& cost, const CollectiveGroup::Exchange& all,
                    size_t count, double bytes) const {
    const auto members = static_cast<double>(count);
    const double peers = members - 1;
    const double steps = group_.library_ ? std::ceil(peers / kPeersAtOnce) : peers;
    cost.latency_s += steps * all.latency_s;
    cost.transfer_s += bytes / members * all.s_per_byte;
  }

  const CollectiveGroup& group_;
  Kind kind_;
  double bytes_;
};

bool CollectiveGroup::applies(Kind kind, Algorithm algorithm) const {
  return CollectivePricing(*this, kind, 0).applies(algorithm);
}

CollectiveCost CollectiveGroup::cost(Kind kind, Algorithm algorithm, int64_t bytes,
                                     const TokenRouting& routing) const {
  const CollectivePricing pricing(*this, kind, bytes);
  const bool once = library_ != nullptr && library_->sends_tokens_once && nodes_ > 1 && pricing.equal_nodes();
  const bool routed = once && routing.per_token > 0;
  auto cost = routed ? pricing.price_once(routing, static_cast<double>(routing.per_token)) : pricing.price(algorithm);
  if (routed) cost.latency_s += library_->call_s;
  if (cost.algorithm == Algorithm::automatic) cost.algorithm = Algorithm::ring;
  return cost;
}

size_t CollectiveGroups::Hash::operator()(Devices devices) const {
  uint64_t hash = devices.size();
  for (const int32_t device : devices) hash = mix64(hash ^ static_cast<uint64_t>(device));
  return hash;
}

bool CollectiveGroups::Equal::operator()(Devices a, Devices b) const {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

CollectiveGroups::CollectiveGroups(const Cluster& cluster)
    : cluster_(cluster),
      node_of_(cluster.node_of()),
      node_size_(at(*std::max_element(node_of_.begin(), node_of_.end())) + 1, 0),
      node_count_(node_size_),
      crossings_(cluster.channels().size(), 0),
      own_(crossings_) {
  for (const int32_t node : node_of_) ++node_size_[node];
}

const CollectiveGroup& CollectiveGroups::find(Devices devices, bool exchanges) {
  const auto found = kept_.find(devices);
  if (found != kept_.end() && (found->second.exchanges_ || !exchanges)) return found->second;
  const auto group = make(devices, exchanges);
  if (found != kept_.end()) return found->second = group;
  if (kept_devices_ + devices.size() > kMostKept) {
    kept_.clear();
    kept_devices_ = 0;
  }
  kept_devices_ += devices.size();
  return kept_.emplace(std::vector(devices.begin(), devices.end()), group).first->second;
}

/// Fills members_, by node, in order of the nodes' first devices.
void CollectiveGroups::sort_by_node(Devices devices) {
  nodes_.clear();
  for (const int32_t device : devices)
    if (node_count_[node_of_[device]]++ == 0) nodes_.push_back(node_of_[device]);
  node_first_.assign(1, 0);
  for (const int32_t n : nodes_) {
    node_first_.push_back(node_first_.back() + static_cast<size_t>(node_count_[n]));
    node_count_[n] = static_cast<int32_t>(node_first_[node_first_.size() - 2]);
  }
  members_.resize(devices.size());
  for (const int32_t device : devices) members_[node_count_[node_of_[device]]++] = device;
  for (const int32_t n : nodes_) node_count_[n] = 0;
}

CollectiveGroup CollectiveGroups::make(Devices devices, bool exchanges) {
  sort_by_node(devices);
  CollectiveGroup group;
  group.size_ = static_cast<int32_t>(devices.size());
  group.nodes_ = static_cast<int32_t>(nodes_.size());
  group.least_ = group.size_;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const auto count = static_cast<int32_t>(node(n).size());
    group.most_ = std::max(group.most_, count);
    group.least_ = std::min(group.least_, count);
  }
  if (cluster_.library()) add_library(group);
  add_ring(devices, group.flat_);
  settle(group.flat_);
  if (group.nodes_ == 1) {
    group.inner_ = group.flat_;  // the same ring
  } else {
    for (size_t n = 0; n < nodes_.size(); ++n) add_ring(node(n), group.inner_);
    settle(group.inner_);
  }
  if (group.most_ == 1) {
    // the same rings: nodes consist of contiguous devices
    group.leaders_ = group.rails_ = group.flat_;
    group.out_ = group.rails_.bandwidth;
  } else {
    add_rails(1, group.leaders_);
    settle(group.leaders_);
    if (group.most_ == group.least_ || group.library_ != nullptr) {
      const auto count = static_cast<size_t>(group.least_);  // each node has a member for each rail
      add_rails(count, group.rails_);
      const double limited = group.library_ != nullptr ? limited_out(count, group.library_->rails)
                                                       : std::numeric_limits<double>::infinity();
      settle(group.rails_);
      group.out_ = std::min(limited, group.rails_.bandwidth * static_cast<double>(count));
    }
  }
  if (exchanges) add_exchanges(group, devices);
  return group;
}

/// Adds what only a library needs.
void CollectiveGroups::add_library(CollectiveGroup& group) {
  group.library_ = &*cluster_.library();
  if (group.most_ == 1) return;
  group.direct_ = std::numeric_limits<double>::infinity();
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const auto members = node(n);
    group.shares_ = group.shares_ || node_size_[nodes_[n]] > std::ssize(members);
    if (members.size() == 1) continue;
    for (size_t i = 0; i + 1 < members.size(); ++i)
      cross(members[i], members[i + 1], group.chains_.latency_s);
    group.direct_ = std::min(group.direct_, direct_bandwidth(cluster_, members));
  }
  settle(group.chains_);
}

/// Adds an edge: its channels are divided among all edges that cross them.
void CollectiveGroups::cross(int32_t from, int32_t to, double& latency_s) {
  latency_s = std::max(latency_s, cluster_.latency_s(from, to));
  for (const int32_t channel : cluster_.route(from, to))
    if (crossings_[channel]++ == 0) crossed_.push_back(channel);
}

void CollectiveGroups::add_ring(Devices ring, CollectiveGroup::Wires& worst) {
  for (size_t i = 0; i < ring.size() && ring.size() > 1; ++i)
    cross(ring[i], ring[(i + 1) % ring.size()], worst.latency_s);
}

/// Rail i joins member i of every node.
std::pair<int32_t, int32_t> CollectiveGroups::rail(size_t i, size_t n) const {
  return {node(n)[i], node((n + 1) % nodes_.size())[i]};
}

/// Rings between the nodes: rails 0 to count - 1.
void CollectiveGroups::add_rails(size_t count, CollectiveGroup::Wires& worst) {
  for (size_t i = 0; i < count && nodes_.size() > 1; ++i)
    for (size_t n = 0; n < nodes_.size(); ++n) {
      const auto [from, to] = rail(i, n);
      cross(from, to, worst.latency_s);
    }
}

/// Adds `step` to own_ for every channel out of node n that one of `count` rails crosses. A
/// half-duplex channel also counts the rails that enter the node.
void CollectiveGroups::count_own(size_t count, size_t n, int32_t step) {
  const size_t before = (n + nodes_.size() - 1) % nodes_.size();
  for (size_t i = 0; i < count; ++i) {
    const auto [from, to] = rail(i, n);
    for (const int32_t channel : cluster_.route(from, to)) own_[channel] += step;
    const auto [other, member] = rail(i, before);
    for (const int32_t channel : cluster_.route(other, member)) {
      const int32_t link = cluster_.channels()[channel].link;
      if (link >= 0 && cluster_.links()[link].half_duplex) own_[channel] += step;
    }
  }
}

/// Number of NICs over which `count` rails leave node n. A rail's NIC is the channel that most of
/// the node's rails share, among those that no other node's rails cross.
size_t CollectiveGroups::cards(size_t count, size_t n) {
  count_own(count, n, 1);
  std::set<int32_t> cards;
  for (size_t i = 0; i < count; ++i) {
    const auto [from, to] = rail(i, n);
    std::pair<bool, int32_t> best{false, 0};
    int32_t card = -1;
    for (const int32_t c : cluster_.route(from, to)) {
      const std::pair<bool, int32_t> rank{own_[c] == crossings_[c], own_[c]};
      if (rank > best) best = rank, card = c;
    }
    cards.insert(card);
  }
  count_own(count, n, -1);
  return cards.size();
}

/// Total bandwidth of `count` rails out of the narrowest node over at most `most` NICs; infinite if
/// no node has more members than that. To be called between add_rails and settle.
double CollectiveGroups::limited_out(size_t count, double most) {
  double least = std::numeric_limits<double>::infinity();
  for (size_t n = 0; n < nodes_.size() && nodes_.size() > 1; ++n) {
    if (static_cast<double>(node(n).size()) <= most) continue;
    double bandwidth = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < count; ++i) {
      const auto [from, to] = rail(i, n);
      for (const int32_t c : cluster_.route(from, to))
        bandwidth =
            std::min(bandwidth, cluster_.channels()[c].bandwidth_bytes_per_s / crossings_[c]);
    }
    const double part = std::min(1.0, most / static_cast<double>(cards(count, n)));
    least = std::min(least, bandwidth * static_cast<double>(count) * part);
  }
  return least;
}

void CollectiveGroups::settle(CollectiveGroup::Wires& worst) {
  for (const int32_t c : crossed_) {
    worst.bandwidth =
        std::min(worst.bandwidth, cluster_.channels()[c].bandwidth_bytes_per_s / crossings_[c]);
    crossings_[c] = 0;
  }
  crossed_.clear();
}

/// member(i), for i < count, is a group in which every member sends to every other.
template <class Member>
void CollectiveGroups::add_exchange(size_t count, Member member, CollectiveGroup::Exchange& all) {
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0; j < count; ++j)
      if (i != j) cross(member(i), member(j), all.latency_s);
}

void CollectiveGroups::settle(CollectiveGroup::Exchange& all) {
  for (const int32_t c : crossed_) {
    all.s_per_byte =
        std::max(all.s_per_byte, crossings_[c] / cluster_.channels()[c].bandwidth_bytes_per_s);
    crossings_[c] = 0;
  }
  crossed_.clear();
}

void CollectiveGroups::add_exchanges(CollectiveGroup& group, Devices devices) {
  group.exchanges_ = true;
  add_exchange(devices.size(), [&](size_t i) { return devices[i]; }, group.all_);
  settle(group.all_);
  if (group.most_ != group.least_) return;
  for (size_t n = 0; n < nodes_.size(); ++n)
    add_exchange(node(n).size(), [&](size_t i) { return node(n)[i]; }, group.inside_);
  settle(group.inside_);
  for (size_t m = 0; m < static_cast<size_t>(group.most_); ++m)
    add_exchange(nodes_.size(), [&](size_t n) { return node(n)[m]; }, group.between_);
  settle(group.between_);
}

namespace {

void check_arguments(const Cluster& cluster, std::span<const int32_t> devices, int64_t bytes) {
  if (devices.empty()) throw ArgumentError("a collective needs at least one device");
  if (bytes < 0)
    throw ArgumentError("a collective's bytes must not be negative, got {}", bytes);
  std::set<int32_t> seen;
  for (const int32_t device : devices) {
    if (device < 0 || device >= cluster.device_count())
      throw ArgumentError("a collective names device {}, expected 1 to {}", device + 1, cluster.device_count());
    if (!seen.insert(device).second)
      throw ArgumentError("a collective names device '{}' twice", cluster.device(device).name);
  }
}

/// devices: ascending, in nodes of different sizes. Always throws.
[[noreturn]] void refuse_nodes(const Cluster& cluster, const std::vector<int32_t>& devices,
                               const char* algorithm) {
  std::map<std::string_view, int32_t> members;
  std::vector<std::string_view> nodes;
  for (const int32_t device : devices)
    if (members[cluster.device(device).node]++ == 0) nodes.push_back(cluster.device(device).node);
  const auto other = *std::find_if(nodes.begin(), nodes.end(), [&](std::string_view node) {
    return members[node] != members[nodes[0]];
  });
  throw ArgumentError("collective algorithm '{}' expects equal numbers of devices per node, got {} in node '{}' and {} "
                      "in node '{}'", algorithm, members[nodes[0]], nodes[0], members[other], other);
}

/// Throws ArgumentError unless the algorithm applies.
void require(const Cluster& cluster, const std::vector<int32_t>& devices,
             const CollectivePricing& pricing, Kind kind, Algorithm algorithm) {
  const auto name = choice_name(algorithm);
  if (CollectivePricing::switches_add_up(algorithm) && !pricing.by_library(algorithm)) {
    std::set<std::string_view> nodes;
    for (const int32_t device : devices) nodes.insert(cluster.device(device).node);
    throw ArgumentError("collective algorithm '{}' expects switches that reduce (`collectives` of the cluster) and "
                        "does not support all_to_all; got {} over {} devices in {} nodes of cluster '{}'", name,
                        choice_name(kind), devices.size(), nodes.size(), cluster.name());
  }
  if (!pricing.carries_out(algorithm))
    throw ArgumentError("collective algorithm '{}' does not support {}, expected all_reduce, reduce_scatter, "
                        "all_gather or broadcast", name, choice_name(kind));
  if (algorithm == Algorithm::halving_doubling && !pricing.power_of_two())
    throw ArgumentError("collective algorithm '{}' expects a power of two of devices, got {}", name, devices.size());
  if (algorithm == Algorithm::hierarchical && !pricing.equal_nodes())
    refuse_nodes(cluster, devices, name);
}

void check_routing(const TokenRouting& routing, Kind kind) {
  if (kind != Kind::all_to_all)
    throw ArgumentError("a routing of tokens expects all_to_all, got {}", choice_name(kind));
  if (routing.groups < 1 || routing.group_topk < 1 || routing.group_topk > routing.groups)
    throw ArgumentError("group_topk: expected 1 to {} (groups of experts), got {}", routing.groups, routing.group_topk);
  const int64_t most = routing.experts / routing.groups * routing.group_topk;
  if (routing.per_token > most)
    throw ArgumentError("experts_per_token: expected 1 to {} (experts that a token may use), got {}", most,
                        routing.per_token);
}

}  // namespace

CollectiveCost collective_cost(const Cluster& cluster, CollectiveKind kind,
                               CollectiveAlgorithm algorithm, std::span<const int32_t> devices,
                               int64_t bytes, const TokenRouting& routing) {
  check_arguments(cluster, devices, bytes);
  std::vector<int32_t> sorted(devices.begin(), devices.end());
  std::sort(sorted.begin(), sorted.end());
  CollectiveGroups groups(cluster);
  const auto& group = groups.find(sorted, kind == Kind::all_to_all);
  const CollectivePricing pricing(group, kind, bytes);
  require(cluster, sorted, pricing, kind, algorithm);
  if (routing.per_token == 0) return group.cost(kind, algorithm, bytes);
  check_routing(routing, kind);
  require(cluster, sorted, pricing, kind, Algorithm::hierarchical);
  return pricing.price_once(routing, routing.destinations(group.size()));
}

}  // namespace trinity
