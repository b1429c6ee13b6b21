// Plans that cannot be simulated are refused in words that name the culprit.
#include <doctest/doctest.h>

#include "base/error.h"
#include "simulator/batch.h"
#include "simulator/memory_bound.h"
#include "support/cases.h"

using namespace trinity;

namespace {

/// a -> b -> c, and an update u that reads c; numbers 0 to 3.
test::GraphMaker chain() {
  test::GraphMaker make("chain");
  const int a = make.op("a", 1e-6), b = make.op("b", 1e-6), c = make.op("c", 1e-6);
  const int u = make.op_of(Phase::update, "u", 1e-6);
  make.edge(a, b, 10);
  make.edge(b, c, 10);
  make.edge(c, u, 10);
  return make;
}

/// The chain on two devices: a and c on d0, b and u on d1.
class TwoDevices {
 public:
  TwoDevices() : problem_(chain().share(), test::uniform_cluster(2, 1e9, 1e-6), {}) {}

  Metrics run(const Schedule& schedule) const {
    return test::metrics_of(problem_, {placement_, &schedule});
  }
  /// Runs fixed sequences: d0's tasks, then d1's.
  Metrics in_order(std::vector<int32_t> first, const std::vector<int32_t>& second,
                   int32_t micro_batches = 1) const {
    Schedule schedule;
    schedule.dispatch = DispatchRule::order;
    schedule.micro_batches = micro_batches;
    const auto on_first = static_cast<int32_t>(first.size());
    first.insert(first.end(), second.begin(), second.end());
    schedule.order = std::move(first);
    schedule.order_first = {0, on_first, static_cast<int32_t>(schedule.order.size())};
    return run(schedule);
  }

 private:
  Problem problem_;
  std::vector<int32_t> placement_ = {0, 1, 0, 1};
};

template <class Error, class Body>
void refuses(const char* text, Body body) {
  CHECK_THROWS_WITH_AS(body(), doctest::Contains(text), Error);
}

}  // namespace

TEST_CASE("schedules that do not fit the problem are refused") {
  const TwoDevices two;
  Schedule schedule;
  for (const int32_t none : {0, -1}) {
    schedule.micro_batches = none;
    refuses<ArgumentError>("micro_batches must be at least 1", [&] { two.run(schedule); });
  }
  schedule.micro_batches = 1 << 30;
  refuses<LimitError>("more than 2^30 tasks", [&] { two.run(schedule); });
  schedule.micro_batches = 1;
  schedule.dispatch = DispatchRule::priority;
  for (const size_t entries : {0, 3, 5}) {
    schedule.priority.assign(entries, 1);
    refuses<ArgumentError>("priorities of graph 'chain' need 4 entries",
                           [&] { two.run(schedule); });
  }
}

TEST_CASE("orders that are none are refused") {
  const TwoDevices two;
  Schedule schedule;
  schedule.dispatch = DispatchRule::order;
  schedule.order = {0, 2, 1, 3};
  for (const auto& first : std::vector<std::vector<int32_t>>{
           {}, {0, 4}, {0, 2, 3}, {1, 2, 4}, {0, 5, 4}, {0, 2, 4, 4}, {0, -1, 4}}) {
    schedule.order_first = first;
    refuses<ArgumentError>("a sequence for each of the 2 devices", [&] { two.run(schedule); });
  }
  refuses<ArgumentError>("names task 4, expected 0 to 3", [&] { two.in_order({0, 2}, {1, 4}); });
  refuses<ArgumentError>("names task -1", [&] { two.in_order({0, 2}, {1, -1}); });
  refuses<ArgumentError>("operator 'b' of micro-batch 1 twice", [&] {
    two.in_order({0, 2}, {1, 1, 3});
  });
  refuses<ArgumentError>("operator 'a' of micro-batch 2 twice", [&] {
    two.in_order({0, 4, 4, 2, 6}, {1, 5, 7}, 2);
  });
  refuses<ArgumentError>("of device 'd0' names operator 'b', which is placed on 'd1'", [&] {
    two.in_order({0, 1, 2}, {3});
  });
}

TEST_CASE("orders that contradict the graph name what every device waits for") {
  const TwoDevices two;
  CHECK(two.in_order({0, 2}, {1, 3}).step_time_ns == 7030);
  refuses<ArgumentError>(
      "the order contradicts graph 'chain': device 'd0' waits for 'c' of micro-batch 1; device "
      "'d1' waits for 'b' of micro-batch 1",
      [&] {
        two.in_order({2, 0}, {1, 3});
      });
  refuses<ArgumentError>(
      "device 'd0' waits for 'c' of micro-batch 2; device 'd1' waits for 'u' of micro-batch 2",
      [&] {
        two.in_order({0, 4, 2, 6}, {1, 7, 5}, 2);
      });
}

TEST_CASE("orders that leave tasks out name what waits for them") {
  const TwoDevices two;
  refuses<ArgumentError>("device 'd0' waits for 'c' of micro-batch 1", [&] {
    two.in_order({0, 2}, {3});
  });
  refuses<ArgumentError>("1 tasks are missing from the devices' orders",
                         [&] { two.in_order({0, 2}, {1}); });
  refuses<ArgumentError>("4 tasks are missing from the devices' orders",
                         [&] { two.in_order({}, {}); });
}

TEST_CASE("what a sequence passes over is nothing that a device waits for") {
  const TwoDevices two;
  // Task 3 is the update in the first of two micro-batches, where it does not run.
  CHECK(two.in_order({0, 4, 2, 6}, {3, 1, 5, 7}, 2) == two.in_order({0, 4, 2, 6}, {1, 5, 7}, 2));
  refuses<ArgumentError>(
      "device 'd0' waits for 'c' of micro-batch 1; device 'd1' waits for 'b' of micro-batch 1",
      [&] {
        two.in_order({2, 0, 4, 6}, {3, 1, 5, 7}, 2);
      });
}

TEST_CASE("members of collectives in an order are passed over") {
  for (uint64_t i = 0; i < 40; ++i) {
    auto c = test::random_case(i, {.collectives = true});
    Metrics metrics, again;
    Timeline timeline;
    Simulator simulator(*c.problem);
    simulator.run(c.plan(), metrics, &timeline);
    auto& schedule = c.schedule = test::order_of(*c.problem, timeline);
    for (int32_t d = c.problem->devices() - 1; d >= 0; --d)
      for (int32_t o = 0; o < c.problem->operators(); ++o)
        if (c.problem->graph().op(o).collective >= 0 && c.placement[o] == d) {
          schedule.order.insert(schedule.order.begin() + schedule.order_first[d], o);
          for (int32_t after = d + 1; after <= c.problem->devices(); ++after)
            ++schedule.order_first[after];
        }
    simulator.run(c.plan(), again);
    CHECK(again.step_time_ns == metrics.step_time_ns);
  }
}

TEST_CASE("what runs once cannot feed what runs every micro-batch") {
  test::GraphMaker make("backwards");
  const int once = make.op_of(Phase::update, "once", 1e-6), often = make.op("often", 1e-6);
  make.edge(once, often, 10);
  const Problem problem(make.share(), test::uniform_cluster(1, 1e9, 0), {});
  const std::vector<int32_t> placement = {0, 0};
  Schedule schedule;
  Metrics metrics;
  Simulator simulator(problem);
  simulator.run(Plan{placement, &schedule}, metrics);
  CHECK(metrics.step_time_ns == 2000);
  schedule.micro_batches = 2;
  refuses<ArgumentError>(
      "operator 'often' runs in every micro-batch but reads from 'once', which runs once a step",
      [&] {
        simulator.run(Plan{placement, &schedule}, metrics);
      });
}

TEST_CASE("a collective whose algorithm does not apply to its devices is refused") {
  test::GraphMaker make("reduce");
  for (const char* name : {"x", "y", "z"}) make.op(name, 0);
  make.collective("sum", 800, {0, 1, 2}, CollectiveKind::all_reduce,
                  CollectiveAlgorithm::halving_doubling);
  const auto problem = test::make_problem(make.share(), test::uniform_spec(3, 1e9, 0));
  Simulator simulator(problem);
  Metrics metrics;
  simulator.run(std::vector<int32_t>{0, 2, 2}, metrics);  // two devices
  CHECK(metrics.step_time_ns == 800);
  refuses<ArgumentError>("'halving_doubling' expects a power of two of devices, got 3", [&] {
    simulator.run(std::vector<int32_t>{0, 1, 2}, metrics);
  });
  simulator.run(std::vector<int32_t>{1, 1, 1}, metrics);
  CHECK(metrics.step_time_ns == 0);
}

TEST_CASE("rules that contradict each other are refused") {
  const auto cluster = test::uniform_cluster(2, 1e9, 0);
  const auto refused = [&](const char* text, auto change) {
    auto rules = SimulationRules::compat();
    change(rules);
    refuses<ArgumentError>(text, [&] { Problem(chain().share(), cluster, rules); });
  };
  for (const auto queue : {QueueModel::route, QueueModel::fair}) {
    refused("cannot be combined with rules", [=](SimulationRules& r) { r.queue = queue; });
    refused("cannot be combined with rules", [=](SimulationRules& r) {
      r = {};
      r.queue = queue;
      r.link_dead_ns = 1;
    });
  }
  test::GraphMaker reduce("reduce");
  const int x = reduce.op("x", 0);
  reduce.collective("sum", 8, {x});
  refuses<ArgumentError>("rules 'placeto' do not support collectives",
                         [&] { Problem(reduce.share(), cluster, SimulationRules::compat()); });
  const Problem published(chain().share(), cluster, SimulationRules::compat());
  Schedule schedule;
  Metrics metrics;
  const std::vector<int32_t> placement(4, 0);
  const auto run = [&] { Simulator(published).run(Plan{placement, &schedule}, metrics); };
  run();
  schedule.dispatch = DispatchRule::lifo;
  refuses<ArgumentError>("rules 'placeto' support only one micro-batch", run);
  schedule.dispatch = DispatchRule::fifo;
  schedule.micro_batches = 2;
  refuses<ArgumentError>("rules 'placeto' support only one micro-batch", run);
}

TEST_CASE("negative pauses are refused") {
  const auto cluster = test::uniform_cluster(2, 1e9, 0);
  SimulationRules devices, links;
  devices.device_dead_ns = -1;
  links.link_dead_ns = -1;
  CHECK_THROWS_AS(Problem(chain().share(), cluster, devices), ArgumentError);
  CHECK_THROWS_AS(Problem(chain().share(), cluster, links), ArgumentError);
}

TEST_CASE("graphs that cannot fit into memory are refused by name") {
  const auto check = [](int64_t memory_bytes, int64_t weights, int64_t tensor) {
    test::GraphMaker make("big");
    const int a = make.op("a", 1e-6, weights), b = make.op("b", 1e-6, weights);
    make.edge(a, b, tensor);
    const auto spec = test::uniform_spec(2, 1e9, 0, memory_bytes);
    check_memory(Problem(make.share(), std::make_shared<const Cluster>(spec), {}));
  };
  check(1000, 900, 100);
  refuses<LimitError>("operator 'a' alone needs 1.01 kB", [&] { check(1000, 900, 110); });
  refuses<LimitError>("operator 'a' alone needs 1.1 kB", [&] { check(1000, 1100, 0); });
  test::GraphMaker make("many");
  for (const char* name : {"a", "b", "c"}) make.op(name, 1e-6, 700);
  const auto cluster = std::make_shared<const Cluster>(test::uniform_spec(2, 1e9, 0, 1000));
  refuses<LimitError>("need 2.1 kB and all 2 devices of cluster 'uniform' together have 2 kB",
                      [&] { check_memory(Problem(make.share(), cluster, {})); });
}

TEST_CASE("a batch passes on the error of its first bad plan, and goes on after it") {
  const Problem problem(chain().share(), test::uniform_cluster(2, 1e9, 1e-6), {});
  const std::vector<int32_t> placement = {0, 1, 0, 1};
  Schedule good, none, wrong;
  none.micro_batches = 0;
  wrong.dispatch = DispatchRule::priority;
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    BatchSimulator batch(problem, pool);
    std::vector<Metrics> metrics;
    const std::vector<Plan> plans = {{placement, &good}, {placement, &none}, {placement, &wrong}};
    refuses<ArgumentError>("micro_batches must be", [&] { batch.run(plans, metrics); });
    batch.run(std::vector<Plan>{{placement, &good}}, metrics);
    REQUIRE(metrics.size() == 1);
    CHECK(metrics[0].step_time_ns == 7030);
    batch.run({}, metrics);
    CHECK(metrics.empty());
  }
}

// ---- The clock

namespace {

Problem bind(const ClusterSpec& spec, double time_s = 1e-6, int64_t bytes = 10,
             SimulationRules rules = {}) {
  test::GraphMaker make("pair");
  const int a = make.op("a", 1e-6), b = make.op("b", time_s);
  make.edge(a, b, bytes);
  rules.queue = spec.queue;
  return {make.share(), std::make_shared<const Cluster>(spec), rules};
}

}  // namespace

TEST_CASE("times beyond the clock are refused when they are bound") {
  const auto spec = test::uniform_spec(2, 1e9, 0);
  CHECK(bind(spec, 9e5).cost_ns(0, 1) == 900'000'000'000'000);
  refuses<LimitError>("operator 'b' would take 1000000 s on device 'd0'", [&] { bind(spec, 1e6); });
  refuses<LimitError>("operator 'b' would take", [&] { bind(spec, 1e300); });
  auto slow = spec;
  slow.devices[1].speed = 1e-300;
  refuses<LimitError>("on device 'd1'", [&] { bind(slow); });
  for (const double bandwidth : {1.0, 1e-3, 1e-300})
    refuses<LimitError>("check the units of bandwidths and times",
                        [&] { bind(test::uniform_spec(2, bandwidth, 0), 1e-6, int64_t{1} << 40); });
  // Each fits, all together do not.
  test::GraphMaker make("long");
  for (int o = 0; o < 5200; ++o) make.op("op" + std::to_string(o), 9.9e5);
  refuses<LimitError>("more than the simulator's clock",
                      [&] { Problem(make.share(), std::make_shared<const Cluster>(spec), {}); });
}

TEST_CASE("latencies beyond the clock are refused when they are bound") {
  for (const double latency_s : {5e9, 1e10, 1e12, 1e300}) {
    CAPTURE(latency_s);
    CHECK_THROWS_AS(bind(test::uniform_spec(2, 1e9, latency_s)), LimitError);
  }
}

TEST_CASE("pauses beyond the clock are refused when they are bound") {
  for (const int64_t pause_ns : {int64_t{1} << 62, INT64_MAX / 2, INT64_MAX - 1000, INT64_MAX}) {
    CAPTURE(pause_ns);
    SimulationRules devices, links;
    devices.device_dead_ns = pause_ns;
    links.link_dead_ns = pause_ns;
    const auto spec = test::uniform_spec(2, 1e9, 0);
    CHECK_THROWS_AS(bind(spec, 1e-6, 10, devices), LimitError);
    CHECK_THROWS_AS(bind(spec, 1e-6, 10, links), LimitError);
  }
}

TEST_CASE("micro-batches beyond the clock are refused") {
  const auto problem = bind(test::uniform_spec(2, 1e9, 0), 9e5);
  const std::vector<int32_t> placement = {0, 1};
  Schedule schedule;
  Metrics metrics;
  schedule.micro_batches = 5000;
  Simulator(problem).run(Plan{placement, &schedule}, metrics);
  CHECK(metrics.step_time_ns == 4'500'000'000'000'001'010);
  schedule.micro_batches = 6000;
  refuses<LimitError>("6000 micro-batches of graph 'pair' could take longer", [&] {
    Simulator(problem).run(Plan{placement, &schedule}, metrics);
  });
}

TEST_CASE("collectives beyond the clock are refused") {
  const auto run = [](int collectives, int64_t bytes, QueueModel queue = QueueModel::sender) {
    test::GraphMaker make("reduce");
    std::vector<int32_t> placement;
    int32_t before = -1;
    for (int i = 0; i < collectives; ++i) {
      const int x = make.op(fmt::format("x{}", i), 0), y = make.op(fmt::format("y{}", i), 0);
      if (before >= 0) make.read(x, before);
      before = make.output(x, 0);
      make.collective(fmt::format("sum{}", i), bytes, {x, y}, CollectiveKind::all_reduce,
                      CollectiveAlgorithm::ring);
      placement.insert(placement.end(), {0, 1});
    }
    auto spec = test::uniform_spec(2, 1, 0);
    spec.queue = queue;
    const auto problem = test::make_problem(make.share(), spec);
    return test::metrics_of(problem, {placement}).step_time_ns;
  };
  CHECK(run(3, 900'000) == 2'700'000'000'000'000);
  refuses<LimitError>("collective 'sum0' would take 1000000 s", [&] { run(1, 1'000'000); });
  for (const auto queue : test::kQueues)
    CHECK_THROWS_AS(run(12'000, 900'000, queue), LimitError);  // 900,000 s each, 342 years in all
}

TEST_CASE("the least priority goes last") {
  test::GraphMaker make("two");
  make.op("a", 1e-6);
  make.op("b", 1e-6);
  const Problem problem(make.share(), test::uniform_cluster(1, 1e9, 0), {});
  const std::vector<int32_t> placement = {0, 0};
  Schedule schedule;
  schedule.dispatch = DispatchRule::priority;
  for (const int64_t least : {int64_t{-1}, INT64_MIN + 1, INT64_MIN}) {
    CAPTURE(least);
    schedule.priority = {least, 0};
    const auto [metrics, timeline] = test::simulate(problem, {placement, &schedule});
    CHECK(timeline.start_ns == std::vector<int64_t>{1000, 0});
  }
}

TEST_CASE("a bandwidth without bounds makes a link free under every queue model") {
  for (const auto queue : test::kQueues)
    for (const double bandwidth : {1e15, 1e18, 1e20, 1e300}) {
      CAPTURE(std::string(choice_name(queue)));
      CAPTURE(bandwidth);
      auto spec = test::uniform_spec(2, bandwidth, 0);
      spec.queue = queue;
      const auto problem = bind(spec);
      const auto metrics = test::metrics_of(problem, {std::vector<int32_t>{0, 1}});
      CHECK(metrics.step_time_ns <= 2001);  // fair shares end in the nanosecond that they need
    }
}
