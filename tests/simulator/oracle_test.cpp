// Step times and memory that other implementations of the same rules gave.
#include <doctest/doctest.h>

#include "simulator/simulator.h"
#include "support/cases.h"

using namespace trinity;

namespace {

/// papers/notes.md "Trinity: the published simulator": A(10 us) -> B(20), A -> C(30), B -> D(5), C
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
      const auto [metrics, timeline] = test::simulate(problem, {row.placement});
      const bool slow = bytes_per_us == 7600.0;
      CHECK(rounded(metrics.step_time_ns) == (slow ? row.at_7600_us : row.at_9200_us));
      for (size_t d = 0; d < 3; ++d)
        CHECK(metrics.devices[d].peak_memory_bytes == row.memory_bytes[d]);
      if (slow)
        for (size_t o = 0; o < 4; ++o) CHECK(rounded(timeline.start_ns[o]) == row.starts_us[o]);
    }
  }
}
