#pragma once

#include <cstdint>
#include <vector>

#include "cluster/cluster.h"

namespace trinity {

/// The wires of a cluster and the way over them between every two devices. The pair (from, to) is
/// number from * devices + to; a device's way to itself is empty.
struct Routes {
  std::vector<double> latency_s;              ///< per pair: sum over the route's links
  std::vector<double> bandwidth_bytes_per_s;  ///< per pair: least over the route's channels
  std::vector<Channel> channels;  ///< of the links in order ("a -> b", "b -> a"; half duplex
                                  ///< "a - b"), then of the limited switches. A name that is taken
                                  ///< (parallel links) gets " #2", " #3", ...
  std::vector<int32_t> first;     ///< pairs + 1 positions in `crossed`
  std::vector<int32_t> crossed;   ///< channels of all routes, each in order
};

/// Finds the route of every pair: fewest devices on the way (devices forward only where no switch
/// leads there), fewest links, then the widest bottleneck, then the least latency;
/// the link that is first in the description where all are equal. The routes from one device form a
/// tree: each prolongs the best one to the endpoint before. Expects a description whose names and
/// numbers are checked. Throws ArgumentError for two devices without a route, LimitError when
/// the routes are too many and too long to list.
Routes find_routes(const ClusterSpec& spec);

}  // namespace trinity
