// The search for the least largest load against enumeration and published results.
#include "search/pipeline/max_load_search.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "support/tier.h"

using namespace trinity;

namespace {

LoadInstance random_load_instance(RandomStream& random) {
  LoadInstance instance;
  const auto count = 4 + static_cast<int32_t>(random.below(5));
  instance.accelerators = 1 + static_cast<int32_t>(random.below(3));
  instance.cpus = static_cast<int32_t>(random.below(2));
  instance.memory_bytes = random.below(2) ? 1000 : 14;
  for (int32_t n = 0; n < count; ++n) {
    const auto time = [&] { return static_cast<double>(random.below(9)); };
    // Every other pair of nodes is one unit.
    const int32_t unit = n % 4 == 3 ? n - 1 : n;
    instance.nodes.push_back({time(), time() * 3, time() / 2, static_cast<int64_t>(random.below(9)),
                              unit, n % 4 == 3, random.below(12) > 0});
    for (int32_t from = 0; from < n; ++from)
      if (random.below(3) == 0) instance.edges.emplace_back(from, n);
  }
  return instance;
}

double least_of_all(const LoadInstance& instance) {
  const int32_t devices = instance.accelerators + instance.cpus;
  std::vector<int32_t> device(instance.nodes.size(), 0);
  double best = 1e300;
  for (;;) {
    if (is_feasible(instance, device)) {
      const auto loads = max_load_loads_s(instance, device);
      best = std::min(best, *std::max_element(loads.begin(), loads.end()));
    }
    size_t n = 0;
    while (n < device.size() && ++device[n] == devices) device[n++] = 0;
    if (n == device.size()) return best;
  }
}

}  // namespace

TEST_CASE("the search for the least largest load finds the optimum of small instances") {
  ThreadPool pool(1);
  int feasible = 0, infeasible = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "instance");
    const auto instance = random_load_instance(random);
    const double best = least_of_all(instance);
    MaxLoadSearchOptions options;
    options.rounds = 2;
    options.trials = 20'000;
    const auto cut = max_load_search(instance, options, pool);
    CHECK(cut.feasible == (best < 1e300));
    (cut.feasible ? feasible : infeasible) += 1;
    if (!cut.feasible) continue;
    CHECK(is_feasible(instance, cut.device));
    CHECK(cut.load_s == doctest::Approx(best).epsilon(1e-12));
    CHECK(max_load_bound_s(instance) <= best * (1 + 1e-9));
  }
  CHECK(feasible > 30);
  CHECK(infeasible > 3);
}

TEST_CASE("the search gives the same on any number of threads, and goes on from a start") {
  RandomStream random(5, "instance");
  LoadInstance instance;
  do instance = random_load_instance(random);
  while (instance.accelerators < 3);
  MaxLoadSearchOptions options;
  options.rounds = 1;
  options.trials = 3000;
  ThreadPool one(1), two(2);
  const auto first = max_load_search(instance, options, one);
  CHECK(max_load_search(instance, options, two).device == first.device);
  REQUIRE(first.feasible);
  options.trials = 1;
  const double alone = max_load_search(instance, options, one).load_s;
  options.starts = {first.device};
  CHECK(max_load_search(instance, options, one).load_s <= first.load_s);
  CHECK(alone > first.load_s);  // without the start one trial finds less
  options.starts = {{0}};
  CHECK_THROWS_AS(max_load_search(instance, options, one), ArgumentError);
}
