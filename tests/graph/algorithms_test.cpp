// Graph algorithms against definitions: paths listed, operators removed, sums over all pairs.

#include "graph/algorithms.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dominator_tree.hpp>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/stop.h"
#include "formats/pipedream.h"
#include "graph/training.h"
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

/// reach[a][b]: whether a path leads from a to b (a itself included) without operator `without`.
std::vector<std::vector<char>> reach_of(const Graph& graph, int without = -1) {
  const auto n = static_cast<size_t>(graph.operator_count());
  std::vector<std::vector<char>> reach(n, std::vector<char>(n, 0));
  const auto edges = edges_of(graph);
  for (int a = 0; a < static_cast<int>(n); ++a) {
    if (a == without) continue;
    reach[a][a] = 1;
    for (int v = a; v < static_cast<int>(n); ++v)
      for (const auto& edge : edges)
        if (edge.to == v && v != without && reach[a][edge.from]) reach[a][v] = 1;
  }
  return reach;
}

/// Operators without inputs, or the one given.
std::vector<int> roots_of(const Graph& graph, int root) {
  if (root >= 0) return {root};
  std::vector<int> roots;
  for (int v = 0; v < graph.operator_count(); ++v)
    if (boost::in_degree(v, graph.csr()) == 0) roots.push_back(v);
  return roots;
}

std::vector<int> exits_of(const Graph& graph, int exit) {
  if (exit >= 0) return {exit};
  std::vector<int> exits;
  for (int v = 0; v < graph.operator_count(); ++v)
    if (boost::out_degree(v, graph.csr()) == 0) exits.push_back(v);
  return exits;
}

/// Per operator the nearest other one whose removal parts it from all ends; -1 for none, and for
/// those that no end is connected with. `forward`: ends are roots, else exits.
std::vector<int32_t> dominators_by_removal(const Graph& graph, const std::vector<int>& ends,
                                           bool forward) {
  const int n = graph.operator_count();
  const auto connected = [&](const auto& reach, int v) {
    return std::any_of(ends.begin(), ends.end(),
                       [&](int end) { return forward ? reach[end][v] : reach[v][end]; });
  };
  const auto whole = reach_of(graph);
  std::vector<int32_t> nearest(static_cast<size_t>(n), -1);
  for (int u = 0; u < n; ++u) {
    const auto without = reach_of(graph, u);
    for (int v = 0; v < n; ++v) {
      if (v == u || !connected(whole, v) || connected(without, v)) continue;
      // Dominators lie on one path, so the nearest is the one with the extreme number.
      if (nearest[v] < 0 || forward) nearest[v] = u;
    }
  }
  return nearest;
}

int count_components(const Graph& graph, int without, std::vector<int32_t>* component) {
  const int n = graph.operator_count();
  std::vector<int32_t> label(static_cast<size_t>(n), -1);
  const auto edges = edges_of(graph);
  int count = 0;
  for (int v = 0; v < n; ++v) {
    if (v == without || label[v] >= 0) continue;
    label[v] = count;
    for (int round = 0; round < n; ++round)
      for (const auto& edge : edges) {
        if (edge.from == without || edge.to == without) continue;
        if (label[edge.from] == count) label[edge.to] = count;
        if (label[edge.to] == count) label[edge.from] = count;
      }
    ++count;
  }
  if (component) *component = label;
  return count;
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

/// A chain of `length` operators behind operator 0, and one operator that reads 0 and the end.
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

TEST_CASE("dominators are what every path runs through") {
  for (int i = 0; i < kGraphs; ++i) {
    const auto graph = sample(i);
    for (int root = -1; root < graph->operator_count(); ++root) {
      CHECK(dominators(*graph, root) ==
            dominators_by_removal(*graph, roots_of(*graph, root), true));
      CHECK(post_dominators(*graph, root) ==
            dominators_by_removal(*graph, exits_of(*graph, root), false));
    }
  }
}

TEST_CASE("dominators agree with Boost's Lengauer-Tarjan") {
  for (int i = 0; i < kGraphs; ++i) {
    const auto graph = sample(i, 200);
    const auto n = static_cast<size_t>(graph->operator_count());
    // A root before all others: Boost takes operators that its root does not reach for roots.
    boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS> copy(n + 1);
    for (const auto& edge : edges_of(*graph))
      boost::add_edge(static_cast<size_t>(edge.from), static_cast<size_t>(edge.to), copy);
    for (const int v : roots_of(*graph, -1)) boost::add_edge(n, static_cast<size_t>(v), copy);
    std::vector<size_t> tree(n + 1, n);
    boost::lengauer_tarjan_dominator_tree(
        copy, n,
        boost::make_iterator_property_map(tree.begin(), boost::get(boost::vertex_index, copy)));
    std::vector<int32_t> parent;
    for (size_t v = 0; v < n; ++v)
      parent.push_back(tree[v] == n ? -1 : static_cast<int32_t>(tree[v]));
    CHECK(dominators(*graph) == parent);
  }
}

TEST_CASE("deep graphs overflow no stack") {
  const auto graph = lasso(300000);
  const auto last = graph.operator_count() - 1;
  const auto up = dominators(graph), down = post_dominators(graph);
  CHECK(up[last] == 0);
  CHECK(up[last - 1] == last - 2);
  CHECK(down[0] == last);
  CHECK(depth_first_order(graph).size() == static_cast<size_t>(last) + 1);
  CHECK(articulation_points(graph).empty());
  CHECK(weak_components(graph).count == 1);
  const std::vector<int32_t> root{0};
  CHECK(descendants(graph, root).size() == static_cast<size_t>(last));
}

TEST_CASE("descendants and ancestors are what paths lead to") {
  for (int i = 0; i < kGraphs; ++i) {
    const auto graph = sample(i);
    const auto reach = reach_of(*graph);
    RandomStream random(5, "sets", static_cast<uint64_t>(i));
    const auto n = static_cast<uint64_t>(graph->operator_count());
    std::vector<int32_t> set{static_cast<int32_t>(random.below(n))};
    while (random.below(2)) set.push_back(static_cast<int32_t>(random.below(n)));
    std::vector<int32_t> after, before;
    for (int v = 0; v < static_cast<int>(n); ++v) {
      const auto leads = [&](int u, int w) { return u != w && reach[u][w]; };
      if (std::any_of(set.begin(), set.end(), [&](int s) { return leads(s, v); }))
        after.push_back(v);
      if (std::any_of(set.begin(), set.end(), [&](int s) { return leads(v, s); }))
        before.push_back(v);
    }
    CHECK(descendants(*graph, set) == after);
    CHECK(ancestors(*graph, set) == before);
  }
}

TEST_CASE("components and articulation points by removal") {
  for (int i = 0; i < kGraphs; ++i) {
    const auto graph = sample(i);
    std::vector<int32_t> label;
    const int count = count_components(*graph, -1, &label);
    const auto components = weak_components(*graph);
    CHECK(components.count == count);
    CHECK(components.component == label);
    std::vector<int32_t> points;
    for (int v = 0; v < graph->operator_count(); ++v)
      if (count_components(*graph, v, nullptr) > count) points.push_back(v);
    CHECK(articulation_points(*graph) == points);
  }
}

TEST_CASE("betweenness counts shortest paths") {
  for (int i = 0; i < kGraphs; ++i) {
    const auto graph = sample(i);
    const auto n = static_cast<size_t>(graph->operator_count());
    // Distances and numbers of shortest paths between all pairs, edge by edge.
    std::vector<std::vector<double>> distance(n, std::vector<double>(n, 1e9)), paths(n);
    for (size_t s = 0; s < n; ++s) {
      paths[s].assign(n, 0);
      distance[s][s] = 0;
      paths[s][s] = 1;
      for (size_t v = s; v < n; ++v)
        for (const auto& edge : edges_of(*graph))
          if (edge.to == static_cast<int>(v))
            distance[s][v] = std::min(distance[s][v], distance[s][edge.from] + 1);
      for (size_t v = s + 1; v < n; ++v)
        for (const auto& edge : edges_of(*graph))
          if (edge.to == static_cast<int>(v) && distance[s][edge.from] + 1 == distance[s][v])
            paths[s][v] += paths[s][edge.from];
    }
    const auto values = betweenness(*graph);
    for (size_t v = 0; v < n; ++v) {
      double sum = 0;
      for (size_t s = 0; s < n; ++s)
        for (size_t t = 0; t < n; ++t)
          if (s != v && t != v && s != t && distance[s][t] < 1e9 &&
              distance[s][v] + distance[v][t] == distance[s][t])
            sum += paths[s][v] * paths[v][t] / paths[s][t];
      CHECK(values[v] == doctest::Approx(sum).epsilon(1e-12));
    }
  }
}

TEST_CASE("betweenness counts more paths than a 64-bit integer, and says when it cannot") {
  const auto diamonds = [](int count) {
    test::GraphMaker make("diamonds");
    int top = make.op("top", 1);
    for (int i = 0; i < count; ++i) {
      const auto name = std::to_string(i);
      const int a = make.op("a" + name, 1), b = make.op("b" + name, 1);
      const int bottom = make.op("bottom" + name, 1);
      for (const int middle : {a, b}) {
        make.edge(top, middle, 1);
        make.edge(middle, bottom, 1);
      }
      top = bottom;
    }
    return make.build();
  };
  const auto values = betweenness(diamonds(100));
  const int32_t join = 3 * 50;  // 150 operators above it, as many below: all pairs run through it
  CHECK(values[join] == doctest::Approx(150.0 * 150.0));
  CHECK(values[join + 1] == doctest::Approx(values[join + 2]));

  test::GraphMaker make("ladder");  // four ways at every step, 2^16400 in all
  int end = make.op("op0", 1);
  for (int i = 1; i <= 8200; ++i) {
    const int next = make.op("op" + std::to_string(i), 1);
    for (int k = 0; k < 4; ++k) make.edge(end, next, 1);
    end = next;
  }
  CHECK_THROWS_AS(betweenness(make.build()), LimitError);
}

TEST_CASE("a wish to stop ends betweenness") {
  const auto graph = lasso(2000);
  stop_flag() = true;
  CHECK_THROWS_AS(betweenness(graph), Interrupted);
  stop_flag() = false;
}

TEST_CASE("a published graph: ResNet-18 as PipeDream profiled it") {
  const auto path =
      std::string(TRINITY_SOURCE_DIR) + "/../shared/data/pipedream/resnet18.graph.txt";
  if (!std::filesystem::exists(path)) {
    MESSAGE("skipped: no ", path);
    return;
  }
  const auto graph = read_pipedream(path);
  CHECK(weak_components(graph).count == 1);
  CHECK(dominators(graph) == dominators_by_removal(graph, roots_of(graph, -1), true));
  CHECK(post_dominators(graph) == dominators_by_removal(graph, exits_of(graph, -1), false));
  CHECK(is_topological(graph, depth_first_order(graph)));
  std::vector<double> ones(static_cast<size_t>(graph.operator_count()), 1.0);
  const auto longest = longest_path(graph, ones);
  const auto deepest = *std::max_element(graph.depth().begin(), graph.depth().end());
  CHECK(longest.length_s == deepest + 1);
  for (const int32_t v : articulation_points(graph)) CHECK(count_components(graph, v, nullptr) > 1);
}
