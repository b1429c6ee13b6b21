// Where a step's time goes: by hand, and against sums and a naive clock on random plans.
#include "simulator/analysis.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "simulator/simulator.h"
#include "support/cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

constexpr double kNs = 1e-9;

/// A problem, a placement and what came of it.
struct Ran {
  std::shared_ptr<const Problem> problem;
  std::vector<int32_t> placement;
  Schedule schedule;
  Metrics metrics;
  Timeline timeline;

  Ran(std::shared_ptr<const Graph> graph, const ClusterSpec& spec, std::vector<int32_t> devices,
      Schedule with = {})
      : Ran(std::make_shared<const Problem>(test::make_problem(std::move(graph), spec)),
            std::move(devices), std::move(with)) {}
  Ran(std::shared_ptr<const Problem> of, std::vector<int32_t> devices, Schedule with)
      : problem(std::move(of)), placement(std::move(devices)), schedule(std::move(with)) {
    Simulator(*problem).run(Plan{placement, &schedule}, metrics, &timeline);
  }
  CriticalPath path() const { return critical_path(*problem, placement, timeline); }
  Exposure exposure() const { return exposed_communication(*problem, placement, timeline); }
};

/// manual/simulator.md "A worked example": latency 1000 ns, 1 byte/ns. One output an operator; A,
/// B, ... are operators 0, 1, ...
Ran worked_example() {
  test::GraphMaker make("example");
  constexpr int kCost[] = {10000, 5000, 7000, 3000, 4000, 6000};
  constexpr int kBytes[] = {4000, 2000, 1000, 500, 100, 3000};
  constexpr const char* kReadBy[] = {"BCE", "DE", "D", "F", "F", ""};
  std::vector<int> outputs;
  for (int o = 0; o < 6; ++o) {
    make.op(std::string(1, static_cast<char>('A' + o)), kCost[o] * kNs);
    outputs.push_back(make.output(o, kBytes[o]));
  }
  for (size_t o = 0; o < 6; ++o)
    for (const char* reader = kReadBy[o]; *reader; ++reader) make.read(*reader - 'A', outputs[o]);
  return {make.share(), test::uniform_spec(2, 1e9, 1e-6), {0, 0, 1, 0, 1, 1}};
}

/// Gradients of unequal cost on `devices` devices, reduced together, then one update each.
std::shared_ptr<const Graph> data_parallel(int devices) {
  test::GraphMaker make("replicas");
  std::vector<int> gradients, members;
  for (int d = 0; d < devices; ++d) {
    const int op = make.op("gradient" + std::to_string(d), (10000 + 5000 * d) * kNs);
    make.type(op, "Conv");
    gradients.push_back(make.output(op, 8000));
  }
  for (int d = 0; d < devices; ++d) {
    members.push_back(make.op_of(Phase::update, "member" + std::to_string(d), 0));
    make.read(members.back(), gradients[d]);
  }
  for (int d = 0; d < devices; ++d) {
    const int op = make.op_of(Phase::update, "update" + std::to_string(d), 2000 * kNs);
    make.type(op, "Update");
    make.read(op, make.output(members[d], 8000));
  }
  make.collective("reduce", 8000, members);
  return make.share();
}

Ran random_run(uint64_t index) {
  constexpr QueueModel kQueues[] = {QueueModel::sender, QueueModel::pair, QueueModel::none,
                                    QueueModel::route, QueueModel::fair, QueueModel::receiver};
  auto c = test::random_case(index, {.queue = kQueues[index % 6],
                                     .dispatch = test::kDispatchRules[index % 2],
                                     .most_micro_batches = 4,
                                     .collectives = index % 4 == 0});
  return {std::move(c.problem), std::move(c.placement), std::move(c.schedule)};
}

/// Whether device d is exposed throughout the elementary interval that starts at `t`.
bool exposed_at(const Ran& ran, int32_t d, int64_t t) {
  const auto n = ran.placement.size();
  const auto& graph = ran.problem->graph();
  for (size_t task = 0; task < ran.timeline.end_ns.size(); ++task)
    if (ran.placement[task % n] == d && graph.operators()[task % n].collective < 0 &&
        ran.timeline.start_ns[task] <= t && t < ran.timeline.end_ns[task])
      return false;
  for (const auto& sent : ran.timeline.transfers)
    if (sent.to == d && sent.enqueued_ns <= t && t < sent.end_ns) return true;
  for (const auto& run : ran.timeline.collectives)
    for (const int32_t member : graph.collectives()[run.collective].members) {
      const auto task = static_cast<size_t>(run.micro_batch) * n + static_cast<size_t>(member);
      if (ran.placement[member] == d && ran.timeline.ready_ns[task] <= t && t < run.end_ns)
        return true;
    }
  return false;
}

Exposure naive_exposure(const Ran& ran) {
  std::set<int64_t> times(ran.timeline.ready_ns.begin(), ran.timeline.ready_ns.end());
  times.insert(ran.timeline.start_ns.begin(), ran.timeline.start_ns.end());
  times.insert(ran.timeline.end_ns.begin(), ran.timeline.end_ns.end());
  for (const auto& sent : ran.timeline.transfers) times.insert({sent.enqueued_ns, sent.end_ns});
  for (const auto& run : ran.timeline.collectives) times.insert(run.end_ns);
  Exposure naive;
  naive.device_ns.assign(static_cast<size_t>(ran.problem->devices()), 0);
  for (auto t = times.begin(); t != times.end() && std::next(t) != times.end(); ++t) {
    bool any = false;
    for (int32_t d = 0; d < ran.problem->devices(); ++d)
      if (*t >= 0 && exposed_at(ran, d, *t)) {
        naive.device_ns[d] += *std::next(t) - *t;
        any = true;
      }
    if (any) naive.any_ns += *std::next(t) - *t;
  }
  return naive;
}

}  // namespace

TEST_CASE("default mode gives the worked example, its chain and exposed time") {
  using Kind = PathStep::Kind;
  const auto ran = worked_example();
  const auto& metrics = ran.metrics;
  const auto& timeline = ran.timeline;
  REQUIRE(metrics.step_time_ns == 34500);
  CHECK(timeline.start_ns == std::vector<int64_t>{0, 10000, 15000, 24000, 22000, 28500});
  CHECK(timeline.end_ns == std::vector<int64_t>{10000, 15000, 22000, 27000, 26000, 34500});
  std::vector<std::pair<int64_t, int64_t>> sent;
  for (const auto& transfer : timeline.transfers)
    sent.emplace_back(transfer.start_ns, transfer.end_ns);
  CHECK(sent == std::vector<std::pair<int64_t, int64_t>>{
                    {10000, 15000}, {15000, 18000}, {22000, 24000}, {27000, 28500}});
  CHECK(metrics.total_communication_bytes == 7500);
  CHECK(metrics.devices[0].send_busy_ns == 9500);
  CHECK(metrics.devices[1].send_busy_ns == 2000);
  CHECK(metrics.devices[0].peak_memory_bytes == 7000);
  CHECK(metrics.devices[1].peak_memory_bytes == 7600);
  CHECK(metrics.peak_communication_bytes == 7500);
  const auto path = ran.path();
  // transfers by start: A to d1, B to d1, C to d0, D to d1
  const std::vector<PathStep> chain = {
      {Kind::compute, 0, 0, 0, 10000},         {Kind::transfer, 0, 10000, 10000, 15000},
      {Kind::compute, 2, 15000, 15000, 22000}, {Kind::transfer, 2, 22000, 22000, 24000},
      {Kind::compute, 3, 24000, 24000, 27000}, {Kind::transfer, 3, 27000, 27000, 28500},
      {Kind::compute, 5, 28500, 28500, 34500},
  };
  CHECK(path.steps == chain);
  CHECK(path.compute_ns == 26000);
  CHECK(path.wire_ns == 8500);
  CHECK(path.queue_ns == 0);
  CHECK(path.collective_ns == 0);
  // d0 waits for C in [22000, 24000); d1 for A in [10000, 15000) and D in [27000, 28500), while B's
  // tensor overlaps with C
  CHECK(ran.exposure().device_ns == std::vector<int64_t>{2000, 6500});
  CHECK(ran.exposure().any_ns == 8500);
  CHECK(by_type(*ran.problem, ran.timeline) == std::vector<KindShare>{{"Work", 6, 35000}});
}

TEST_CASE("waiting for a device and for a send queue is queue time") {
  test::GraphMaker make("queues");
  const int a = make.op("a", 10000 * kNs), b = make.op("b", 10000 * kNs);
  const int c = make.op("c", 1000 * kNs), d = make.op("d", 1000 * kNs);
  make.edge(a, c, 50000);
  make.edge(b, d, 20000);
  // b waits 10000 for d0; its transfer waits from 20000 until a's ends at 60000
  const Ran ran(make.share(), test::uniform_spec(2, 1e9, 0), {0, 0, 1, 1});
  const auto path = ran.path();
  CHECK(ran.metrics.step_time_ns == 81000);
  CHECK(path.queue_ns == 50000);
  CHECK(path.wire_ns == 20000);
  CHECK(path.compute_ns == 11000);
  REQUIRE(path.steps.size() == 3);
  CHECK(path.steps[0] == PathStep{PathStep::Kind::compute, 1, 0, 10000, 20000});
  CHECK(path.steps[1] == PathStep{PathStep::Kind::transfer, 1, 20000, 60000, 80000});
}

TEST_CASE("ties go to the lowest number") {
  test::GraphMaker make("ties");
  const int a = make.op("a", 5000 * kNs), b = make.op("b", 5000 * kNs);
  const int c = make.op("c", 5000 * kNs), d = make.op("d", 5000 * kNs);
  make.edge(b, c, 0);
  make.edge(a, c, 0);
  make.edge(a, d, 0);
  const Ran ran(make.share(), test::uniform_spec(2, 1e9, 0), {0, 1, 0, 1});
  const auto path = ran.path();
  REQUIRE(path.steps.size() == 2);
  CHECK(path.steps[0].index == a);  // both inputs of c arrive at 5000
  CHECK(path.steps[1].index == c);  // c and d end at 10000
}

TEST_CASE("a collective's chain leads through the member that was ready last") {
  using Kind = PathStep::Kind;
  const Ran ran(data_parallel(2), test::uniform_spec(2, 1e9, 1e-6), {0, 1, 0, 1, 0, 1});
  REQUIRE(ran.timeline.collectives.size() == 1);
  const auto& run = ran.timeline.collectives[0];
  REQUIRE(run.start_ns == 15000);
  const auto path = ran.path();
  const std::vector<PathStep> chain = {
      {Kind::compute, 1, 0, 0, 15000},
      {Kind::collective, 0, 15000, 15000, run.end_ns},
      {Kind::compute, 4, run.end_ns, run.end_ns, run.end_ns + 2000}};
  CHECK(path.steps == chain);
  CHECK(path.compute_ns == 17000);
  CHECK(path.collective_ns == run.end_ns - 15000);
  // the first device waits for the second one's gradient too
  const auto exposure = ran.exposure();
  CHECK(exposure.device_ns == std::vector<int64_t>{run.end_ns - 10000, run.end_ns - 15000});
  CHECK(exposure.any_ns == run.end_ns - 10000);
  const auto shares = by_type(*ran.problem, ran.timeline);
  REQUIRE(shares.size() == 3);
  CHECK(std::count_if(shares.begin(), shares.end(),
                      [](const KindShare& share) { return share.tasks == 2; }) == 3);
}

TEST_CASE("an accumulated tensor comes from the last micro-batch to end") {
  test::GraphMaker make("accumulate");
  const int gradient = make.op("gradient", 10000 * kNs), reader = make.op("reader", 1000 * kNs);
  const int update = make.op_of(Phase::update, "update", 3000 * kNs);
  const int shared = make.output(gradient, 1000);
  make.read(reader, shared);
  make.read(update, shared);
  const auto graph = make.share();
  Schedule schedule;
  schedule.micro_batches = 3;
  for (const int32_t update_device : {0, 1}) {
    CAPTURE(update_device);
    const Ran ran(graph, test::uniform_spec(2, 1e9, 1e-6), {0, 1, update_device}, schedule);
    const auto path = ran.path();
    REQUIRE(path.steps.size() >= 2);
    CHECK(path.steps[0] == PathStep{PathStep::Kind::compute, 6, 0, 20000, 30000});
    CHECK(path.steps.back().index == (update_device == 0 ? 7 : 8));
    CHECK(path.steps.back().end_ns == ran.metrics.step_time_ns);
  }
}

TEST_CASE("shares sum to the step, links join, and exposure is what a clock counts") {
  for (uint64_t i = 0; i < test::draws(300); ++i) {
    CAPTURE(i);
    const auto ran = random_run(i);
    const auto path = ran.path();
    CHECK(path.compute_ns + path.wire_ns + path.collective_ns + path.queue_ns ==
          ran.metrics.step_time_ns);
    int64_t free = 0;
    for (const auto& step : path.steps) {
      CHECK(step.ready_ns == free);
      CHECK(step.start_ns >= step.ready_ns);
      free = step.end_ns;
    }
    CHECK(free == ran.metrics.step_time_ns);
    const auto exposure = ran.exposure(), naive = naive_exposure(ran);
    CHECK(exposure.device_ns == naive.device_ns);
    CHECK(exposure.any_ns == naive.any_ns);
    for (size_t d = 0; d < exposure.device_ns.size(); ++d) {
      const auto& of = exposure.purpose_ns[d];
      CHECK(std::accumulate(of.begin(), of.end(), int64_t{0}) == exposure.device_ns[d]);
    }
    int64_t total = 0;
    for (const auto& share : by_type(*ran.problem, ran.timeline)) total += share.total_ns;
    int64_t expected = 0;
    for (size_t t = 0; t < ran.timeline.end_ns.size(); ++t)
      expected += ran.timeline.end_ns[t] - ran.timeline.start_ns[t];
    CHECK(total == expected);
  }
}

TEST_CASE("the published rules: one transfer for all receivers") {
  test::GraphMaker make("broadcast");
  const int a = make.op("a", 10000 * kNs);
  const int tensor = make.output(a, 76000);
  for (const char* name : {"b", "c"}) make.read(make.op(name, 1000 * kNs), tensor);
  const auto cluster = test::uniform_cluster(3, 1e9, 0);
  const Problem problem(make.share(), cluster, SimulationRules::compat());
  const std::vector<int32_t> placement = {0, 1, 2};
  const auto [metrics, timeline] = test::simulate(problem, {placement});
  REQUIRE(timeline.transfers.size() == 1);
  const auto path = critical_path(problem, placement, timeline);
  CHECK(path.steps.size() == 3);
  CHECK(path.compute_ns + path.wire_ns + path.queue_ns == timeline.end_ns[1]);
  const int64_t wait = timeline.transfers[0].end_ns - 10000;
  const auto exposure = exposed_communication(problem, placement, timeline);
  CHECK(exposure.device_ns == std::vector<int64_t>{0, wait, wait});
  CHECK(exposure.any_ns == wait);
  CHECK(exposure.purpose_ns[1] == std::array<int64_t, kPurposes>{0, wait, 0, 0});
}
