// The house's best search against the annealing of data/placeto-sim, at equal evaluations under
// Placeto's rules; skipped where the data are absent.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "search/best.h"
#include "search/search_loop.h"
#include "simulator/bounds.h"
#include "support/placeto.h"

using namespace trinity;

namespace {

const std::string kData = std::string(TRINITY_SOURCE_DIR) + "/../shared/data";

}  // namespace

TEST_CASE("the best search beats the reference annealing with the same 3000 evaluations" *
          doctest::skip(!std::filesystem::exists(kData + "/placeto-sim"))) {
  const auto reference =
      nlohmann::json::parse(read_file(kData + "/placeto-sim/search_reference.json"));
  for (const auto& entry : reference["results"]) {
    const std::string name = entry["graph"];
    const int devices = entry["devices"];
    CAPTURE(name);
    CAPTURE(devices);
    const auto problem =
        test::placeto_problem(fmt::format("{}/pipedream/{}.graph.txt", kData, name), devices);
    const PlacementSpace space(problem);
    Metrics alone;
    Simulator(problem).run(space.placement(Assignment(static_cast<size_t>(space.units()), 0)),
                           alone);
    // The reference's own figure for one device: the rules are the same.
    CHECK(static_cast<double>(alone.step_time_ns) / 1e3 ==
          doctest::Approx(double{entry["single_us"]}).epsilon(2e-7));
    ThreadPool pool(2);
    for (const uint64_t seed : {1, 2}) {
      BatchSimulator simulator(problem, pool);
      const int64_t evaluations = entry["sa_evals"];
      const auto search =
          best_search(space, {.seed = seed, .evaluations = evaluations, .starts = {}});
      const auto found = run_search(*search, simulator, {.evaluations = evaluations});
      CHECK(search->evaluations() == evaluations);
      CHECK(static_cast<double>(found.metrics.step_time_ns) / 1e3 <= double{entry["sa_us"]});
      CHECK(found.metrics.step_time_ns >= lower_bounds(problem).step_time_ns);
    }
  }
}
