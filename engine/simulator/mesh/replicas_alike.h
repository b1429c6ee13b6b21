#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/index.h"
#include "cluster/collectives.h"
#include "simulator/problem.h"

// Of the search for symmetry alone (symmetry.cpp).

namespace trinity {

/// Whether pieces of the cluster's routes that have one table may change places: devices of a piece
/// follow each other and are a node, and no switch is limited, so that a channel is a direction of one
/// link, in one piece, and as wide as the table says. Groups then cost the same whose devices,
/// ascending, have the same numbers in the same tables, in pieces that are the same ones of each.
inline bool pieces_alike(const Cluster& cluster) {
  const auto& routes = cluster.routes();
  std::unordered_set<std::string_view> nodes;
  std::unordered_set<int32_t> pieces;
  for (int32_t d = 0; d < cluster.device_count(); ++d) {
    const bool goes_on = d > 0 && routes.piece(d) == routes.piece(d - 1);
    if (goes_on ? cluster.device(d).node != cluster.device(d - 1).node
                : !nodes.insert(cluster.device(d).node).second ||
                      !pieces.insert(routes.piece(d)).second)
      return false;
  }
  const auto& channels = cluster.channels();
  return std::none_of(channels.begin(), channels.end(),
                      [](const Channel& channel) { return channel.limit >= 0; });
}

/// Where pieces_alike(): whether any two replicas may change places. Each has pieces of its own, and
/// its devices, in one order, are of the same cost classes and have the same numbers in the same
/// pieces of it. where: by device of a replica x replica, the cluster's.
inline bool replicas_alike(const std::vector<int32_t>& where, int32_t replicas,
                           const Problem& problem) {
  const auto& routes = problem.cluster().routes();
  const size_t devices = where.size() / at(replicas);
  const auto of = [&](size_t u, int32_t r) { return where[u * at(replicas) + at(r)]; };
  struct User {
    int32_t replica = -1, device = 0;  // the first that is in the piece
    bool operator==(const User&) const = default;
  };
  std::vector<User> users(at(problem.cluster().device_count()));  // by piece
  std::vector<int32_t> order(devices);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return of(at(a), 0) < of(at(b), 0); });
  for (size_t u = 0; u < devices; ++u)
    for (int32_t r = 0; r < replicas; ++r) {
      const int32_t device = of(u, r), like = of(u, 0);
      auto& user = users[at(routes.piece(device))];
      if (user.replica < 0) user = {r, static_cast<int32_t>(u)};
      if (user != User{r, users[at(routes.piece(like))].device} ||
          routes.table(device) != routes.table(like) ||
          routes.number(device) != routes.number(like) ||
          problem.cost_class(device) != problem.cost_class(like))
        return false;
    }
  for (size_t i = 1; i < devices; ++i)
    for (int32_t r = 0; r < replicas; ++r)
      if (of(at(order[i - 1]), r) > of(at(order[i]), r)) return false;
  return true;
}

/// Calls visit(channel) for the ways of a device out of its piece and into it, which all its paths to
/// and from other pieces have in common: such as those of two devices in pieces of their own.
template <class Visit>
void for_ways_of(const Routes& routes, int32_t device, std::pair<int32_t, int32_t> others,
                 Visit visit) {
  const auto for_common = [&](const Route& a, const Route& b) {
    for (const int32_t channel : a)
      if (std::find(b.begin(), b.end(), channel) != b.end()) visit(channel);
  };
  for_common(routes.route(device, others.first), routes.route(device, others.second));
  for_common(routes.route(others.first, device), routes.route(others.second, device));
}

}  // namespace trinity
