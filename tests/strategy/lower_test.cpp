// Meshes in plain C++: from a file to what is simulated.
#include "strategy/lower.h"

#include <doctest/doctest.h>

#include <set>

#include "graph/training.h"
#include "simulator/simulator.h"
#include "strategy/strategy.h"
#include "support/build.h"

namespace trinity {
namespace {

/// Four layers of two products each, as a training step.
Graph layered() {
  GraphBuilder builder("layered");
  const auto add = [&](const std::string& name, const char* type, std::vector<int32_t> inputs,
                       int64_t width, std::vector<int64_t> weight = {}) {
    Operator op;
    op.name = name;
    op.type = type;
    op.inputs = std::move(inputs);
    op.attributes["transB"] = int64_t{1};
    op.flops = weight.empty() ? 1e3 : 1e9;
    if (!weight.empty())
      op.parameters.push_back({"weight", std::move(weight), DType::float32, true});
    const int32_t id = builder.add_operator(std::move(op));
    Tensor tensor;
    tensor.shape = {8, width};
    tensor.gradient = std::string(type) != "Input";
    return builder.add_output(id, std::move(tensor));
  };
  int32_t x = add("x", "Input", {}, 16);
  for (int layer = 1; layer <= 4; ++layer) {
    const auto name = fmt::format("block_{}/", layer);
    x = add(name + "up", "Gemm", {x}, 32, {32, 16});
    x = add(name + "relu", "Relu", {x}, 32);
    x = add(name + "down", "Gemm", {x}, 16, {16, 32});
  }
  TrainingOptions options;
  options.optimiser = TrainingOptions::Optimiser::adam;
  return lower_to_training(builder.build(), options);
}

Metrics priced(const LoweredStrategy& low, const std::shared_ptr<const Cluster>& cluster) {
  const Problem problem(std::make_shared<const Graph>(low.graph), cluster,
                        SimulationRules::standard(*cluster));
  const bool plain = low.schedule.stage.empty();
  const Schedule schedule =
      plain ? Schedule{}
            : pipeline_schedule(low.graph, low.placement, cluster->device_count(),
                                low.schedule.stage, low.schedule.micro_batches,
                                parse_pipeline_schedule(low.schedule.name));
  Metrics metrics;
  Simulator(problem).run(Plan{low.placement, &schedule}, metrics);
  return metrics;
}

TEST_CASE("a mesh is read from a file, lowered and priced without Lua") {
  const Graph graph = layered();
  const auto cluster = test::uniform_cluster(8, 1e10, 1e-6);
  Strategy strategy;
  strategy.parallelism = Parallelism{};
  auto& given = *strategy.parallelism;
  given.mesh.data = given.mesh.tensor = given.mesh.pipeline = 2;
  given.mesh.order = {Axis::pipeline, Axis::tensor};
  given.micro_batches = 4;
  given.shard = 1;
  given.stages = {1, 3};
  const auto text = strategy_to_json(strategy, graph, *cluster, {{"seed", 3.0}});
  const auto loaded = strategy_from_json(text, "mesh.json", graph, *cluster);
  CHECK(loaded.same_graph);
  REQUIRE(loaded.strategy.parallelism.has_value());
  CHECK(*loaded.strategy.parallelism == given);
  const auto low = lower(*loaded.strategy.parallelism, graph, *cluster);
  CHECK(low.layers == std::vector<int32_t>{1, 3});
  CHECK(std::set<int32_t>(low.placement.begin(), low.placement.end()).size() == 8);
  // Pipeline is innermost: the first stage is on even devices.
  for (int32_t op = 0; op < low.graph.operator_count(); ++op)
    if (low.schedule.stage[op] == 0) CHECK(low.placement[op] % 2 == 0);
  const auto metrics = priced(low, cluster);
  CHECK(metrics.feasible());
  CHECK(metrics.step_time_ns > 0);
  CHECK(metrics.step_time_ns == priced(lower(given, graph, *cluster), cluster).step_time_ns);
}

TEST_CASE("what a mesh shares out stays out of what every device keeps") {
  const Graph graph = layered();
  const auto cluster = test::uniform_cluster(4, 1e10, 1e-6);
  Parallelism given;
  given.mesh.data = 4;
  int64_t before = 0;
  for (int32_t level = 0; level <= 3; ++level) {
    given.shard = level;
    const auto low = lower(given, graph, *cluster);
    int64_t kept = 0;
    for (int32_t op = 0; op < low.graph.operator_count(); ++op)
      if (low.placement[op] == 0)
        kept += low.graph.op(op).persistent_bytes + low.graph.op(op).parameter_bytes();
    const int64_t weights = 8 * 32 * 16 * 4, state = 2 * weights;
    CHECK(kept == (level == 3 ? weights / 4 : weights) + (level >= 1 ? state / 4 : state));
    if (level > 0) CHECK(kept <= before);
    before = kept;
  }
}

TEST_CASE("a mesh refuses devices that are not there, and axes twice") {
  const Graph graph = layered();
  const auto cluster = test::uniform_cluster(4, 1e10, 1e-6);
  Parallelism given;
  given.mesh.data = 2;
  given.mesh.devices = {0, 0};
  CHECK_THROWS_WITH_AS(lower(given, graph, *cluster), "devices: device 'd0' is listed twice",
                       ArgumentError);
  given.mesh.devices = {0, 4};
  CHECK_THROWS_WITH_AS(lower(given, graph, *cluster),
                       "devices: there is no device 5 in cluster 'uniform' (1 to 4)",
                       ArgumentError);
  given.mesh.devices = {0};
  CHECK_THROWS_AS(lower(given, graph, *cluster), ArgumentError);
  given.mesh.devices.clear();
  given.mesh.order = {Axis::data, Axis::data};
  CHECK_THROWS_WITH_AS(lower(given, graph, *cluster), "order: axis 'data' is there twice",
                       ArgumentError);
  given.mesh.order.clear();
  given.mesh.context = 2;
  CHECK_THROWS_AS(lower(given, graph, *cluster), ArgumentError);
}

}  // namespace
}  // namespace trinity
