// Pipelines and data parallelism through the simulator: closed forms, and a case by hand.
#include <doctest/doctest.h>

#include <algorithm>

#include "graph/replicas.h"
#include "support/build.h"
#include "support/laws.h"

using namespace trinity;

namespace {

constexpr int64_t kUnit = 1000;          // ns of a stage's forward
constexpr int64_t kActivation = 100000;  // bytes that a forward keeps for its backward

/// `stages` forward operators, their backward ones, which take twice as long and read the stage's
/// activation, and an update each that costs nothing. What crosses stages has no bytes.
std::shared_ptr<const Graph> pipeline_graph(int stages, int64_t forward_ns) {
  test::GraphMaker make("pipeline");
  const double time_s = static_cast<double>(forward_ns) * 1e-9;
  std::vector<int> forward, backward(static_cast<size_t>(stages));
  for (int s = 0; s < stages; ++s) {
    forward.push_back(make.op("f" + std::to_string(s), time_s));
    if (s > 0) make.edge(forward[static_cast<size_t>(s) - 1], forward.back(), 0);
  }
  for (int s = stages - 1; s >= 0; --s) {
    const auto i = static_cast<size_t>(s);
    backward[i] = make.op_of(Phase::backward, "b" + std::to_string(s), 2 * time_s, forward[i]);
    make.edge(forward[i], backward[i], kActivation);
    if (s < stages - 1) make.edge(backward[i + 1], backward[i], 0);
  }
  for (int s = 0; s < stages; ++s) {
    const auto i = static_cast<size_t>(s);
    make.edge(backward[i], make.op_of(Phase::update, "u" + std::to_string(s), 0, forward[i]), 0);
  }
  return make.share();
}

struct Pipelined {
  double units = 0;                ///< step time
  std::vector<int64_t> most_kept;  ///< per device: most activations at once
};

/// Runs p * v stages on p devices, v chunks each, with wires that cost nothing.
Pipelined pipeline(int p, int micro_batches, int v, PipelineSchedule kind,
                   QueueModel queue = QueueModel::sender) {
  const auto graph = pipeline_graph(p * v, kUnit / v);
  auto spec = test::uniform_spec(p, 1e18, 0);
  spec.queue = queue;
  const auto cluster = std::make_shared<const Cluster>(spec);
  const Problem problem(graph, cluster, SimulationRules::standard(*cluster));
  std::vector<int32_t> stage, placement;
  for (const auto& op : graph->operators()) {
    stage.push_back(std::stoi(op.name.substr(1)));
    placement.push_back(stage.back() % p);
  }
  const auto schedule = pipeline_schedule(*graph, placement, p, stage, micro_batches, kind);
  const Plan plan{placement, &schedule};
  Metrics metrics;
  Timeline timeline;
  Simulator(problem).run(plan, metrics, &timeline);
  test::check_laws(problem, plan, metrics, timeline);
  Pipelined result;
  result.units = static_cast<double>(metrics.step_time_ns) / kUnit;
  for (const auto& device : metrics.devices)
    result.most_kept.push_back(device.peak_memory_bytes / kActivation);
  return result;
}

constexpr auto kGpipe = PipelineSchedule::gpipe;
constexpr auto k1F1B = PipelineSchedule::one_f_one_b;
constexpr auto kInterleaved = PipelineSchedule::interleaved;

}  // namespace

TEST_CASE("equal stages take (m + p - 1)(f + b), under GPipe and 1F1B") {
  struct Case {
    int p, m;
    double units;
  };
  for (const auto& [p, m, units] : {Case{4, 8, 33}, Case{4, 4, 21}, Case{2, 4, 15},
                                    Case{8, 32, 117}, Case{1, 5, 15}, Case{5, 2, 18}}) {
    CAPTURE(p);
    CAPTURE(m);
    CHECK(units == (m + p - 1) * 3);
    for (const auto queue : {QueueModel::sender, QueueModel::pair, QueueModel::none,
                             QueueModel::route, QueueModel::fair}) {
      CHECK(pipeline(p, m, 1, kGpipe, queue).units == units);
      CHECK(pipeline(p, m, 1, k1F1B, queue).units == units);
    }
  }
}

TEST_CASE("interleaved stages take (m + (p - 1) / v)(f + b)") {
  CHECK(pipeline(4, 8, 2, kInterleaved).units == 28.5);
  CHECK(pipeline(4, 8, 4, kInterleaved).units == 26.25);
  CHECK(pipeline(8, 32, 4, kInterleaved).units == 101.25);
  CHECK(pipeline(4, 8, 1, kInterleaved).units == 33);
}

TEST_CASE("GPipe keeps m activations a stage, 1F1B at most p - s") {
  for (const int p : {1, 2, 4, 8})
    for (const int m : {1, 2, 4, 8, 32}) {
      CAPTURE(p);
      CAPTURE(m);
      const auto gpipe = pipeline(p, m, 1, kGpipe), other = pipeline(p, m, 1, k1F1B);
      for (int s = 0; s < p; ++s) {
        CHECK(gpipe.most_kept[s] == m);
        CHECK(other.most_kept[s] == std::min(p - s, m));
      }
    }
  CHECK(pipeline(4, 8, 2, kInterleaved).most_kept == std::vector<int64_t>{11, 9, 7, 5});
}

namespace {

/// Two layers: forwards of 10 and 20 us, backwards of 20 and 40, updates of 3, and gradients of
/// 100000 and 60000 bytes.
Graph two_layers() {
  test::GraphMaker make("layers");
  const int f0 = make.op("f0", 10e-6), f1 = make.op("f1", 20e-6);
  const int b1 = make.op_of(Phase::backward, "b1", 40e-6, f1);
  const int b0 = make.op_of(Phase::backward, "b0", 20e-6, f0);
  const int u1 = make.op_of(Phase::update, "u1", 3e-6, f1);
  const int u0 = make.op_of(Phase::update, "u0", 3e-6, f0);
  make.edge(f0, f1, 1000);
  make.edge(f1, b1, 1000);
  make.edge(b1, b0, 1000);
  make.edge(b1, u1, 60000);
  make.edge(b0, u0, 100000);
  for (const auto& [a, b] : {std::pair(f0, b0), {b0, u0}, {f1, b1}, {b1, u1}}) make.colocate(a, b);
  return make.build();
}

Metrics replicated(int replicas, QueueModel queue, Timeline& timeline) {
  ReplicaOptions options;
  options.algorithm = CollectiveAlgorithm::ring;
  const auto result = replicate(two_layers(), replicas, options);
  auto spec = test::uniform_spec(replicas, 1e9, 1e-6);
  spec.queue = queue;
  const auto cluster = std::make_shared<const Cluster>(spec);
  const Problem problem(std::make_shared<const Graph>(result.graph), cluster,
                        SimulationRules::standard(*cluster));
  const Schedule schedule;
  const Plan plan{result.replica, &schedule};
  Metrics metrics;
  Simulator(problem).run(plan, metrics, &timeline);
  test::check_laws(problem, plan, metrics, timeline);
  return metrics;
}

}  // namespace

TEST_CASE("replicas take a single one's time plus the tail of its all-reduces") {
  Timeline timeline;
  const auto alone = replicated(1, QueueModel::sender, timeline);
  CHECK(alone.step_time_ns == 96000);  // 10 + 20 + 40 + 20, two updates of 3
  for (const auto queue : {QueueModel::sender, QueueModel::pair, QueueModel::route}) {
    CAPTURE(std::string(queue_model_name(queue)));
    const auto twice = replicated(2, queue, timeline);
    REQUIRE(timeline.collectives.size() == 2);
    // b1 ends at 70 us: 2 us of latency, 60000 bytes; b0 at 90 us: it waits, then 102 us.
    CHECK(timeline.collectives[0] == CollectiveRun{0, 0, 70000, 70000, 132000});
    CHECK(timeline.collectives[1] == CollectiveRun{1, 0, 90000, 132000, 234000});
    CHECK(twice.step_time_ns == 237000);
    CHECK(twice.devices[0] == twice.devices[1]);
    CHECK(twice.devices[0].bytes_sent == 160000);
  }
  // Without queues both run at once: b0's lasts until 192 us.
  CHECK(replicated(2, QueueModel::none, timeline).step_time_ns == 195000);
  // Shared wires: 2 us of latency each. Alone until 92 us (20000 of 60000 bytes sent), then half
  // each: b1's ends at 172 us; b0's has 60000 left, to 232 us.
  CHECK(replicated(2, QueueModel::fair, timeline).step_time_ns == 235000);
}

TEST_CASE("replicas accumulate over micro-batches and reduce once") {
  ReplicaOptions options;
  options.algorithm = CollectiveAlgorithm::ring;
  const auto result = replicate(two_layers(), 2, options);
  const auto cluster = test::uniform_cluster(2, 1e9, 1e-6);
  const Problem problem(std::make_shared<const Graph>(result.graph), cluster, SimulationRules{});
  Schedule schedule;
  schedule.micro_batches = 3;
  const Plan plan{result.replica, &schedule};
  Metrics metrics;
  Timeline timeline;
  Simulator(problem).run(plan, metrics, &timeline);
  test::check_laws(problem, plan, metrics, timeline);
  CHECK(timeline.collectives.size() == 2);
  CHECK(metrics.devices[0].compute_busy_ns == 3 * 90000 + 2 * 3000);
  CHECK(metrics.devices[0].bytes_sent == 160000);
  // First in, first out: f0 f0 f0 f1 f1 f1 b1 b1 b1 b0 b0 b0. The last b1 ends at 210 us.
  CHECK(timeline.collectives[0].ready_ns == 210000);
  CHECK(timeline.collectives[1].ready_ns == 270000);
  CHECK(metrics.step_time_ns == 272000 + 102000 + 3000);
}
