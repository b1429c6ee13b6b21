// Cuts by rules along one order.
#include "search/pipeline/pipeline_cuts.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "search/pipeline/max_load_search.h"
#include "support/tier.h"

using namespace trinity;

namespace {

LoadInstance chain(const std::vector<double>& times, int32_t accelerators, double transfer = 0) {
  LoadInstance instance;
  instance.accelerators = accelerators;
  instance.memory_bytes = 1000;
  for (size_t n = 0; n < times.size(); ++n) {
    instance.nodes.push_back({times[n], 0, transfer, 1, static_cast<int32_t>(n), false, true});
    if (n > 0) instance.edges.emplace_back(static_cast<int32_t>(n) - 1, static_cast<int32_t>(n));
  }
  return instance;
}

double largest(const LoadInstance& instance, const std::vector<int32_t>& device) {
  const auto loads = max_load_loads_s(instance, device);
  return *std::max_element(loads.begin(), loads.end());
}

}  // namespace

TEST_CASE("a block partition's largest block is at most the smallest plus the largest element") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    RandomStream random(test::law_seed(), "blocks", seed);
    std::vector<double> work;
    for (uint64_t i = 0, n = 1 + random.below(40); i < n; ++i)
      work.push_back(random.below(4) ? random.uniform() : 0);
    const auto parts = 1 + static_cast<int32_t>(random.below(8));
    const auto block = block_partition(work, parts);
    REQUIRE(block.size() == work.size());
    CHECK(std::is_sorted(block.begin(), block.end()));
    std::vector<double> sums(static_cast<size_t>(parts), 0);
    for (size_t i = 0; i < work.size(); ++i) sums[block[i]] += work[i];
    CHECK(*std::max_element(sums.begin(), sums.end()) <=
          *std::min_element(sums.begin(), sums.end()) +
              *std::max_element(work.begin(), work.end()) + 1e-9);
  }
  CHECK_THROWS_AS(block_partition({}, 1), ArgumentError);
  CHECK_THROWS_AS(block_partition({1, -1}, 1), ArgumentError);
}

TEST_CASE("rules cut a chain as they say") {
  const auto instance = chain({1, 1, 1, 9, 1, 1, 1, 1}, 3);
  CHECK(cut_by_rule(instance, CutRule::balanced) == std::vector<int32_t>{0, 0, 0, 1, 2, 2, 2, 2});
  CHECK(cut_by_rule(instance, CutRule::equal) == std::vector<int32_t>{0, 0, 1, 1, 1, 2, 2, 2});
  CHECK(largest(instance, cut_by_rule(instance, CutRule::torchgpipe)) == 11);  // 2 + 9, its promise
  const auto random = cut_by_rule(instance, CutRule::random, 3);
  CHECK(std::is_sorted(random.begin(), random.end()));
  CHECK(cut_by_rule(instance, CutRule::random, 3) == random);
  auto none = instance;
  none.accelerators = 0;
  none.cpus = 1;
  CHECK(cut_by_rule(none, CutRule::balanced) == std::vector<int32_t>(8, 0));
}

TEST_CASE("local search over cuts reaches the exact cut of most chains and is never below it") {
  int equal = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    RandomStream random(test::law_seed(), "cuts", seed);
    std::vector<double> times;
    for (uint64_t i = 0, n = 4 + random.below(12); i < n; ++i)
      times.push_back(static_cast<double>(1 + random.below(20)));
    const auto instance = chain(times, 2 + static_cast<int32_t>(random.below(3)), 2);
    const auto found = search_cuts(instance, {.seed = seed, .starts = 6, .trials = 20000});
    const double load = largest(instance, found), best = max_load_cut(instance).load_s;
    CHECK(load <= largest(instance, cut_by_rule(instance, CutRule::balanced)));
    CHECK(load >= best * (1 - 1e-12));
    equal += load <= best * (1 + 1e-12) ? 1 : 0;
    CHECK(search_cuts(instance, {.seed = seed, .starts = 6, .trials = 20000}) == found);
  }
  CHECK(equal >= 30);
}
