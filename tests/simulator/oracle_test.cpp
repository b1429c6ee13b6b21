// Step times and memory that other implementations of the same rules gave.
#include <doctest/doctest.h>

#include "simulator/simulator.h"
#include "support/build.h"

using namespace trinity;

namespace {

/// manual/papers.md "Trinity: the published simulator": A(10 us) -> B(20), A -> C(30), B -> D(5), C
/// -> D. A writes two tensors.
std::shared_ptr<const Graph> diamond() {
  test::GraphMaker make("diamond");
  const int a = make.op("A", 10e-6), b = make.op("B", 20e-6), c = make.op("C", 30e-6);
  const int d = make.op("D", 5e-6);
  make.edge(a, b, 76000);
  make.edge(a, c, 76000);
  make.edge(b, d, 38000);
  make.edge(c, d, 38000);
  return make.share();
}

struct Row {
  std::vector<int32_t> placement;
  double at_7600_us, at_9200_us;
  std::vector<double> starts_us;
  std::vector<int64_t> memory_bytes;
};

double rounded(int64_t ns) { return static_cast<double>(ns) / 1000.0; }

}  // namespace

TEST_CASE("compat mode reproduces every row of the published simulator's diamond") {
  const std::vector<Row> rows = {
      {{0, 0, 0, 0}, 87.8, 87.8, {0, 15.7, 41.4, 77.1}, {228000, 0, 0}},
      {{0, 0, 1, 0}, 80.0, 77.391, {0, 15.7, 20, 55}, {190000, 38000, 0}},
      {{0, 1, 1, 0}, 115.0, 110.652, {0, 20, 55, 90}, {152000, 76000, 0}},
      {{0, 1, 2, 0}, 115.0, 110.652, {0, 20, 55, 90}, {152000, 38000, 38000}},
  };
  for (const auto& row : rows) {
    for (const double bytes_per_us : {7600.0, 9200.0}) {
      const Problem problem(diamond(), test::uniform_cluster(3, bytes_per_us * 1e6, 0),
                            SimulationRules::compat());
      Metrics metrics;
      Timeline timeline;
      Simulator(problem).run(row.placement, metrics, &timeline);
      const bool slow = bytes_per_us == 7600.0;
      CHECK(rounded(metrics.step_time_ns) == (slow ? row.at_7600_us : row.at_9200_us));
      for (size_t d = 0; d < 3; ++d)
        CHECK(metrics.devices[d].peak_memory_bytes == row.memory_bytes[d]);
      if (slow)
        for (size_t o = 0; o < 4; ++o) CHECK(rounded(timeline.start_ns[o]) == row.starts_us[o]);
    }
  }
}

TEST_CASE("compat mode reproduces the published simulator's chain") {
  test::GraphMaker make("chain");
  const int a = make.op("A", 10e-6), b = make.op("B", 20e-6);
  make.edge(a, b, 76000);
  const Problem problem(make.share(), test::uniform_cluster(2, 7600e6, 0),
                        SimulationRules::compat());
  Metrics metrics;
  Simulator simulator(problem);
  simulator.run(std::vector<int32_t>{0, 0}, metrics);
  CHECK(metrics.step_time_ns == 41400);
  simulator.run(std::vector<int32_t>{0, 1}, metrics);
  CHECK(metrics.step_time_ns == 45700);
}

/// manual/simulator.md "A worked example": latency 1000 ns, 1 byte/ns.
TEST_CASE("default mode gives the worked example of the simulator reference") {
  test::GraphMaker make("worked");
  const int64_t bytes[] = {4000, 2000, 1000, 500, 100, 3000};
  const double cost_ns[] = {10000, 5000, 7000, 3000, 4000, 6000};
  const char* names[] = {"A", "B", "C", "D", "E", "F"};
  std::vector<int> tensor;
  for (int i = 0; i < 6; ++i)
    tensor.push_back(make.output(make.op(names[i], cost_ns[i] * 1e-9), bytes[i]));
  const std::pair<int, int> edges[] = {{0, 1}, {0, 2}, {0, 4}, {1, 3},
                                       {1, 4}, {2, 3}, {3, 5}, {4, 5}};
  for (const auto& [from, to] : edges) make.read(to, tensor[from]);
  const Problem problem(make.share(), test::uniform_cluster(2, 1e9, 1000e-9), SimulationRules{});
  Metrics metrics;
  Timeline timeline;
  Simulator(problem).run(std::vector<int32_t>{0, 0, 1, 0, 1, 1}, metrics, &timeline);
  CHECK(metrics.step_time_ns == 34500);
  CHECK(timeline.start_ns == std::vector<int64_t>{0, 10000, 15000, 24000, 22000, 28500});
  CHECK(timeline.end_ns == std::vector<int64_t>{10000, 15000, 22000, 27000, 26000, 34500});
  REQUIRE(timeline.transfers.size() == 4);
  std::vector<int64_t> starts, ends;
  for (const auto& transfer : timeline.transfers) {
    starts.push_back(transfer.start_ns);
    ends.push_back(transfer.end_ns);
  }
  CHECK(starts == std::vector<int64_t>{10000, 15000, 22000, 27000});
  CHECK(ends == std::vector<int64_t>{15000, 18000, 24000, 28500});
  CHECK(metrics.total_communication_bytes == 7500);
  CHECK(metrics.devices[0].send_busy_ns == 9500);
  CHECK(metrics.devices[1].send_busy_ns == 2000);
  CHECK(metrics.devices[0].peak_memory_bytes == 7000);
  CHECK(metrics.devices[1].peak_memory_bytes == 7600);
  CHECK(metrics.peak_communication_bytes == 7500);
}
