// Features of a step for the ranker of moves, on a step that is worked out by hand.
#include <doctest/doctest.h>

#include <set>

#include "search/placement/annealing.h"
#include "search/placement/move_features.h"
#include "support/build.h"

using namespace trinity;

namespace {

/// a, b and d on device 0, c on device 1; d reads b and c. Transfers take 2 us.
///     device 0   a 0..1 ms   b 1..6 ms   d 6..7 ms
///     device 1   c 1.002..2.002 ms
struct Diamond {
  Diamond() {
    make.op("a", 1e-3);
    make.op("b", 5e-3);
    make.op("c", 1e-3);
    make.op("d", 1e-3);
    for (const auto& [from, to] :
         {std::pair(0, 1), std::pair(0, 2), std::pair(1, 3), std::pair(2, 3)})
      make.edge(from, to, 1000);
    problem = std::make_unique<Problem>(make.share(), test::uniform_cluster(2, 1e9, 1e-6),
                                        SimulationRules{});
    space = std::make_unique<PlacementSpace>(*problem);
    state = std::make_unique<StepState>(*space);
    state->refresh(assignment);
  }
  test::GraphMaker make{"diamond"};
  Assignment assignment{0, 0, 1, 0};
  std::unique_ptr<Problem> problem;
  std::unique_ptr<PlacementSpace> space;
  std::unique_ptr<StepState> state;

  /// A feature of the move of `units` to `device`.
  float feature(std::string_view name, std::vector<int32_t> units, int32_t device) const {
    MoveFeatures writer(*state);
    std::vector<float> row(kMoveFeatures.size());
    REQUIRE(
        writer.write({Move::Kind::cluster, device, std::move(units)}, assignment, 0, row.data()));
    return row[static_cast<size_t>(std::find(kMoveFeatures.begin(), kMoveFeatures.end(), name) -
                                   kMoveFeatures.begin())];
  }
  /// As features have times.
  static double shown(double time_ms) { return std::log2(1 + 100 * time_ms / 7); }
};

}  // namespace

TEST_CASE("a step's state has the slack, edge slack and blame that were worked out by hand") {
  const Diamond d;
  const auto& state = *d.state;
  CHECK(state.step_ns() == 7'000'000);
  for (const int32_t unit : {0, 1, 3}) CHECK(state.unit(unit).slack_ns == 0);
  CHECK(state.unit(2).slack_ns == 6'000'000 - 2'000 - 2'002'000);
  CHECK(state.unit(1).tight_ns == 5'000'000);
  CHECK(state.unit(2).tight_ns == 0);
  CHECK(state.blame().of(1).computation_ns == 5'000'000);
  CHECK(state.blame().of(2).computation_ns == 0);
  CHECK(state.device(0).busy_ns == 7'000'000);
  CHECK(state.device(1).busy_ns == 1'000'000);
  for (const auto& beside : state.incident(2)) {
    // From a: c may start at 4.998 ms; to d, which starts at 6 ms.
    CHECK(state.edge(beside.edge).room_ns == (beside.out ? 6'000'000 - 2'002'000 : 3'998'000));
  }
}

TEST_CASE("collisions are the time that overlaps with other work of a device") {
  const Diamond d;
  CHECK(d.state->collision_ns(2, 0) == doctest::Approx(1e6).epsilon(0.02));  // b runs there
  CHECK(d.state->collision_ns(2, 1) == doctest::Approx(0));  // itself does not count
  CHECK(d.state->collision_ns(3, 1) == doctest::Approx(0));
  CHECK(d.state->crowd_ns(2, 0) == doctest::Approx(1e6).epsilon(0.02));
}

TEST_CASE("features of a move say what it saves and adds") {
  const Diamond d;
  // c goes to a, b and d: both transfers vanish.
  CHECK(d.feature("wires_saved", {2}, 0) == doctest::Approx(Diamond::shown(0.004)));
  CHECK(d.feature("wires_added", {2}, 0) == 0);
  CHECK(d.feature("edges_uncut_less_cut", {2}, 0) == doctest::Approx(std::log2(3)));
  CHECK(d.feature("collision_there", {2}, 0) == doctest::Approx(Diamond::shown(1)).epsilon(0.02));
  CHECK(d.feature("least_slack", {2}, 0) == doctest::Approx(Diamond::shown(3.996)));
  // b goes to c: two transfers appear, each without slack.
  CHECK(d.feature("wires_added", {1}, 1) == doctest::Approx(Diamond::shown(0.004)));
  CHECK(d.feature("exposed_added", {1}, 1) == doctest::Approx(Diamond::shown(0.004)));
  CHECK(d.feature("computation_blame", {1}, 1) == doctest::Approx(Diamond::shown(5)));
  CHECK(d.feature("tight_time", {0, 1}, 1) == doctest::Approx(Diamond::shown(6)));
  // All of it: nothing is cut afterwards, and the edge within the set counts once.
  CHECK(d.feature("wires_added", {0, 1, 3}, 1) == 0);
  CHECK(d.feature("wires_saved", {0, 1, 3}, 1) == doctest::Approx(Diamond::shown(0.004)));
  CHECK(d.feature("units_moved", {0, 1, 3}, 1) == doctest::Approx(2));
}

TEST_CASE("features of memory describe the largest peak, as worked out by hand") {
  Diamond d;
  StepState state(*d.space, true);
  state.refresh(d.assignment);
  // At device 0's peak, in b: both that a writes, what b writes, and the copy of what c does.
  CHECK(state.device(0).memory_bytes == 4000);
  CHECK(state.device(1).memory_bytes == 2000);  // the copy of what a writes, and what c does
  for (const auto& [unit, bytes] : {std::pair(0, 2000), {1, 1000}, {2, 1000}, {3, 0}})
    CHECK(state.unit(unit).peak_bytes == bytes);
  std::vector<float> row(kMoveFeatures.size());
  const auto feature = [&](std::string_view name) {
    return row[static_cast<size_t>(std::find(kMoveFeatures.begin(), kMoveFeatures.end(), name) -
                                   kMoveFeatures.begin())];
  };
  MoveFeatures writer(state, 0.25);
  for (int again = 0; again < 2; ++again) {
    REQUIRE(writer.write({Move::Kind::unit, 1, {1}}, d.assignment, 0, row.data()));  // b to c's
    CHECK(feature("memory_share") == 0.25f);
    CHECK(feature("peak_home") == 1);
    CHECK(feature("peak_there") == 0.5f);
    CHECK(feature("peak_moved") == doctest::Approx(std::log2(1 + 25.0)));
    CHECK(feature("peak_gain") == doctest::Approx(std::log2(1 + 25.0)));  // 3000 on both then
    REQUIRE(writer.write({Move::Kind::unit, 0, {2}}, d.assignment, 0, row.data()));  // c to b's
    CHECK(feature("peak_home") == 0.5f);
    CHECK(feature("peak_gain") == doctest::Approx(-std::log2(1 + 25.0)));
    CHECK(feature("peak_gain_weighed") == doctest::Approx(-std::log2(1 + 25.0 / 4)));
  }
  std::fill(row.begin(), row.end(), 7.0f);
  MoveFeatures untold(state);
  REQUIRE(untold.write({Move::Kind::unit, 1, {1}}, d.assignment, 0, row.data()));
  CHECK(feature("is_neighbour_device") == 0);
  CHECK(std::all_of(row.begin() + kStepFeatureCount, row.end(), [](float x) { return x == 7; }));
}

TEST_CASE("a move that changes nothing has no features, and every feature has a name of its own") {
  const Diamond d;
  MoveFeatures writer(*d.state);
  std::vector<float> row(kMoveFeatures.size());
  CHECK_FALSE(writer.write({Move::Kind::unit, 1, {2}}, d.assignment, 0, row.data()));
  CHECK(std::set<std::string_view>(kMoveFeatures.begin(), kMoveFeatures.end()).size() ==
        kMoveFeatures.size());
}

namespace {

/// Scores moves by one feature.
struct ByFeature : MoveRanker {
  void score(const float* features, int32_t count, float* scores) override {
    asked += count;
    for (int32_t i = 0; i < count; ++i) scores[i] = features[i * kMoveFeatureCount];
  }
  int64_t asked = 0;
};

}  // namespace

TEST_CASE("annealing asks its ranker, never twice for what was chosen, and says what came of it") {
  const Diamond d;
  auto ranker = std::make_shared<ByFeature>();
  AnnealingOptions options;
  options.evaluations = 12;
  options.ranking.ranker = ranker;
  options.ranking.record = true;
  Annealing search(*d.space, options);
  Simulator simulator(*d.problem);
  Metrics metrics;
  std::set<std::vector<int32_t>> seen;
  while (search.evaluations() < 12) {
    const auto trials = search.ask(static_cast<int32_t>(12 - search.evaluations()));
    std::vector<Score> scores;
    for (const auto& placement : trials.placements) {
      seen.insert(placement);
      simulator.run(placement, metrics);
      scores.push_back({0, static_cast<double>(metrics.step_time_ns)});
    }
    search.tell(scores);
  }
  CHECK(ranker->asked > 0);
  const auto* report = search.ranking();
  REQUIRE(report);
  CHECK(report->trials > 0);
  CHECK(report->improving <= report->trials);
  const auto choices = search.take_choices();
  CHECK(static_cast<int64_t>(choices.size()) == report->trials + report->plain_trials);
  for (const auto& choice : choices) {
    CHECK(choice.features.size() == static_cast<size_t>(choice.count) * kMoveFeatures.size());
    CHECK(choice.chosen <= choice.count);
  }
  CHECK(search.take_choices().empty());
}
