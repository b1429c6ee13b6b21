#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <unordered_set>
#include <vector>

#include "base/index.h"
#include "cluster/collectives.h"
#include "simulator/problem.h"
#include "strategy/mesh.h"

// Only for the search for symmetry (symmetry.cpp).

namespace trinity {

/// True if equal pieces of the cluster's routes (pieces with one table) are interchangeable: a
/// piece is a node with contiguous devices, and no switch is limited, so that a channel is one
/// direction of one link in one piece, with the table's bandwidth. Two groups then cost the same if
/// their devices, in ascending order, have the same numbers in the same tables, grouped into pieces
/// in the same way.
inline bool pieces_alike(const Cluster& cluster) {
  const auto& routes = cluster.routes();
  const auto& node_of = cluster.node_of();
  std::unordered_set<int32_t> pieces;
  for (int32_t d = 0; d < cluster.device_count(); ++d) {
    const bool goes_on = d > 0 && routes.piece(d) == routes.piece(d - 1);
    if (!goes_on && !pieces.insert(routes.piece(d)).second) return false;
    if (node_of[d] + 1 != std::ssize(pieces)) return false;  // two nodes in a piece, or two pieces in a node
  }
  const auto& channels = cluster.channels();
  return std::none_of(channels.begin(), channels.end(),
                      [](const Channel& channel) { return channel.limit >= 0; });
}

/// Cluster device by [device of a replica][replica]. A rank is the sum of a term of the replica's
/// device and a term of the replica.
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

/// Number of leading replicas whose devices lie in the same pieces as the first one's, after
/// the devices of the replicas before. 0: their number differs between devices. where: [device of a
/// replica][replica], a cluster device.
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

/// Requires pieces_alike(). True if any two runs of `run` replicas are interchangeable: each has
/// its own pieces, and its devices, in one order, have the same cost classes and the same numbers
/// in corresponding pieces. where: as above.
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
    int32_t run = -1, device = 0;  // first user of the piece
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

/// Calls visit(channel) for channels that two paths share. Paths from one device to equal numbers
/// in two other pieces share the way out of its piece; paths back share the way in.
template <class Visit>
void for_common(const Route& a, const Route& b, Visit visit) {
  for (const int32_t channel : a)
    if (std::find(b.begin(), b.end(), channel) != b.end()) visit(channel);
}

/// A device of the first run: cluster device, device of the replica, replica in the run.
struct InRun {
  int32_t here, u, r;
};

/// Channels that a ring over all replicas takes in the first run's pieces. Devices of a piece are
/// contiguous, so the ring, sorted by `here`, visits them in order: path(from, to) between them, way()
/// for each channel to the first and from the last one. like(one, run): the corresponding device of another
/// run. Returns false if the first or last devices have other numbers in some pieces, because the
/// ways may then differ.
template <class Like, class Path, class Way>
bool for_ring(const Routes& routes, std::span<const InRun> ring, Like like, Path path, Way way) {
  const auto same = [&](const InRun& a, const InRun& b) {
    return routes.table(a.here) == routes.table(b.here) &&
           routes.number(a.here) == routes.number(b.here);
  };
  bool one_way = true;
  const InRun* first_last = nullptr;
  for (size_t begin = 0, end = 0; begin < ring.size(); begin = end) {
    while (++end < ring.size() && routes.piece(ring[end].here) == routes.piece(ring[begin].here))
      path(ring[end - 1].here, ring[end].here);
    const InRun &first = ring[begin], &last = ring[end - 1];
    if (begin == 0) first_last = &last;
    one_way = one_way && same(first, ring[0]) && same(last, *first_last);
    const auto out = [&](int32_t run) { return routes.route(last.here, like(first, run)); };
    const auto in = [&](int32_t run) { return routes.route(like(last, run), first.here); };
    for_common(out(1), out(2), way);
    for_common(in(1), in(2), way);
  }
  return one_way;
}

}  // namespace trinity
