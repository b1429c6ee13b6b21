#include "simulator/event_lanes.h"

#include <doctest/doctest.h>

#include <set>
#include <tuple>

#include "base/random.h"
#include "support/tier.h"

using namespace trinity;

TEST_CASE("events come out of lanes in order of time and key") {
  EventLanes lanes;
  for (uint64_t draw = 0; draw < test::draws(40); ++draw) {
    CAPTURE(draw);
    RandomStream random(test::law_seed(), "lanes", draw);
    const size_t count = 1 + random.below(9);
    const size_t most = draw % 4 == 0 ? 3000 : 30;  // so that long lists are cut, too
    lanes.reset(count);
    std::set<std::tuple<int64_t, uint64_t, uint64_t>> all;  // with their expected contents
    for (uint64_t step = 0; step < 8000; ++step) {
      const bool fills = all.size() < most && (step < 4000 || random.below(2) == 0);
      if (all.empty() || fills) {
        const auto time_ns = static_cast<int64_t>(step / 8 + random.below(20));
        const uint64_t key = (uint64_t{random.below(4)} << 62) + step;
        lanes.push(random.below(count), time_ns, key, step);
        all.emplace(time_ns, key, step);
      } else {
        REQUIRE(!lanes.empty());
        const auto [time_ns, key, data] = *all.begin();
        REQUIRE(lanes.front().time_ns == time_ns);
        REQUIRE(lanes.front().key == key);
        REQUIRE(lanes.front().data == data);
        lanes.pop();
        all.erase(all.begin());
      }
    }
    size_t left = 0;
    lanes.for_each([&](const EventLanes::Event& event) {
      left += all.count({event.time_ns, event.key, event.data});
    });
    CHECK(left == all.size());
    CHECK(lanes.empty() == all.empty());
  }
}
