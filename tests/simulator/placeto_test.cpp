// The published simulator's step times on PipeDream profiles, measured by running the authors'
// code (see the data folder's ORIGIN.md); skipped where the data are absent.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "formats/instances/pipedream.h"
#include "graph/fold.h"
#include "simulator/simulator.h"
#include "support/build.h"
#include "support/data.h"

using namespace trinity;

namespace {

const std::string kData = test::kShared;

}  // namespace

TEST_CASE("compat mode gives the published simulator's step times on real profiles" *
          doctest::skip(!std::filesystem::exists(kData + "/placeto-sim"))) {
  for (const char* name :
       {"alexnet", "vgg16", "gnmt", "resnet50", "inception_v3", "nasnetamobile"}) {
    const auto expected = nlohmann::json::parse(
        read_file(fmt::format("{}/placeto-sim/{}.expected.json", kData, name)));
    const auto graph = std::make_shared<const Graph>(
        fold_backward(read_pipedream(fmt::format("{}/pipedream/{}.graph.txt", kData, name))));
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
      Metrics metrics;
      Simulator(problem).run(placement, metrics);
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
