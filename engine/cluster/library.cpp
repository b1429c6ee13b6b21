#include "cluster/library.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cluster/collectives.h"

namespace trinity {
namespace {

using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;

struct Range {
  const char* field;
  double value, least, most;
};

/// Seconds of latency and of transfer.
struct Work {
  double latency_s = 0, transfer_s = 0;
};

CollectiveCost in_packets(const CollectiveLibrary& library, const Work& work) {
  CollectiveCost cost;
  cost.latency_s = library.call_s + library.low_latency_hop * work.latency_s;
  cost.transfer_s = work.transfer_s / library.low_latency_bandwidth;
  return cost;
}

Work ring(const CollectiveLibrary& library, const CollectiveMembers& members, Kind kind,
          double bytes) {
  const double trips = kind == Kind::all_reduce ? 2 : 1, steps = trips * (members.size - 1);
  const double part = kind == Kind::broadcast ? 1 : (members.size - 1) / members.size;
  const double crossing = members.nodes > 1 ? std::min(steps, trips * members.nodes) : 0;
  const double copied_s = kind == Kind::broadcast ? 0 : copy_s(library, members.size, bytes);
  return {(steps - crossing) * members.node_latency_s + crossing * members.network_latency_s,
          trips * part * bytes / std::min(members.node_bandwidth, members.network_bandwidth) +
              copied_s};
}

/// Levels of a tree over the nodes.
double levels(const CollectiveMembers& members) { return std::ceil(std::log2(members.nodes)); }

/// Seconds per byte between the nodes of a tree.
double tree_crossing(const CollectiveMembers& members) {
  if (members.nodes <= 1) return 0;
  return (members.nodes == 2 ? 1 : 2) / members.network_bandwidth;
}

Work tree(const CollectiveMembers& members, double bytes) {
  const double inside = members.size / members.nodes - 1;
  return {2 * inside * members.node_latency_s + 2 * levels(members) * members.network_latency_s,
          bytes * std::max(inside > 0 ? 2 / members.node_bandwidth : 0,
                           tree_crossing(members))};
}

Work multicast(const CollectiveLibrary& library, const CollectiveMembers& members, double bytes) {
  const double g = members.size / members.nodes;
  const double inside = (g + 1) / g / (library.multicast_bandwidth * members.node_bandwidth);
  return {library.multicast_s + 2 * levels(members) * members.network_latency_s,
          bytes * std::max(inside, tree_crossing(members))};
}

Work in_network(const CollectiveMembers& members, double bytes) {
  const double inside = members.size / members.nodes - 1;
  return {2 * inside * members.node_latency_s + 2 * members.network_latency_s,
          bytes * std::max(inside > 0 ? 2 / members.node_bandwidth : 0,
                           2 / members.network_bandwidth)};
}

CollectiveCost by(const CollectiveLibrary& library, const CollectiveMembers& members, Kind kind,
                  Algorithm algorithm, double bytes) {
  const bool packets = library.low_latency_bandwidth > 0;
  const auto least = [&](const Work& work) {
    const auto cost = in_chunks(library, work.latency_s, work.transfer_s);
    if (!packets) return cost;
    const auto small = in_packets(library, work);
    return small.time_s() < cost.time_s() ? small : cost;
  };
  CollectiveCost cost;
  if (algorithm == Algorithm::multicast) {
    const Work work = multicast(library, members, bytes);
    cost = in_chunks(library, work.latency_s, work.transfer_s);
  } else if (algorithm == Algorithm::in_network) {
    const Work work = in_network(members, bytes);
    cost = in_chunks(library, work.latency_s, work.transfer_s);
  } else if (algorithm == Algorithm::tree) {
    cost = least(tree(members, bytes));
  } else {
    cost = least(ring(library, members, kind, bytes));
  }
  cost.algorithm = algorithm;
  return cost;
}

/// Capacities of the direct links between members, [i * n + j]; the minimum of both directions.
std::vector<double> direct_links(const Cluster& cluster, std::span<const int32_t> members) {
  const size_t n = members.size();
  std::vector<double> links(n * n, 0);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j) {
      const auto there = cluster.route(members[i], members[j]);
      const auto back = cluster.route(members[j], members[i]);
      if (there.size() != 1 || back.size() != 1) continue;
      const bool half_duplex = *there.begin() == *back.begin();
      const double bandwidth =
          std::min(cluster.bandwidth_bytes_per_s(members[i], members[j]),
                   cluster.bandwidth_bytes_per_s(members[j], members[i]));
      links[i * n + j] = links[j * n + i] = half_duplex ? bandwidth / 2 : bandwidth;
    }
  return links;
}

}  // namespace

void check_library(std::string_view owner, const CollectiveLibrary& library) {
  constexpr double kMost = std::numeric_limits<double>::infinity();
  for (const Range& range :
       {Range{"call_s", library.call_s, 0, 1}, Range{"pipelining", library.pipelining, 0, 4},
        Range{"low_latency_hop", library.low_latency_hop, 0, 1},
        Range{"low_latency_bandwidth", library.low_latency_bandwidth, 0, 1},
        Range{"copy_bandwidth", library.copy_bandwidth, 0, kMost},
        Range{"multicast_bandwidth", library.multicast_bandwidth, 0, 1},
        Range{"multicast_s", library.multicast_s, 0, 1}, Range{"rails", library.rails, 1, kMost}})
    if (!(range.value >= range.least && range.value <= range.most))
      throw ArgumentError("{}: collectives: {} must lie in [{}, {}], got {}", owner, range.field, range.least,
                          range.most, range.value);
  for (const auto& [field, value] : {std::pair{"shared_bandwidth", library.shared_bandwidth},
                                     std::pair{"exchange_bandwidth", library.exchange_bandwidth}})
    if (!(value > 0 && value <= 1))
      throw ArgumentError("{}: collectives: {} must lie in (0, 1], got {}", owner, field, value);
}

bool library_applies(const CollectiveLibrary& library, const CollectiveMembers& members, Kind kind,
                     Algorithm algorithm) {
  if (algorithm == Algorithm::ring || algorithm == Algorithm::automatic) return true;
  if (kind == Kind::all_to_all) return false;
  if (algorithm == Algorithm::multicast)
    return library.multicast_bandwidth > 0 && members.size > members.nodes;
  if (algorithm == Algorithm::in_network) return library.in_network && members.nodes > 1;
  return algorithm == Algorithm::tree;
}

CollectiveCost library_cost(const CollectiveLibrary& library, const CollectiveMembers& members,
                            Kind kind, Algorithm algorithm, double bytes) {
  if (algorithm != Algorithm::automatic) return by(library, members, kind, algorithm, bytes);
  CollectiveCost best = by(library, members, kind, Algorithm::ring, bytes);
  for (const auto other : {Algorithm::tree, Algorithm::multicast, Algorithm::in_network}) {
    if (!library_applies(library, members, kind, other)) continue;
    if (other == Algorithm::tree && !library.trees) continue;
    const auto cost = by(library, members, kind, other, bytes);
    if (cost.time_s() < best.time_s()) best = cost;
  }
  return best;
}

double copy_s(const CollectiveLibrary& library, double members, double bytes) {
  return library.copy_bandwidth > 0 ? bytes / members / library.copy_bandwidth : 0;
}

CollectiveCost in_chunks(const CollectiveLibrary& library, double latency_s, double transfer_s) {
  CollectiveCost cost;
  cost.latency_s = library.call_s + latency_s;
  cost.transfer_s = transfer_s + 2 * std::sqrt(library.pipelining * latency_s * transfer_s);
  return cost;
}

/// The minimum cut by Stoer and Wagner (J. ACM 44(4), 1997).
double direct_bandwidth(const Cluster& cluster, std::span<const int32_t> members) {
  const size_t n = members.size();
  const bool alone = std::none_of(members.begin(), members.end(), [&](int32_t other) {
    return other != members[0] && cluster.route(members[0], other).size() == 1;
  });
  if (alone) return 0;
  auto links = direct_links(cluster, members);
  std::vector<size_t> left(n);
  for (size_t i = 0; i < n; ++i) left[i] = i;
  double least = std::numeric_limits<double>::infinity();
  while (left.size() > 1) {
    std::vector<double> joined(left.size(), 0);
    std::vector<size_t> order;
    std::vector<bool> taken(left.size(), false);
    while (order.size() < left.size()) {
      size_t next = left.size();
      for (size_t i = 0; i < left.size(); ++i)
        if (!taken[i] && (next == left.size() || joined[i] > joined[next])) next = i;
      taken[next] = true;
      order.push_back(next);
      for (size_t i = 0; i < left.size(); ++i)
        if (!taken[i]) joined[i] += links[left[next] * n + left[i]];
    }
    const size_t last = order.back(), before = order[order.size() - 2];
    least = std::min(least, joined[last]);
    for (const size_t other : left)
      links[left[before] * n + other] = links[other * n + left[before]] +=
          links[left[last] * n + other];
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(last));
  }
  return least;
}

}  // namespace trinity
