// Pipelines with links, unequal stages and an asynchronous stream (PipeDream), against values
// worked out by hand (papers/notes.md "Pipelines: closed forms"), and the reference on random
// pipelines.
#include <doctest/doctest.h>

#include <algorithm>

#include "simulator/batch.h"
#include "simulator/bounds.h"
#include "support/stages.h"
#include "support/tier.h"

using namespace trinity;
using test::graph_of, test::kKept, test::kUnit, test::run, test::Stages;

namespace {

constexpr int64_t kWeights = 10000000;  // bytes of the first stage

constexpr auto kGpipe = PipelineSchedule::gpipe;
constexpr auto k1F1B = PipelineSchedule::one_f_one_b;
constexpr auto kPipedream = PipelineSchedule::pipedream;

/// Most bytes beyond weights on a device, in activations.
int64_t most_kept(const test::RanStages& ran, size_t device, int64_t versions) {
  const auto weights = versions * static_cast<int64_t>(device + 1) * kWeights;
  return (ran.metrics.devices[device].peak_memory_bytes - weights) / kKept;
}

}  // namespace

TEST_CASE("three unequal stages with links take what the closed forms say") {
  const Stages stages{{1, 2, 1}, {2, 4, 2}, 500, 0};
  for (const auto queue : {QueueModel::pair, QueueModel::none, QueueModel::sender}) {
    CAPTURE(std::string(choice_name(queue)));
    CHECK(run(stages, 6, kGpipe, queue).units == 44);
    CHECK(run(stages, 6, k1F1B, queue).units == 42);
  }
}

TEST_CASE("a stream's period is the slowest stage's work when links are free") {
  for (const int m : {1, 4, 32}) {
    CHECK(run({{1, 1, 1, 1}, {2, 2, 2, 2}}, m, kPipedream).units == 3 * m);
    CHECK(run({{1, 2, 1}, {2, 4, 2}}, m, kPipedream).units == 6 * m);
    CHECK(run({{1, 2, 3}, {2, 3, 4.5}}, m, kPipedream).units == 7.5 * m);
    CHECK(run({{3}, {5}}, m, kPipedream).units == 8 * m);
  }
  // Updates belong to the period.
  CHECK(run({{1, 1}, {2, 2}, 0, 250}, 8, kPipedream).units == 3.25 * 8);
}

TEST_CASE("a slow link is the period, a fast one shows in the round trip") {
  // Two mini-batches are on their way, so that a round trip of 3 + 2 c + 3 holds two: 3 + c.
  const auto two = [](int64_t bytes) { return Stages{{1, 1}, {2, 2}, bytes, 0}; };
  CHECK(run(two(500), 4, kPipedream).units == 3.5 * 4);
  CHECK(run(two(2000), 4, kPipedream).units == 5 * 4);
  CHECK(run(two(10000), 4, kPipedream).units == 13 * 4);
  // Three stages whose first is slow hide the links after it: a round trip of 10 + 4 c + 1 + 1
  // takes less than three times 10.
  CHECK(run({{5, 0.5, 0.5}, {5, 0.5, 0.5}, 2000, 0}, 4, kPipedream).units == 40);
  // One queue for both directions: the middle stage sends both ways, 2 c a mini-batch.
  CHECK(run({{1, 1, 1}, {1, 1, 1}, 50000, 0}, 2, kPipedream, QueueModel::sender).units >= 200);
}

TEST_CASE("a stage of a stream keeps p - s activations and versions of its weights") {
  for (const size_t p : {1UL, 2UL, 4UL, 6UL}) {
    const Stages stages{std::vector<double>(p, 1), std::vector<double>(p, 2), 0, 0, kWeights};
    const auto ran = run(stages, 16, kPipedream);
    const auto flushed = run(stages, 16, k1F1B);
    for (size_t s = 0; s < p; ++s) {
      const auto versions = static_cast<int64_t>(p - s);
      CHECK(ran.schedule.weight_versions[s] == versions);
      CHECK(most_kept(ran, s, versions) == versions);
      CHECK(most_kept(flushed, s, 1) == versions);
    }
    CHECK(flushed.schedule.weight_versions.empty());
  }
}

TEST_CASE("a stream updates after every backward and counts a step's traffic") {
  const auto ran = run({{1, 1, 1}, {2, 2, 2}, 400, 0}, 5, kPipedream);
  const auto flushed = run({{1, 1, 1}, {2, 2, 2}, 400, 0}, 5, k1F1B);
  CHECK(ran.timeline.stream);
  CHECK(ran.timeline.micro_batches == ran.schedule.stream);
  for (const int64_t end : ran.timeline.end_ns) CHECK(end > 0);
  CHECK(ran.metrics.total_communication_bytes == flushed.metrics.total_communication_bytes);
  CHECK(ran.metrics.transfers == flushed.metrics.transfers);
  CHECK(ran.metrics.devices[1].compute_busy_ns == 5 * 3 * kUnit);
}

TEST_CASE("a stream without a flush beats 1F1B and keeps to its own bounds") {
  const auto graph = graph_of({{1, 2, 1}, {2, 4, 2}, 0, 0});
  const auto cluster = test::uniform_cluster(3, 1e9, 0);
  const Problem problem(graph, cluster, SimulationRules{});
  const auto flushed = lower_bounds(problem, 6), stream = lower_bounds(problem, 6, true);
  CHECK(stream.critical_path_ns == 0);
  CHECK(stream.step_time_ns == stream.work_ns);
  CHECK(stream.work_ns == 6 * 12 * kUnit / 3);
  CHECK(flushed.critical_path_ns == 12 * kUnit);
  CHECK(lower_bounds(problem, 1, true).step_time_ns == 4 * kUnit);  // below the critical path
  CHECK(lower_bounds(problem, 1).step_time_ns == 12 * kUnit);
  const Stages stages{{1, 2, 1}, {2, 4, 2}, 0, 0};
  const auto streamed = run(stages, 6, kPipedream), steps = run(stages, 6, k1F1B);
  CHECK(streamed.units < steps.units);
  CHECK(streamed.metrics.step_time_ns >= stream.step_time_ns);
  CHECK(steps.metrics.step_time_ns >= flushed.step_time_ns);
}

TEST_CASE("random pipelines equal the reference") {
  for (uint64_t i = 0; i < test::draws(60); ++i) {
    CAPTURE(i);
    RandomStream random(test::law_seed(), "random pipelines", i);
    Stages stages{{}, {}, 0, 0, kWeights};
    const auto p = 1 + random.below(5);
    for (uint64_t s = 0; s < p; ++s) {
      stages.forward.push_back(static_cast<double>(random.below(4000)) / 1000);
      stages.backward.push_back(static_cast<double>(random.below(8000)) / 1000);
    }
    stages.crossing_bytes = static_cast<int64_t>(random.below(4000));
    stages.update_ns = static_cast<int64_t>(random.below(500));
    const auto m = static_cast<int>(1 + random.below(9));
    for (const auto queue : test::kQueues)
      for (const auto kind : {kGpipe, k1F1B, kPipedream}) run(stages, m, kind, queue);
  }
}

TEST_CASE("replicas share a stage, and operators that wait for each other") {
  test::GraphMaker make("replicas");
  const int a = make.op("a", 1e-6), b = make.op("b", 1e-6), c = make.op("c", 2e-6);
  make.edge(a, c, 10);
  make.edge(b, c, 10);
  const auto graph = make.build();
  const std::vector<int32_t> stage = {0, 0, 1};
  const auto schedule = pipeline_schedule(graph, std::vector<int32_t>{0, 1, 2}, 3, stage, 2, k1F1B);
  CHECK(schedule.order == std::vector<int32_t>{0, 3, 1, 4, 2, 5});
  const auto placed =
      pipeline_schedule(graph, std::vector<int32_t>{0, 1, 1}, 3, std::vector<int32_t>{0, 0, 0}, 2,
                        PipelineSchedule::interleaved);
  CHECK(placed.order == std::vector<int32_t>{0, 3, 1, 2, 4, 5});
  CHECK(placed.order_first == std::vector<int32_t>{0, 2, 6, 6});
  CHECK_THROWS_WITH_AS(pipeline_schedule(graph, std::vector<int32_t>{0, 1, 0}, 3, stage, 2, k1F1B),
                       doctest::Contains("stages 1 and 2 are on device 1"), ScheduleError);
}

namespace {

/// Stages on devices 1, 2, 1: with two micro-batches an order by first stage blocks itself.
struct Blocked {
  std::shared_ptr<const Graph> graph = graph_of({{1, 1, 1}, {2, 2, 2}, 0, 0});
  Problem problem{graph, test::uniform_cluster(2, 1e9, 0), SimulationRules{}};
  std::vector<int32_t> placement, in_a_row;
  Schedule schedule, fits;

  Blocked() {
    for (const auto& op : graph->operators()) {
      const int stage = std::stoi(op.name.substr(1));
      placement.push_back(stage % 2);
      in_a_row.push_back(stage / 2);
    }
    schedule = pipeline_schedule(*graph, placement, 2, placement, 4, PipelineSchedule::gpipe);
    std::reverse(schedule.order.begin(), schedule.order.begin() + schedule.order_first[1]);
    fits = pipeline_schedule(*graph, in_a_row, 2, in_a_row, 4, k1F1B);
  }
};

}  // namespace

TEST_CASE("an order that contradicts the graph is an error, or a plan that does not fit") {
  const Blocked blocked;
  ThreadPool pool(2);
  BatchSimulator batch(blocked.problem, pool);
  const std::vector<Plan> plans = {{blocked.in_a_row, &blocked.fits},
                                   {blocked.placement, &blocked.schedule}};
  std::vector<Metrics> metrics;
  const auto fails = [&] {
    CHECK_THROWS_WITH_AS(batch.run(plans, metrics), doctest::Contains("the order contradicts"),
                         ScheduleError);
  };
  fails();
  for (int i = 0; i < 2; ++i) {  // the second time from the cache
    batch.run(plans, metrics, kNoLimit, OnContradiction::unschedule);
    CHECK(metrics[0].feasible());
    CHECK_FALSE(metrics[0].unscheduled);
    CHECK(metrics[1].unscheduled);
    CHECK_FALSE(metrics[1].feasible());
    Schedule fifo;
    fifo.micro_batches = 4;
    Metrics plain;
    Simulator(blocked.problem).run({blocked.placement, &fifo}, plain);
    CHECK(metrics[1].step_time_ns == plain.step_time_ns);
  }
  fails();  // what the cache holds is no excuse
}

TEST_CASE("a stream that cannot be measured is refused") {
  const Blocked blocked;
  auto schedule =
      pipeline_schedule(*blocked.graph, blocked.in_a_row, 2, blocked.in_a_row, 4, kPipedream);
  Metrics metrics;
  const Plan plan{blocked.in_a_row, &schedule};
  Simulator simulator(blocked.problem);
  simulator.run(plan, metrics);
  CHECK(metrics.step_time_ns == 4 * 6 * kUnit);
  simulator.run(plan, metrics, nullptr, metrics.step_time_ns - 1);
  CHECK(metrics.rejected);
  schedule.measured_to = schedule.stream;
  CHECK_THROWS_AS(simulator.run(plan, metrics), ArgumentError);
  schedule.measured_to = schedule.stream - 1;
  schedule.weight_versions.pop_back();
  CHECK_THROWS_AS(simulator.run(plan, metrics), ArgumentError);
}
