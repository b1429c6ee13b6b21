// Recomputation and replicated stages, as graphs and through the simulator, by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "graph/recompute.h"
#include "graph/replicas.h"
#include "support/stages.h"

using namespace trinity;
using test::kUnit;

namespace {

constexpr int64_t kKept = 1000000;   // bytes that a forward keeps for its backward
constexpr int64_t kWeights = 50000;  // bytes of a stage's gradient

/// A chain of stages "f0", ... that each take forward[s] units forwards and twice that backwards,
/// with updates that cost nothing.
Graph chain(const std::vector<double>& forward, int64_t crossing_bytes) {
  auto backward = forward;
  for (double& units : backward) units *= 2;
  return *test::graph_of({forward, backward, crossing_bytes, 0, kWeights, kKept, kWeights});
}

/// Runs a graph in stages on pairwise links, on which 1000 bytes take one unit.
test::RanStages run(const Graph& graph, const std::vector<int32_t>& placement,
                    const std::vector<int32_t>& stage, int micro_batches, PipelineSchedule kind) {
  auto spec = test::uniform_spec(*std::max_element(placement.begin(), placement.end()) + 1, 1e9, 0);
  spec.queue = QueueModel::pair;
  return test::run(std::make_shared<const Graph>(graph), spec, placement, stage, micro_batches,
                   kind);
}

constexpr auto kGpipe = PipelineSchedule::gpipe;
constexpr auto k1F1B = PipelineSchedule::one_f_one_b;

}  // namespace

TEST_CASE("recomputation repeats forward operators in the place of their activations") {
  const auto graph = chain({1, 1}, 10);
  const auto result = recompute(graph, test::stages_of(graph));
  const auto& g = result.graph;
  CHECK(g.operator_count() == graph.operator_count() + 1);  // f0 reads nothing: a source
  const int32_t again = g.find("f1/recompute"), backward = g.find("b1");
  REQUIRE(again >= 0);
  CHECK(g.op(again).phase == Phase::backward);
  CHECK(g.op(again).parameter_bytes() == 0);
  CHECK(g.op(again).unit == g.op(g.find("f1")).unit);
  CHECK(result.origin[again] == graph.find("f1"));
  CHECK(g.tensor(g.op(backward).inputs[0]).producer == again);
  CHECK(g.tensor(g.op(g.find("b0")).inputs[0]).producer == g.find("f0"));
  CHECK(g.op(again).inputs.size() == 1);  // the last stage waits for no gradient
  auto left = test::stages_of(graph);
  for (int32_t& s : left) s = s == 1 ? -1 : s;
  CHECK(recompute(graph, left).graph.operator_count() == graph.operator_count());
}

namespace {

/// A chain whose first stage has a source of its own, so that every stage repeats its forward.
test::RanStages recomputed(int p, int m, PipelineSchedule kind, bool eager) {
  test::GraphMaker make("fed");
  const int source = make.op("s0", 0);
  std::vector<int> forwards, backwards(static_cast<size_t>(p));
  for (int s = 0; s < p; ++s) {
    forwards.push_back(make.op("f" + std::to_string(s), kUnit * 1e-9));
    make.edge(s > 0 ? forwards[static_cast<size_t>(s) - 1] : source, forwards.back(), 10);
  }
  for (int s = p; s-- > 0;) {
    const auto i = static_cast<size_t>(s);
    backwards[i] =
        make.op_of(Phase::backward, "b" + std::to_string(s), 2 * kUnit * 1e-9, forwards[i]);
    make.edge(forwards[i], backwards[i], kKept);
    if (s + 1 < p) make.edge(backwards[i + 1], backwards[i], 0);
  }
  const auto graph = make.build();
  RecomputeOptions options;
  options.eager = eager;
  const auto result = recompute(graph, test::stages_of(graph), options);
  const auto stage = test::stages_of(result.graph);
  return test::run(std::make_shared<const Graph>(result.graph), test::uniform_spec(p, 1e18, 0),
                   stage, stage, m, kind);
}

}  // namespace

TEST_CASE("with recomputation backward costs a forward more and stage inputs alone stay alive") {
  for (const int p : {1, 2, 4})
    for (const int m : {1, 4, 8}) {
      CAPTURE(p);
      CAPTURE(m);
      for (const auto kind : {kGpipe, k1F1B}) {
        const auto ran = recomputed(p, m, kind, false);
        CHECK(ran.units == (m + p - 1) * 4);
        for (const auto& device : ran.metrics.devices) CHECK(device.peak_memory_bytes / kKept == 1);
        const int held = kind == kGpipe ? m : std::min(p, m);
        CHECK(ran.metrics.devices[0].peak_memory_bytes <= kKept + 10 * held + 20);
        CHECK(ran.metrics.devices[0].peak_memory_bytes >= kKept + 10 * held);
      }
      // Done while a stage waits for its first gradient, the forward of one micro-batch is hidden.
      CHECK(recomputed(p, m, kGpipe, true).units == (m + p - 1) + m * 3 + (p - 1) * 2);
    }
}

TEST_CASE("recomputation is refused where it cannot be") {
  const auto graph = chain({1, 1}, 10);
  CHECK_THROWS_WITH_AS(recompute(graph, std::vector<int32_t>{0}),
                       doctest::Contains("expected the stages of 6 operators, got 1"),
                       ArgumentError);
  test::GraphMaker make("forward");
  make.op("a", 1e-6);
  CHECK_THROWS_WITH_AS(recompute(make.build(), std::vector<int32_t>{0}),
                       doctest::Contains("no backward operators"), ArgumentError);
  const auto once = recompute(graph, test::stages_of(graph));
  CHECK_THROWS_AS(recompute(once.graph, test::stages_of(once.graph)), ArgumentError);
}

namespace {

/// Every (stage, replica) on a device of its own, in order.
std::vector<int32_t> devices_of(const Replicated& result, const std::vector<int32_t>& replicas) {
  std::vector<int32_t> first = {0}, placement;
  for (const int32_t count : replicas) first.push_back(first.back() + count);
  for (size_t op = 0; op < result.stage.size(); ++op)
    placement.push_back(first[result.stage[op]] + result.replica[op]);
  return placement;
}

Replicated replicated(const Graph& graph, const std::vector<int32_t>& replicas) {
  ReplicaOptions options;
  options.algorithm = CollectiveAlgorithm::ring;
  return replicate_stages(graph, test::stages_of(graph), replicas, options);
}

}  // namespace

TEST_CASE("a stage of two replicas takes half the time and an all-reduce at the end") {
  // 2 and 4 units become 1 and 2 on each of two devices, as on the second stage's one. Then 50000
  // bytes go round two devices: 50 units.
  const auto graph = chain({2, 1}, 0);
  const auto result = replicated(graph, {2, 1});
  const auto placement = devices_of(result, {2, 1});
  for (const int m : {1, 4, 8}) {
    const auto ran = run(result.graph, placement, result.stage, m, k1F1B);
    CHECK(ran.units == (m + 1) * 3 + 50);
    REQUIRE(ran.timeline.collectives.size() == 1);
    CHECK(ran.metrics.devices[0] == ran.metrics.devices[1]);
    CHECK(ran.metrics.devices[0].compute_busy_ns == m * 3 * kUnit);
  }
  // Halved activations, whole weights.
  const auto ran = run(result.graph, placement, result.stage, 8, kGpipe);
  const auto alone = run(graph, test::stages_of(graph), test::stages_of(graph), 8, kGpipe);
  CHECK(alone.metrics.devices[0].peak_memory_bytes >= 8 * kKept + kWeights);
  CHECK(ran.metrics.devices[0].peak_memory_bytes < 5 * kKept);
  CHECK(ran.metrics.devices[0].peak_memory_bytes >= 4 * kKept + kWeights);
}

TEST_CASE("replicated stages run as a stream, with an all-reduce a mini-batch") {
  const auto graph = chain({2, 1}, 0);
  const auto result = replicated(graph, {2, 1});
  const auto ran =
      run(result.graph, devices_of(result, {2, 1}), result.stage, 4, PipelineSchedule::pipedream);
  // The update waits for the all-reduce: 1 + 2 + 50 units, of which the next forward hides none.
  CHECK(ran.units == 4 * 53);
}

TEST_CASE("tensors between stages are cut where the readers' samples begin") {
  const auto graph = chain({1, 1}, 600);
  const auto two = replicated(graph, {2, 1});
  const auto ran = run(two.graph, devices_of(two, {2, 1}), two.stage, 1, k1F1B);
  CHECK(ran.metrics.transfers == 4);  // two halves forwards, two backwards
  CHECK(ran.metrics.total_communication_bytes == 2 * 600 + 2 * kWeights);
  const auto uneven = replicated(graph, {2, 3});
  const auto& g = uneven.graph;
  std::vector<int64_t> bytes;
  for (const char* name : {"f0@0", "f0@1"})
    for (const int32_t output : g.op(g.find(name)).outputs) bytes.push_back(g.tensor(output).bytes);
  CHECK(std::count(bytes.begin(), bytes.end(), 200) == 2);
  CHECK(std::count(bytes.begin(), bytes.end(), 100) == 2);
  CHECK(g.op(g.find("f1@0")).inputs.size() == 1);
  CHECK(g.op(g.find("f1@1")).inputs.size() == 2);  // a sixth of the batch from each
  const auto three = run(g, devices_of(uneven, {2, 3}), uneven.stage, 2, k1F1B);
  CHECK(three.metrics.devices[3].bytes_received >= 2 * 200);
  CHECK(replicated(graph, {1, 1}).graph.operator_count() == graph.operator_count());
}

TEST_CASE("replicated stages that do not fit are refused") {
  const auto graph = chain({1, 1}, 600);
  const auto stage = test::stages_of(graph);
  const auto fails = [&](const std::vector<int32_t>& stages, const std::vector<int32_t>& replicas,
                         const ReplicaOptions& options, const char* text) {
    CHECK_THROWS_WITH_AS(replicate_stages(graph, stages, replicas, options),
                         doctest::Contains(text), ArgumentError);
  };
  fails({0}, {1, 1}, {}, "expected the stages of 6 operators, got 1");
  fails(stage, {1}, {}, "is in stage 2, expected 1 to 1");
  fails(stage, {1, 0}, {}, "stage 2 has 0 replicas, expected at least 1");
  const auto other = chain({1, 1, 1}, 600);
  ReplicaOptions options;
  options.at_share = {&other};
  fails(stage, {2, 1}, options, "the graph at the batch size of stage 1 has other operators");
  CHECK_THROWS_AS(replicate_stages(graph, stage, std::vector<int32_t>{1 << 24, 1}), LimitError);
}

TEST_CASE("weights that stages of different replicas share have no samples to divide") {
  GraphBuilder builder("tied");
  const int32_t weights =
      builder.add_operator({.name = "w0", .type = "Variable", .extra_parameter_bytes = 100});
  const int32_t output = builder.add_output(weights, {.name = "shared", .bytes = 100});
  for (const char* name : {"f0", "f1"})
    builder.add_operator(
        {.name = name, .type = "Work", .inputs = {output}, .measured_time_s = 1e-6});
  const auto graph = builder.build();
  CHECK_THROWS_WITH_AS(replicated(graph, {2, 1}),
                       doctest::Contains("tensor 'shared' has no batch dimension to split, but "
                                         "is sent from stage 1 with 2 replicas to stage 2 with 1"),
                       ArgumentError);
  CHECK(replicated(graph, {2, 2}).graph.operator_count() == 6);
}

TEST_CASE("a collective within a replicated stage moves its replica's part of the bytes") {
  const auto with = [](int64_t bytes) {
    test::GraphMaker make("summed");
    const int a = make.op("a", 1e-6), b = make.op("b", 1e-6);
    make.collective("sum", bytes, {a, b});
    return make.build();
  };
  const auto graph = with(9), share = with(7);
  const std::vector<int32_t> stage = {0, 0}, replicas = {2};
  const auto divided = replicate_stages(graph, stage, replicas).graph;
  REQUIRE(divided.collectives().size() == 2);
  for (const auto& collective : divided.collectives()) CHECK(collective.bytes == 5);
  CHECK(divided.collectives()[1].name == "sum@1");
  ReplicaOptions options;
  options.at_share = {&share};
  const auto shared = replicate_stages(graph, stage, replicas, options).graph;
  for (const auto& collective : shared.collectives()) CHECK(collective.bytes == 7);
}

TEST_CASE("a replica's part of bytes is rounded up, of tensors and of collectives") {
  for (const int64_t bytes : {1, 9, 10, 11, 12})
    for (const int32_t count : {1, 2, 3, 4}) {
      CAPTURE(bytes);
      CAPTURE(count);
      test::GraphMaker make("parts");
      const int a = make.op("a", 1e-6), b = make.op("b", 1e-6);
      make.edge(a, make.op("c", 1e-6), bytes);
      make.collective("sum", bytes, {a, b});
      const std::vector<int32_t> stage = {0, 0, 0}, replicas = {count};
      const auto graph = replicate_stages(make.build(), stage, replicas).graph;
      const auto part =
          static_cast<int64_t>(std::ceil(static_cast<double>(bytes) / static_cast<double>(count)));
      REQUIRE(graph.collectives().size() == static_cast<size_t>(count));
      for (const auto& collective : graph.collectives()) CHECK(collective.bytes == part);
      int32_t copies = 0;
      for (const auto& op : graph.operators()) {
        if (!op.name.starts_with("a@")) continue;
        CHECK(graph.tensor(op.outputs.front()).bytes == part);
        ++copies;
      }
      CHECK(copies == count);
    }
}
