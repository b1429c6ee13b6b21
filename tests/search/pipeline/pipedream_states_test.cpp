// Where PipeDream cuts a network. tests/lua/pipeline/pipedream_spec.lua has the optimiser over these cuts.
#include "search/pipeline/pipedream_states.h"

#include <doctest/doctest.h>

#include "base/error.h"

using namespace trinity;

TEST_CASE("branches made layers keep all time and weights") {
  // s branches to a1 -> a2 and b1, which join in t -> u.
  PipedreamLayers layers;
  for (int32_t i = 0; i < 6; ++i) {
    layers.members.push_back({i});
    layers.time_s.push_back(i + 1);
    layers.parameter_bytes.push_back(10 * i);
    layers.output_bytes.push_back(100 + i);
  }
  layers.edges = {{0, 1}, {0, 3}, {1, 2}, {2, 4}, {3, 4}, {4, 5}};
  const auto made = compress_branches(layers);
  CHECK(made.members == std::vector<std::vector<int32_t>>{{0}, {1, 2}, {3}, {4}, {5}});
  CHECK(made.time_s[1] == 5);
  CHECK(made.parameter_bytes[1] == 30);
  CHECK(made.output_bytes[1] == 102);
  CHECK(made.edges ==
        std::vector<std::pair<int32_t, int32_t>>{{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}});
  CHECK(pipedream_states(made).size() < pipedream_states(layers).size());
}

TEST_CASE("antichains and chains have limits") {
  // 14 chains side by side have more antichains than any limit.
  PipedreamLayers wide;
  for (int32_t i = 0; i < 43; ++i) {
    wide.members.push_back({i});
    if (i > 0) wide.edges.emplace_back(i % 3 == 1 ? 0 : i - 1, i);
  }
  wide.time_s.assign(43, 1);
  wide.output_bytes.assign(43, 1);
  wide.parameter_bytes.assign(43, 0);
  CHECK_THROWS_WITH_AS(pipedream_states(wide), "more than 4000 antichains", LimitError);
  const auto states_of_chain = pipedream_chain(wide);
  CHECK(states_of_chain.size() == 43);
  CHECK(states_of_chain.back().time_s == 43);
  CHECK(states_of_chain[0].output_bytes == 1);
}
