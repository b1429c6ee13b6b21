// The simulator against the slow reference of tests/support, bit for bit, on thousands of random
// graphs, clusters, placements and schedules.
#include "support/reference.h"

#include <doctest/doctest.h>

#include "simulator/simulator.h"
#include "support/cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

/// Both simulators on one case; every number must agree.
void compare(const test::Case& c, uint64_t index) {
  Metrics metrics, plain;
  Timeline timeline;
  timeline.wants_owners = true;
  Simulator simulator(*c.problem);
  simulator.run(c.plan(), metrics, &timeline);
  INFO("case ", index);
  test::check_reference(*c.problem, c.plan(), metrics, timeline);
  simulator.run(c.plan(), plain);  // again, without a timeline
  CHECK(plain == metrics);
}

/// The problem on devices of one node that contend.
void make_contend(test::Case& c, uint64_t index) {
  for (auto& device : c.spec.devices) device.node = index % 5 ? "node" : "";
  for (auto& type : c.spec.device_types) {
    type.contention = 1 + 0.37 * static_cast<double>(index % 7);
    type.operators["Work"].contention = 1.0 + 0.001 * static_cast<double>(index);
  }
  c.problem = test::share_problem(std::make_shared<const Graph>(c.problem->graph()), c.spec);
}

}  // namespace

TEST_CASE("one micro-batch equals the reference under every queue model and dispatch rule") {
  uint64_t index = 0;
  for (const auto queue : test::kQueues)
    for (const auto rule : test::kDispatchRules)
      for (uint64_t i = 0; i < test::draws(300); ++i, ++index)
        compare(test::random_case(index, {.queue = queue, .dispatch = rule}), index);
}

TEST_CASE("larger graphs on many devices equal the reference") {
  uint64_t index = 5000;
  for (const auto queue : test::kQueues)
    for (uint64_t i = 0; i < test::draws(12); ++i, ++index)
      compare(test::random_case(index, {.queue = queue,
                                        .dispatch = test::kDispatchRules[i % 3],
                                        .most_operators = 250,
                                        .most_devices = 60}),
              index);
}

TEST_CASE("a thousand devices around two levels of switches equal the reference") {
  RandomStream random(test::law_seed(), "thousand");
  test::Case c{.spec = test::node_spec(32, 32, 12e9, 50e9, 4e-6, 6e-6)};
  const auto graph = test::random_step(random, 100, true);
  c.placement = test::random_placement(random, *graph, 1024);
  for (const auto queue : {QueueModel::sender, QueueModel::route, QueueModel::fair}) {
    c.spec.queue = queue;
    c.problem = test::share_problem(graph, c.spec);
    compare(c, 0);
  }
}

TEST_CASE("when hundreds are ready at once all equals the reference") {
  for (uint64_t i = 0; i < test::draws(100); ++i) {
    RandomStream random(test::law_seed(), "wide", i);
    test::GraphMaker make("wide");
    for (int o = 0; o < 800; ++o) {  // that read any earlier ones
      make.op("op" + std::to_string(o), 1e-9 * static_cast<double>(random.below(3000)));
      make.output(o, static_cast<int64_t>(random.below(10000)));
      for (uint64_t reads = o < 5 ? 0 : 1 + random.below(2); reads > 0; --reads)
        make.read(o, static_cast<int>(random.below(static_cast<uint64_t>(o))));
    }
    test::Case c{.spec = test::uniform_spec(1 + static_cast<int>(i / 5 % 5), 5e9, i % 2 ? 0 : 1e-6)};
    c.spec.queue = test::kQueues[i % 5];
    c.problem = test::share_problem(make.share(), c.spec);
    c.placement = test::random_placement(random, c.problem->graph(), c.problem->devices());
    c.schedule.dispatch = test::kDispatchRules[i / 5 % 3];
    if (c.schedule.dispatch == DispatchRule::priority)
      for (int o = 0; o < 800; ++o) c.schedule.priority.push_back(static_cast<int64_t>(random.below(5)));
    c.schedule.micro_batches = i / 20 % 2 ? 3 : 1;
    compare(c, i);
  }
}

TEST_CASE("without memory and with pauses all equals the reference") {
  for (uint64_t i = 0; i < test::draws(400); ++i) {
    auto c = test::random_case(i, {.queue = test::kQueues[i % 5],
                                   .dispatch = test::kDispatchRules[i / 5 % 3],
                                   .most_devices = i % 7 ? 4 : 12,
                                   .most_micro_batches = i % 11 ? 3 : 7});
    auto rules = c.problem->rules();
    const bool shared = rules.queue == QueueModel::route || rules.queue == QueueModel::fair;
    rules.memory = i % 2 ? MemoryModel::none : MemoryModel::slots;
    rules.device_dead_ns = i % 4 ? 5700 : 0;
    rules.link_dead_ns = !shared && i / 10 % 2 ? 25000 : 0;
    rules.dead_after_free = i % 3 == 0;
    c.problem = std::make_shared<const Problem>(std::make_shared<const Graph>(c.problem->graph()),
                                                std::make_shared<const Cluster>(c.spec), rules);
    compare(c, i);
  }
}

TEST_CASE("micro-batches and collectives equal the reference") {
  uint64_t index = 10000;
  for (const auto queue : test::kQueues)
    for (const auto rule : test::kDispatchRules)
      for (uint64_t i = 0; i < test::draws(150); ++i, ++index)
        compare(test::random_case(index, {.queue = queue,
                                          .dispatch = rule,
                                          .most_operators = 40,
                                          .most_micro_batches = 4,
                                          .collectives = i % 2 == 0}),
                index);
}

TEST_CASE("fixed orders equal the reference, and replaying a run gives the run") {
  uint64_t index = 20000;
  for (const auto queue : test::kQueues) {
    for (uint64_t i = 0; i < test::draws(120); ++i, ++index) {
      auto c = test::random_case(index, {.queue = queue,
                                         .most_operators = 40,
                                         .most_micro_batches = 3,
                                         .collectives = i % 2 == 0});
      Metrics metrics, replayed;
      Timeline timeline;
      Simulator simulator(*c.problem);
      simulator.run(c.plan(), metrics, &timeline);
      c.schedule = test::order_of(*c.problem, timeline);
      simulator.run(c.plan(), replayed);
      CHECK(replayed.step_time_ns == metrics.step_time_ns);
      compare(c, index);
    }
  }
}

TEST_CASE("a receiver's copies and contention equal the reference") {
  for (uint64_t i = 0; i < test::draws(400); ++i) {
    auto c = test::random_case(i, {.queue = QueueModel::receiver,
                                   .dispatch = test::kDispatchRules[i / 3 % 3],
                                   .most_operators = 40,
                                   .most_micro_batches = i % 2 ? 3 : 1,
                                   .collectives = i % 4 == 0});
    if (i % 3) make_contend(c, i);
    compare(c, i);
  }
}
