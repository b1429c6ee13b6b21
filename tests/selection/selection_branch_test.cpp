// Strategy selection where memory binds: branch and bound, windows, bounds of states, states that
// cannot fit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/index.h"
#include "selection/selection_branch.h"
#include "selection/selection_dual.h"
#include "selection/selection_net.h"
#include "selection/selection_search.h"
#include "selection/selection_solver.h"
#include "selection/selection_window.h"
#include "support/selection_cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

bool closes(double bound, double cost) { return proves(bound, cost, false); }

std::vector<std::vector<int32_t>> all_states(const SelectionModel& model) {
  std::vector<std::vector<int32_t>> states;
  for (const auto& node : model.nodes) {
    auto& list = states.emplace_back();
    for (int32_t s = 0; s < node.states(); ++s) list.push_back(s);
  }
  return states;
}

SelectionProblem small_problem(uint64_t i) {
  RandomStream random(test::law_seed(), "selection branch", i);
  auto problem = random_selection(random, {.nodes = 3 + static_cast<int32_t>(random.below(5)),
                                           .edges = static_cast<int32_t>(random.below(14)),
                                           .memory = true, .whole = i % 2 == 0});
  for (auto& live : problem.live) live = {0, 1 + live.start};  // all overlap at 0
  return problem;
}

/// As a problem, with the given node in the given strategy.
BestOfAll best_with(const SelectionProblem& problem, int32_t node, int32_t strategy) {
  auto forced = problem;
  for (int32_t s = 0; s < problem.strategies(node); ++s)
    if (s != strategy) forced.node_costs[at(forced.node_offset[at(node)] + s)] = 1e18;
  return try_all_selections(forced);
}

/// A knapsack: every node has a cheap strategy that uses much and a dear one that uses little. What
/// fits is best found by trading one large usage for several small ones.
SelectionProblem knapsack(int32_t nodes) {
  RandomStream random(6, "selection knapsack");
  SelectionProblem problem;
  int64_t all = 0;
  for (int32_t v = 0; v < nodes; ++v) {
    const auto usage = static_cast<int64_t>(50 + random.below(100));
    const auto value = static_cast<double>(usage) + static_cast<double>(random.below(20));
    problem.add_node(std::vector<double>{value, 0}, std::vector<int64_t>{0, usage}, {0, 1});
    all += usage;
  }
  problem.usage_limit = all / 2;
  return problem;
}

}  // namespace

TEST_CASE("branch and bound ends with the best of all selections, or proves that there is none") {
  int feasible = 0, infeasible = 0;
  for (uint64_t i = 0; i < 150; ++i) {
    const auto problem = small_problem(i);
    const auto best = try_all_selections(problem);
    const auto model = make_selection_model(problem, {}, false);
    if (model.infeasible) continue;
    const SelectionMemory memory(problem, model);
    if (memory.slots() == 0) continue;
    SelectionBranch branch(model, memory, kInfinity, closes);
    const std::vector<double> prices(at(memory.slots()), 0.0);
    branch.start(-kInfinity, prices, all_states(model));
    for (int run = 0; run < 10000 && !branch.ended(); ++run) branch.run(1e5);
    REQUIRE(branch.ended());
    (best.feasible ? feasible : infeasible)++;
    CHECK((branch.best_cost() < kInfinity) == best.feasible);
    if (!best.feasible) {
      CHECK(branch.bound() == kInfinity);
      continue;
    }
    CHECK(branch.best_cost() == doctest::Approx(best.cost).epsilon(1e-12));
    CHECK(branch.bound() >= best.cost - 1e-9 * (1 + std::abs(best.cost)));
    const auto score =
        score_selection(problem, expand_states(model, problem.nodes(), branch.best_states()));
    CHECK(score.feasible());
    CHECK(score.cost == doctest::Approx(best.cost).epsilon(1e-12));
  }
  CHECK(feasible > 25);
  CHECK(infeasible > 60);
}

TEST_CASE("the bound of a state holds for every selection with it") {
  int looked = 0, raised = 0;
  for (uint64_t i = 0; i < 40; ++i) {
    const auto problem = small_problem(i);
    if (!try_all_selections(problem).feasible) continue;
    const auto model = make_selection_model(problem, {}, false);
    const SelectionMemory memory(problem, model);
    const SelectionNet net(model, memory);
    SelectionDual dual(net);
    for (int sweep = 0; sweep < 30; ++sweep) dual.iterate();
    std::vector<double> bounds;
    dual.state_bounds(bounds);
    const double bound = dual.certified_bound();
    for (int32_t v = 0; v < net.nodes(); ++v) {
      const auto& member = model.nodes[at(v)].members[0];
      for (int32_t s = 0; s < net.states(v); ++s) {
        const int32_t strategy = member.strategy[at(s)];
        if (std::count(member.strategy.begin(), member.strategy.end(), strategy) > 1) continue;
        const double best = best_with(problem, member.node, strategy).cost;
        const double here = bounds[at(net.first(v) + s)];
        CHECK(here <= best + 1e-9 * (1 + std::abs(best)));
        ++looked;
        raised += here > bound + 0.5;
      }
    }
  }
  CHECK(looked > 40);
  CHECK(raised > 12);
}

TEST_CASE("windows trade one usage for others where no single move is left") {
  const auto problem = knapsack(24);
  const auto model = make_selection_model(problem);
  const SelectionMemory memory(problem, model);
  const SelectionNet net(model, memory);
  // Greedy: as long as it fits, by number; then no single node can take its cheap strategy.
  std::vector<int32_t> states(at(model.size()), 0);
  int64_t used = 0;
  for (int32_t v = 0; v < model.size(); ++v) {
    const auto usage = problem.usage(model.nodes[at(v)].members[0].node)[1];
    if (used + usage > *problem.usage_limit) continue;
    used += usage;
    states[at(v)] = 1;
  }
  const std::vector<double> prices(at(memory.slots()), 1.0);
  SelectionWindows windows(net, kInfinity, closes, 1, 0), again(net, kInfinity, closes, 1, 0);
  const double greedy = model.cost(states);
  for (auto* each : {&windows, &again}) {
    each->improve_on(states, greedy);
    each->run(2e6, prices);
  }
  CHECK(windows.cost() < greedy);
  CHECK(windows.states() == again.states());
  CHECK(windows.cost() == model.cost(windows.states()));
  const auto choice = expand_states(model, problem.nodes(), windows.states());
  CHECK(score_selection(problem, choice).feasible());
  ThreadPool pool(1);
  SelectionOptions options;
  options.rounds = 60;
  const auto best = solve_selection(problem, options, pool);
  CHECK(best.optimal);
  CHECK(windows.cost() <= best.cost + 0.25 * (greedy - best.cost));
}

TEST_CASE("states that cannot fit are no part of the model, and what is left follows") {
  SelectionProblem problem;
  const std::vector<double> costs{0, 1, 2};
  problem.add_node(costs, std::vector<int64_t>{90, 40, 10}, {0, 2});
  problem.add_node(costs, std::vector<int64_t>{60, 50, 30}, {1, 3});
  problem.usage_limit = 80;  // 90 fits never, 60 with 10 only
  const auto model = make_selection_model(problem);
  REQUIRE(model.size() == 2);
  CHECK(model.nodes[0].states() == 2);
  CHECK(model.nodes[1].states() == 3);
  CHECK(make_selection_model(problem, {}, false).nodes[0].states() == 3);
  ThreadPool pool(1);
  const auto best = solve_selection(problem, {}, pool);
  CHECK(best.optimal);
  CHECK(best.cost == 2);
}
