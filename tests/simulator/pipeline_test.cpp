// Pipelines through the simulator: closed forms.
#include <doctest/doctest.h>

#include <algorithm>

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
