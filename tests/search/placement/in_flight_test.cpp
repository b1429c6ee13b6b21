// One annealing that all threads share.

#include "search/placement/in_flight.h"

#include <doctest/doctest.h>

#include "base/index.h"
#include "base/stop.h"
#include "support/search_cases.h"

using namespace trinity;

namespace {

/// Prefers moves of what takes long at home, or of what takes little.
class ByTime : public MoveRanker {
 public:
  explicit ByTime(float sign = 1) : sign_(sign) {}
  void score(const float* features, int32_t count, float* scores) override {
    for (int32_t i = 0; i < count; ++i)
      scores[i] = sign_ * features[static_cast<size_t>(i) * kMoveFeatures.size()];
  }

 private:
  float sign_;
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

TEST_CASE("sets that shrink with what is chosen are the same whatever the threads") {
  const auto problem = test::medium_problem();
  auto options = options_of(2, true);
  options.evaluations = 3000;  // it begins to cool but once
  options.ranking.ranker = std::make_shared<ByTime>(-1.0f);
  options.ranking.fit_sizes = true;
  const auto one = in_flight(problem, options, 1, 3, {3000});
  for (const int threads : {2, 3, 5}) CHECK(in_flight(problem, options, threads, 3, {3000}) == one);
  CHECK(in_flight(problem, options, 2, 3, {2000, 1000}).evaluations == 3000);
  options.ranking.fit_sizes = false;
  CHECK(in_flight(problem, options, 1, 3, {3000}) != one);
}

TEST_CASE("the most units of a set halve where next to no choice has more than half of them") {
  SetSizes sizes(200);
  CHECK(sizes.most() == 100);
  const auto choose = [&](int small, int large) {
    for (int i = 0; i < large; ++i) sizes.note(at(sizes.most()));
    for (int i = 0; i < small; ++i) sizes.note(at(sizes.most() / 2));
  };
  choose(1018, 6);  // one in 171
  CHECK(sizes.most() == 100);
  choose(1019, 5);  // one in 205
  CHECK(sizes.most() == 50);
  choose(1024, 0);
  CHECK(sizes.most() == 25);
  choose(1024, 0);
  CHECK(sizes.most() == 16);  // the number that costs nothing
  choose(1024, 0);
  CHECK(sizes.most() == 16);
  sizes.widen();
  CHECK(sizes.most() == 100);
  SetSizes few(9), one(1);
  CHECK(few.most() == 4);
  for (int i = 0; i < 2048; ++i) few.note(1), one.note(1);
  CHECK(few.most() == 4);
  CHECK(one.most() == 1);
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
