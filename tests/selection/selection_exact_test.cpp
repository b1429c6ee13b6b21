// Strategy selection: the reduced model and elimination against trying all selections.
#include <doctest/doctest.h>

#include <cmath>

#include "base/error.h"
#include "selection/selection_exact.h"
#include "selection/selection_memory.h"
#include "selection/selection_model.h"
#include "selection/selection_solver.h"
#include "support/selection_cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

SelectionResult solve(const SelectionProblem& problem, int threads = 1, double seconds = 1e6) {
  ThreadPool pool(threads);
  SelectionOptions options;
  options.seconds = seconds;
  return solve_selection(problem, options, pool);
}

/// The best of a model by elimination alone, under either rule.
double eliminated(const SelectionModel& model, EliminationRule rule) {
  std::vector<int32_t> states;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (const auto& node : model.nodes) states.push_back(node.states());
  for (const auto& edge : model.edges) edges.emplace_back(edge.u, edge.v);
  const auto elimination = elimination_order(states, edges, rule, 1e9);
  REQUIRE(elimination.complete);
  ThreadPool pool(2);
  const auto best = eliminate(model, elimination, pool);
  CHECK(model.cost(best.states) == doctest::Approx(best.cost).epsilon(1e-12));
  return best.cost;
}

}  // namespace

TEST_CASE("elimination equals trying all selections, under both orders") {
  for (uint64_t i = 0; i < 300; ++i) {
    RandomStream random(test::law_seed(), "selection exact", i);
    const auto below = [&](uint64_t n) { return static_cast<int32_t>(random.below(n)); };
    const auto problem =
        random_selection(random, {.nodes = 1 + below(7), .most_states = 2 + below(3),
                                  .edges = below(14), .whole = i % 3 != 0});
    const double best = try_all_selections(problem).cost;
    const auto plain = plain_selection_model(problem);
    for (const auto rule : {EliminationRule::generate_seq, EliminationRule::smallest_table})
      CHECK(eliminated(plain, rule) == doctest::Approx(best).epsilon(1e-12));
    const auto result = solve(problem);
    CHECK(result.optimal);
    CHECK(result.feasible);
    CHECK(result.cost == doctest::Approx(best).epsilon(1e-12));
    CHECK(result.bound == result.cost);
  }
}

TEST_CASE("the least cost of what is allowed and fits, by trying all, or proof that nothing does") {
  int infeasible[2] = {0, 0}, merged = 0, binding = 0;
  for (uint64_t i = 0; i < 800; ++i) {
    RandomStream random(test::law_seed(), "selection limits", i);
    const bool limited = i % 2 == 0;
    const auto below = [&](uint64_t n) { return static_cast<int32_t>(random.below(n)); };
    auto problem = random_selection(random, {.nodes = 2 + below(6), .edges = below(12),
                                             .forbid = limited ? 0 : below(5),
                                             .bijections = below(8), .memory = limited});
    const auto best = try_all_selections(problem);
    const auto result = solve(problem);
    CHECK(result.optimal);
    CHECK(result.feasible == best.feasible);
    if (best.feasible) CHECK(result.cost == doctest::Approx(best.cost).epsilon(1e-12));
    if (best.feasible && limited) CHECK(result.peak_usage <= *problem.usage_limit);
    infeasible[limited] += !best.feasible;
    merged += !limited && make_selection_model(problem).size() < problem.nodes();
    problem.usage_limit.reset();
    binding += limited && best.feasible && solve(problem).cost < best.cost;
  }
  for (const int count : infeasible) CHECK(count >= 20);
  CHECK(merged >= 100);
  CHECK(binding >= 20);
}

TEST_CASE("slots of memory see every peak that can break the limit") {
  for (uint64_t i = 0; i < 200; ++i) {
    RandomStream random(test::law_seed(), "selection slots", i);
    const auto nodes = 1 + static_cast<int32_t>(random.below(9));
    const auto problem =
        random_selection(random, {.nodes = nodes, .bijections = 4, .memory = true});
    const auto model = make_selection_model(problem);
    if (model.infeasible) continue;
    const SelectionMemory memory(problem, model);
    std::vector<int32_t> states;
    for (const auto& node : model.nodes)
      states.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(node.states()))));
    int64_t level = 0;
    bool fits = true;
    const auto changes = memory.sum_changes(states);
    for (size_t t = 0; t < memory.room().size(); ++t) {
      level += changes[t];
      fits = fits && level <= memory.room()[t];
    }
    const auto choice = expand_states(model, problem.nodes(), states);
    const auto score = score_selection(problem, choice);
    CHECK(score.fits == fits);
    CHECK(score.cost == doctest::Approx(model.cost(states)).epsilon(1e-12));
  }
}

TEST_CASE("a long chain of large tables: threads change nothing") {
  RandomStream random(5, "selection chain");
  SelectionProblem problem;
  for (int32_t v = 0; v < 12; ++v) {
    std::vector<double> costs;
    for (int32_t s = 0; s < 70; ++s) costs.push_back(random.uniform());
    problem.add_node(costs);
  }
  for (int32_t v = 0; v < 12; ++v)
    for (const int32_t far : {1, 2}) {
      if (v + far >= 12) continue;
      std::vector<double> table;
      for (int32_t i = 0; i < 4900; ++i) table.push_back(100 * random.uniform());
      problem.add_edge(v, v + far, table);
    }
  const auto one = solve(problem, 1), three = solve(problem, 3);
  CHECK(one.optimal);
  CHECK(eliminated(plain_selection_model(problem), EliminationRule::smallest_table) ==
        doctest::Approx(one.cost).epsilon(1e-12));
  CHECK(one.choice == three.choice);
  CHECK(one.cost == three.cost);
  CHECK(one.table_entries > 0);
  CHECK(one.peak_table_entries <= one.table_entries);
}

TEST_CASE("small and odd problems") {
  SUBCASE("no node") {
    const auto result = solve({});
    CHECK(result.feasible);
    CHECK(result.optimal);
    CHECK(result.cost == 0);
    CHECK(result.choice.empty());
  }
  SUBCASE("an edge from a node to itself counts its diagonal, parallel edges add up") {
    SelectionProblem problem;
    const double costs[] = {0, 0}, table[] = {5, -100, -100, 4}, other[] = {0, 3, 0, 3};
    problem.add_node(costs);
    problem.add_node(costs);
    problem.add_edge(0, 0, table);
    problem.add_edge(0, 1, other);
    problem.add_edge(1, 0, other);
    const auto result = solve(problem);
    CHECK(result.cost == 5);
    CHECK(result.choice == std::vector<int32_t>{0, 0});
  }
  SUBCASE("an interval without length uses nothing; usage ends before what starts") {
    SelectionProblem problem;
    const double costs[] = {1};
    const int64_t usage[] = {10};
    problem.add_node(costs, usage, {3, 3});
    problem.add_node(costs, usage, {0, 3});
    problem.add_node(costs, usage, {3, 5});
    problem.usage_limit = 10;
    const auto result = solve(problem);
    CHECK(result.feasible);
    CHECK(result.peak_usage == 10);
    problem.usage_limit = 9;
    const auto none = solve(problem);
    CHECK_FALSE(none.feasible);
    CHECK(none.optimal);
  }
  SUBCASE("infinity forbids like 1e18") {
    SelectionProblem problem;
    const double costs[] = {std::numeric_limits<double>::infinity(), 7};
    problem.add_node(costs);
    CHECK(solve(problem).cost == 7);
    problem.add_node(std::span(costs).first(1));
    const auto result = solve(problem);
    CHECK_FALSE(result.feasible);
    CHECK(result.optimal);
  }
}

TEST_CASE("a node without strategies, or whose costs are no numbers, is refused") {
  SelectionProblem problem;
  const double nan[] = {std::nan("")}, low[] = {-1e18};
  const auto add = [&](std::span<const double> costs) { problem.add_node(costs, {}, {}); };
  CHECK_THROWS_WITH_AS(add({}), "nodes.costs[0]: expected from 1 to 1000000 strategies, got 0",
                       ArgumentError);
  CHECK_THROWS_AS(add(nan), ArgumentError);
  CHECK_THROWS_AS(add(low), ArgumentError);
}
