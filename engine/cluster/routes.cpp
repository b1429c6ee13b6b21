#include "cluster/routes.h"

#include <algorithm>
#include <bit>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/index.h"
#include "base/stop.h"
#include "cluster/cluster.h"

namespace trinity {
namespace {

/// Order of routes: fewer devices on the way (devices do not forward if switches lead there), then
/// fewer hops, then the wider bottleneck, then the lower latency.
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

/// One direction of a link, including the switch that it ends at.
struct Arc {
  size_t from, to;  // endpoints
  int32_t channel;
  RouteLength length;
};

/// Endpoints (devices first) and arcs between them, two per link.
struct Net {
  size_t devices = 0, endpoints = 0;
  std::vector<Arc> arcs;
  std::vector<int32_t> switch_channel;  // [endpoint]; -1: unlimited

  /// Nets with equal signatures have equal routes.
  std::vector<uint64_t> signature() const {
    std::vector<uint64_t> all = {devices, endpoints};
    for (const Arc& arc : arcs)
      for (const uint64_t value :
           {uint64_t{arc.from}, uint64_t{arc.to}, static_cast<uint64_t>(arc.channel),
            std::bit_cast<uint64_t>(arc.length.bandwidth),
            std::bit_cast<uint64_t>(arc.length.latency_s)})
        all.push_back(value);
    for (const int32_t channel : switch_channel) all.push_back(static_cast<uint64_t>(channel));
    return all;
  }
};

/// The routes from one endpoint of a net.
class RouteTree {
 public:
  RouteTree(const Net& net, const RouteGraph& graph, size_t source, const RouteLength& start)
      : net_(net), source_(source), length_(net.endpoints), last_(net.endpoints, -1) {
    boost::dijkstra_shortest_paths(graph, source,
                                   boost::weight_map(boost::get(boost::edge_bundle, graph))
                                       .distance_map(boost::make_iterator_property_map(
                                           length_.begin(), get(boost::vertex_index, graph)))
                                       .distance_compare(&shorter)
                                       .distance_combine(&extend)
                                       .distance_inf(RouteLength{kUnreachable, kUnreachable, 0, 0})
                                       .distance_zero(start));
    // The route enters an endpoint by the first arc that gives its length.
    for (size_t i = 0; i < net.arcs.size(); ++i) {
      const Arc& arc = net.arcs[i];
      if (last_[arc.to] < 0 && reaches(arc.from) &&
          extend(length_[arc.from], arc.length) == length_[arc.to])
        last_[arc.to] = static_cast<int32_t>(i);
    }
  }

  bool reaches(size_t to) const { return length_[to].hops < kUnreachable; }
  Wire wire(size_t to) const { return {length_[to].latency_s, length_[to].bandwidth}; }

  /// Appends the channels of the way to an endpoint, and its arcs if requested: collected
  /// backwards, then reversed.
  void add_way(size_t to, std::vector<int32_t>& crossed, std::vector<int32_t>* arcs) const {
    const auto start = static_cast<std::ptrdiff_t>(crossed.size());
    const auto first_arc = static_cast<std::ptrdiff_t>(arcs ? arcs->size() : 0);
    for (size_t here = to; here != source_;) {
      const Arc& arc = net_.arcs[last_[here]];
      if (net_.switch_channel[here] >= 0) crossed.push_back(net_.switch_channel[here]);
      crossed.push_back(arc.channel);
      if (arcs) arcs->push_back(last_[here]);
      here = arc.from;
    }
    std::reverse(crossed.begin() + start, crossed.end());
    if (arcs) std::reverse(arcs->begin() + first_arc, arcs->end());
  }

 private:
  const Net& net_;
  size_t source_;
  std::vector<RouteLength> length_;
  std::vector<int32_t> last_;
};

RouteGraph graph_of(const Net& net) {
  RouteGraph graph(net.endpoints);
  for (const Arc& arc : net.arcs) boost::add_edge(arc.from, arc.to, arc.length, graph);
  return graph;
}

/// Finds, in one traversal of a connected net, the endpoint whose removal splits it best.
class HubFinder {
 public:
  explicit HubFinder(const Net& net)
      : net_(net), first_(net.endpoints + 1, 0), seen_(net.endpoints, 0), low_(net.endpoints, 0),
        below_(net.endpoints, 0), apart_(net.endpoints, 0), squares_(net.endpoints, 0) {
    for (const Arc& arc : net.arcs) ++first_[arc.from + 1];
    for (size_t e = 0; e < net.endpoints; ++e) first_[e + 1] += first_[e];
    neighbours_.resize(net.arcs.size());
    auto next = first_;
    for (const Arc& arc : net.arcs) neighbours_[next[arc.from]++] = arc.to;
  }

  /// The switch whose removal minimises the sum of the squared device counts of the parts;
  /// `endpoints` if none separates any devices.
  size_t find() {
    walk();
    size_t best = net_.endpoints;
    uint64_t least = square(net_.devices);
    for (size_t e = net_.devices; e < net_.endpoints; ++e) {
      if (seen_[e] == 0) continue;
      const uint64_t sum = squares_[e] + square(net_.devices - apart_[e]);
      if (sum < least) least = sum, best = e;
    }
    return best;
  }

 private:
  static uint64_t square(size_t count) { return uint64_t{count} * count; }

  /// Tarjan's search for articulation points, without recursion: a neighbour whose subtree reaches
  /// no endpoint before this one is connected only through it.
  void walk() {
    auto next = first_;
    std::vector<size_t> path = {0};
    size_t count = 0;
    enter(0, ++count);
    while (!path.empty()) {
      const size_t here = path.back();
      if (next[here] < first_[here + 1]) {
        const size_t to = neighbours_[next[here]++];
        if (seen_[to] > 0) {
          low_[here] = std::min(low_[here], seen_[to]);
        } else {
          enter(to, ++count);
          path.push_back(to);
        }
        continue;
      }
      path.pop_back();
      if (path.empty()) break;
      const size_t parent = path.back();
      low_[parent] = std::min(low_[parent], low_[here]);
      below_[parent] += below_[here];
      if (low_[here] < seen_[parent]) continue;
      apart_[parent] += below_[here];
      squares_[parent] += square(below_[here]);
    }
  }

  void enter(size_t endpoint, size_t count) {
    seen_[endpoint] = low_[endpoint] = count;
    below_[endpoint] = endpoint < net_.devices ? 1 : 0;
  }

  const Net& net_;
  std::vector<size_t> first_, neighbours_, seen_, low_;
  std::vector<size_t> below_;  // devices in the subtree of an endpoint, itself included
  std::vector<size_t> apart_;  // the devices among them that are connected only through it
  std::vector<uint64_t> squares_;
};

}  // namespace

class RouteFinder {
 public:
  RouteFinder(const ClusterSpec& spec, Routes& routes) : spec_(spec), routes_(routes) {
    number_endpoints();
    add_channels();
    check_connected();
  }

  void run(bool split) {
    hub_ = split && whole_.devices > 1 ? HubFinder(whole_).find() : whole_.endpoints;
    part();
    for (size_t p = 0; p < parts_.size(); ++p) {
      poll_stop();
      add_piece(p);
    }
    for (size_t t = 0; t < nets_.size() && parted(); ++t) add_ways_in(t);
  }

 private:
  bool parted() const { return hub_ < whole_.endpoints; }

  /// Devices keep the description's numbers; switches follow in order of appearance in links.
  void number_endpoints() {
    endpoint_.reserve(2 * spec_.devices.size() + spec_.links.size());
    for (const auto& device : spec_.devices) endpoint_.emplace(device.name, endpoint_.size());
    for (const auto& link : spec_.links)
      for (const auto* name : {&link.from, &link.to}) endpoint_.emplace(*name, endpoint_.size());
    whole_.devices = spec_.devices.size();
    whole_.endpoints = endpoint_.size();
  }

  /// 1 for a device, 0 for a switch: devices have the first indices.
  int32_t is_device(size_t endpoint) const { return endpoint < whole_.devices ? 1 : 0; }

  int32_t add_channel(const Channel& channel) {
    routes_.channels_.push_back(channel);
    return static_cast<int32_t>(routes_.channels_.size()) - 1;
  }

  void add_channels() {
    std::vector<double> limit(whole_.endpoints, std::numeric_limits<double>::infinity());
    for (const auto& entry : spec_.switches)
      limit[endpoint_.at(entry.name)] = entry.bandwidth_bytes_per_s;
    routes_.channels_.reserve(2 * spec_.links.size() + spec_.switches.size());
    whole_.arcs.reserve(2 * spec_.links.size());
    for (size_t i = 0; i < spec_.links.size(); ++i) {
      const auto& link = spec_.links[i];
      const size_t a = endpoint_.at(link.from), b = endpoint_.at(link.to);
      const double width = link.bandwidth_bytes_per_s;
      const auto number = static_cast<int32_t>(i);
      const int32_t there = add_channel({width, number, -1, false});
      const int32_t back = link.half_duplex ? there : add_channel({width, number, -1, true});
      whole_.arcs.push_back(
          {a, b, there, {is_device(b), 1, std::min(width, limit[b]), link.latency_s}});
      whole_.arcs.push_back(
          {b, a, back, {is_device(a), 1, std::min(width, limit[a]), link.latency_s}});
    }
    whole_.switch_channel.assign(whole_.endpoints, -1);
    for (size_t i = 0; i < spec_.switches.size(); ++i)
      whole_.switch_channel[endpoint_.at(spec_.switches[i].name)] = add_channel(
          {spec_.switches[i].bandwidth_bytes_per_s, -1, static_cast<int32_t>(i), false});
  }

  /// [endpoint]: its part after the removal of `without`, named by the part's first endpoint.
  std::vector<size_t> parts_without(size_t without) const {
    std::vector<size_t> part(whole_.endpoints);
    for (size_t e = 0; e < part.size(); ++e) part[e] = e;
    const auto find = [&part](size_t e) {
      while (part[e] != e) e = part[e] = part[part[e]];
      return e;
    };
    for (size_t i = 0; i < whole_.arcs.size(); i += 2) {
      const Arc& arc = whole_.arcs[i];
      if (arc.from == without || arc.to == without) continue;
      const size_t a = find(arc.from), b = find(arc.to);
      part[std::max(a, b)] = std::min(a, b);
    }
    for (size_t e = 0; e < part.size(); ++e) part[e] = find(e);
    return part;
  }

  void check_connected() const {
    const auto part = parts_without(whole_.endpoints);
    for (size_t d = 1; d < whole_.devices; ++d)
      if (part[d] != part[0])
        throw ArgumentError("cluster '{}': no route of links from '{}' to '{}'", spec_.name, spec_.devices[0].name,
                            spec_.devices[d].name);
  }

  /// Endpoints and arcs of every part with devices, ascending.
  void part() {
    const auto part = parts_without(hub_);
    constexpr size_t kNone = std::numeric_limits<size_t>::max();
    std::vector<size_t> number(whole_.endpoints, kNone);
    for (size_t e = 0; e < whole_.endpoints; ++e) {
      if (e == hub_) continue;
      auto& found = number[part[e]];
      if (e < whole_.devices && found == kNone) {
        found = parts_.size();
        parts_.emplace_back();
      }
      if (found != kNone) parts_[found].endpoints.push_back(e);
    }
    for (size_t i = 0; i < whole_.arcs.size(); ++i) {
      const Arc& arc = whole_.arcs[i];
      const size_t found = number[part[arc.from == hub_ ? arc.to : arc.from]];
      if (found != kNone) parts_[found].arcs.push_back(i);
    }
    local_.assign(whole_.endpoints, 0);
    local_channel_.assign(routes_.channels_.size(), -1);
  }

  /// Part `p` as a net of its own, with the hub after its devices; appends the cluster's numbers of
  /// its channels.
  Net net_of(size_t p) {
    const auto& part = parts_[p];
    Net net;
    while (net.devices < part.endpoints.size() && part.endpoints[net.devices] < whole_.devices)
      ++net.devices;
    auto endpoints = part.endpoints;
    if (parted())
      endpoints.insert(endpoints.begin() + static_cast<std::ptrdiff_t>(net.devices), hub_);
    net.endpoints = endpoints.size();
    for (size_t e = 0; e < endpoints.size(); ++e) local_[endpoints[e]] = e;
    int32_t channels = 0;
    const auto local = [&](int32_t channel) {
      routes_.channel_numbers_.push_back(channel);
      return channels++;
    };
    for (const size_t i : part.arcs) {
      const Arc& arc = whole_.arcs[i];
      auto& channel = local_channel_[arc.channel];
      if (channel < 0) channel = local(arc.channel);
      net.arcs.push_back({local_[arc.from], local_[arc.to], channel, arc.length});
    }
    for (const size_t e : endpoints) {
      const int32_t channel = whole_.switch_channel[e];
      net.switch_channel.push_back(channel < 0 ? -1 : local(channel));
    }
    return net;
  }

  void add_piece(size_t p) {
    Routes::Piece piece;
    piece.channels = routes_.channel_numbers_.size();
    Net net = net_of(p);
    const auto [found, added] =
        tables_.emplace(net.signature(), static_cast<int32_t>(routes_.tables_.size()));
    piece.table = found->second;
    if (added) {
      add_table(net);
      nets_.push_back(std::move(net));
    }
    routes_.piece_.resize(whole_.devices);
    routes_.number_.resize(whole_.devices);
    for (const size_t e : parts_[p].endpoints)
      if (e < whole_.devices) {
        routes_.piece_[e] = static_cast<int32_t>(routes_.pieces_.size());
        routes_.number_[e] = static_cast<int32_t>(local_[e]);
      }
    routes_.pieces_.push_back(piece);
  }

  /// Adds the routes within a piece, and from its devices to the hub.
  void add_table(const Net& net) {
    auto& table = routes_.tables_.emplace_back();
    table.devices = static_cast<int32_t>(net.devices);
    for (const Arc& arc : net.arcs)
      table.hops.push_back({arc.length.latency_s, arc.length.bandwidth});
    const RouteGraph graph = graph_of(net);
    for (size_t from = 0; from < net.devices; ++from) {
      poll_stop();
      const RouteTree tree(net, graph, from, RouteLength{});
      for (size_t to = 0; to < net.devices; ++to) {
        table.wires.push_back(from == to ? Wire{} : tree.wire(to));
        tree.add_way(to, table.inside.numbers, nullptr);
        close(table.inside);
      }
      if (!parted()) continue;
      table.arrival.push_back(arrival(tree.wire(net.devices)));
      tree.add_way(net.devices, table.out.numbers, nullptr);
      close(table.out);
    }
  }

  int32_t arrival(const Wire& wire) {
    const auto key = std::pair(std::bit_cast<uint64_t>(wire.latency_s),
                               std::bit_cast<uint64_t>(wire.bandwidth_bytes_per_s));
    const auto [found, added] =
        arrival_.emplace(key, static_cast<int32_t>(routes_.arrivals_.size()));
    if (added) routes_.arrivals_.push_back(wire);
    return found->second;
  }

  void close(Routes::Lists& lists) {
    if (lists.numbers.size() > kMostCrossings)
      throw LimitError("cluster '{}': its routes cross more than {} links in total", spec_.name, kMostCrossings);
    lists.first.push_back(static_cast<int32_t>(lists.numbers.size()));
  }

  /// Adds the ways from the hub into a piece, one per arrival. A piece without a cycle has one way
  /// to each device.
  void add_ways_in(size_t t) {
    auto& table = routes_.tables_[t];
    const Net& net = nets_[t];
    table.one_way = net.arcs.size() / 2 < net.endpoints;
    const RouteGraph graph = graph_of(net);
    for (size_t a = 0; a < (table.one_way ? 1 : routes_.arrivals_.size()); ++a) {
      poll_stop();
      const Wire& wire = routes_.arrivals_[a];
      const RouteLength start{0, 0, wire.bandwidth_bytes_per_s, wire.latency_s};
      const RouteTree tree(net, graph, net.devices, start);
      for (size_t to = 0; to < net.devices; ++to) {
        tree.add_way(to, table.in.numbers, &table.in_hops.numbers);
        close(table.in);
        close(table.in_hops);
      }
    }
  }

  struct Part {
    std::vector<size_t> endpoints, arcs;  // ascending
  };

  const ClusterSpec& spec_;
  Routes& routes_;
  std::unordered_map<std::string_view, size_t> endpoint_;
  Net whole_;
  size_t hub_ = 0;
  std::vector<Part> parts_;
  std::vector<size_t> local_;           // of the current piece, by endpoint
  std::vector<int32_t> local_channel_;  // of the links' channels
  std::map<std::vector<uint64_t>, int32_t> tables_;
  std::map<std::pair<uint64_t, uint64_t>, int32_t> arrival_;
  std::vector<Net> nets_;  // of the tables
};

Routes::Routes(const ClusterSpec& spec, bool split) { RouteFinder(spec, *this).run(split); }

Wire Routes::wire(int32_t from, int32_t to) const {
  const auto& source = tables_[piece_of(from).table];
  const int32_t a = number_[from], b = number_[to];
  if (piece_[from] == piece_[to]) return source.wires[at(a) * at(source.devices) + at(b)];
  const auto& target = tables_[piece_of(to).table];
  const int32_t arrival = source.arrival[a];
  return onward(arrivals_[arrival], target, arrival, b);
}

/// A route that arrives at the switch as `wire` and continues to device `number` of a table.
Wire Routes::onward(Wire wire, const Table& target, int32_t arrival, int32_t number) const {
  for (const int32_t hop : target.in_hops[way_in(target, arrival, number)]) {
    wire.latency_s += target.hops[hop].latency_s;
    wire.bandwidth_bytes_per_s =
        std::min(wire.bandwidth_bytes_per_s, target.hops[hop].bandwidth_bytes_per_s);
  }
  return wire;
}

Route Routes::route(int32_t from, int32_t to) const {
  const Piece &here = piece_of(from), &there = piece_of(to);
  const auto &source = tables_[here.table], &target = tables_[there.table];
  const int32_t a = number_[from], b = number_[to];
  if (piece_[from] == piece_[to])
    return Route(part(here, source.inside[at(a) * at(source.devices) + at(b)]));
  return Route(part(here, source.out[a]),
               part(there, target.in[way_in(target, source.arrival[a], b)]));
}

size_t Routes::stored() const {
  size_t sum = 2 * arrivals_.size() + 2 * pieces_.size() + piece_.size() + number_.size() +
               channel_numbers_.size();
  for (const Table& table : tables_) {
    sum += 2 * table.wires.size() + table.arrival.size() + 2 * table.hops.size();
    for (const Lists* lists : {&table.inside, &table.out, &table.in, &table.in_hops})
      sum += lists->first.size() + lists->numbers.size();
  }
  return sum;
}

}  // namespace trinity
