#include "graph/algorithms.h"

#include <algorithm>
#include <boost/graph/depth_first_search.hpp>
#include <boost/graph/reverse_graph.hpp>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/index.h"

namespace trinity {
namespace {

/// The property map of a vector with one entry per vertex.
template <class T>
auto map_of(std::vector<T>& values, const CsrGraph& csr) {
  return boost::make_iterator_property_map(values.begin(), boost::get(boost::vertex_index, csr));
}

void check_times(std::span<const double> times, size_t count, const char* what) {
  if (times.size() != count)
    throw ArgumentError("{} {} times for {}s, got {}", count, what, what, times.size());
  for (size_t i = 0; i < count; ++i)
    if (!(times[i] >= 0) || std::isinf(times[i]))
      throw ArgumentError("{} {} takes {} s, expected 0 or more", what, i + 1, times[i]);
}

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
                   [&](int32_t a, int32_t b) { return depth[a] < depth[b]; });
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
    return edge_time_s.empty() ? 0.0 : edge_time_s[get(index, edge)];
  };
  LongestPath path;
  path.start_s.assign(at(count), 0);
  path.tail_s.assign(at(count), 0);
  std::vector<int32_t> next(at(count), -1);
  for (int32_t v = 0; v < count; ++v) {
    const auto [first, last] = boost::out_edges(v, csr);
    for (auto edge = first; edge != last; ++edge) {
      double& start = path.start_s[boost::target(*edge, csr)];
      start = std::max(start, path.start_s[v] + operator_time_s[v] + edge_time(*edge));
    }
  }
  for (int32_t v = count - 1; v >= 0; --v) {
    double rest = 0;
    const auto [first, last] = boost::out_edges(v, csr);
    for (auto edge = first; edge != last; ++edge) {
      const int32_t to = boost::target(*edge, csr);
      const double beyond = edge_time(*edge) + path.tail_s[to];
      if (next[v] >= 0 && beyond <= rest) continue;
      rest = beyond;
      next[v] = to;
    }
    path.tail_s[v] = operator_time_s[v] + rest;
  }
  const auto longest = std::max_element(path.tail_s.begin(), path.tail_s.end());
  path.length_s = *longest;
  for (auto v = static_cast<int32_t>(longest - path.tail_s.begin()); v >= 0; v = next[v])
    path.operators.push_back(v);
  return path;
}

}  // namespace trinity
