#include <doctest/doctest.h>

#include "base/error.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "search/pase/pase_search.h"
#include "selection/selection_solver.h"

namespace trinity {
namespace {

/// Layers of random sizes with random edges between them, all dimensions of every layer carried.
PaseGraph random_layers(RandomStream& random) {
  constexpr DimensionRole kRoles[] = {DimensionRole::rows, DimensionRole::columns,
                                      DimensionRole::reduced};
  PaseGraph graph;
  graph.name = "random";
  const auto layers = static_cast<int32_t>(3 + random.below(3));
  for (int32_t i = 0; i < layers; ++i) {
    PaseLayer layer;
    layer.name = fmt::format("l{}", i);
    layer.kind = random.below(2) == 0 ? LayerKind::product : LayerKind::elementwise;
    layer.pointwise = static_cast<int32_t>(random.below(3));
    for (const auto role : kRoles)
      layer.dimensions.push_back({fmt::format("d{}", layer.dimensions.size()),
                                  static_cast<int64_t>(1 + random.below(12)), role, true});
    graph.layers.push_back(std::move(layer));
    for (int32_t j = 0; j < i; ++j)
      if (random.below(2) == 0) graph.edges.push_back({j, i, {60, 60}, {{0}, {1}}, {{0}, {2}}});
  }
  return graph;
}

double brute_force(const PaseProblem& problem) {
  std::vector<Configuration> current(problem.graph.layers.size());
  double best = std::numeric_limits<double>::infinity();
  const auto extend = [&](auto&& self, size_t i) -> void {
    if (i == current.size()) {
      best = std::min(best, price_strategy(problem, current).total());
      return;
    }
    for (const auto& configuration : problem.configurations[i]) {
      current[i] = configuration;
      self(self, i + 1);
    }
  };
  extend(extend, 0);
  return best;
}

TEST_CASE("PaSE's optimum equals brute force, and no baseline is below it") {
  RandomStream random(1, "pase_test");
  ThreadPool pool(2);
  int compared = 0;
  for (int round = 0; round < 200; ++round) {
    PaseOptions options;
    options.devices = static_cast<int32_t>(1 + random.below(4));
    options.cutoff = static_cast<int64_t>(1 + random.below(2));
    options.factors = static_cast<PaseOptions::Factors>(random.below(3));
    options.sum_edges = random.below(2) == 0;
    const auto problem = pase_problem(random_layers(random), options);
    double strategies = 1;
    for (const auto& list : problem.configurations) strategies *= static_cast<double>(list.size());
    if (strategies > 2e4) continue;
    ++compared;
    const auto solved = solve_selection(problem.selection, {}, pool);
    CHECK(solved.optimal);
    const double best = brute_force(problem);
    CHECK(solved.cost == doctest::Approx(best).epsilon(1e-12));
    WalkOptions walk;
    walk.start.assign(problem.graph.layers.size(), 0);
    walk.iterations = 2000;
    CHECK(flexflow_walk(problem.selection, walk).cost >= best * (1 - 1e-12));
    CHECK(price_strategy(problem, tofu_split(problem, pool)).total() >=
          best * (1 - 1e-12));
  }
  CHECK(compared > 100);
}

TEST_CASE("the chain finds the optimum of a small problem in time") {
  RandomStream random(2, "pase_test");
  ThreadPool pool(1);
  const auto problem = pase_problem(random_layers(random), {});
  WalkOptions walk;
  for (const auto& list : problem.configurations)
    walk.start.push_back(static_cast<int32_t>(list.size()) - 1);
  walk.iterations = 100'000;
  const auto solved = solve_selection(problem.selection, {}, pool);
  const double best = solved.cost;
  walk.start.back() = solved.choice.back();  // which the chain never changes
  CHECK(score_selection(problem.selection, walk.start).cost > best * 1.01);
  CHECK(flexflow_walk(problem.selection, walk).cost == doctest::Approx(best).epsilon(1e-12));
}

TEST_CASE("Tofu's levels multiply to the devices where all dimensions divide") {
  PaseGraph graph;
  PaseLayer layer;
  layer.name = "gemm";
  layer.kind = LayerKind::product;
  layer.dimensions = {
      {"b", 64}, {"n", 64, DimensionRole::columns}, {"c", 64, DimensionRole::reduced}};
  graph.layers = {layer};
  PaseOptions options;
  options.devices = 12;
  options.factors = PaseOptions::Factors::all;
  options.cutoff = 1;
  ThreadPool pool(1);
  const auto found = tofu_split(pase_problem(graph, options), pool);
  CHECK(found[0][0] * found[0][1] * found[0][2] == 12);
}

}  // namespace
}  // namespace trinity
