// The same plan costs the same: whatever ran before, in whatever batch, on however many threads.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"
#include "simulator/batch.h"
#include "support/cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

/// Plans of one problem: several placements, each under several schedules.
struct Plans {
  std::shared_ptr<const Problem> problem;
  std::vector<std::vector<int32_t>> placements;
  std::vector<Schedule> schedules;
  std::vector<Plan> plans;

  explicit Plans(uint64_t index) {
    const auto c = test::mixed_case(index);
    problem = c.problem;
    RandomStream random(test::law_seed(), "plans", index);
    for (int i = 0; i < 12; ++i)
      placements.push_back(test::random_placement(random, problem->graph(), problem->devices()));
    schedules = {c.schedule, {}, {}};
    schedules[2].dispatch = DispatchRule::lifo;
    schedules[2].micro_batches = 2;
    for (const auto& placement : placements) {
      for (const auto& schedule : schedules) plans.push_back({placement, &schedule});
      plans.push_back({placement, nullptr});
    }
    plans.push_back(plans[3]);  // one twice
  }
};

}  // namespace

TEST_CASE("a simulator gives the same again, whatever it ran in between") {
  for (uint64_t i = 0; i < 60; ++i) {
    CAPTURE(i);
    const Plans p(i);
    Simulator used(*p.problem);
    Timeline reused;
    for (const auto& plan : p.plans) {
      Metrics fresh, again, limited;
      Timeline timeline;
      Simulator(*p.problem).run(plan, fresh, &timeline);
      used.run(plan, again);
      CHECK(again == fresh);
      used.run(plan, limited, nullptr, fresh.step_time_ns / 2);
      used.run(plan, again, &reused);
      CHECK(again == fresh);
      CHECK(test::equal(reused, timeline));
    }
  }
}

TEST_CASE("a simulator is as good as new after an error") {
  test::GraphMaker make("pair");
  const int a = make.op("a", 5e-6), b = make.op("b", 4e-6);
  make.edge(a, b, 3000);
  const auto cluster = test::uniform_cluster(2, 1e9, 1e-6);
  const Problem problem(make.share(), cluster, SimulationRules{});
  const std::vector<int32_t> placement = {0, 0};
  Simulator simulator(problem);
  Metrics metrics, again;
  simulator.run(placement, metrics);
  Schedule backwards;
  backwards.dispatch = DispatchRule::order;
  backwards.order = {1, 0};
  backwards.order_first = {0, 2, 2};
  CHECK_THROWS_AS(simulator.run(Plan{placement, &backwards}, again), ArgumentError);
  simulator.run(placement, again);
  CHECK(again == metrics);
  backwards.order = {0, 1};
  simulator.run(Plan{placement, &backwards}, again);
  CHECK(again == metrics);
}

TEST_CASE("a batch gives the same for any number of threads, any order, and any cache") {
  for (uint64_t i = 0; i < 20; ++i) {
    CAPTURE(i);
    const Plans p(i);
    std::vector<Metrics> expected, metrics;
    for (const auto& plan : p.plans) {
      expected.emplace_back();
      Simulator(*p.problem).run(plan, expected.back());
    }
    auto backwards = p.plans;
    std::reverse(backwards.begin(), backwards.end());
    for (const int threads : {1, 2, 5}) {
      ThreadPool pool(threads);
      for (const size_t cache_bytes : {size_t{0}, size_t{2000}, BatchSimulator::kCacheBytes}) {
        BatchSimulator batch(*p.problem, pool, cache_bytes);
        for (int pass = 0; pass < 2; ++pass) {
          batch.run(p.plans, metrics);
          CHECK(metrics == expected);
          batch.run(backwards, metrics);
          std::reverse(metrics.begin(), metrics.end());
          CHECK(metrics == expected);
        }
      }
    }
    ResultCache cache(*p.problem, BatchSimulator::kCacheBytes);
    size_t known = 0;
    for (int pass = 0; pass < 2; ++pass)
      for (size_t plan = 0; plan < p.plans.size(); ++plan) {
        const auto key = ResultCache::key(p.plans[plan].placement, plan);
        Metrics found;
        if (!cache.find(key, found))
          cache.add(key, expected[plan]);
        else
          known += found == expected[plan];
      }
    CHECK(2 * known > p.plans.size());  // a place taken here or there
  }
}

TEST_CASE("schedules that differ in anything have other hashes") {
  const Schedule plain;
  Schedule versions, from, to;
  versions.weight_versions = {2};
  from.measured_from = to.measured_to = 1;
  CHECK(hash_value(Schedule{}) == hash_value(plain));
  for (const auto* other : {&versions, &from, &to}) CHECK(hash_value(*other) != hash_value(plain));
  CHECK(hash_value(from) != hash_value(to));
}

TEST_CASE("one micro-batch equals no schedule") {
  for (uint64_t i = 0; i < test::draws(100); ++i) {
    CAPTURE(i);
    const auto c = test::random_case(i, {.queue = test::kQueues[i % 5], .collectives = i % 2 == 0});
    const Schedule once;
    Metrics metrics, plain;
    Timeline timeline, plain_timeline;
    Simulator simulator(*c.problem);
    simulator.run(Plan{c.placement, &once}, metrics, &timeline);
    simulator.run(c.placement, plain, &plain_timeline);
    CHECK(metrics == plain);
    CHECK(test::equal(timeline, plain_timeline));
  }
}
