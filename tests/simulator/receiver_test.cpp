// Devices that copy what they read themselves (QueueModel::receiver).
#include <doctest/doctest.h>

#include "simulator/analysis.h"
#include "support/build.h"
#include "support/cases.h"
#include "support/laws.h"
#include "support/reference.h"
#include "support/tier.h"

using namespace trinity;

namespace {

/// The problem on devices of one node that contend.
void make_contend(test::Case& c, uint64_t index) {
  for (auto& device : c.spec.devices) device.node = index % 5 ? "node" : "";
  for (auto& type : c.spec.device_types) {
    type.contention = 1 + 0.37 * static_cast<double>(index % 7);
    type.operators["Work"].contention = 1.0 + 0.001 * static_cast<double>(index);
  }
  const auto cluster = std::make_shared<const Cluster>(c.spec);
  c.problem = std::make_shared<const Problem>(std::make_shared<const Graph>(c.problem->graph()),
                                              cluster, SimulationRules::standard(*cluster));
}

/// Operators a (10 us) and b, both read by c (10 us), on two devices whose links take 1 us and 1 us
/// a kB; copies are the receiver's.
Problem join(double b_s) {
  test::GraphMaker make("join");
  const int a = make.op("a", 10e-6), b = make.op("b", b_s), c = make.op("c", 10e-6);
  make.edge(a, c, 2000);
  make.edge(b, c, 2000);
  auto spec = test::uniform_spec(2, 1e9, 1e-6);
  spec.queue = QueueModel::receiver;
  const auto cluster = std::make_shared<const Cluster>(spec);
  return Problem(make.share(), cluster, SimulationRules::standard(*cluster));
}

}  // namespace

TEST_CASE("a receiver's copies and contention equal the reference") {
  int transfers = 0;
  for (uint64_t i = 0; i < test::draws(400); ++i) {
    CAPTURE(i);
    auto c = test::random_case(i, {.queue = QueueModel::receiver,
                                   .dispatch = test::kDispatchRules[i / 3 % 3],
                                   .most_operators = 40,
                                   .most_micro_batches = i % 2 ? 3 : 1,
                                   .collectives = i % 4 == 0});
    if (i % 3) make_contend(c, i);
    Simulator simulator(*c.problem);
    Metrics metrics, expected;
    Timeline timeline, truth;
    simulator.run(c.plan(), metrics, &timeline);
    test::simulate_reference(*c.problem, c.plan(), expected, truth);
    CHECK(metrics.step_time_ns == expected.step_time_ns);
    CHECK(metrics.peak_memory_bytes == expected.peak_memory_bytes);
    CHECK(test::equal(timeline, truth));
    transfers += metrics.transfers;
    const auto path = critical_path(*c.problem, c.placement, timeline);
    CHECK(path.compute_ns + path.wire_ns + path.collective_ns + path.queue_ns ==
          metrics.step_time_ns);
  }
  CHECK(transfers >= test::least(1000));
}

// Device 1 makes a (10 us), device 0 makes b (4 us) and then c (10 us), which reads both. Copies
// take 1 us and 1 us a kB, so c waits 6 us for a and starts after the copy of 3 us; b is not
// copied.
TEST_CASE("a receiver computes nothing while it copies") {
  const Problem problem = join(4e-6);
  Simulator simulator(problem);
  Metrics metrics;
  Timeline timeline;
  const std::vector<int32_t> placement{1, 0, 0};
  simulator.run(placement, metrics, &timeline);
  CHECK(metrics.step_time_ns == 23000);
  REQUIRE(timeline.transfers.size() == 1);
  CHECK(timeline.transfers[0].start_ns == 10000);
  CHECK(timeline.transfers[0].end_ns == 13000);
  CHECK(timeline.ready_ns[2] == 10000);
  CHECK(timeline.start_ns[2] == 13000);
}

// As above, but device 0 works for 12 us: the copy begins when it takes c, not when a is made.
TEST_CASE("a busy receiver copies later") {
  const Problem problem = join(12e-6);
  Simulator simulator(problem);
  Metrics metrics;
  simulator.run(std::vector<int32_t>{1, 0, 0}, metrics);
  CHECK(metrics.step_time_ns == 25000);
  simulator.run(std::vector<int32_t>{0, 0, 0}, metrics);
  CHECK(metrics.step_time_ns == 32000);
  CHECK(metrics.transfers == 0);
}

TEST_CASE("devices that compute at once slow each other down") {
  test::GraphMaker make("both");
  for (const char* name : {"a", "b"}) make.op(name, 10e-6);
  make.op("c", 20e-6);
  auto spec = test::uniform_spec(2, 1e9, 1e-6);
  for (auto& device : spec.devices) device.node = "node";
  spec.device_types[0].contention = 1.5;
  const auto cluster = std::make_shared<const Cluster>(spec);
  const Problem problem(make.share(), cluster, SimulationRules::standard(*cluster));
  REQUIRE(problem.contends());
  Simulator simulator(problem);
  Metrics metrics;
  Timeline timeline;
  simulator.run(std::vector<int32_t>{0, 0, 1}, metrics, &timeline);
  // a and b take 15 us each beside c, which has done 20 of its 20 us by then.
  CHECK(timeline.end_ns[0] == 15000);
  CHECK(timeline.end_ns[1] == 30000);
  CHECK(timeline.end_ns[2] == 30000);
  simulator.run(std::vector<int32_t>{0, 1, 1}, metrics, &timeline);
  // a and b together until 15 us, then c alone.
  CHECK(timeline.end_ns[0] == 15000);
  CHECK(timeline.end_ns[1] == 15000);
  CHECK(timeline.end_ns[2] == 35000);
  CHECK(metrics.devices[1].compute_busy_ns == 35000);
  simulator.run(std::vector<int32_t>{0, 0, 0}, metrics, &timeline);
  CHECK(metrics.step_time_ns == 40000);
}
