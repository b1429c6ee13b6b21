// Strategy selection where elimination cannot go: bounds, selections within limits, determinism.
#include <doctest/doctest.h>

#include <cmath>

#include "base/stop.h"
#include "selection/selection_search.h"
#include "selection/selection_solver.h"
#include "support/selection_cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

/// The anytime search alone, even where the exact solver could do it.
SelectionFound search(const SelectionProblem& problem, int threads, int64_t rounds,
                      uint64_t seed = 1) {
  auto model = make_selection_model(problem);
  REQUIRE_FALSE(model.infeasible);
  const SelectionMemory memory(problem, model);
  SelectionSearchOptions options;
  options.seed = seed;
  options.rounds = rounds;
  options.go_on = [](double cost, double bound) { return !proves(bound, cost, false); };
  ThreadPool pool(threads);
  auto found = search_selection(model, memory, options, pool);
  found.states = expand_states(model, problem.nodes(), found.states);
  return found;
}

/// A grid with memory, too wide to eliminate.
SelectionProblem grid(int32_t side, int32_t states, uint64_t seed, double limit_share) {
  RandomStream random(seed, "selection grid");
  SelectionProblem problem;
  int64_t most = 0;
  for (int32_t v = 0; v < side * side; ++v) {
    std::vector<double> costs;
    std::vector<int64_t> usage;
    for (int32_t s = 0; s < states; ++s) {
      costs.push_back(static_cast<double>(random.below(1000)));
      usage.push_back(static_cast<int64_t>(1 + random.below(100)));
    }
    problem.add_node(costs, usage, {v, v + 3 * side});
    most += 100;
  }
  for (int32_t v = 0; v < side * side; ++v)
    for (const int32_t far : {1, side}) {
      if ((far == 1 && v % side == side - 1) || v + far >= side * side) continue;
      std::vector<double> table;
      for (int32_t i = 0; i < states * states; ++i)
        table.push_back(static_cast<double>(random.below(1000)));
      problem.add_edge(v, v + far, table);
    }
  problem.usage_limit = static_cast<int64_t>(limit_share * 3 * side * 100);
  return problem;
}

}  // namespace

TEST_CASE("the bound holds and selections are what they are said to be, on small problems") {
  int best_found = 0, cases = 0;
  for (uint64_t i = 0; i < 80; ++i) {
    RandomStream random(test::law_seed(), "selection search", i);
    const auto below = [&](uint64_t n) { return static_cast<int32_t>(random.below(n)); };
    const auto problem = random_selection(
        random, {.nodes = 2 + below(6), .edges = below(12), .forbid = below(3),
                 .bijections = below(4), .memory = i % 2 == 0, .whole = i % 3 != 0});
    const auto best = try_all_selections(problem);
    if (make_selection_model(problem).infeasible) continue;
    const auto found = search(problem, 1, 1, i);
    const auto score = score_selection(problem, found.states);
    if (!best.feasible) {
      CHECK(found.cost == std::numeric_limits<double>::infinity());
      CHECK_FALSE(score.feasible());
      continue;
    }
    ++cases;
    CHECK(found.bound <= best.cost + 1e-9 * (1 + std::abs(best.cost)));
    if (!(found.cost < std::numeric_limits<double>::infinity())) continue;
    CHECK(score.feasible());
    CHECK(score.cost == doctest::Approx(found.cost).epsilon(1e-9));
    CHECK(found.cost >= best.cost - 1e-9 * (1 + std::abs(best.cost)));
    best_found += found.cost <= best.cost + 1e-9 * (1 + std::abs(best.cost));
  }
  CHECK(cases > 40);
  CHECK(best_found > cases * 8 / 10);
}

TEST_CASE("on a tree without limit the bound equals the optimum") {
  for (uint64_t i = 0; i < 8; ++i) {
    RandomStream random(2, "selection tree", i);
    SelectionProblem problem;
    const double costs[] = {3, 1, 4, 1.5};
    for (int32_t v = 0; v < 20; ++v) {
      problem.add_node(costs);
      std::vector<double> table;
      for (int32_t k = 0; k < 16; ++k) table.push_back(random.uniform());
      if (v > 0)
        problem.add_edge(static_cast<int32_t>(random.below(static_cast<uint64_t>(v))), v, table);
    }
    ThreadPool pool(1);
    const auto exact = solve_selection(problem, {}, pool);
    REQUIRE(exact.optimal);
    const auto found = search(problem, 1, 1);
    CHECK(found.bound == doctest::Approx(exact.cost).epsilon(1e-5));
    CHECK(found.cost == doctest::Approx(exact.cost).epsilon(1e-9));
  }
}

TEST_CASE("seed and rounds decide, threads do not") {
  const auto problem = grid(14, 5, 3, 0.42);
  const auto one = search(problem, 1, 4), two = search(problem, 2, 4);
  CHECK(one.cost == two.cost);
  CHECK(one.bound == two.bound);
  CHECK(one.states == two.states);
  CHECK(one.cost < std::numeric_limits<double>::infinity());
  CHECK(one.bound < one.cost);
  CHECK(one.bound > 0.8 * one.cost);
  CHECK(score_selection(problem, one.states).feasible());
}

TEST_CASE("a wish to stop ends the search with the best so far") {
  const auto problem = grid(14, 5, 5, 0.42);
  ThreadPool pool(2);
  SelectionOptions options;
  options.seconds = 1e6;
  int calls = 0;
  options.progress = [&](const SelectionProgress& progress) {
    if (progress.cost < 1e300 && ++calls == 2) stop_flag() = true;
  };
  const auto result = solve_selection(problem, options, pool);
  stop_flag() = false;
  CHECK(result.stopped);
  CHECK(result.feasible);
  CHECK(result.seconds < 60);
}
