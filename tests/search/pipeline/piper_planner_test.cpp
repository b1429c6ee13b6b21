// Piper's planner against enumeration and the results of its own code.
#include "search/pipeline/piper_planner.h"

#include <doctest/doctest.h>


#include "base/error.h"
#include "base/random.h"
#include "support/tier.h"

using namespace trinity;

namespace {

/// Layers with one configuration a degree, so that no choice between configurations is left.
PiperProblem random_problem(RandomStream& random) {
  PiperProblem problem;
  const auto count = 2 + static_cast<int32_t>(random.below(4));
  problem.layers.resize(static_cast<size_t>(count));
  problem.devices = 1 + static_cast<int32_t>(random.below(5));
  problem.micro_batches = static_cast<int64_t>(std::array{1, 4, 6}[random.below(3)]);
  problem.bandwidth_bytes_per_s = 2;
  problem.memory_bytes = random.below(2) ? 1e9 : 12;
  for (int32_t to = 1; to < count; ++to)
    for (int32_t from = 0; from < to; ++from)
      if (random.below(2))
        problem.edges.push_back({from, to, static_cast<double>(random.below(4))});
  problem.index();
  for (auto& layer : problem.layers)
    for (const int32_t degree : {1, 2}) {
      if (degree == 2 && random.below(2)) continue;
      PiperProblem::Configuration one;
      const auto draw = [&](uint64_t most) { return static_cast<double>(random.below(most)); };
      one = {"vanilla", (1 + draw(9)) / degree, draw(6), draw(5), draw(8), {}};
      for (size_t e = 0; e < layer.edges.size(); ++e) one.sync_bytes.push_back(draw(3));
      layer.degrees.push_back({degree, {one}});
    }
  return problem;
}

/// Tries every sequence of stages.
double exhaustive(const PiperProblem& problem) {
  const auto count = static_cast<int32_t>(problem.layers.size());
  double best = 1e300;
  std::vector<PiperStage> stages;
  const auto closed = [&](uint32_t set) {
    for (const auto& edge : problem.edges)
      if ((set >> edge.to & 1) && !(set >> edge.from & 1)) return false;
    return true;
  };
  const auto extend = [&](auto&& self, uint32_t done, int32_t devices, int64_t replicas) -> void {
    if (done + 1 == 1u << count) {
      auto priced = stages;
      best = std::min(best, piper_price(problem, priced));
      return;
    }
    for (uint32_t set = done + 1; set < 1u << count; ++set) {
      if ((set & done) != done || !closed(set)) continue;
      PiperStage stage;
      for (int32_t l = 0; l < count; ++l)
        if ((set & ~done) >> l & 1) stage.layers.push_back(l);
      stage.configuration.assign(stage.layers.size(), 0);
      for (stage.degree = 1; stage.degree <= 2; ++stage.degree) {
        bool known = true;
        for (const int32_t l : stage.layers)
          known = known && problem.layers[l].degrees.back().degree >= stage.degree;
        for (stage.replicas = 1; known && stage.replicas <= problem.micro_batches;
             ++stage.replicas) {
          if (problem.micro_batches % stage.replicas != 0 ||
              devices + stage.replicas * stage.degree > problem.devices ||
              replicas + stage.replicas > problem.micro_batches)
            continue;
          stages.push_back(stage);
          self(self, set, devices + stage.replicas * stage.degree, replicas + stage.replicas);
          stages.pop_back();
        }
      }
    }
  };
  extend(extend, 0, 0, 0);
  return best;
}

}  // namespace

TEST_CASE("Piper's planner is optimal on small problems") {
  int feasible = 0, infeasible = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    RandomStream random(test::law_seed(), "problem", seed);
    const auto problem = random_problem(random);
    const double best = exhaustive(problem);
    auto pipeline = piper_pipeline(problem);
    CHECK(pipeline.exact);
    REQUIRE(pipeline.feasible == (best < 1e300));
    (pipeline.feasible ? feasible : infeasible) += 1;
    if (!pipeline.feasible) continue;
    CHECK(pipeline.time == doctest::Approx(best).epsilon(1e-9));
    CHECK(piper_price(problem, pipeline.stages) == pipeline.time);
  }
  CHECK(feasible > 80);
  CHECK(infeasible > 20);
}

TEST_CASE("a stage that does not fit recomputes the layers that gain most memory for their time") {
  PiperProblem problem;
  problem.layers.resize(3);
  problem.index();
  // Each layer takes 10 bytes in flight, or 1 in 1.5, 2 or 3 times the time.
  for (size_t l = 0; l < 3; ++l)
    problem.layers[l].degrees = {
        {1,
         {{"vanilla", 2, 0, 10, 0, {}},
          {"activation recomp", std::array{3.0, 4.0, 6.0}[l], 0, 1, 0, {}}}}};
  problem.bandwidth_bytes_per_s = 1;
  for (const auto& [memory, time] :
       std::vector<std::pair<double, double>>{{30, 6}, {29, 7}, {21, 7}, {20, 9}, {3, 13}}) {
    problem.memory_bytes = memory;
    const auto pipeline = piper_pipeline(problem);
    REQUIRE(pipeline.feasible);
    CHECK(pipeline.time == time);
    CHECK(pipeline.stages[0].memory_bytes <= memory);
  }
  problem.memory_bytes = 2.9;
  CHECK_FALSE(piper_pipeline(problem).feasible);
}

TEST_CASE("what Piper's planner refuses") {
  PiperProblem problem;
  CHECK_THROWS_AS(piper_pipeline(problem), ArgumentError);
  problem.layers.resize(2);
  problem.bandwidth_bytes_per_s = 1;
  problem.edges = {{0, 1, 1}, {1, 0, 1}};
  problem.index();
  CHECK_THROWS_WITH_AS(piper_pipeline(problem), "Piper: the layers form a cycle", ArgumentError);
}
