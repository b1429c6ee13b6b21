#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/thread_pool.h"
#include "search/partition/fm.h"
#include "search/partition/fm_refine.h"
#include "search/partition/fm_refine.h"
#include "search/partition/metis.h"
#include "search/partition/partition_weights.h"
#include "search/partition/scotch.h"
#include "simulator/simulator.h"
#include "strategy/strategy.h"
#include "support/cases.h"
#include "support/search_cases.h"

using namespace trinity;

namespace {

using Partitioner = std::function<Assignment(const PlacementSpace&)>;

/// Those that look at bytes and balance, by name.
const std::map<std::string, Partitioner> kPartitioners = {
    {"metis", [](const auto& space) { return metis_partition(space); }},
    {"scotch", [](const auto& space) { return scotch_map(space); }},
    {"fm", [](const auto& space) { return fm_partition(space); }},
};

std::vector<double> loads(const PartitionWeights& weights, const Assignment& assignment) {
  std::vector<double> load(weights.shares.size(), 0);
  double total = 0;
  for (size_t unit = 0; unit < assignment.size(); ++unit) {
    load[assignment[unit]] += weights.graph.work[unit];
    total += weights.graph.work[unit];
  }
  for (double& value : load) value /= total;
  return load;
}

bool valid(const PlacementSpace& space, const Assignment& assignment) {
  return static_cast<int32_t>(assignment.size()) == space.units() &&
         std::all_of(assignment.begin(), assignment.end(),
                     [&](int32_t d) { return d >= 0 && d < space.devices(); });
}

}  // namespace

TEST_CASE("partitioners find planted groups: their cut is the planted one, and balanced") {
  for (const int groups : {2, 4}) {
    const auto graph = test::planted_graph(groups, 40, 100'000, 1000);
    const auto problem = test::make_problem(graph, test::uniform_spec(groups, 1e9, 1e-6));
    const PlacementSpace space(problem);
    const PartitionWeights weights(space);
    const Hypergraph nets(space);
    Assignment planted;
    for (int32_t op = 0; op < groups * 40; ++op)
      planted.push_back(std::stoi(graph->op(op).name.substr(1)) % groups);
    for (const auto& [name, partition] : kPartitioners) {
      CAPTURE(name);
      const auto assignment = partition(space);
      REQUIRE(valid(space, assignment));
      CHECK(nets.sent_bytes(assignment) <= nets.sent_bytes(planted));
      for (const double load : loads(weights, assignment))
        CHECK(load == doctest::Approx(1.0 / groups).epsilon(0.06));
    }
  }
}

TEST_CASE("devices of different speed get work in proportion to it") {
  auto spec = test::uniform_spec(3, 1e9, 1e-6);
  spec.devices[0].speed = 1;
  spec.devices[1].speed = 2;
  spec.devices[2].speed = 5;
  const auto problem = test::make_problem(test::planted_graph(8, 50, 10'000, 9'000), spec);
  const PlacementSpace space(problem);
  const PartitionWeights weights(space);
  CHECK(weights.shares[0].work == doctest::Approx(0.125));
  CHECK(weights.shares[2].work == doctest::Approx(0.625));
  for (const auto& [name, partition] : kPartitioners) {
    CAPTURE(name);
    const auto load = loads(weights, partition(space));
    for (size_t d = 0; d < 3; ++d)
      CHECK(load[d] == doctest::Approx(weights.shares[d].work).epsilon(0.15));
  }
}

TEST_CASE("where memory is scarce, it is balanced in addition to work") {
  test::GraphMaker make("heavy");
  for (int op = 0; op < 120; ++op) {
    make.op("o" + std::to_string(op), 1e-6, op < 20 ? 90'000'000 : 100'000);
    if (op > 0) make.edge(op - 1, op, 1000);
  }
  const auto graph = make.share();
  const int64_t capacity = graph->parameter_bytes() * 3;
  const auto problem = test::make_problem(graph, test::uniform_spec(2, 1e9, 1e-6, capacity));
  const auto roomy = test::make_problem(graph, test::uniform_spec(2, 1e9, 1e-6, int64_t{1} << 50));
  const PlacementSpace space(problem), free(roomy);
  CHECK(PartitionWeights(space).pressure > 0.1);
  CHECK(PartitionWeights(free).pressure < 0.001);
  const auto heavy_on_first = [&](const Assignment& assignment) {
    return std::count(assignment.begin(), assignment.begin() + 20, assignment[0]);
  };
  CHECK(std::abs(heavy_on_first(metis_partition(space)) - 10) <= 1);
  for (const auto& [name, partition] : kPartitioners) {
    CAPTURE(name);
    const auto assignment = partition(space);
    REQUIRE(valid(space, assignment));
    double first = 0, total = 0;
    const PartitionWeights weights(space);
    for (size_t unit = 0; unit < assignment.size(); ++unit) {
      first += assignment[unit] == 0 ? weights.graph.combined[unit] : 0;
      total += weights.graph.combined[unit];
    }
    if (name.substr(0, 5) != "metis") CHECK(first / total == doctest::Approx(0.5).epsilon(0.1));
  }
}

TEST_CASE("static mapping keeps groups that talk on devices that are near") {
  // Groups 0 and 1 talk much, 2 and 3 likewise, 1 and 2 little; two machines of two devices.
  test::GraphMaker make("pairs");
  const auto name = [](int i) { return "o" + std::to_string(i); };
  for (int op = 0; op < 160; ++op) make.op(name(op), 1e-6);
  for (int group = 0; group < 4; ++group)
    for (int i = 1; i < 40; ++i)
      for (const int back : {1, 3})
        if (i >= back) make.edge(group * 40 + i - back, group * 40 + i, 100'000);
  for (int i = 0; i < 40; i += 4) {
    make.edge(i, 40 + i, 8000);
    make.edge(80 + i, 120 + i, 8000);
  }
  make.edge(79, 80, 8000);
  const auto problem =
      test::make_problem(make.share(), test::node_spec(2, 2, 1e10, 1e9, 1e-6, 5e-6));
  const PlacementSpace space(problem);
  const auto assignment = scotch_map(space);
  const auto at = [&](int op) {
    const int32_t number = problem.graph().find(name(op));
    return assignment[problem.graph().units()[number]];
  };
  std::set<int32_t> used;
  for (const int group : {0, 1, 2, 3}) used.insert(at(group * 40 + 20));
  CHECK(used.size() == 4);
  CHECK(at(20) / 2 == at(60) / 2);
  CHECK(at(100) / 2 == at(140) / 2);
}

TEST_CASE("bytes that the hypergraph counts are those that the simulator sends") {
  for (uint64_t index = 0; index < 40; ++index) {
    const auto test_case = test::random_case(index, {.most_devices = 4});
    const PlacementSpace space(*test_case.problem);
    const Hypergraph nets(space);
    RandomStream random(index, "assignment");
    Assignment assignment(static_cast<size_t>(space.units()));
    for (auto& device : assignment)
      device = static_cast<int32_t>(random.below(static_cast<uint64_t>(space.devices())));
    const auto metrics = test::metrics_of(*test_case.problem, {space.placement(assignment)});
    int64_t empty = 0;  // tensors without bytes count one here
    for (const int64_t bytes : test_case.problem->all_output_bytes()) empty += bytes == 0;
    const int64_t counted = nets.sent_bytes(assignment);
    CHECK(counted >= metrics.total_communication_bytes);
    CHECK(counted <= metrics.total_communication_bytes + empty * space.devices());
    for (const auto& [name, partition] : kPartitioners) {
      CAPTURE(name);
      CHECK(valid(space, partition(space)));
    }
  }
}

TEST_CASE("a Fiduccia-Mattheyses refinement never worsens cut or balance, and undoes bad moves") {
  for (uint64_t index = 0; index < 60; ++index) {
    const auto test_case = test::random_case(index, {.most_devices = 2});
    const PlacementSpace space(*test_case.problem);
    if (space.units() < 4) continue;
    const Hypergraph nets(space);
    const PartitionWeights weights(space);
    std::vector<int32_t> units;
    for (int32_t unit = 0; unit < space.units(); ++unit)
      if (unit % 7 != 3) units.push_back(unit);
    FmSides sides(nets, weights.graph.combined, units, 0.4, 0.05);
    RandomStream random(index, "sides");
    auto side = sides.grown(random);
    for (size_t i = 0; i < side.size(); i += 2) side[i] = random.below(2) == 1;
    const auto violation = sides.violation(sides.first_weight(side));
    const auto cut = sides.cut_bytes(side);
    sides.refine(side, 10);
    const auto after = sides.violation(sides.first_weight(side));
    CHECK(after <= violation);
    if (after == violation) CHECK(sides.cut_bytes(side) <= cut);
    auto again = side;
    sides.refine(again, 1);
    CHECK(std::pair(sides.violation(sides.first_weight(again)), sides.cut_bytes(again)) <=
          std::pair(after, sides.cut_bytes(side)));
  }
}

TEST_CASE("partitioners are deterministic, whoever calls them at the same time") {
  const auto problem =
      test::make_problem(test::planted_graph(6, 40, 20'000, 15'000),
                         test::node_spec(2, 2, 1e10, 1e9, 1e-6, 5e-6));
  const PlacementSpace space(problem);
  for (const auto& [name, partition] : kPartitioners) {
    CAPTURE(name);
    const auto once = partition(space);
    ThreadPool pool(3);
    std::vector<Assignment> others(6);
    pool.parallel_for(6, [&](int item, int) { others[item] = partition(space); });
    for (const auto& other : others) CHECK(other == once);
  }
}

TEST_CASE("a request to end that comes while METIS works is this process's, not METIS's") {
  static std::atomic<int> asked{0};
  struct sigaction ours = {}, before = {};
  ours.sa_handler = [](int) { ++asked; };
  ours.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &ours, &before);
  const auto problem =
      test::make_problem(test::planted_graph(4, 200, 100'000, 1000),
                         test::uniform_spec(4, 1e9, 1e-6));
  const PlacementSpace space(problem);
  const auto quiet = metis_partition(space);
  std::atomic<bool> done{false};
  std::thread scheduler([&] {
    while (!done) {
      kill(getpid(), SIGTERM);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  for (int i = 0; i < 10; ++i) CHECK(metis_partition(space) == quiet);
  done = true;
  scheduler.join();
  struct sigaction after = {};
  sigaction(SIGTERM, &before, &after);
  CHECK((after.sa_handler == ours.sa_handler));
  CHECK(asked > 0);
}

TEST_CASE("degenerate graphs are placed too: few units, no edges, no time, one heavy unit") {
  for (const int operators : {1, 2, 3, 5, 9}) {
    for (const int devices : {1, 2, 3, 8}) {
      for (const int shape : {0, 1, 2}) {
        test::GraphMaker make("tiny");
        for (int op = 0; op < operators; ++op) {
          make.op("o" + std::to_string(op), shape == 1 ? 0 : shape == 2 && op == 0 ? 1 : 1e-6);
          if (shape != 0 && op > 0) make.edge(op - 1, op, shape == 1 ? 0 : 1'000'000);
        }
        const auto problem =
            test::make_problem(make.share(), test::uniform_spec(devices, 1e9, 1e-6));
        const PlacementSpace space(problem);
            for (const auto& [name, partition] : kPartitioners) {
          CAPTURE(name);
          CHECK(valid(space, partition(space)));
        }
      }
    }
  }
}

TEST_CASE("colocated operators stay together, imbalances out of range are refused") {
  const auto problem = test::small_problem(2, 12, 2);
  const PlacementSpace space(*problem);
  CHECK(space.units() == 10);
  for (const auto& [name, partition] : kPartitioners)
    CHECK_NOTHROW(
        check_placement(space.placement(partition(space)), problem->graph(), problem->cluster()));
  CHECK_THROWS_WITH_AS(metis_partition(space, {.imbalance = 0}),
                       "option 'imbalance': expected 1e-06 to 10, got 0", ArgumentError);
  CHECK_THROWS_AS(scotch_map(space, {.imbalance = -1}), ArgumentError);
  CHECK_THROWS_WITH_AS(fm_partition(space, {.imbalance = 11}),
                       "option 'imbalance': expected 1e-06 to 10, got 11", ArgumentError);
}
