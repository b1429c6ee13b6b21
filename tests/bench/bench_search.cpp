// Searches under Placeto's rules against the reference figures of data/placeto-sim: median and
// range over seeds, at equal evaluations. ninja -C build bench_search && build/bench_search
// [evaluations]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "search/annealing.h"
#include "search/best.h"
#include "search/local_search.h"
#include "search/mcmc.h"
#include "search/search_loop.h"
#include "support/placeto.h"

using namespace trinity;

namespace {

constexpr uint64_t kSeeds = 9;
using Make = std::function<std::unique_ptr<Searcher>(const PlacementSpace&, uint64_t, int64_t)>;

template <class Search, class Options>
std::unique_ptr<Searcher> make(const PlacementSpace& space, uint64_t seed, int64_t evaluations) {
  Options options;
  options.seed = seed;
  if constexpr (requires { options.evaluations; }) options.evaluations = evaluations;
  return std::make_unique<Search>(space, std::move(options));
}

void run(const std::string& name, const Problem& problem, int64_t evaluations, const Make& make) {
  const PlacementSpace space(problem);
  ThreadPool pool(1);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<double> steps_us;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    BatchSimulator simulator(problem, pool, 0);
    const auto search = make(space, seed, evaluations);
    const auto found = run_search(*search, simulator, {.evaluations = evaluations});
    steps_us.push_back(static_cast<double>(found.metrics.step_time_ns) / 1e3);
  }
  std::sort(steps_us.begin(), steps_us.end());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  fmt::print("  {:14} median {:9.1f}  {:9.1f} to {:9.1f} us  {:.2f} s each\n", name,
             steps_us[kSeeds / 2], steps_us.front(), steps_us.back(), elapsed.count() / kSeeds);
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t evaluations = argc > 1 ? std::atoll(argv[1]) : 3000;
  const auto data = std::string(TRINITY_SOURCE_DIR) + "/../shared/data";
  const auto reference =
      nlohmann::json::parse(read_file(data + "/placeto-sim/search_reference.json"));
  for (const auto& entry : reference["results"]) {
    const std::string name = entry["graph"];
    const int devices = entry["devices"];
    const auto problem =
        test::placeto_problem(fmt::format("{}/pipedream/{}.graph.txt", data, name), devices);
    fmt::print("{} on {}: sa_us {:.1f}, heft_etf_us {:.1f}\n", name, devices,
               double{entry["sa_us"]}, double{entry["heft_etf_us"]});
    run("best", problem, evaluations, [](const auto& space, uint64_t seed, int64_t budget) {
      return best_search(space, {.seed = seed, .evaluations = budget, .starts = {}});
    });
    run("annealing", problem, evaluations, make<Annealing, AnnealingOptions>);
    run("local search", problem, evaluations, make<LocalSearch, LocalSearchOptions>);
    run("mcmc", problem, evaluations, make<Mcmc, McmcOptions>);
  }
  return 0;
}
