// Laws that every simulation obeys, on random graphs, clusters and placements.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "simulator/batch.h"
#include "simulator/bounds.h"
#include "support/build.h"

using namespace trinity;

namespace {

struct Case {
  std::shared_ptr<const Problem> problem;
  std::vector<int32_t> placement;
};

Case random_case(uint64_t index, QueueModel queue) {
  RandomStream random(11, "law", index);
  const auto devices = static_cast<int>(1 + random.below(6));
  auto spec = test::uniform_spec(devices, 1e9 * static_cast<double>(1 + random.below(20)),
                                 1e-6 * static_cast<double>(random.below(10)));
  for (auto& device : spec.devices) device.speed = random.below(2) ? 1 : 0.5;
  spec.queue = queue;
  auto cluster = std::make_shared<const Cluster>(spec);
  auto graph = test::random_graph(random, static_cast<int>(1 + random.below(120)));
  auto placement = test::random_placement(random, *graph, devices);
  const auto rules = SimulationRules::standard(*cluster);
  return {std::make_shared<const Problem>(graph, cluster, rules), placement};
}

void check_devices(const Case& c, const Timeline& timeline) {
  for (int32_t d = 0; d < c.problem->devices(); ++d) {
    std::vector<int32_t> order;
    for (int32_t o = 0; o < c.problem->operators(); ++o)
      if (c.placement[static_cast<size_t>(o)] == d) order.push_back(o);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return timeline.start_ns[static_cast<size_t>(a)] < timeline.start_ns[static_cast<size_t>(b)];
    });
    int64_t free = 0;
    for (const int32_t o : order) {
      CHECK(timeline.start_ns[static_cast<size_t>(o)] >= free);  // one at a time
      free = timeline.end_ns[static_cast<size_t>(o)];
    }
  }
}

void check_inputs(const Case& c, const Timeline& timeline) {
  for (int32_t o = 0; o < c.problem->operators(); ++o) {
    for (const auto& reader : c.problem->readers(o)) {
      const int32_t to = c.placement[static_cast<size_t>(reader.op)];
      int64_t arrival = timeline.end_ns[static_cast<size_t>(o)];
      if (to != c.placement[static_cast<size_t>(o)]) {
        const auto sent = std::find_if(
            timeline.transfers.begin(), timeline.transfers.end(), [&](const Transfer& t) {
              return t.task == o && t.output == reader.output && t.to == to;
            });
        REQUIRE(sent != timeline.transfers.end());
        CHECK(sent->start_ns >= arrival);
        CHECK(sent->end_ns - sent->start_ns == c.problem->wire_ns(sent->from, to, sent->bytes));
        arrival = sent->end_ns;
      }
      CHECK(timeline.start_ns[static_cast<size_t>(reader.op)] >= arrival);
    }
  }
}

}  // namespace

TEST_CASE("devices are serial, inputs arrive first, bytes are conserved, bounds hold") {
  for (const auto queue : {QueueModel::sender, QueueModel::pair, QueueModel::none}) {
    for (uint64_t i = 0; i < 150; ++i) {
      const auto c = random_case(i, queue);
      Metrics metrics;
      Timeline timeline;
      Simulator(*c.problem).run(c.placement, metrics, &timeline);
      check_devices(c, timeline);
      check_inputs(c, timeline);

      int64_t sent = 0, received = 0, work = 0, wires = 0;
      for (const auto& device : metrics.devices) {
        sent += device.bytes_sent;
        received += device.bytes_received;
        work += device.compute_busy_ns;
        wires += device.send_busy_ns;
        CHECK(device.compute_busy_ns <= metrics.step_time_ns);
      }
      CHECK(sent == metrics.total_communication_bytes);
      CHECK(received == sent);
      CHECK(metrics.step_time_ns >= lower_bounds(*c.problem).step_time_ns);
      CHECK(metrics.step_time_ns <= work + wires);  // something always runs
    }
  }
}

TEST_CASE("transfers of one send queue do not overlap, and each copy is sent once") {
  for (uint64_t i = 0; i < 100; ++i) {
    const auto c = random_case(i, QueueModel::sender);
    Metrics metrics;
    Timeline timeline;
    Simulator(*c.problem).run(c.placement, metrics, &timeline);
    std::vector<int64_t> free(static_cast<size_t>(c.problem->devices()), 0);
    std::vector<std::vector<int32_t>> copies;
    for (const auto& transfer : timeline.transfers) {
      CHECK(transfer.start_ns >= free[static_cast<size_t>(transfer.from)]);
      free[static_cast<size_t>(transfer.from)] = transfer.end_ns;
      copies.push_back({transfer.task, transfer.output, transfer.to});
    }
    std::sort(copies.begin(), copies.end());
    CHECK(std::adjacent_find(copies.begin(), copies.end()) == copies.end());
  }
}

TEST_CASE("on one device the step is the sum of the work and nothing is sent") {
  for (uint64_t i = 0; i < 50; ++i) {
    auto c = random_case(i, QueueModel::sender);
    for (int32_t d = 0; d < c.problem->devices(); ++d) {
      std::fill(c.placement.begin(), c.placement.end(), d);
      int64_t work = 0;
      for (int32_t o = 0; o < c.problem->operators(); ++o) work += c.problem->cost_ns(d, o);
      Metrics metrics;
      Simulator(*c.problem).run(c.placement, metrics);
      CHECK(metrics.step_time_ns == work);
      CHECK(metrics.total_communication_bytes == 0);
    }
  }
}

TEST_CASE("peak memory lies between the largest operator and everything at once") {
  for (uint64_t i = 0; i < 100; ++i) {
    const auto c = random_case(i, QueueModel::sender);
    const auto& graph = c.problem->graph();
    Metrics metrics;
    Timeline timeline;
    Simulator(*c.problem).run(c.placement, metrics, &timeline);
    int64_t everything = 0;
    for (const auto& tensor : graph.tensors()) everything += tensor.bytes;
    for (const auto& transfer : timeline.transfers) everything += transfer.bytes;
    std::vector<int64_t> fixed(static_cast<size_t>(c.problem->devices()), 0);
    for (int32_t o = 0; o < c.problem->operators(); ++o)
      fixed[static_cast<size_t>(c.placement[static_cast<size_t>(o)])] += c.problem->fixed_bytes(o);
    for (int32_t o = 0; o < c.problem->operators(); ++o) {
      auto inputs = graph.op(o).inputs;
      std::sort(inputs.begin(), inputs.end());
      inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
      int64_t live = 0;
      for (const int32_t t : inputs) live += graph.tensor(t).bytes;
      for (const int32_t t : graph.op(o).outputs) live += graph.tensor(t).bytes;
      const auto d = static_cast<size_t>(c.placement[static_cast<size_t>(o)]);
      CHECK(metrics.devices[d].peak_memory_bytes >= fixed[d] + live);
      CHECK(metrics.devices[d].peak_memory_bytes <= fixed[d] + everything);
    }
  }
}

TEST_CASE("a batch gives the same metrics for any thread count and in any order") {
  const auto c = random_case(3, QueueModel::sender);
  RandomStream random(5, "batch");
  const int count = 40;
  std::vector<int32_t> placements;
  for (int i = 0; i < count; ++i) {
    const auto one = test::random_placement(random, c.problem->graph(), c.problem->devices());
    placements.insert(placements.end(), one.begin(), one.end());
  }
  const auto n = static_cast<size_t>(c.problem->operators());
  std::vector<std::vector<int64_t>> times;
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    BatchSimulator batch(*c.problem, pool);
    std::vector<Metrics> metrics;
    std::vector<Plan> plans;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      plans.push_back({std::span(placements).subspan(i * n, n)});
    batch.run(plans, metrics);
    std::vector<int64_t> row;
    for (const auto& m : metrics) {
      row.push_back(m.step_time_ns);
      row.push_back(m.peak_memory_bytes);
      row.push_back(m.peak_communication_bytes);
    }
    times.push_back(row);
  }
  CHECK(times[0] == times[1]);
  CHECK(times[0] == times[2]);
}

TEST_CASE("excess memory is reported, not refused") {
  test::GraphMaker make("big");
  const int a = make.op("a", 1e-6, 600), b = make.op("b", 1e-6, 600);
  make.edge(a, b, 100);
  const auto cluster = std::make_shared<const Cluster>(test::uniform_spec(2, 1e9, 0, 1000));
  const Problem problem(make.share(), cluster, SimulationRules{});
  problem.check_memory();
  Simulator simulator(problem);
  Metrics metrics;
  simulator.run(std::vector<int32_t>{0, 0}, metrics);
  CHECK_FALSE(metrics.feasible());
  CHECK(metrics.excess_memory_bytes == 300);
  simulator.run(std::vector<int32_t>{0, 1}, metrics);
  CHECK(metrics.feasible());
}
