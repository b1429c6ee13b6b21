// Nothing is allocated per simulation once every buffer has grown.
#include <doctest/doctest.h>

#include "simulator/batch.h"
#include "simulator/symmetry.h"
#include "support/cases.h"
#include "support/failing_new.h"
#include "support/layered.h"

using namespace trinity;

namespace {

constexpr int kPlacements = 64;

/// A problem, with collectives where wanted, and placements of it.
struct Setup {
  std::shared_ptr<const Problem> problem;
  std::vector<std::vector<int32_t>> placements;

  Setup(QueueModel queue, MemoryModel memory, bool collectives = false) {
    RandomStream random(17, "allocation");
    auto spec = test::uniform_spec(4, 12e9, 5e-6);
    spec.queue = queue;
    const auto cluster = std::make_shared<const Cluster>(spec);
    auto rules = SimulationRules::standard(*cluster);
    rules.memory = memory;
    problem =
        std::make_shared<const Problem>(test::random_step(random, 150, collectives), cluster, rules);
    for (int i = 0; i < kPlacements; ++i)
      placements.push_back(test::random_placement(random, problem->graph(), 4));
  }
  std::vector<Plan> plans(const Schedule* schedule) const {
    std::vector<Plan> result;
    for (const auto& placement : placements) result.push_back({placement, schedule});
    return result;
  }
};

template <class Body>
int64_t count(Body body) {
  test::fail_allocation(0);
  body();
  return test::fail_allocation(0);
}

/// Allocations of a second pass over all plans.
int64_t second_pass(const Problem& problem, const std::vector<Plan>& plans) {
  Simulator simulator(problem);
  Metrics metrics;
  const auto pass = [&] {
    for (const auto& plan : plans) simulator.run(plan, metrics);
  };
  pass();
  return count(pass);
}

/// A schedule of every rule, with one and with several micro-batches.
std::vector<Schedule> schedules_of(const Setup& setup) {
  std::vector<Schedule> schedules;
  for (const auto rule : {DispatchRule::fifo, DispatchRule::lifo, DispatchRule::priority})
    for (const int32_t micro_batches : {1, 3}) {
      schedules.emplace_back();
      schedules.back().dispatch = rule;
      schedules.back().micro_batches = micro_batches;
      if (rule == DispatchRule::priority)
        for (int32_t o = 0; o < setup.problem->operators(); ++o)
          schedules.back().priority.push_back(o * 7 % 20);
    }
  return schedules;
}

}  // namespace

TEST_CASE("the counter counts") {
  CHECK(count([] { std::vector<int>(100).swap(*std::make_unique<std::vector<int>>()); }) == 2);
  CHECK(count([] {}) == 0);
}

TEST_CASE("the sweep allocates nothing after its first pass") {
  for (const auto queue : {QueueModel::sender, QueueModel::pair, QueueModel::none})
    for (const auto memory : {MemoryModel::none, MemoryModel::slots}) {
      CAPTURE(std::string(choice_name(queue)));
      const Setup setup(queue, memory);
      CHECK(second_pass(*setup.problem, setup.plans(nullptr)) == 0);
    }
}

TEST_CASE("the event loop allocates nothing after its first pass") {
  for (const auto queue : test::kQueues)
    for (const auto& [memory, collectives] :
         {std::pair(MemoryModel::none, false), std::pair(MemoryModel::slots, false),
          std::pair(MemoryModel::slots, true)}) {
      CAPTURE(collectives);
      const Setup setup(queue, memory, collectives);
      for (const auto& schedule : schedules_of(setup)) {
        CAPTURE(std::string(choice_name(queue)));
        CAPTURE(std::string(choice_name(schedule.dispatch)));
        CHECK(second_pass(*setup.problem, setup.plans(&schedule)) == 0);
      }
    }
}

TEST_CASE("a batch allocates nothing per evaluation after two passes") {
  for (const size_t cache_bytes : {size_t{0}, BatchSimulator::kCacheBytes}) {
    CAPTURE(cache_bytes);
    const Setup setup(QueueModel::sender, MemoryModel::slots);
    const auto plans = setup.plans(nullptr);
    ThreadPool pool(1);
    BatchSimulator batch(*setup.problem, pool, cache_bytes);
    std::vector<Metrics> metrics, one;
    for (int pass = 0; pass < 2; ++pass) batch.run(plans, metrics);
    const std::span<const Plan> first(plans.data(), 1);
    for (int pass = 0; pass < 2; ++pass) batch.run(first, one);
    // Allocations of a batch of one are the batch's own: the loop's body.
    const int64_t of_one = count([&] { batch.run(first, one); });
    CHECK(of_one <= 1);
    CHECK(count([&] { batch.run(plans, metrics); }) == of_one);
  }
}

TEST_CASE("a mesh whose structure was seen allocates nothing, collectives included") {
  const auto graph = std::make_shared<const Graph>(test::layered_graph(16));
  for (const auto queue : {QueueModel::sender, QueueModel::pair, QueueModel::route}) {
    auto spec = test::rail_spec(4, 8);
    spec.queue = queue;
    SymmetryPricer pricer(test::share_problem(graph, spec));
    std::vector<Strategy> strategies;
    for (const int32_t zero_stage : {0, 1, 3})
      for (const int64_t bucket : {int64_t{1}, int64_t{25'000'000}}) {
        auto& given = strategies.emplace_back().parallelism.emplace();
        given.mesh.data = 4;
        given.mesh.tensor = 4;
        given.mesh.pipeline = 2;
        given.micro_batches = 8;
        given.zero_stage = zero_stage;
        given.bucket_bytes = bucket;
      }
    std::vector<Metrics> metrics(strategies.size());
    bool priced = true;
    const auto pass = [&] {
      for (size_t i = 0; i < strategies.size(); ++i)
        priced = pricer.price(strategies[i], metrics[i], kNoLimit) && priced;
    };
    pass();
    pass();
    CAPTURE(std::string(choice_name(queue)));
    CHECK(count(pass) == 0);
    CHECK(priced);
  }
}
