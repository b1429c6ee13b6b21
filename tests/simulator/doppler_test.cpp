// Doppler's simulator: by hand, and against its rules written down again event by event.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <queue>
#include <tuple>

#include "base/error.h"
#include "simulator/bounds.h"
#include "simulator/simulator.h"
#include "support/cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

std::shared_ptr<const Cluster> doppler_cluster(int devices) {
  return test::uniform_cluster(devices, 1e9, 0);
}

/// A graph as its file has it.
struct Rows {
  std::vector<int> sources, targets;
  std::vector<int64_t> compute, communication;

  /// As lib/trinity/graph/instances/doppler.lua makes it: an output for every repetition of an edge.
  std::shared_ptr<const Graph> graph() const {
    GraphBuilder builder("x");
    std::vector<std::vector<int64_t>> positions(compute.size());
    for (size_t e = 0; e < targets.size(); ++e) positions[targets[e]].push_back(static_cast<int64_t>(e) + 1);
    std::map<std::tuple<int, size_t>, int32_t> outputs;
    const auto output = [&](int source, size_t repetition) {
      auto [found, added] = outputs.try_emplace({source, repetition}, 0);
      if (!added) return found->second;
      Tensor tensor;
      tensor.bytes = communication[source];
      found->second = builder.add_output(source, std::move(tensor));
      return found->second;
    };
    for (size_t v = 0; v < compute.size(); ++v) {
      Operator op;
      op.name = std::to_string(v);
      op.type = "Operator";
      op.measured_time_s = static_cast<double>(compute[v]) * 1e-9;
      op.attributes["file_position"] = static_cast<int64_t>(v) + 1;
      if (!positions[v].empty()) op.attributes["input_positions"] = positions[v];
      output(builder.add_operator(std::move(op)), 0);
    }
    std::map<std::pair<int, int>, size_t> repetitions;
    for (size_t e = 0; e < sources.size(); ++e)
      builder.read(targets[e], output(sources[e], repetitions[{sources[e], targets[e]}]++));
    return std::make_shared<const Graph>(builder.build());
  }
};

/// The rules with an event for everything and one heap of (time, ticket), slow on purpose.
int64_t reference(const Rows& rows, const std::vector<int>& device, int devices) {
  enum Kind { request, start, finish, release, send, arrive, arrived };
  using Event = std::tuple<int64_t, int, Kind, int>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> heap;
  int tickets = 0;
  int64_t last = 0;
  const size_t n = rows.compute.size();
  std::vector<std::queue<int>> queues(static_cast<size_t>(devices));
  std::vector<bool> taken(queues.size());
  std::vector<int> missing(n);
  const auto create = [&](int64_t time, Kind kind, int v) {
    heap.emplace(time, tickets++, kind, v);
  };
  const auto grant = [&](int64_t time, int d) {
    if (taken[d] || queues[d].empty()) return;
    taken[d] = true;
    create(time, start, queues[d].front());
    queues[d].pop();
  };
  for (const int target : rows.targets) ++missing[target];
  for (size_t v = 0; v < n; ++v)
    if (missing[v] == 0) create(0, request, static_cast<int>(v));
  while (!heap.empty()) {
    const auto [time, ticket, kind, v] = heap.top();
    heap.pop();
    last = time;
    const int d = device[v];
    if (kind == request) {
      queues[d].push(v);
      grant(time, d);
    } else if (kind == start) {
      create(time + rows.compute[v], finish, v);
    } else if (kind == finish) {
      taken[d] = false;
      create(time, release, v);
      create(time, send, v);
    } else if (kind == release) {
      grant(time, d);
    } else if (kind == send) {
      for (size_t e = 0; e < rows.sources.size(); ++e)
        if (rows.sources[e] == v)
          create(device[rows.targets[e]] == d ? time : time + rows.communication[v], arrive,
                 rows.targets[e]);
    } else if (kind == arrive) {
      create(time, arrived, v);
    } else if (--missing[v] == 0) {
      create(time, request, v);
    }
  }
  return last;
}

/// Numbers that often coincide: times of 0 to 4, edges repeated and in no order, nodes in no
/// topological order.
Rows random_rows(RandomStream& random) {
  Rows rows;
  const int n = 2 + static_cast<int>(random.below(30));
  std::vector<int> number(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    number[i] = i;
    std::swap(number[i], number[random.below(static_cast<uint64_t>(i) + 1)]);
    rows.compute.push_back(static_cast<int64_t>(random.below(5)));
    rows.communication.push_back(static_cast<int64_t>(random.below(5)));
  }
  for (uint64_t e = random.below(3 * static_cast<uint64_t>(n)); e > 0; --e) {
    const auto a = random.below(static_cast<uint64_t>(n)), b = random.below(static_cast<uint64_t>(n));
    if (a == b) continue;
    rows.sources.push_back(number[std::min(a, b)]);
    rows.targets.push_back(number[std::max(a, b)]);
  }
  return rows;
}

/// Placements in the order of the file, by number of the graph.
std::vector<int32_t> by_number(const Graph& graph, const std::vector<int>& device) {
  std::vector<int32_t> placement;
  for (const auto& op : graph.operators())
    placement.push_back(
        device[static_cast<size_t>(std::get<int64_t>(op.attributes.at("file_position"))) - 1]);
  return placement;
}

int64_t makespan(const std::shared_ptr<const Graph>& graph, const std::vector<int>& device,
                 int devices, int64_t limit_ns = kNoLimit) {
  const Problem problem(graph, doppler_cluster(devices), SimulationRules::doppler());
  Metrics metrics;
  Timeline timeline;
  const auto placement = by_number(*graph, device);
  Simulator simulator(problem);
  simulator.run(placement, metrics, nullptr, limit_ns);
  const int64_t alone = metrics.step_time_ns;
  simulator.run(placement, metrics, &timeline, limit_ns);
  CHECK(metrics.step_time_ns == alone);
  return alone;
}

}  // namespace

TEST_CASE("doppler's rules by hand: a transfer an edge, ties in the order of events") {
  // 0 and 1 feed 2 (one edge twice); 0 alone feeds 3.
  const Rows rows{{0, 0, 1, 0}, {2, 2, 2, 3}, {4, 4, 3, 2}, {5, 1, 0, 0}};
  const auto graph = rows.graph();
  CHECK(makespan(graph, {0, 0, 0, 0}, 1) == 13);
  // 2 waits for the 5 of 0, however often it reads it: 9 to 12, after 3.
  CHECK(makespan(graph, {0, 1, 1, 1}, 2) == 14);
  CHECK(makespan(graph, {0, 1, 0, 0}, 2) == 9);
  const Problem problem(graph, doppler_cluster(2), SimulationRules::doppler());
  const auto metrics = test::metrics_of(problem, {by_number(*graph, {0, 1, 1, 1})});
  CHECK(metrics.transfers == 3);
  CHECK(metrics.total_communication_bytes == 15);
  CHECK(metrics.feasible());
}

TEST_CASE("doppler's rules agree with one heap of events, whatever the ties") {
  RandomStream random(test::law_seed(), "doppler");
  int differ = 0;
  for (uint64_t round = 0; round < 400; ++round) {
    const auto rows = random_rows(random);
    const auto graph = rows.graph();
    const int devices = 1 + static_cast<int>(random.below(4));
    std::vector<int> device;
    for (size_t v = 0; v < rows.compute.size(); ++v)
      device.push_back(static_cast<int>(random.below(static_cast<uint64_t>(devices))));
    const int64_t expected = reference(rows, device, devices);
    CAPTURE(round);
    REQUIRE(makespan(graph, device, devices) == expected);
    // A limit rejects what is longer and nothing else.
    CHECK(makespan(graph, device, devices, expected) == expected);
    if (expected > 0) CHECK(makespan(graph, device, devices, expected - 1) == expected);
    auto rules = SimulationRules::standard(*doppler_cluster(devices));
    rules.queue = QueueModel::none;
    const Problem plain(graph, doppler_cluster(devices), rules);
    const auto metrics = test::metrics_of(plain, {by_number(*graph, device)});
    differ += metrics.step_time_ns != expected;
  }
  CHECK(differ >= 20);  // ties by number of operator are another simulator
}

TEST_CASE("doppler's rules where links differ: each transfer at its own time") {
  test::GraphMaker make("wires");
  const int a = make.op("a", 10e-9);
  for (const char* name : {"b", "c", "d"}) make.edge(a, make.op(name, 1e-9), 8);
  auto spec = test::uniform_spec(2, 1e9, 0);
  spec.links[1].bandwidth_bytes_per_s = 0.5e9;
  spec.devices.push_back({"d2", 0, 1.0, ""});
  spec.links.push_back({"d2", "switch", 0.25e9, 0});
  const Problem problem(make.share(), std::make_shared<const Cluster>(spec),
                        SimulationRules::doppler());
  Metrics metrics;
  Simulator simulator(problem);
  const auto step_ns = [&](std::vector<int32_t> placement) {
    simulator.run(placement, metrics);
    return metrics.step_time_ns;
  };
  CHECK(step_ns({0, 1, 1, 1}) == 10 + 16 + 3);
  CHECK(step_ns({0, 1, 2, 0}) == 10 + 32 + 1);
}

TEST_CASE("rules of doppler refuse what they do not know") {
  const Rows rows{{0}, {1}, {1, 1}, {1, 1}};
  const auto graph = rows.graph();
  auto rules = SimulationRules::doppler();
  rules.device_dead_ns = 5;
  CHECK_THROWS_WITH_AS(Problem(graph, doppler_cluster(2), rules),
                       doctest::Contains("rules 'doppler' require queue = 'none'"), ArgumentError);
  const Problem problem(graph, doppler_cluster(2), SimulationRules::doppler());
  Schedule schedule;
  schedule.micro_batches = 2;
  Metrics metrics;
  const std::vector<int32_t> placement = {0, 1};
  CHECK_THROWS_WITH_AS(Simulator(problem).run({placement, &schedule}, metrics),
                       doctest::Contains("rules 'doppler' support only one micro-batch"),
                       ArgumentError);
}
