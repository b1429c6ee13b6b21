// Graph algorithms against definitions: paths listed, orders checked edge by edge.

#include "graph/algorithms.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "support/build.h"

using namespace trinity;

namespace {

constexpr int kGraphs = 250;

struct Edge {
  int from, to;
};

std::vector<Edge> edges_of(const Graph& graph) {
  std::vector<Edge> list;
  const auto [first, last] = boost::edges(graph.csr());
  for (auto edge = first; edge != last; ++edge)
    list.push_back({static_cast<int>(boost::source(*edge, graph.csr())),
                    static_cast<int>(boost::target(*edge, graph.csr()))});
  return list;
}

std::shared_ptr<const Graph> sample(int index, int most = 14) {
  RandomStream random(7, "algorithms", static_cast<uint64_t>(index));
  return test::random_graph(random,
                            1 + static_cast<int>(random.below(static_cast<uint64_t>(most))));
}

bool is_topological(const Graph& graph, const std::vector<int32_t>& order) {
  std::vector<int> place(static_cast<size_t>(graph.operator_count()), -1);
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int>(i);
  if (order.size() != place.size()) return false;
  if (std::count(place.begin(), place.end(), -1) > 0) return false;
  const auto edges = edges_of(graph);
  return std::all_of(edges.begin(), edges.end(),
                     [&](const Edge& edge) { return place[edge.from] < place[edge.to]; });
}

/// A chain of `length` operators after operator 0, and one operator that reads 0 and the end.
Graph lasso(int length) {
  test::GraphMaker make("lasso");
  const int root = make.op("root", 1), join = make.op("join", 1);
  make.edge(root, join, 1);
  int end = root;
  for (int i = 0; i < length; ++i) {
    const int next = make.op("op" + std::to_string(i), 1);
    make.edge(end, next, 1);
    end = next;
  }
  make.edge(end, join, 1);
  return make.build();
}

}  // namespace

TEST_CASE("orders are topological, and the one by need puts branches one after the other") {
  for (int i = 0; i < kGraphs; ++i) {
    const auto graph = sample(i, 40);
    CHECK(is_topological(*graph, depth_first_order(*graph)));
    const auto broad = breadth_first_order(*graph);
    CHECK(is_topological(*graph, broad));
    CHECK(std::is_sorted(broad.begin(), broad.end(), [&](int32_t a, int32_t b) {
      return graph->depth()[a] < graph->depth()[b];
    }));
  }
  test::GraphMaker make("two branches");
  const char* names[] = {"in", "a1", "b1", "a2", "b2", "out"};
  for (const char* name : names) make.op(name, 1);
  for (const auto& [from, to] : {std::pair{0, 1}, {0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 5}})
    make.edge(from, to, 1);
  const auto graph = make.build();
  std::string order;
  for (const int32_t v : depth_first_order(graph)) order += graph.op(v).name + " ";
  CHECK((order == "in a1 a2 b1 b2 out " || order == "in b1 b2 a1 a2 out "));
}

TEST_CASE("the longest path is the longest of all paths") {
  for (int i = 0; i < kGraphs; ++i) {
    const auto graph = sample(i);
    const auto n = static_cast<size_t>(graph->operator_count());
    RandomStream random(3, "times", static_cast<uint64_t>(i));
    std::vector<double> time(n), edge_time(static_cast<size_t>(graph->edge_count()));
    for (auto& t : time) t = static_cast<double>(random.below(5));
    for (auto& t : edge_time) t = static_cast<double>(random.below(4));
    const auto edges = edges_of(*graph);
    // Longest way from the start of v on, by trying every path.
    const auto longest = [&](auto&& self, int v) -> double {
      double best = 0;
      for (size_t e = 0; e < edges.size(); ++e)
        if (edges[e].from == v) best = std::max(best, edge_time[e] + self(self, edges[e].to));
      return best + time[v];
    };
    const auto path = longest_path(*graph, time, edge_time);
    double best = 0;
    for (size_t v = 0; v < n; ++v) {
      CHECK(path.tail_s[v] == longest(longest, static_cast<int>(v)));
      best = std::max(best, path.tail_s[v]);
      CHECK(path.start_s[v] + path.tail_s[v] <= path.length_s);
    }
    CHECK(path.length_s == best);
    double along = 0;
    for (size_t k = 0; k < path.operators.size(); ++k) {
      const int v = path.operators[k];
      CHECK(path.start_s[v] == along);
      CHECK(path.start_s[v] + path.tail_s[v] == path.length_s);
      along += time[v];
      double wire = -1;
      for (size_t e = 0; e < edges.size() && k + 1 < path.operators.size(); ++e)
        if (edges[e].from == v && edges[e].to == path.operators[k + 1])
          wire = std::max(wire, edge_time[e]);
      if (k + 1 < path.operators.size()) {
        REQUIRE(wire >= 0);
        along += wire;
      }
    }
    CHECK(along == path.length_s);
  }
}

TEST_CASE("the longest path refuses times that are none") {
  const auto graph = lasso(2);
  std::vector<double> time(4, 1.0);
  CHECK_THROWS_AS(longest_path(graph, std::vector<double>(3, 1.0)), ArgumentError);
  CHECK_THROWS_AS(longest_path(graph, time, std::vector<double>(3, 1.0)), ArgumentError);
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    time[2] = bad;
    CHECK_THROWS_AS(longest_path(graph, time), ArgumentError);
  }
}

TEST_CASE("deep graphs overflow no stack") {
  const auto graph = lasso(300000);
  const auto last = graph.operator_count() - 1;
  CHECK(depth_first_order(graph).size() == static_cast<size_t>(last) + 1);
}
