#include "graph/algorithms.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/betweenness_centrality.hpp>
#include <boost/graph/biconnected_components.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/depth_first_search.hpp>
#include <boost/graph/incremental_components.hpp>
#include <boost/graph/reverse_graph.hpp>
#include <boost/pending/disjoint_sets.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/stop.h"

namespace trinity {
namespace {

size_t at(int32_t i) { return static_cast<size_t>(i); }

/// The property map of a vector with an entry a vertex.
template <class T>
auto map_of(std::vector<T>& values, const CsrGraph& csr) {
  return boost::make_iterator_property_map(values.begin(), boost::get(boost::vertex_index, csr));
}

void check_times(std::span<const double> times, size_t count, const char* what) {
  if (times.size() != count)
    throw ArgumentError(
        fmt::format("{} {} times for {}s, got {}", count, what, what, times.size()));
  for (size_t i = 0; i < count; ++i)
    if (!(times[i] >= 0) || std::isinf(times[i]))
      throw ArgumentError(
          fmt::format("{} {} takes {} s, expected 0 or more", what, i + 1, times[i]));
}

/// A forest whose nodes are added parents first; finds deepest common ancestors.
class AncestorForest {
 public:
  explicit AncestorForest(size_t nodes) : parent_(nodes), jump_(nodes), depth_(nodes) {}

  /// Node 0 is the root of all.
  void add(size_t node, size_t parent) {
    parent_[node] = parent;
    depth_[node] = depth_[parent] + 1;
    const size_t far = jump_[parent];
    // Jumps of equal length merge into one of twice that length, as in a skew binary number.
    const bool merge = depth_[parent] - depth_[far] == depth_[far] - depth_[jump_[far]];
    jump_[node] = merge ? jump_[far] : parent;
  }
  size_t parent(size_t node) const { return parent_[node]; }
  size_t common_ancestor(size_t a, size_t b) const {
    if (depth_[a] < depth_[b]) std::swap(a, b);
    while (depth_[a] > depth_[b]) a = depth_[jump_[a]] >= depth_[b] ? jump_[a] : parent_[a];
    while (a != b) {
      const bool leap = jump_[a] != jump_[b];
      a = leap ? jump_[a] : parent_[a];
      b = leap ? jump_[b] : parent_[b];
    }
    return a;
  }

 private:
  std::vector<size_t> parent_, jump_, depth_;
};

/// Dominators with operators in the order `first`, `first + step`, ...; `inputs(v, visit)` visits
/// what comes before v. Node v + 1 of the forest is operator v, node 0 what precedes all.
template <class Inputs>
std::vector<int32_t> dominator_sweep(int32_t count, int32_t root, bool forward, Inputs inputs) {
  AncestorForest forest(at(count) + 1);
  std::vector<int32_t> dominator(at(count), -1);
  std::vector<char> reached(at(count), 0);
  for (int32_t i = 0; i < count; ++i) {
    const int32_t v = forward ? i : count - 1 - i;
    constexpr size_t kNone = std::numeric_limits<size_t>::max();
    size_t common = kNone;
    bool source = true;
    inputs(v, [&](int32_t u) {
      source = false;
      if (!reached[at(u)]) return;
      common = common == kNone ? at(u) + 1 : forest.common_ancestor(common, at(u) + 1);
    });
    if (v == root || (root < 0 && source)) common = 0;
    if (common == kNone) continue;
    reached[at(v)] = 1;
    forest.add(at(v) + 1, common);
    dominator[at(v)] = static_cast<int32_t>(common) - 1;
  }
  return dominator;
}

/// What a breadth-first search reaches over at least one edge.
template <class AnyGraph>
std::vector<int32_t> reached_over_edges(const AnyGraph& graph, std::span<const int32_t> from) {
  const auto count = static_cast<size_t>(boost::num_vertices(graph));
  std::vector<boost::default_color_type> colour(count, boost::white_color);
  auto colours = boost::make_iterator_property_map(colour.begin(),
                                                   boost::typed_identity_property_map<int32_t>());
  std::vector<char> reached(count, 0);
  struct Visitor : boost::default_bfs_visitor {
    std::vector<char>* reached;
    void examine_edge(typename boost::graph_traits<AnyGraph>::edge_descriptor edge,
                      const AnyGraph& g) {
      (*reached)[at(static_cast<int32_t>(boost::target(edge, g)))] = 1;
    }
  } visitor;
  visitor.reached = &reached;
  boost::queue<int32_t> queue;
  for (const int32_t start : from)
    if (colour[at(start)] == boost::white_color)
      boost::breadth_first_visit(graph, start, queue, visitor, colours);
  std::vector<int32_t> list;
  for (size_t v = 0; v < count; ++v)
    if (reached[v]) list.push_back(static_cast<int32_t>(v));
  return list;
}

/// Numbers of shortest paths, as a property map for Brandes's algorithm. Refuses what a long double
/// cannot hold, and polls the stop flag: the algorithm has no visitor, but writes here all the
/// time.
class PathCounts {
 public:
  using key_type = int32_t;
  using value_type = long double;
  using reference = value_type;
  using category = boost::read_write_property_map_tag;

  PathCounts(const Graph& graph, std::vector<long double>& counts, uint32_t& writes)
      : graph_(&graph), counts_(&counts), writes_(&writes) {}

  friend value_type get(const PathCounts& map, int32_t v) { return (*map.counts_)[at(v)]; }
  friend void put(const PathCounts& map, int32_t v, value_type count) {
    if ((++*map.writes_ & 0xffff) == 0) poll_stop();
    if (std::isinf(count))
      throw LimitError(
          fmt::format("graph '{}': more shortest paths lead to '{}' than can be counted",
                      map.graph_->name(), map.graph_->op(v).name));
    (*map.counts_)[at(v)] = count;
  }

 private:
  const Graph* graph_;
  std::vector<long double>* counts_;
  uint32_t* writes_;  // across all copies of the map
};

}  // namespace

std::vector<int32_t> depth_first_order(const Graph& graph) {
  const auto& csr = graph.csr();
  const auto reversed = boost::make_reverse_graph(csr);
  struct Visitor : boost::default_dfs_visitor {
    std::vector<int32_t>* order;
    void finish_vertex(int32_t v, const decltype(reversed)&) { order->push_back(v); }
  } visitor;
  std::vector<int32_t> order;
  visitor.order = &order;
  std::vector<boost::default_color_type> colour(at(graph.operator_count()), boost::white_color);
  for (int32_t v = 0; v < graph.operator_count(); ++v)
    if (boost::out_degree(v, csr) == 0)
      boost::depth_first_visit(reversed, v, visitor, map_of(colour, csr));
  return order;
}

std::vector<int32_t> breadth_first_order(const Graph& graph) {
  std::vector<int32_t> order(at(graph.operator_count()));
  std::iota(order.begin(), order.end(), 0);
  const auto depth = graph.depth();
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return depth[at(a)] < depth[at(b)]; });
  return order;
}

LongestPath longest_path(const Graph& graph, std::span<const double> operator_time_s,
                         std::span<const double> edge_time_s) {
  const auto& csr = graph.csr();
  const int32_t count = graph.operator_count();
  check_times(operator_time_s, at(count), "operator");
  if (!edge_time_s.empty()) check_times(edge_time_s, at(graph.edge_count()), "edge");
  const auto index = boost::get(boost::edge_index, csr);
  const auto edge_time = [&](const auto& edge) {
    return edge_time_s.empty() ? 0.0 : edge_time_s[at(get(index, edge))];
  };
  LongestPath path;
  path.start_s.assign(at(count), 0);
  path.tail_s.assign(at(count), 0);
  std::vector<int32_t> next(at(count), -1);
  for (int32_t v = 0; v < count; ++v) {
    const auto [first, last] = boost::out_edges(v, csr);
    for (auto edge = first; edge != last; ++edge) {
      double& start = path.start_s[at(boost::target(*edge, csr))];
      start = std::max(start, path.start_s[at(v)] + operator_time_s[at(v)] + edge_time(*edge));
    }
  }
  for (int32_t v = count - 1; v >= 0; --v) {
    double rest = 0;
    const auto [first, last] = boost::out_edges(v, csr);
    for (auto edge = first; edge != last; ++edge) {
      const int32_t to = boost::target(*edge, csr);
      const double beyond = edge_time(*edge) + path.tail_s[at(to)];
      if (next[at(v)] >= 0 && beyond <= rest) continue;
      rest = beyond;
      next[at(v)] = to;
    }
    path.tail_s[at(v)] = operator_time_s[at(v)] + rest;
  }
  const auto longest = std::max_element(path.tail_s.begin(), path.tail_s.end());
  path.length_s = *longest;
  for (auto v = static_cast<int32_t>(longest - path.tail_s.begin()); v >= 0; v = next[at(v)])
    path.operators.push_back(v);
  return path;
}

std::vector<int32_t> dominators(const Graph& graph, int32_t root) {
  const auto& csr = graph.csr();
  return dominator_sweep(graph.operator_count(), root, true, [&](int32_t v, auto visit) {
    const auto [first, last] = boost::in_edges(v, csr);
    for (auto edge = first; edge != last; ++edge) visit(boost::source(*edge, csr));
  });
}

std::vector<int32_t> post_dominators(const Graph& graph, int32_t exit) {
  const auto& csr = graph.csr();
  return dominator_sweep(graph.operator_count(), exit, false, [&](int32_t v, auto visit) {
    const auto [first, last] = boost::out_edges(v, csr);
    for (auto edge = first; edge != last; ++edge) visit(boost::target(*edge, csr));
  });
}

std::vector<int32_t> descendants(const Graph& graph, std::span<const int32_t> from) {
  return reached_over_edges(graph.csr(), from);
}

std::vector<int32_t> ancestors(const Graph& graph, std::span<const int32_t> to) {
  return reached_over_edges(boost::make_reverse_graph(graph.csr()), to);
}

Components weak_components(const Graph& graph) {
  const auto& csr = graph.csr();
  std::vector<int32_t> rank(at(graph.operator_count())), parent(rank.size());
  boost::disjoint_sets sets(map_of(rank, csr), map_of(parent, csr));
  boost::initialize_incremental_components(csr, sets);
  boost::incremental_components(csr, sets);
  Components result;
  std::vector<int32_t> number(rank.size(), -1);
  for (int32_t v = 0; v < graph.operator_count(); ++v) {
    int32_t& component = number[at(sets.find_set(v))];
    if (component < 0) component = result.count++;
    result.component.push_back(component);
  }
  return result;
}

std::vector<int32_t> articulation_points(const Graph& graph) {
  const auto& csr = graph.csr();
  boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS> undirected(
      at(graph.operator_count()));
  const auto [first, last] = boost::edges(csr);
  for (auto edge = first; edge != last; ++edge)
    boost::add_edge(at(boost::source(*edge, csr)), at(boost::target(*edge, csr)), undirected);
  std::vector<int32_t> points;
  boost::articulation_points(undirected, std::back_inserter(points));
  std::sort(points.begin(), points.end());
  return points;
}

std::vector<double> betweenness(const Graph& graph) {
  const auto& csr = graph.csr();
  const size_t count = at(graph.operator_count());
  std::vector<long double> centrality(count), dependency(count), paths(count);
  std::vector<int32_t> distance(count);
  std::vector<std::vector<CsrGraph::edge_descriptor>> incoming(count);
  uint32_t writes = 0;
  boost::brandes_betweenness_centrality(csr, map_of(centrality, csr), boost::dummy_property_map(),
                                        map_of(incoming, csr), map_of(distance, csr),
                                        map_of(dependency, csr), PathCounts(graph, paths, writes),
                                        boost::get(boost::vertex_index, csr));
  return {centrality.begin(), centrality.end()};
}

}  // namespace trinity
