// Rejection under a limit is exact, however early it comes.
#include <doctest/doctest.h>

#include <set>

#include "simulator/batch.h"
#include "support/cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

std::set<int64_t> limits_around(int64_t step) {
  return {-1, 0, 1, step / 2, step - step / 16, step - 1, step, step + 1, 2 * step, kNoLimit};
}

/// Metrics that a plan of this step time must give under a limit.
Metrics expected_under(const Metrics& unlimited, int64_t limit_ns) {
  auto expected = unlimited;
  if (unlimited.step_time_ns > limit_ns) expected.reject(limit_ns);
  return expected;
}

void check_limits(const Problem& problem, const Plan& plan) {
  Simulator simulator(problem);
  Metrics unlimited, metrics;
  Timeline timeline, limited_timeline;
  simulator.run(plan, unlimited, &timeline);
  for (const int64_t limit : limits_around(unlimited.step_time_ns)) {
    CAPTURE(limit);
    const auto expected = expected_under(unlimited, limit);
    simulator.run(plan, metrics, nullptr, limit);
    CHECK(metrics == expected);
    CHECK(metrics.rejected == (unlimited.step_time_ns > limit));
    simulator.run(plan, metrics, &limited_timeline, limit);
    CHECK(metrics == expected);
    if (!metrics.rejected) CHECK(test::equal(limited_timeline, timeline));
  }
}

}  // namespace

TEST_CASE("a plan is rejected exactly when its step is longer than the limit") {
  for (uint64_t i = 0; i < test::draws(600); ++i) {
    CAPTURE(i);
    const auto c = test::mixed_case(i);
    check_limits(*c.problem, c.plan());
    if (i % 3 == 0) check_limits(*c.problem, Plan{c.placement, nullptr});
  }
}

TEST_CASE("fixed orders are rejected exactly when their step is longer than the limit") {
  for (uint64_t i = 0; i < test::draws(100); ++i) {
    CAPTURE(i);
    auto c = test::mixed_case(i);
    const auto [metrics, timeline] = test::simulate(*c.problem, c.plan());
    c.schedule = test::order_of(*c.problem, timeline);
    check_limits(*c.problem, c.plan());
  }
}

TEST_CASE("the published rules are rejected exactly, though their step ends with a pause") {
  test::GraphMaker make("alone");
  make.op("a", 1e-6);
  const Problem alone(make.share(), test::uniform_cluster(1, 1e9, 0), SimulationRules::compat());
  Metrics metrics;
  Simulator(alone).run(std::vector<int32_t>{0}, metrics, nullptr, 2000);
  CHECK(metrics.rejected);  // 1000 ns of work, then a pause of 5700
  for (uint64_t i = 0; i < 10; ++i) {
    CAPTURE(i);
    const auto c = test::random_case(i, {});
    const Problem problem(std::make_shared<const Graph>(c.problem->graph()),
                          std::make_shared<const Cluster>(c.spec), SimulationRules::compat());
    check_limits(problem, Plan{c.placement, nullptr});
  }
}

TEST_CASE("a batch rejects the same whether its cache knows a plan or not") {
  for (uint64_t i = 0; i < 40; ++i) {
    CAPTURE(i);
    const auto c = test::mixed_case(i);
    RandomStream random(test::law_seed(), "limit", i);
    std::vector<std::vector<int32_t>> placements;
    for (int p = 0; p < 8; ++p)
      placements.push_back(
          test::random_placement(random, c.problem->graph(), c.problem->devices()));
    std::vector<Plan> plans;
    std::vector<Metrics> unlimited, metrics;
    for (const auto& placement : placements) plans.push_back({placement, &c.schedule});
    ThreadPool pool(1);
    BatchSimulator(*c.problem, pool, 0).run(plans, unlimited);
    BatchSimulator known(*c.problem, pool), unknown(*c.problem, pool, 0),
        learning(*c.problem, pool);
    known.run(plans, metrics);
    for (const int64_t limit : limits_around(unlimited[0].step_time_ns)) {
      CAPTURE(limit);
      std::vector<Metrics> expected;
      for (const auto& one : unlimited) expected.push_back(expected_under(one, limit));
      for (auto* batch : {&known, &unknown, &learning}) {
        batch->run(plans, metrics, limit);
        CHECK(metrics == expected);
      }
    }
    known.run(plans, metrics);  // what was rejected has not been remembered as such
    CHECK(metrics == unlimited);
    learning.run(plans, metrics);
    CHECK(metrics == unlimited);
  }
}
