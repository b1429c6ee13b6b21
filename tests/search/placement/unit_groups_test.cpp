#include "search/placement/unit_groups.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "search/placement/moves.h"
#include "support/build.h"
#include "support/search_cases.h"

using namespace trinity;

namespace {

constexpr int kLayers = 4, kReaders = 15;

/// Layers in a row: weights that `kReaders` operators read, which pass little on to each other and
/// to the next layer.
Problem layers() {
  test::GraphMaker make("layers");
  int last = -1, count = 0;
  for (int layer = 0; layer < kLayers; ++layer) {
    make.op("weights" + std::to_string(layer), 1e-6, 0);
    const int weights = make.output(count++, 1'000'000);
    for (int reader = 0; reader < kReaders; ++reader) {
      make.op("step" + std::to_string(count), 1e-6, 0);
      make.read(count, weights);
      if (last >= 0) make.read(count, last);
      last = make.output(count++, 1000);
    }
  }
  return test::make_problem(make.share(), test::uniform_spec(2, 1e9, 1e-6));
}

}  // namespace

TEST_CASE("groups of units: every level has every unit once, and each is coarser than the last") {
  for (const uint64_t index : {0u, 1u, 2u, 3u}) {
    const auto problem = test::small_problem(index, 120, 3);
    const PlacementSpace space(*problem);
    const UnitGroups groups(space);
    REQUIRE(groups.levels() >= 2);
    for (int32_t level = 0; level < groups.levels(); ++level) {
      std::set<int32_t> leaders;
      for (int32_t unit = 0; unit < space.units(); ++unit) {
        const auto own = groups.around(level, unit);
        CHECK(std::is_sorted(own.begin(), own.end()));
        CHECK(std::count(own.begin(), own.end(), unit) == 1);
        for (const int32_t other : own) CHECK(groups.around(level, other).data() == own.data());
        leaders.insert(own.front());
        if (level > 0) {
          const auto finer = groups.around(level - 1, unit);
          CHECK(std::includes(own.begin(), own.end(), finer.begin(), finer.end()));
        }
      }
      CHECK(leaders.size() >= 2);
      CHECK(leaders.size() <= static_cast<size_t>(space.units() / 8));
    }
  }
}

TEST_CASE("groups of units: a layer with its weights is one group, and a move takes it whole") {
  const auto problem = layers();
  const PlacementSpace space(problem);
  const UnitGroups groups(space);
  REQUIRE(groups.levels() >= 1);
  const int32_t coarsest = groups.levels() - 1;
  for (int32_t unit = 0; unit < space.units(); ++unit) {
    const auto own = groups.around(coarsest, unit);
    REQUIRE(own.size() == kReaders + 1);
    CHECK(own.front() == unit / (kReaders + 1) * (kReaders + 1));
    CHECK(own.back() == own.front() + kReaders);
  }
  // From layers that are spread over both devices, as no other move finds them whole.
  Moves moves(space, RandomStream(1, "test"), {.groups = true});
  Assignment spread(static_cast<size_t>(space.units()));
  for (size_t unit = 0; unit < spread.size(); ++unit) spread[unit] = unit % 2;
  int whole = 0;
  for (int move = 0; move < 400; ++move) {
    auto moved = spread;
    moves.apply(moved);
    const auto second = std::count(moved.begin(), moved.begin() + kReaders + 1, 1);
    const bool rest_same =
        std::equal(moved.begin() + kReaders + 1, moved.end(), spread.begin() + kReaders + 1);
    whole += rest_same && (second == 0 || second == kReaders + 1);
  }
  CHECK(whole >= 2);
}

TEST_CASE("groups of units: graphs too small for any") {
  const auto problem = test::small_problem(0, 6, 2);
  const PlacementSpace space(*problem);
  CHECK(UnitGroups(space).levels() == 0);
  Moves moves(space, RandomStream(1, "test"), {.groups = true});
  Assignment assignment(6, 0);
  for (int move = 0; move < 50; ++move) moves.apply(assignment);
  space.check(assignment);
}
