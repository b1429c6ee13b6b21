#include "cluster/routes.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/stop.h"

namespace trinity {
namespace {

/// Length of a route: fewer devices entered first, since devices do not forward where switches
/// lead on, then fewer hops, then the wider bottleneck, then the lower latency.
struct RouteLength {
  int32_t devices = 0;
  int32_t hops = 0;
  double bandwidth = std::numeric_limits<double>::infinity();
  double latency_s = 0;

  bool operator==(const RouteLength&) const = default;
};

bool shorter(const RouteLength& a, const RouteLength& b) {
  if (a.devices != b.devices) return a.devices < b.devices;
  if (a.hops != b.hops) return a.hops < b.hops;
  if (a.bandwidth != b.bandwidth) return a.bandwidth > b.bandwidth;
  return a.latency_s < b.latency_s;
}

RouteLength extend(const RouteLength& a, const RouteLength& b) {
  return {a.devices + b.devices, a.hops + b.hops, std::min(a.bandwidth, b.bandwidth),
          a.latency_s + b.latency_s};
}

using RouteGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS,
                                         boost::no_property, RouteLength>;

constexpr int32_t kUnreachable = std::numeric_limits<int32_t>::max() / 4;
/// 2 GB of channel numbers: a chain of 1000 devices fits, one of 4096 does not.
constexpr size_t kMostCrossings = size_t{1} << 29;

/// One direction of a link. The switch that it ends at counts with it.
struct Arc {
  size_t from, to;  // endpoints
  int32_t channel;
  RouteLength length;
};

class RouteFinder {
 public:
  explicit RouteFinder(const ClusterSpec& spec) : spec_(spec) {
    number_endpoints();
    add_channels();
  }

  Routes run() {
    RouteGraph graph(endpoint_.size());
    for (const Arc& arc : arcs_) boost::add_edge(arc.from, arc.to, arc.length, graph);
    const size_t n = spec_.devices.size();
    routes_.latency_s.assign(n * n, 0);
    routes_.bandwidth_bytes_per_s.assign(n * n, 0);
    routes_.first.reserve(n * n + 1);
    routes_.first.push_back(0);
    for (size_t from = 0; from < n; ++from) {
      poll_stop();
      add_routes(from, graph);
    }
    return std::move(routes_);
  }

 private:
  /// Devices have the numbers of the description; switches follow as links name them.
  void number_endpoints() {
    for (const auto& device : spec_.devices) endpoint_.emplace(device.name, endpoint_.size());
    for (const auto& link : spec_.links)
      for (const auto* name : {&link.from, &link.to}) endpoint_.emplace(*name, endpoint_.size());
  }

  /// 1 for a device, 0 for a switch: devices have the first numbers.
  int32_t is_device(size_t endpoint) const { return endpoint < spec_.devices.size() ? 1 : 0; }

  int32_t add_channel(const std::string& name, double bandwidth_bytes_per_s) {
    const int same = ++name_count_[name];
    routes_.channels.push_back(
        {same == 1 ? name : fmt::format("{} #{}", name, same), bandwidth_bytes_per_s});
    return static_cast<int32_t>(routes_.channels.size()) - 1;
  }

  void add_channels() {
    std::vector<double> limit(endpoint_.size(), std::numeric_limits<double>::infinity());
    for (const auto& entry : spec_.switches)
      limit[endpoint_.at(entry.name)] = entry.bandwidth_bytes_per_s;
    for (const auto& link : spec_.links) {
      const size_t a = endpoint_.at(link.from), b = endpoint_.at(link.to);
      const double width = link.bandwidth_bytes_per_s;
      const int32_t there = add_channel(
          fmt::format("{} {} {}", link.from, link.half_duplex ? "-" : "->", link.to), width);
      const int32_t back = link.half_duplex
                               ? there
                               : add_channel(fmt::format("{} -> {}", link.to, link.from), width);
      arcs_.push_back({a, b, there, {is_device(b), 1, std::min(width, limit[b]), link.latency_s}});
      arcs_.push_back({b, a, back, {is_device(a), 1, std::min(width, limit[a]), link.latency_s}});
    }
    switch_channel_.assign(endpoint_.size(), -1);
    for (const auto& entry : spec_.switches)
      switch_channel_[endpoint_.at(entry.name)] =
          add_channel(entry.name, entry.bandwidth_bytes_per_s);
  }

  std::vector<RouteLength> lengths_from(size_t source, const RouteGraph& graph) const {
    std::vector<RouteLength> length(endpoint_.size());
    boost::dijkstra_shortest_paths(graph, source,
                                   boost::weight_map(boost::get(boost::edge_bundle, graph))
                                       .distance_map(boost::make_iterator_property_map(
                                           length.begin(), get(boost::vertex_index, graph)))
                                       .distance_compare(&shorter)
                                       .distance_combine(&extend)
                                       .distance_inf(RouteLength{kUnreachable, kUnreachable, 0, 0})
                                       .distance_zero(RouteLength{}));
    return length;
  }

  /// The arc by which the route from `source` enters every endpoint: the first that gives its
  /// length. -1 for the source and what it does not reach.
  std::vector<int32_t> last_arcs(const std::vector<RouteLength>& length) const {
    std::vector<int32_t> last(endpoint_.size(), -1);
    for (size_t i = 0; i < arcs_.size(); ++i) {
      const Arc& arc = arcs_[i];
      if (last[arc.to] < 0 && length[arc.from].hops < kUnreachable &&
          extend(length[arc.from], arc.length) == length[arc.to])
        last[arc.to] = static_cast<int32_t>(i);
    }
    return last;
  }

  void add_routes(size_t from, const RouteGraph& graph) {
    const size_t n = spec_.devices.size();
    const auto length = lengths_from(from, graph);
    const auto last = last_arcs(length);
    for (size_t to = 0; to < n; ++to) {
      if (to != from) {
        if (length[to].hops >= kUnreachable)
          throw ArgumentError(fmt::format("cluster '{}': no route of links from '{}' to '{}'",
                                          spec_.name, spec_.devices[from].name,
                                          spec_.devices[to].name));
        routes_.latency_s[from * n + to] = length[to].latency_s;
        routes_.bandwidth_bytes_per_s[from * n + to] = length[to].bandwidth;
        add_crossings(from, to, last);
      }
      routes_.first.push_back(static_cast<int32_t>(routes_.crossed.size()));
    }
  }

  /// Walks the route backwards, then turns it round.
  void add_crossings(size_t from, size_t to, const std::vector<int32_t>& last) {
    auto& crossed = routes_.crossed;
    const auto start = static_cast<std::ptrdiff_t>(crossed.size());
    for (size_t at = to; at != from;) {
      const Arc& arc = arcs_[static_cast<size_t>(last[at])];
      if (switch_channel_[at] >= 0) crossed.push_back(switch_channel_[at]);
      crossed.push_back(arc.channel);
      at = arc.from;
    }
    std::reverse(crossed.begin() + start, crossed.end());
    if (crossed.size() > kMostCrossings)
      throw LimitError(fmt::format("cluster '{}': its routes cross more than {} links in total",
                                   spec_.name, kMostCrossings));
  }

  const ClusterSpec& spec_;
  std::map<std::string, size_t> endpoint_;
  std::map<std::string, int> name_count_;
  std::vector<Arc> arcs_;  // two a link, in order
  std::vector<int32_t> switch_channel_;
  Routes routes_;
};

}  // namespace

Routes find_routes(const ClusterSpec& spec) { return RouteFinder(spec).run(); }

}  // namespace trinity
