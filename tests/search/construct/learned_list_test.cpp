// Learned list schedulers: weights that are known rules, and what any weights obey.
#include "search/construct/learned_list.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/index.h"
#include "learn/list_policy.h"
#include "simulator/simulator.h"
#include "support/cases.h"

using namespace trinity;
using namespace trinity::test;

namespace {

/// Weights by place in kListTerms, always.
std::vector<double> list_weights(const std::vector<std::pair<std::string_view, double>>& by_term) {
  std::vector<double> weights(at(kListWeightCount), 0);
  for (const auto& [name, weight] : by_term) {
    const auto term = std::find(kListTerms.begin(), kListTerms.end(), name) - kListTerms.begin();
    weights[static_cast<size_t>(term) * kListCircumstances.size()] = weight;
  }
  return weights;
}

std::vector<double> random_list_weights(RandomStream& random) {
  std::vector<double> weights;
  for (int32_t i = 0; i < kListWeightCount; ++i) weights.push_back(random.normal());
  return weights;
}

int64_t simulated_ns(const Problem& problem, const Assignment& assignment) {
  Metrics metrics;
  Simulator(problem).run(PlacementSpace(problem).placement(assignment), metrics);
  return metrics.step_time_ns;
}

}  // namespace

TEST_CASE(
    "whatever the weights, units have a device and no device computes longer than the schedule") {
  RandomStream random(1, "learned list", 0);
  for (uint64_t index = 0; index < 60; ++index) {
    const auto made = mixed_case(index);
    const Problem& problem = *made.problem;
    const LearnedList list(problem);
    const PlacementSpace space(problem);
    const auto weights = random_list_weights(random);
    const auto found = list.build(weights);
    REQUIRE_NOTHROW(space.check(found.assignment));
    std::vector<int64_t> busy(at(problem.devices()), 0);
    for (int32_t u = 0; u < space.units(); ++u)
      busy[at(found.assignment[at(u)])] += space.cost_ns(u, found.assignment[at(u)]);
    for (const int64_t time : busy) CHECK(time <= found.makespan);
    CHECK(list.build(weights).assignment == found.assignment);
  }
}

TEST_CASE(
    "where nothing is worth a transfer, one device has all and the schedule is the simulator's") {
  for (uint64_t index = 0; index < 40; ++index) {
    const auto made = mixed_case(index);
    const Problem& problem = *made.problem;
    if (!problem.graph().collectives().empty() || problem.rules().device_dead_ns > 0) continue;
    const auto alone = LearnedList(problem).alone();
    CHECK(simulated_ns(problem, alone.assignment) == alone.makespan);
    for (const int32_t device : alone.assignment) CHECK(device == alone.assignment[0]);
  }
}

TEST_CASE("the best of several is the shortest by its own schedule") {
  RandomStream random(2, "learned list", 0);
  const auto made = mixed_case(3);
  const LearnedList list(*made.problem);
  std::vector<std::vector<double>> members;
  for (int i = 0; i < 8; ++i) members.push_back(random_list_weights(random));
  members.push_back(list_weights({{"start", 1}, {"time", 1}}));
  const auto best = list.best(members);
  auto expected = list.alone();
  for (const auto& member : members)
    if (auto one = list.build(member); one.better(expected)) expected = one;
  CHECK(best.makespan == expected.makespan);
  CHECK(best.assignment == expected.assignment);
}

TEST_CASE("weights are checked") {
  const auto made = mixed_case(1);
  CHECK_THROWS_WITH_AS(LearnedList(*made.problem).build(std::vector<double>(3)),
                       "learned list: expected 105 weights, got 3", ArgumentError);
  CHECK_THROWS_AS(list_policy({}), ArgumentError);
  CHECK_THROWS_AS(list_policy({list_weights({{"start", std::nan("")}})}), ArgumentError);
}

TEST_CASE("a file has the weights as they were") {
  RandomStream random(3, "learned list", 0);
  const auto policy = list_policy({random_list_weights(random), random_list_weights(random)});
  const auto path = std::filesystem::temp_directory_path() / "learned_list_test.safetensors";
  save_list_policy(policy, path, {{"trained_on", "cases"}});
  const auto loaded = load_list_policy(path);
  std::filesystem::remove(path);
  CHECK(loaded.policy.members == policy.members);
  CHECK(loaded.notes == std::map<std::string, std::string>{{"trained_on", "cases"}});
}
