#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <set>

#include "base/error.h"
#include "search/placement/annealing.h"
#include "search/placement/exhaustive.h"
#include "search/placement/local_search.h"
#include "search/placement/mcmc.h"
#include "search/placement/moves.h"
#include "support/search_cases.h"

using namespace trinity;

namespace {

constexpr const char* kMethods[] = {"annealing", "local search", "mcmc"};

std::unique_ptr<Searcher> make(const std::string& method, const PlacementSpace& space,
                               uint64_t seed, int64_t evaluations,
                               std::vector<Assignment> starts = {}) {
  if (method == "annealing") {
    AnnealingOptions options;
    options.seed = seed;
    options.evaluations = evaluations;
    options.starts = std::move(starts);
    return std::make_unique<Annealing>(space, std::move(options));
  }
  if (method == "local search") {
    LocalSearchOptions options;
    options.seed = seed;
    options.starts = std::move(starts);
    return std::make_unique<LocalSearch>(space, std::move(options));
  }
  McmcOptions options;
  options.seed = seed;
  options.evaluations = evaluations;
  options.starts = std::move(starts);
  return std::make_unique<Mcmc>(space, std::move(options));
}

}  // namespace

TEST_CASE("a search spends its budget exactly, keeps its best and never loses to its start") {
  const auto problem = test::medium_problem();
  const PlacementSpace space(problem);
  const auto start = test::price(problem, space.placement(Assignment(160, 0)));
  for (const std::string method : kMethods) {
    CAPTURE(method);
    for (const int64_t budget : {1, 2, 3, 17, 500}) {
      const auto searcher = make(method, space, 1, budget);
      test::run_search(*searcher, problem, budget);
      CHECK(searcher->evaluations() == budget);
      CHECK(*searcher->best() == test::price(problem, searcher->best_placement()));
      CHECK(*searcher->best() <= start);
      if (budget == 500) CHECK(*searcher->best() < start);
    }
  }
}

TEST_CASE("results depend on the seed, not on threads, limits or cached results") {
  const auto problem = test::medium_problem();
  const PlacementSpace space(problem);
  for (const std::string method : kMethods) {
    CAPTURE(method);
    const auto first = make(method, space, 5, 400);
    test::run_search(*first, problem, 400, 1);
    const auto second = make(method, space, 5, 400);
    test::run_search(*second, problem, 400, 3);
    CHECK(second->best_placement() == first->best_placement());
    // The same by hand, without limits and cache, so that nothing is ever rejected.
    const auto third = make(method, space, 5, 400);
    Simulator simulator(problem);
    Metrics metrics;
    while (third->evaluations() < 400) {
      const auto trials = third->ask(static_cast<int32_t>(400 - third->evaluations()));
      std::vector<Score> scores;
      for (const auto& placement : trials.placements) {
        simulator.run(placement, metrics);
        scores.push_back(test::score_of(metrics));
      }
      third->tell(scores);
    }
    CHECK(third->best_placement() == first->best_placement());
    CHECK(*third->best() == *first->best());
    const auto other = make(method, space, 6, 400);
    test::run_search(*other, problem, 400);
    CHECK(other->best_placement() != first->best_placement());
  }
}

TEST_CASE("placements beyond memory lose to all that fit, and lead to one that does") {
  test::GraphMaker maker("large");
  for (int op = 0; op < 60; ++op) {
    maker.op("o" + std::to_string(op), 1e-6, 10'000'000);
    if (op > 0) maker.edge(op - 1, op, 1'000'000);
  }
  const auto graph = maker.share();
  const int64_t capacity = graph->parameter_bytes() * 2 / 5;
  const auto problem = test::make_problem(graph, test::uniform_spec(4, 1e9, 1e-6, capacity));
  const PlacementSpace space(problem);
  const Assignment alone(60, 0);
  REQUIRE_FALSE(test::price(problem, space.placement(alone)).fits());
  for (const std::string method : kMethods) {
    CAPTURE(method);
    const auto searcher = make(method, space, 1, 1500, {alone});
    test::run_search(*searcher, problem, 1500);
    CHECK(searcher->best()->fits());
  }
  CHECK(Score{0, 5} < Score{1, 2});
  CHECK(Score{1, 5} < Score{2, 2});
  CHECK(Score{1, 2} < Score{1, 5});
}

TEST_CASE("starts of the caller are scored first and are a floor") {
  const auto problem = test::medium_problem();
  const PlacementSpace space(problem);
  AnnealingOptions options;
  options.evaluations = 3000;
  Annealing long_search(space, options);
  test::run_search(long_search, problem, 3000);
  const auto good = long_search.best_assignment();
  for (const std::string method : kMethods) {
    CAPTURE(method);
    const auto searcher = make(method, space, 2, 40, {good});
    const auto trials = searcher->ask(40);
    CHECK(trials.placements[0] == space.placement(good));
    std::vector<Score> scores;
    for (const auto& placement : trials.placements)
      scores.push_back(test::price(problem, placement));
    searcher->tell(scores);
    test::run_search(*searcher, problem, 40);
    CHECK(*searcher->best() <= *long_search.best());
  }
}

TEST_CASE("asking and telling out of turn, and scores that are no numbers, are refused") {
  const auto problem = test::medium_problem();
  const PlacementSpace space(problem);
  Annealing search(space, {});
  CHECK(search.best() == nullptr);
  CHECK_THROWS_WITH_AS(search.ask(0), "expected at least 1 placement, got 0", ArgumentError);
  const auto trials = search.ask(8);
  CHECK(trials.placements.size() == 1);
  CHECK_THROWS_WITH_AS(search.ask(8),
                       "expected scores of the placements asked for last before further ones",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(search.tell(std::vector<Score>(2)), "expected 1 scores, got 2",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(search.tell(std::vector<Score>{{0, std::nan("")}}),
                       "score 1 is nan, expected a finite number", ArgumentError);
  search.tell(std::vector<Score>{{0, 1.0}});
  CHECK(search.best()->value == 1.0);
  CHECK_THROWS_AS(space.check({0, 1}), ArgumentError);
  CHECK_THROWS_WITH_AS(space.check(Assignment(160, 4)), "expected devices from 1 to 4, got 5",
                       ArgumentError);
  AnnealingOptions wrong;
  wrong.last_temperature = 0;
  CHECK_THROWS_WITH_AS(Annealing(space, wrong),
                       "option 'last_temperature': expected 1e-12 to 1000000000000, got 0",
                       ArgumentError);
}

TEST_CASE("a search on one device, or of one unit, ends without trouble") {
  test::GraphMaker one("one");
  one.op("only", 1e-6);
  const auto graph = one.share();
  test::GraphMaker row("row");
  row.op("a", 1e-6);
  row.op("b", 1e-6);
  row.edge(0, 1, 10);
  const auto pair = row.share();
  for (const auto& [work, devices] : {std::pair(graph, 1), {graph, 3}, {pair, 1}, {pair, 2}}) {
    const auto problem = test::make_problem(work, test::uniform_spec(devices, 1e9, 1e-6));
    const PlacementSpace space(problem);
    for (const std::string method : kMethods) {
      CAPTURE(method);
      const auto searcher = make(method, space, 1, 50);
      test::run_search(*searcher, problem, 50);
      CHECK(searcher->best()->value == 1000 * work->operator_count());
    }
  }
}

TEST_CASE("local search asks for every placement of a small space once and then for none") {
  const auto problem = test::small_problem(0, 8, 2);
  const PlacementSpace space(*problem);
  LocalSearch search(space, {});
  std::set<uint64_t> asked;
  int64_t placements = 0;
  Simulator simulator(*problem);
  Metrics metrics;
  for (;;) {
    const auto trials = search.ask(8);
    if (trials.placements.empty()) break;
    REQUIRE(placements < 1000);
    std::vector<Score> scores;
    for (const auto& placement : trials.placements) {
      ++placements;
      asked.insert(space.key(space.assignment(placement)));
      simulator.run(placement, metrics);
      scores.push_back(test::score_of(metrics));
    }
    search.tell(scores);
  }
  CHECK(static_cast<double>(asked.size()) == space.choices());
  CHECK(static_cast<double>(placements) <= space.choices() * 1.1);
}

TEST_CASE("mcmc goes back to the best every hundredth of its budget") {
  const auto problem = test::medium_problem();
  const PlacementSpace space(problem);
  McmcOptions options;
  options.evaluations = 1000;    // back every 10 proposals
  options.alpha_per_ms = 1e-12;  // accepts everything
  Mcmc wanderer(space, options);
  Assignment best;
  Score least{0, 1e300};
  Simulator simulator(problem);
  Metrics metrics;
  for (int64_t proposal = -1; proposal < 300; ++proposal) {
    const auto trial = space.assignment(wanderer.ask(1).placements[0]);
    if (proposal >= 0) {
      int changed = 0;
      for (size_t unit = 0; unit < trial.size(); ++unit) changed += trial[unit] != best[unit];
      if (proposal % 10 == 0) CHECK(changed == 1);
    }
    simulator.run(space.placement(trial), metrics);
    const auto score = test::score_of(metrics);
    if (score < least) {
      least = score;
      best = trial;
    }
    wanderer.tell(std::vector{score});
  }
}

TEST_CASE("moves change an assignment within its devices") {
  const auto problem = test::medium_problem();
  const PlacementSpace space(problem);
  Moves moves(space, RandomStream(3, "test"));
  Assignment assignment(160, 0);
  int unchanged = 0;
  for (int step = 0; step < 2000; ++step) {
    const auto before = assignment;
    moves.apply(assignment);
    unchanged += assignment == before;
    space.check(assignment);
    if (step % 100 == 0) moves.focus(moves.blame(assignment));
  }
  CHECK(unchanged < 20);
}

TEST_CASE("sets have no more units than they may have") {
  const auto problem = test::medium_problem();
  const PlacementSpace space(problem);
  Moves moves(space, RandomStream(3, "test"), {.evenly_one_in = 2, .groups = true});
  const Assignment start(160, 0);
  for (const size_t most : {1, 5, 40}) {
    size_t largest = 0;
    for (int step = 0; step < 1000; ++step)
      largest = std::max(largest, moves.draw_set(start, static_cast<int32_t>(most)).units.size());
    CHECK(largest == most);
  }
}

TEST_CASE("moves that know a step's times mostly change its critical path") {
  // A chain of long units and equally many short ones that nobody waits for.
  test::GraphMaker make("beside");
  for (int i = 0; i < 40; ++i) {
    make.op("long" + std::to_string(i), 1e-3);
    if (i > 0) make.edge(i - 1, i, 8);
  }
  for (int i = 0; i < 40; ++i) make.op("short" + std::to_string(i), 1e-6);
  const Problem problem(make.share(), test::uniform_cluster(2, 1e9, 1e-6), SimulationRules{});
  const PlacementSpace space(problem);
  const auto share_of_long = [&](bool focused) {
    Moves moves(space, RandomStream(3, "test"));
    Assignment start(80, 0);
    std::fill(start.begin() + 40, start.end(), 1);  // the short ones elsewhere
    if (focused) moves.focus(moves.blame(start));
    int of_long = 0, of_all = 0;
    for (int step = 0; step < 2000; ++step) {
      auto assignment = start;
      moves.apply(assignment);
      for (size_t unit = 0; unit < 80; ++unit) {
        if (assignment[unit] == start[unit]) continue;
        ++of_all;
        if (unit < 40) ++of_long;
      }
    }
    return static_cast<double>(of_long) / of_all;
  };
  CHECK(share_of_long(true) > share_of_long(false) + 0.05);
}
