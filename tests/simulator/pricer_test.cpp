#include "simulator/pricer.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"
#include "base/index.h"
#include "base/stop.h"
#include "simulator/mesh/mesh_bound.h"
#include "support/cases.h"
#include "support/layered.h"

namespace trinity {
namespace {

struct Priced {
  std::shared_ptr<const Cluster> cluster = test::uniform_cluster(8, 1e10, 1e-6);
  std::shared_ptr<const Problem> problem =
      test::share_problem(std::make_shared<const Graph>(test::layered_graph()), cluster);
};

/// Every mesh of up to eight devices, with each schedule that it has, and placements with splits.
std::vector<Strategy> strategies(const Problem& problem) {
  std::vector<Strategy> list;
  for (const int32_t data : {1, 2, 4})
    for (const int32_t tensor : {1, 2})
      for (const int32_t pipeline : {1, 2, 4})
        for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
          if (data * tensor * pipeline > 8) continue;
          Parallelism given;
          given.mesh.data = data;
          given.mesh.tensor = tensor;
          given.mesh.pipeline = pipeline;
          given.schedule = schedule;
          given.micro_batches = 8;
          list.emplace_back().parallelism = given;
        }
  for (int32_t op = 0; op < problem.operators(); ++op) {
    if (problem.graph().op(op).type != "Gemm") continue;
    auto& placed = list.emplace_back();
    placed.placement.assign(at(problem.operators()), 0);
    placed.splits.resize(at(problem.operators()));
    placed.splits[op].copies = 2;
    placed.splits[op].devices = {0, 3};
  }
  return list;
}

TEST_CASE("a batch of strategies costs what each costs alone, on any number of threads") {
  const Priced of;
  const auto list = strategies(*of.problem);
  std::vector<Metrics> alone;
  ThreadPool one(1);
  for (const auto& strategy : list) {
    StrategyPricer pricer(of.problem, one);
    std::vector<Metrics> metrics;
    pricer.run(std::span(&strategy, 1), metrics, kNoLimit, OnContradiction::fail);
    alone.push_back(metrics[0]);
    const auto bound = pricer.bind(strategy);
    const auto schedule = bind_schedule(bound.arranged.schedule, bound.arranged.placement,
                                        *bound.problem, OnContradiction::fail);
    Metrics by_hand;
    Simulator(*bound.problem).run({bound.arranged.placement, &schedule}, by_hand);
    CHECK(by_hand == metrics[0]);
  }
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    StrategyPricer pricer(of.problem, pool);
    std::vector<Metrics> metrics;
    for (int again = 0; again < 2; ++again) {
      pricer.run(list, metrics, kNoLimit, OnContradiction::fail);
      CHECK(metrics == alone);
    }
  }
}

TEST_CASE("a limit rejects the strategies whose step is longer, kept prices too") {
  const Priced of;
  const auto list = strategies(*of.problem);
  ThreadPool pool(2);
  StrategyPricer pricer(of.problem, pool);
  std::vector<Metrics> all, some;
  pricer.run(list, all, kNoLimit, OnContradiction::fail);
  auto times = std::vector<int64_t>();
  for (const auto& metrics : all) times.push_back(metrics.step_time_ns);
  std::nth_element(times.begin(), times.begin() + 10, times.end());
  for (int again = 0; again < 2; ++again) {
    StrategyPricer fresh(of.problem, pool);
    (again == 0 ? pricer : fresh).run(list, some, times[10], OnContradiction::fail);
    for (size_t i = 0; i < list.size(); ++i) {
      CHECK(some[i].rejected == (all[i].step_time_ns > times[10]));
      if (!some[i].rejected) CHECK(some[i] == all[i]);
    }
  }
}

TEST_CASE("strategies that differ in order, devices and micro-batches alone share a graph") {
  const Priced of;
  ThreadPool pool(1);
  StrategyPricer pricer(of.problem, pool);
  Strategy strategy;
  strategy.parallelism = Parallelism{};
  auto& given = *strategy.parallelism;
  given.mesh.data = given.mesh.pipeline = 2;
  given.micro_batches = 4;
  const auto first = pricer.bind(strategy);
  given.micro_batches = 8;
  given.schedule = "gpipe";
  given.mesh.devices = {3, 1, 5, 7};
  const auto second = pricer.bind(strategy);
  CHECK(second.made == first.made);
  CHECK(second.arranged.placement != first.arranged.placement);
  given.zero_stage = 1;
  CHECK(pricer.bind(strategy).made != first.made);
}

TEST_CASE("a strategy that does not lower is named, and nothing is half done") {
  const Priced of;
  auto list = strategies(*of.problem);
  list[2].parallelism->stages = {1, 2, 3};
  ThreadPool pool(2);
  StrategyPricer pricer(of.problem, pool);
  std::vector<Metrics> metrics;
  std::vector<int64_t> entries;
  for (size_t i = 0; i < list.size(); ++i) entries.push_back(static_cast<int64_t>(10 * i));
  CHECK_THROWS_WITH_AS(pricer.run(list, metrics, kNoLimit, OnContradiction::fail, entries),
                       doctest::Contains("entry 20: stages"), ArgumentError);
  SymmetryPricer symmetry(of.problem);
  CHECK_THROWS_AS(symmetry.price(list[2], metrics[2], kNoLimit), ArgumentError);
  list[2].parallelism->stages.clear();
  pricer.run(list, metrics, kNoLimit, OnContradiction::fail, entries);
  stop_flag() = true;
  CHECK_THROWS_AS(pricer.run(list, metrics, kNoLimit, OnContradiction::fail), Interrupted);
  stop_flag() = false;
}

TEST_CASE("results are remembered up to a number of bytes, the oldest are forgotten first") {
  const auto strategy = [](int32_t micro_batches) {
    Strategy made;
    made.parallelism = Parallelism{};
    made.parallelism->micro_batches = micro_batches;
    return made;
  };
  Metrics metrics, found;
  metrics.devices.resize(16'384);
  PriceCache cache(3 * (metrics.devices.size() * sizeof(DeviceMetrics) + 2000));
  for (int32_t m = 1; m <= 5; ++m) {
    metrics.step_time_ns = m;
    cache.add(strategy(m), metrics);
  }
  for (int32_t m = 1; m <= 5; ++m) CHECK(cache.find(strategy(m), found) == (m > 2));
  CHECK(found == metrics);

  const auto problem = test::make_problem(std::make_shared<const Graph>(test::layered_graph()),
                                          test::uniform_spec(16'384, 1e10, 1e-6));
  ResultCache results(problem, ResultCache::default_bytes(problem));
  int known = 0;
  const auto key = [](int32_t device) { return ResultCache::key(std::span(&device, 1), 0); };
  for (int32_t device = 0; device < 24; ++device) results.add(key(device), metrics);
  for (int32_t device = 0; device < 24; ++device)
    known += results.find(key(device), found);
  CHECK(known > 12);  // a place taken here or there
}

TEST_CASE("a mesh's bound depends neither on threads nor on the other meshes of its batch") {
  const Priced of;
  ThreadPool one(1), three(3);
  MeshBounder alone(of.problem, one);
  std::vector<Parallelism> meshes;
  std::vector<MeshBound> expected;
  for (const auto& strategy : strategies(*of.problem)) {
    if (!strategy.parallelism) continue;
    for (const int32_t micro_batches : {4, 8}) {  // of which some schedules refuse 4
      meshes.push_back(*strategy.parallelism);
      meshes.back().micro_batches = micro_batches;
      expected.push_back(alone.run(std::span(&meshes.back(), 1))[0]);
    }
  }
  MeshBounder together(of.problem, three);
  for (int again = 0; again < 2; ++again) CHECK(together.run(meshes) == expected);
}

}  // namespace
}  // namespace trinity
