#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/index.h"
#include "cluster/collectives.h"
#include "simulator/problem.h"
#include "strategy/mesh.h"

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

/// The cluster's device by device of a replica x replica. A rank is the sum of what a place in a
/// replica adds to it and of what the replica does.
inline std::vector<int32_t> devices_of(const Mesh& mesh) {
  Mesh ranks = mesh;
  ranks.devices.clear();
  std::vector<int32_t> of_replica, where;
  for (int32_t r = 0; r < mesh.data; ++r) of_replica.push_back(ranks.device(0, r, 0));
  where.reserve(at(mesh.pipeline * mesh.width()) * of_replica.size());
  for (int32_t u = 0; u < mesh.pipeline * mesh.width(); ++u) {
    const int32_t first = ranks.device(u / mesh.width(), 0, u % mesh.width());
    for (const int32_t replica : of_replica) where.push_back(first + replica);
  }
  if (!mesh.devices.empty())
    for (int32_t& device : where) device = mesh.devices[at(device)];
  return where;
}

/// How many replicas from the first on have each of their devices in the pieces of the first one's,
/// behind those of the replicas before. 0: not the same number of every device. where: by device of
/// a replica x replica, the cluster's.
inline int32_t run_of_replicas(const std::vector<int32_t>& where, int32_t replicas,
                               const Routes& routes) {
  int32_t run = 0;
  for (auto first = where.begin(); first != where.end(); first += replicas) {
    int32_t length = 1;
    while (length < replicas && routes.piece(first[length]) == routes.piece(*first) &&
           first[length] > first[length - 1])
      ++length;
    if (run > 0 && length != run) return 0;
    run = length;
  }
  return run;
}

/// Where pieces_alike(): whether any two runs of so many replicas may change places. Each has pieces
/// of its own, and its devices, in one order, are of the same cost classes and have the same numbers
/// in the same pieces of it. where: as above.
inline bool replicas_alike(const std::vector<int32_t>& where, int32_t replicas, int32_t run,
                           const Problem& problem) {
  if (replicas % run != 0) return false;
  const auto& routes = problem.cluster().routes();
  const size_t devices = where.size() / at(replicas) * at(run);
  const int32_t runs = replicas / run;
  const auto of = [&](size_t u, int32_t r) {  // u: a device of each of the run's replicas
    return where[u / at(run) * at(replicas) + at(r) * at(run) + u % at(run)];
  };
  struct User {
    int32_t run = -1, device = 0;  // the first that is in the piece
    bool operator==(const User&) const = default;
  };
  std::vector<User> users(at(problem.cluster().device_count()));  // by piece
  std::vector<int32_t> order(devices);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return of(at(a), 0) < of(at(b), 0); });
  for (size_t u = 0; u < devices; ++u)
    for (int32_t r = 0; r < runs; ++r) {
      const int32_t device = of(u, r), like = of(u, 0);
      auto& user = users[at(routes.piece(device))];
      if (user.run < 0) user = {r, static_cast<int32_t>(u)};
      if (user != User{r, users[at(routes.piece(like))].device} ||
          routes.table(device) != routes.table(like) ||
          routes.number(device) != routes.number(like) ||
          problem.cost_class(device) != problem.cost_class(like))
        return false;
    }
  for (size_t i = 1; i < devices; ++i)
    for (int32_t r = 0; r < runs; ++r)
      if (of(at(order[i - 1]), r) > of(at(order[i]), r)) return false;
  return true;
}

/// Calls visit(channel) for what two paths have in common: of paths from a device to those of the same
/// number in two other pieces the way out of its piece, of paths back the way in.
template <class Visit>
void for_common(const Route& a, const Route& b, Visit visit) {
  for (const int32_t channel : a)
    if (std::find(b.begin(), b.end(), channel) != b.end()) visit(channel);
}

}  // namespace trinity
