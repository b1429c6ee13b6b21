// PipeDream's optimiser against the results of its own code.
#include "search/pipeline/pipedream_planner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "formats/instances/pipeline_file.h"
#include "search/pipeline/pipeline_network.h"
#include "support/shared_data.h"
#include "support/tier.h"

using namespace trinity;

namespace {

const std::string kPipedreamData = test::shared_data();

/// A profile_chain of states from (time_s, weights, output) of every layer.
std::vector<PipedreamState> profile_chain(const std::vector<std::array<double, 3>>& layers) {
  std::vector<PipedreamState> states;
  PipedreamState sum;
  for (size_t i = 0; i < layers.size(); ++i) {
    sum.layers.push_back(static_cast<int32_t>(i));
    sum.time_s += layers[i][0];
    sum.parameter_bytes += layers[i][1];
    sum.activation_bytes += layers[i][2];
    sum.output_bytes = layers[i][2];
    states.push_back(sum);
    sum.before.push_back(static_cast<int32_t>(i));
  }
  return states;
}

/// The time of a pipeline by the formula of the header, from its stages.
double price(const std::vector<PipedreamState>& states, const PipedreamPipeline& pipeline,
             double bandwidth) {
  double worst = 0;
  for (const auto& stage : pipeline.stages) {
    const auto& last = states[stage.last];
    const auto* first = stage.first < 0 ? nullptr : &states[stage.first];
    const double m = stage.replicas[0];
    const double time_s = last.time_s - (first ? first->time_s : 0);
    const double weights = last.parameter_bytes - (first ? first->parameter_bytes : 0);
    worst = std::max(worst, (time_s + 4 * (m - 1) * weights / (bandwidth * m)) / m);
    if (!first) continue;
    worst = std::max(worst, 2 * first->output_bytes / (bandwidth * m));
    if (stage.last + 1 < static_cast<int32_t>(states.size()))
      worst = std::max(worst, 2 * last.output_bytes / (bandwidth * m));
  }
  return worst;
}

/// The least slowest stage by trying every cut and every numbers of replicas.
double exhaustive(const std::vector<PipedreamState>& states, int32_t workers, double bandwidth) {
  double best = 1e300;
  const auto count = static_cast<int32_t>(states.size());
  PipedreamPipeline pipeline;
  const auto extend = [&](auto&& self, int32_t first, int32_t left) -> void {
    for (int32_t last = first + 1; last < count; ++last)
      for (int32_t replicas = 1; replicas <= left; ++replicas) {
        pipeline.stages.push_back({first, last, {replicas}});
        if (last + 1 == count && replicas == left)
          best = std::min(best, price(states, pipeline, bandwidth));
        else if (last + 1 < count && left > replicas)
          self(self, last, left - replicas);
        pipeline.stages.pop_back();
      }
  };
  extend(extend, -1, workers);
  return best;
}

}  // namespace

TEST_CASE("PipeDream's optimiser is optimal on small chains") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "chain");
    std::vector<std::array<double, 3>> layers;
    for (uint64_t i = 0, n = 2 + random.below(6); i < n; ++i)
      layers.push_back({0.001 * static_cast<double>(1 + random.below(20)),
                        1e6 * static_cast<double>(random.below(8)),
                        1e6 * static_cast<double>(random.below(8))});
    const auto states = profile_chain(layers);
    const int32_t workers = 1 + static_cast<int32_t>(random.below(4));
    const PipedreamLevel level{workers, 1e9};
    const auto pipeline = pipedream_pipeline(states, std::span(&level, 1));
    REQUIRE(pipeline.feasible);
    CHECK(pipeline.time_s == doctest::Approx(exhaustive(states, workers, 1e9)).epsilon(1e-12));
    CHECK(pipeline.time_s == doctest::Approx(price(states, pipeline, 1e9)).epsilon(1e-12));
    int32_t used = 0, next = -1;
    for (const auto& stage : pipeline.stages) {
      CHECK(stage.first == next);
      next = stage.last;
      used += stage.replicas[0];
    }
    CHECK(next + 1 == static_cast<int32_t>(states.size()));
    CHECK(used == workers);
  }
}

TEST_CASE("a straight pipeline needs as many cuts as workers; memory can forbid a pipeline") {
  const auto states = profile_chain({{1, 4, 1}, {2, 4, 1}, {3, 4, 1}});
  const PipedreamLevel three{3, 1e9}, four{4, 1e9};
  const auto straight = pipedream_pipeline(states, std::span(&three, 1), {.straight = true});
  REQUIRE(straight.feasible);
  CHECK(straight.stages.size() == 3);
  CHECK(straight.time_s == 3);
  CHECK_FALSE(pipedream_pipeline(states, std::span(&four, 1), {.straight = true}).feasible);
  // The first of three stages stashes 2 versions of 4 bytes of weights and 1 of outputs.
  CHECK(pipedream_pipeline(states, std::span(&three, 1), {.straight = true, .memory_bytes = 10})
            .feasible);
  CHECK_FALSE(
      pipedream_pipeline(states, std::span(&three, 1), {.straight = true, .memory_bytes = 4})
          .feasible);
}

TEST_CASE("the paper's costs, compressed transfers and idle workers") {
  // Layers of 4 and 2 seconds, of 8 and 2 bytes of weights; 1 byte crosses.
  const auto states = profile_chain({{4, 8, 1}, {2, 2, 1}});
  const PipedreamLevel two{2, 1};
  const auto time = [&](PipedreamOptions options) {
    return pipedream_pipeline(states, std::span(&two, 1), options).time_s;
  };
  // Two stages: 4 s and 2 s, and 2 bytes forth and back at 1 byte/s. Replicas: (6 + 4 * 10 / 2)
  // / 2.
  CHECK(time({}) == 4);
  CHECK(time({.transfers = true, .compression = 0.25}) == 8);
  // By the paper replicas take max(6, 2 * 10) / 2 = 10.
  CHECK(time({.transfers = true, .paper = true, .compression = 0.1}) == 10);
  CHECK(time({.transfers = true, .compression = 0.1}) == 13);
  // One worker alone takes 6, better than either.
  CHECK(time({.transfers = true, .fewer = true, .compression = 0.1}) == 6);
  const auto idle =
      pipedream_pipeline(states, std::span(&two, 1), {.fewer = true, .compression = 0.1});
  REQUIRE(idle.stages.size() == 1);
  CHECK(idle.stages[0].replicas == std::vector<int32_t>{1});
}

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

TEST_CASE("what PipeDream's optimiser refuses") {
  const auto states = profile_chain({{1, 1, 1}});
  const PipedreamLevel none{0, 1e9}, slow{1, 0};
  CHECK_THROWS_AS(pipedream_pipeline(states, std::span(&none, 1)), ArgumentError);
  CHECK_THROWS_AS(pipedream_pipeline(states, std::span(&slow, 1)), ArgumentError);
  CHECK_THROWS_AS(pipedream_pipeline({}, std::span(&slow, 1)), ArgumentError);
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

TEST_CASE("every published result of PipeDream's code" * test::shared * test::all_tier) {
  int compared = 0;
  for (const std::string folder : {"/pipedream", "/dapple"}) {
    const auto expected =
        nlohmann::json::parse(read_file(kPipedreamData + folder + "/expected.json"));
    std::string last;
    std::vector<PipedreamState> states;
    for (const auto& result : expected.at("results")) {
      const std::string model = result.at("model");
      CAPTURE(model);
      if (model != last) {
        const auto compressed = model.find("_compressed");
        const auto network =
            read_pipeline_network(kPipedreamData + folder + "/" + model.substr(0, compressed) +
                                  (folder == "/dapple" ? "" : ".graph") + ".txt");
        REQUIRE(network);
        const auto layers = pipedream_layers(*network);
        states =
            pipedream_states(compressed == std::string::npos ? layers : compress_branches(layers));
        last = model;
      }
      CHECK(states.size() == result.at("states").get<size_t>());
      std::vector<PipedreamLevel> levels;
      for (size_t l = 0; l < result.at("n").size(); ++l)
        levels.push_back({result.at("n")[l], result.at("bw")[l]});
      const int workers = levels[0].workers;
      CAPTURE(workers);
      CAPTURE(levels.size());
      PipedreamOptions options;
      options.straight = result.at("straight");
      options.transfers = !result.at("acr").is_null();
      const auto pipeline = pipedream_pipeline(states, levels, options);
      REQUIRE(pipeline.feasible);
      CHECK(pipeline.time_s == doctest::Approx(result.at("pipe").get<double>()).epsilon(1e-6));
      CHECK(pipeline.data_parallel_s ==
            doctest::Approx(result.at("dp").get<double>()).epsilon(1e-6));
      ++compared;
    }
  }
  CHECK(compared == 99);
}
