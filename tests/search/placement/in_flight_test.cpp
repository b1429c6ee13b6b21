// One annealing that all threads share.

#include "search/placement/in_flight.h"

#include <doctest/doctest.h>

#include "base/stop.h"
#include "search/placement/side_by_side.h"
#include "support/search_cases.h"

using namespace trinity;

namespace {

/// Prefers moves of what takes long, home or there.
class ByTime : public MoveRanker {
 public:
  void score(const float* features, int32_t count, float* scores) override {
    for (int32_t i = 0; i < count; ++i)
      scores[i] = features[static_cast<size_t>(i) * kMoveFeatures.size()];
  }
};

AnnealingOptions options_of(uint64_t seed, bool ranks) {
  AnnealingOptions options;
  options.seed = seed;
  options.evaluations = 600;
  options.first_temperature = 20;
  if (ranks) options.ranking.ranker = std::make_shared<ByTime>();
  return options;
}

struct Found {
  Assignment assignment;
  Score score;
  int64_t evaluations;
  bool operator==(const Found&) const = default;
};

Found found(const Annealing& search) {
  return {search.best_assignment(), *search.best(), search.evaluations()};
}

std::vector<Simulator> simulators_of(const Problem& problem, const ThreadPool& pool) {
  std::vector<Simulator> simulators;
  for (int i = 0; i < pool.threads(); ++i) simulators.emplace_back(problem);
  return simulators;
}

Found in_flight(const Problem& problem, const AnnealingOptions& options, int threads, int32_t open,
                std::vector<int64_t> rounds) {
  const PlacementSpace space(problem);
  Annealing search(space, options);
  ThreadPool pool(threads);
  auto simulators = simulators_of(problem, pool);
  for (const int64_t evaluations : rounds)
    run_in_flight(search, simulators, open, evaluations, pool);
  return found(search);
}

}  // namespace

TEST_CASE("what is found in flight depends on how many trials are open, not on the threads") {
  const auto problem = test::medium_problem();
  for (const bool ranks : {false, true})
    for (const uint64_t seed : {1, 2, 3}) {
      CAPTURE(ranks);
      CAPTURE(seed);
      const auto options = options_of(seed, ranks);
      const auto one = in_flight(problem, options, 1, 3, {700});
      CHECK(one.evaluations == 700);
      for (const int threads : {2, 3, 5}) CHECK(in_flight(problem, options, threads, 3, {700}) == one);
      CHECK(in_flight(problem, options, 2, 5, {700}) != one);
      CHECK(in_flight(problem, options, 2, 3, {1, 1, 298, 400}).evaluations == 700);
      const auto start = test::price(problem, PlacementSpace(problem).placement(Assignment(160, 0)));
      CHECK(one.score < start);
    }
}

TEST_CASE("one trial in flight is an annealing of batches of one") {
  const auto problem = test::medium_problem();
  const PlacementSpace space(problem);
  Simulator simulator(problem);
  Metrics metrics;
  for (const bool ranks : {false, true}) {
    CAPTURE(ranks);
    auto options = options_of(4, ranks);
    options.batch = 1;
    Annealing search(space, options);
    while (search.evaluations() < 500) {
      const auto trials = search.ask(static_cast<int32_t>(500 - search.evaluations()));
      std::vector<Score> scores;
      for (const auto& placement : trials.placements) {
        simulator.run(placement, metrics, nullptr, limit_ns_of(trials.limit));
        scores.push_back({0, metrics.step_time_s()});
      }
      search.tell(scores);
    }
    CHECK(in_flight(problem, options, 2, 1, {500}) == found(search));
  }
}

TEST_CASE("a stop ends a search in flight with the best so far") {
  const auto problem = test::medium_problem();
  const PlacementSpace space(problem);
  Annealing search(space, options_of(1, true));
  ThreadPool pool(2);
  auto simulators = simulators_of(problem, pool);
  run_in_flight(search, simulators, 3, 100, pool);
  const auto before = found(search);
  stop_flag() = true;
  CHECK_THROWS_AS(run_in_flight(search, simulators, 3, 100, pool), Interrupted);
  stop_flag() = false;
  CHECK(*search.best() <= before.score);
}
