// Twenty small graphs whose optimum is known by trying every placement.
#include <doctest/doctest.h>

#include "base/error.h"
#include "search/placement/exhaustive.h"
#include "support/search_cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

struct Small {
  std::shared_ptr<const Problem> problem;
  int devices;
};

/// Graph `index` of twenty: 8 to 14 operators on 2 devices, 8 to 11 on 3.
Small small(uint64_t index) {
  const int devices = index % 2 ? 3 : 2;
  const int operators =
      devices == 2 ? 8 + static_cast<int>(index / 2 % 7) : 8 + static_cast<int>(index / 2 % 4);
  return {test::small_problem(index / 2, operators, devices), devices};
}

/// The least score of all devices ^ operators placements that keep units together, by counting.
Score brute_force(const Problem& problem) {
  Simulator simulator(problem);
  const auto& graph = problem.graph();
  std::vector<int32_t> placement(static_cast<size_t>(problem.operators()), 0);
  Metrics metrics;
  Score least;
  bool any = false;
  for (;;) {
    bool together = true;
    for (int32_t op = 0; op < problem.operators(); ++op) {
      const auto first = graph.unit(graph.units()[op])[0];
      together &= placement[op] == placement[first];
    }
    if (together) {
      simulator.run(placement, metrics);
      const auto score = test::score_of(metrics);
      if (!any || score < least) least = score;
      any = true;
    }
    size_t digit = 0;
    while (digit < placement.size() && ++placement[digit] == problem.devices())
      placement[digit++] = 0;
    if (digit == placement.size()) return least;
  }
}

Score price(const PlacementSpace& space, const Assignment& assignment) {
  return test::price(space.problem(), space.placement(assignment));
}

/// The best that a search finds.
Score found(Searcher& searcher, const Problem& problem, int64_t evaluations) {
  test::run_search(searcher, problem, evaluations);
  return *searcher.best();
}

}  // namespace

TEST_CASE("exhaustive search finds the optimum") {
  int beyond_memory = 0, split = 0;
  for (uint64_t draw = 0; draw < test::draws(20); ++draw) {
    const uint64_t index = (test::law_seed() + draw) % 20;
    CAPTURE(index);
    const auto [problem, devices] = small(index);
    const PlacementSpace space(*problem);
    const auto optimum = brute_force(*problem);

    Exhaustive exhaustive(space);
    CHECK(found(exhaustive, *problem, 1'000'000) == optimum);
    CHECK(static_cast<double>(exhaustive.evaluations()) == space.choices());

    const auto alone = price(space, Assignment(static_cast<size_t>(space.units()), 0));
    beyond_memory += !alone.fits() && optimum.fits();
    split += optimum < alone;
  }
  CHECK(beyond_memory >= test::least(1));  // the cases are worth searching
  CHECK(split >= test::least(10));
}

TEST_CASE("exhaustive search refuses too many placements and says how many there are") {
  const auto problem = test::small_problem(1, 14, 3);
  const PlacementSpace space(*problem);
  CHECK_THROWS_WITH_AS(Exhaustive{space},
                       "exhaustive: 14 colocation units on 3 devices have 4.78e+06 different "
                       "placements, and at most 4e+06 are tried",
                       LimitError);
}

TEST_CASE("exhaustive search counts placements up to names of interchangeable devices") {
  const auto equal = test::small_problem(0, 8, 3), unequal = test::small_problem(1, 8, 3);
  const PlacementSpace same(*equal), other(*unequal);
  CHECK(same.interchangeable());
  CHECK(same.choices() == 1 + 127 + 966);  // Stirling numbers S(8, 1), S(8, 2), S(8, 3)
  CHECK_FALSE(other.interchangeable());
  CHECK(other.choices() == 6561);
  CHECK(same.key({0, 1, 1, 2, 0, 0, 1, 2}) == same.key({2, 0, 0, 1, 2, 2, 0, 1}));
  CHECK(same.key({0, 1, 1, 2, 0, 0, 1, 2}) != same.key({0, 1, 1, 2, 0, 0, 1, 1}));
  CHECK(other.key({0, 1, 1, 2, 0, 0, 1, 2}) != other.key({2, 0, 0, 1, 2, 2, 0, 1}));
}
