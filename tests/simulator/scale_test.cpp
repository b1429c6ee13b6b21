// Sizes far beyond the usual: a million operators, a thousand devices.
#include <doctest/doctest.h>

#include "simulator/bounds.h"
#include "support/cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

/// Operators of 1 to 5 us that read one or two of the last `reach` tensors.
std::shared_ptr<const Graph> large_graph(int operators, uint64_t reach) {
  RandomStream random(1, "scale", static_cast<uint64_t>(operators));
  test::GraphMaker make("large");
  for (int o = 0; o < operators; ++o) {
    make.op("op" + std::to_string(o), 1e-9 * static_cast<double>(1000 + random.below(4000)), 100);
    make.output(o, static_cast<int64_t>(random.below(20000)));
    for (uint64_t reads = o > 0 ? 1 + random.below(2) : 0; reads > 0; --reads)
      make.read(o, o - 1 - static_cast<int>(random.below(std::min<uint64_t>(reach, o))));
  }
  return make.share();
}

/// Four equal devices, all of whose links are send queues.
void check_bounds(const Problem& problem, const Metrics& metrics) {
  const auto bounds = lower_bounds(problem);
  int64_t work = 0, sent = 0, received = 0, wires = 0;
  for (const auto& device : metrics.devices) {
    work += device.compute_busy_ns;
    wires += device.send_busy_ns;
    sent += device.bytes_sent;
    received += device.bytes_received;
    CHECK(device.peak_memory_bytes >= 27'500'000);  // a quarter of the weights
  }
  CHECK(sent == received);
  CHECK(bounds.work_ns == (work + 3) / 4);
  CHECK(bounds.step_time_ns >= bounds.critical_path_ns);
  CHECK(metrics.step_time_ns >= bounds.step_time_ns);
  CHECK(metrics.step_time_ns <= work + wires);
  CHECK(metrics.peak_memory_bytes >= bounds.peak_memory_bytes);
}

}  // namespace

/// More than fit 20 bits of a packed key.
TEST_CASE("more than a million operators on four devices" * test::all_tier) {
  const auto graph = large_graph(1'100'000, 500);
  CHECK(graph->operator_count() == 1'100'000);
  const auto problem = test::make_problem(graph, test::uniform_spec(4, 12e9, 5e-6));
  std::vector<int32_t> placement;
  for (int32_t o = 0; o < problem.operators(); ++o) placement.push_back(o / 100 % 4);
  Simulator simulator(problem);
  Metrics metrics, again;
  simulator.run(placement, metrics);
  simulator.run(placement, again, nullptr, metrics.step_time_ns - 1);
  CHECK(again.rejected);
  {
    Timeline timeline;
    simulator.run(placement, again, &timeline);
    const auto order = test::order_of(problem, timeline);
    simulator.run(Plan{placement, &order}, again);
    CHECK(again == metrics);
  }
  check_bounds(problem, metrics);
}

TEST_CASE("twenty thousand operators on a thousand devices around two levels of switches") {
  const auto graph = large_graph(20'000, 400);
  const auto spec = test::node_spec(32, 32, 12e9, 50e9, 4e-6, 6e-6);
  const auto cluster = std::make_shared<const Cluster>(spec);
  REQUIRE(cluster->device_count() == 1024);
  RandomStream random(1, "thousand");
  const auto placement = test::random_placement(random, *graph, 1024);
  for (const auto queue : {QueueModel::sender, QueueModel::route, QueueModel::fair}) {
    auto rules = SimulationRules::standard(*cluster);
    rules.queue = queue;
    const Problem problem(graph, cluster, rules);
    Simulator simulator(problem);
    Metrics metrics, again;
    Timeline timeline;
    simulator.run(placement, metrics, &timeline);
    CHECK(metrics.step_time_ns >= lower_bounds(problem).step_time_ns);
    if (queue == QueueModel::fair) continue;
    simulator.run(placement, again);
    CHECK(again == metrics);
  }
}
