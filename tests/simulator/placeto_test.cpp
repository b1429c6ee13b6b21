// The published simulator's step times on PipeDream profiles, measured by running the authors'
// code (see the data folder's ORIGIN.md), and by hand on a small one.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "formats/read_model.h"
#include "graph/training.h"
#include "simulator/simulator.h"
#include "support/build.h"
#include "support/shared_data.h"

using namespace trinity;

namespace {

const std::string kInstances = test::shared_data();

}  // namespace

TEST_CASE("compat mode by hand: a pause after every operator, transfers that overlap with work") {
  const auto graph = std::make_shared<const Graph>(
      fold_backward(read_model(test::data("profiles/small.graph.txt")).graph));
  const auto step_time_us = [&](int devices, std::vector<int32_t> placement, int64_t transfers) {
    const Problem problem(graph, test::uniform_cluster(devices, 7600e6, 0),
                          SimulationRules::placeto());
    const auto metrics = test::metrics_of(problem, {placement});
    CHECK(metrics.transfers == transfers);
    return static_cast<double>(metrics.step_time_ns) / 1e3;
  };
  // Eight operators of 73.5 ms in all, with 5.7 us between them.
  CHECK(step_time_us(1, {0, 0, 0, 0, 0, 0, 0, 0}, 0) == doctest::Approx(73539.9).epsilon(1e-9));
  // In halves the 4 MB of the fourth take the place of a pause (whole nanoseconds); the 2 MB of
  // the second hide.
  CHECK(step_time_us(2, {0, 0, 0, 0, 1, 1, 1, 1}, 2) ==
        doctest::Approx(73500 + 6 * 5.7 + 4e6 / 7600).epsilon(1e-8));
}

TEST_CASE("compat mode gives the published simulator's step times on real profiles" *
          test::shared) {
  for (const char* name :
       {"alexnet", "vgg16", "gnmt", "resnet50", "inception_v3", "nasnetamobile"}) {
    const auto expected = nlohmann::json::parse(
        read_file(fmt::format("{}/placeto-sim/{}.expected.json", kInstances, name)));
    const auto graph = std::make_shared<const Graph>(
        fold_backward(read_model(fmt::format("{}/pipedream/{}.graph.txt", kInstances, name)).graph));
    std::vector<size_t> file_order(static_cast<size_t>(graph->operator_count()));
    for (int32_t o = 0; o < graph->operator_count(); ++o)
      file_order[static_cast<size_t>(
                     std::get<int64_t>(graph->op(o).attributes.at("file_position"))) -
                 1] = static_cast<size_t>(o);
    int compared = 0;
    for (const auto& entry : expected["cases"]) {
      const int devices = entry["devices"];
      const std::string digits = entry["placement"];
      std::vector<int32_t> placement(digits.size());
      for (size_t i = 0; i < digits.size(); ++i) placement[file_order[i]] = digits[i] - '0';
      const Problem problem(graph, test::uniform_cluster(devices, 7600e6, 0),
                            SimulationRules::placeto());
      const auto metrics = test::metrics_of(problem, {placement});
      const double makespan_us = entry["makespan_us"];
      // Times are whole nanoseconds here.
      CHECK_MESSAGE(std::abs(static_cast<double>(metrics.step_time_ns) / 1e3 - makespan_us) <=
                        1e-6 * makespan_us,
                    std::string(name), ", ", devices, " devices, case ", compared);
      CHECK(metrics.transfers == entry["transfers"].get<int64_t>());
      for (size_t d = 0; d < metrics.devices.size(); ++d)
        CHECK(static_cast<double>(metrics.devices[d].compute_busy_ns) / 1e3 ==
              doctest::Approx(entry["busy_us"][d].get<double>()));
      ++compared;
    }
    CHECK(compared > 0);
  }
}
