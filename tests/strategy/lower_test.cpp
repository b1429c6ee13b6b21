// Meshes in plain C++: from a file to what is simulated.
#include "strategy/lower.h"

#include <doctest/doctest.h>

#include <limits>
#include <set>

#include "simulator/bind_schedule.h"
#include "simulator/simulator.h"
#include "strategy/strategy.h"
#include "support/build.h"
#include "support/layered.h"

namespace trinity {
namespace {

Metrics priced(const LoweredStrategy& low, const std::shared_ptr<const Cluster>& cluster) {
  const Problem problem(std::make_shared<const Graph>(low.made.graph), cluster,
                        SimulationRules::standard(*cluster));
  const auto& [placement, home, spec] = low.arranged;
  const auto schedule = bind_schedule(spec, placement, problem, OnContradiction::fail);
  Metrics metrics;
  Simulator(problem).run(Plan{placement, &schedule}, metrics);
  return metrics;
}

Strategy of_mesh(const Parallelism& given) {
  Strategy strategy;
  strategy.parallelism = given;
  return strategy;
}

TEST_CASE("a layer's pass takes the longer of its operators and of its copies to or from the host") {
  // Every operator takes 1 us: a layer 3 us in either pass. The host keeps a half of hidden values (8 x 32, 512 bytes), of
  // inputs except the first layer's, and of the last output (8 x 16, 256 bytes each): by layers 20/3, 10, 10, 40/3 us.
  const Graph graph = test::layered_graph(4, [](Operator& op) {
    if (op.type != "Input") op.measured_time_s = op.measured_backward_time_s = 1e-6;
  });
  auto spec = test::uniform_spec(2, 1e10, 1e-6);
  spec.device_types[0].host_bandwidth_bytes_per_s = 76.8e6;
  spec.device_types[0].host_memory_bandwidth_bytes_per_s = 1e9;
  const auto cluster = std::make_shared<const Cluster>(Cluster(std::move(spec)));
  const auto metrics = [&](double fraction, int32_t pipeline) {
    Parallelism given;
    given.mesh.pipeline = pipeline;
    given.activation_offload_fraction = fraction;
    return priced(lower(of_mesh(given), graph, *cluster), cluster);
  };
  const auto plain = metrics(0, 1), half = metrics(0.5, 1);
  CHECK(half.step_time_ns - plain.step_time_ns == doctest::Approx(2 * (40'000 - 4 * 3'000)).epsilon(1e-3));
  Parallelism given;
  given.activation_offload_fraction = 0.5;
  const auto low = lower(of_mesh(given), graph, *cluster);
  int64_t host_bytes = 0;
  for (const auto& tensor : low.made.graph.tensors()) host_bytes += tensor.host_bytes;
  CHECK(host_bytes == 4 * 768);
  for (const auto& op : low.made.graph.operators())  // the largest two are on the device while they are copied
    CHECK(op.workspace_bytes == (op.phase == Phase::update ? 0 : 1024 + 768));
  CHECK(metrics(0.5, 2).step_time_ns - metrics(0, 2).step_time_ns ==
        half.step_time_ns - plain.step_time_ns);
}

TEST_CASE("a mesh is read from a file, lowered and simulated without Lua") {
  const Graph graph = test::layered_graph();
  const auto cluster = test::uniform_cluster(8, 1e10, 1e-6);
  Strategy strategy;
  strategy.parallelism = Parallelism{};
  auto& given = *strategy.parallelism;
  given.mesh.data = given.mesh.tensor = given.mesh.pipeline = 2;
  given.mesh.order = {Axis::pipeline, Axis::tensor};
  given.micro_batches = 4;
  given.zero_stage = 1;
  given.stages = {1, 3};
  const auto text = strategy_to_json(strategy, graph, *cluster, {{"seed", 3.0}});
  const auto loaded = strategy_from_json(text, "mesh.json", graph, *cluster);
  CHECK(loaded.same_graph);
  REQUIRE(loaded.strategy.parallelism.has_value());
  CHECK(*loaded.strategy.parallelism == given);
  const auto low = lower(loaded.strategy, graph, *cluster);
  CHECK(low.made.layers == std::vector<int32_t>{1, 3});
  CHECK(std::set<int32_t>(low.arranged.placement.begin(), low.arranged.placement.end()).size() == 8);
  // Pipeline is innermost: the first stage is on even devices.
  for (int32_t op = 0; op < low.made.graph.operator_count(); ++op)
    if (low.arranged.schedule.stage[op] == 0) CHECK(low.arranged.placement[op] % 2 == 0);
  const auto metrics = priced(low, cluster);
  CHECK(metrics.feasible());
  CHECK(metrics.step_time_ns > 0);
  CHECK(metrics.step_time_ns == priced(lower(of_mesh(given), graph, *cluster), cluster).step_time_ns);
}

TEST_CASE("states that a mesh shards are not counted as kept by every device") {
  const Graph graph = test::layered_graph();
  const auto cluster = test::uniform_cluster(4, 1e10, 1e-6);
  Parallelism given;
  given.mesh.data = 4;
  int64_t before = 0;
  for (int32_t level = 0; level <= 3; ++level) {
    given.zero_stage = level;
    const auto low = lower(of_mesh(given), graph, *cluster);
    int64_t kept = 0;
    for (int32_t op = 0; op < low.made.graph.operator_count(); ++op)
      if (low.arranged.placement[op] == 0)
        kept += low.made.graph.op(op).persistent_bytes + low.made.graph.op(op).parameter_bytes();
    const int64_t weights = 8 * 32 * 16 * 4, state = 2 * weights;
    CHECK(kept == (level == 3 ? weights / 4 : weights) + (level >= 1 ? state / 4 : state));
    if (level > 0) CHECK(kept <= before);
    before = kept;
  }
}

TEST_CASE("a mesh refuses devices that are not there, and axes twice") {
  const Graph graph = test::layered_graph();
  const auto cluster = test::uniform_cluster(4, 1e10, 1e-6);
  Parallelism given;
  given.mesh.data = 2;
  given.mesh.devices = {0, 0};
  CHECK_THROWS_WITH_AS(lower(of_mesh(given), graph, *cluster), "devices: device 'd0' is listed twice",
                       ArgumentError);
  given.mesh.devices = {0, 4};
  CHECK_THROWS_WITH_AS(lower(of_mesh(given), graph, *cluster),
                       "devices: there is no device 5 in cluster 'uniform' (1 to 4)",
                       ArgumentError);
  given.mesh.devices = {0};
  CHECK_THROWS_AS(lower(of_mesh(given), graph, *cluster), ArgumentError);
  given.mesh.devices.clear();
  given.mesh.order = {Axis::data, Axis::data};
  CHECK_THROWS_WITH_AS(lower(of_mesh(given), graph, *cluster), "order: axis 'data' is listed twice",
                       ArgumentError);
  given.mesh.order.clear();
  given.mesh.context = 2;
  CHECK_THROWS_AS(lower(of_mesh(given), graph, *cluster), ArgumentError);
  given.mesh.context = 0;
  CHECK_THROWS_WITH_AS(lower(of_mesh(given), graph, *cluster),
                       "mesh: context: expected at least 1, got 0", ArgumentError);
}

TEST_CASE("the devices of a mesh are counted beyond 32 bits, and beyond 64") {
  const auto cluster = test::uniform_cluster(4, 1e10, 1e-6);
  Parallelism given;
  given.inside.assign(1, 0);
  given.mesh.tensor = given.mesh.context = given.mesh.placement = 4096;  // 0 in 32 bits
  CHECK(given.mesh.device_count() == int64_t{1} << 36);
  CHECK_THROWS_WITH_AS(check_mesh(given, *cluster), doctest::Contains("are 68719476736 devices"),
                       ArgumentError);
  for (auto* size : {&given.mesh.data, &given.mesh.tensor, &given.mesh.pipeline})
    *size = std::numeric_limits<int32_t>::max();
  CHECK(given.mesh.device_count() == Mesh::kMaxDevices);
  CHECK_THROWS_AS(check_mesh(given, *cluster), ArgumentError);
}

}  // namespace
}  // namespace trinity
