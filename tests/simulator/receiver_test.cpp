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
