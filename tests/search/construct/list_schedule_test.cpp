// HEFT, CPOP and ETF: the paper's example, and what any schedule must obey.
#include "search/construct/list_schedule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "simulator/simulator.h"
#include "strategy/strategy.h"
#include "support/cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

/// The 10-task example of the HEFT paper (manual/papers.md "HEFT"): unit rates, no latency.
TaskGraph article_example() {
  const int cost[10][3] = {{14, 16, 9}, {13, 19, 18}, {11, 13, 19}, {13, 8, 17},  {12, 13, 10},
                           {13, 16, 9}, {7, 15, 11},  {5, 11, 14},  {18, 12, 20}, {21, 7, 16}};
  const int edges[15][3] = {{1, 2, 18}, {1, 3, 12}, {1, 4, 9},   {1, 5, 11},  {1, 6, 14},
                            {2, 8, 19}, {2, 9, 16}, {3, 7, 23},  {4, 8, 27},  {4, 9, 23},
                            {5, 9, 13}, {6, 8, 15}, {7, 10, 17}, {8, 10, 11}, {9, 10, 13}};
  TaskGraph graph;
  graph.tasks = 10;
  graph.processors = 3;
  for (const auto& row : cost) graph.cost.insert(graph.cost.end(), row, row + 3);
  int32_t tensor = 0;
  for (const auto& e : edges) graph.edges.push_back({e[0] - 1, e[1] - 1, tensor++, e[2]});
  graph.latency.assign(9, 0);
  graph.rate.assign(9, 1);
  graph.index();
  return graph;
}

/// A random task graph with groups of one to three tasks.
TaskGraph random_tasks(RandomStream& random, bool grouped) {
  TaskGraph graph;
  graph.tasks = 1 + static_cast<int32_t>(random.below(60));
  graph.processors = 1 + static_cast<int32_t>(random.below(5));
  const auto below = [&](uint64_t bound) { return static_cast<int32_t>(random.below(bound)); };
  for (int32_t i = 0; i < graph.tasks * graph.processors; ++i) graph.cost.push_back(below(4) * 7);
  for (int32_t t = 1; t < graph.tasks; ++t)
    for (int32_t reads = below(4); reads > 0; --reads) {
      const int32_t from = t - 1 - below(static_cast<uint64_t>(std::min(t, 9)));
      graph.edges.push_back({from, t, from * 2 + below(2), below(3) * 11});
    }
  for (int32_t i = 0; i < graph.processors * graph.processors; ++i) {
    graph.latency.push_back(below(5));
    graph.rate.push_back(1 + below(3));
  }
  for (int32_t t = 0; t < graph.tasks && grouped; ++t) graph.group.push_back(t / 3);
  graph.index();
  return graph;
}

/// Checks that a schedule keeps precedence and groups and runs one task at a time.
void check_schedule_of(const TaskGraph& graph, const ListSchedule& list) {
  const auto at = [](int32_t i) { return static_cast<size_t>(i); };
  REQUIRE(list.sequence.size() == at(graph.tasks));
  std::vector<int32_t> group_processor(graph.group_size.size(), -1), place(at(graph.tasks), -1);
  int64_t last = 0;
  for (int32_t i = 0; i < graph.tasks; ++i) place[at(list.sequence[at(i)])] = i;
  for (int32_t t = 0; t < graph.tasks; ++t) {
    REQUIRE(place[at(t)] >= 0);
    REQUIRE(list.processor[at(t)] >= 0);
    REQUIRE(list.processor[at(t)] < graph.processors);
    CHECK(list.end[at(t)] - list.start[at(t)] == graph.cost_of(t, list.processor[at(t)]));
    auto& processor = group_processor[at(graph.group[at(t)])];
    CHECK((processor < 0 || processor == list.processor[at(t)]));
    processor = list.processor[at(t)];
    last = std::max(last, list.end[at(t)]);
  }
  CHECK(list.makespan == last);
  for (const auto& edge : graph.edges) {
    CHECK(place[at(edge.from)] < place[at(edge.to)]);
    CHECK(list.start[at(edge.to)] >=
          list.end[at(edge.from)] +
              graph.wire(list.processor[at(edge.from)], list.processor[at(edge.to)], edge.bytes));
  }
  std::vector<std::tuple<int32_t, int64_t, int64_t>> runs;
  for (int32_t t = 0; t < graph.tasks; ++t)
    runs.emplace_back(list.processor[at(t)], list.start[at(t)], list.end[at(t)]);
  std::sort(runs.begin(), runs.end());
  for (size_t i = 1; i < runs.size(); ++i)
    if (std::get<0>(runs[i]) == std::get<0>(runs[i - 1]))
      CHECK(std::get<1>(runs[i]) >= std::get<2>(runs[i - 1]));
}

}  // namespace

TEST_CASE("HEFT and CPOP on the paper's example") {
  const auto graph = article_example();
  const double expected[] = {108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667};
  const auto rank = upward_ranks(graph);
  for (size_t t = 0; t < 10; ++t) CHECK(rank[t] == doctest::Approx(expected[t]).epsilon(3e-5));
  const auto list = heft(graph);
  CHECK(list.makespan == 80);
  CHECK(list.processor == std::vector<int32_t>{2, 0, 2, 1, 2, 1, 2, 0, 1, 1});
  check_schedule_of(graph, list);
  const auto other = cpop(graph);
  CHECK(other.makespan == 86);
  check_schedule_of(graph, other);
}

TEST_CASE("list schedules keep precedence, groups and one task at a time") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    RandomStream random(test::law_seed(), "tasks", seed);
    const auto graph = random_tasks(random, seed % 2 == 1);
    for (const auto scheduler : {heft, cpop, etf}) {
      const auto list = scheduler(graph);
      check_schedule_of(graph, list);
      CHECK(scheduler(graph).start == list.start);
    }
  }
}

TEST_CASE("HEFT puts a task into an idle gap, ETF takes the pair that starts first") {
  // a (10) -> b (10) across a slow wire; c (5) alone, of least rank, fits before b's arrival.
  TaskGraph graph;
  graph.tasks = 3;
  graph.processors = 1;
  graph.cost = {10, 10, 5};
  graph.edges = {{0, 1, 0, 1}};
  graph.latency = {0};
  graph.rate = {1};
  graph.index();
  CHECK(heft(graph).makespan == 25);
  TaskGraph two;
  two.tasks = 3;
  two.processors = 2;
  // Task 1 is fast on processor 1 only; task 2 waits 100 for either unless it follows task 0.
  two.cost = {10, 10, 50, 20, 5, 5};
  two.edges = {{0, 2, 0, 100}};
  two.latency = {0, 0, 0, 0};
  two.rate = {1, 1, 1, 1};
  two.index();
  const auto list = etf(two);
  CHECK(list.start ==
        std::vector<int64_t>{0, 0, 10});  // 1 starts at 0 on processor 1, however short
  CHECK(list.processor[2] == list.processor[0]);
  CHECK(list.processor[1] != list.processor[0]);
}

TEST_CASE("a problem's task graph has its costs, tensors, wires and units; the order simulates") {
  for (uint64_t index = 0; index < 60; ++index) {
    CAPTURE(index);
    const auto c = test::random_case(index, {.most_operators = 50, .most_devices = 4});
    const auto& problem = *c.problem;
    const auto graph = make_task_graph(problem);
    CHECK(graph.edges.size() == static_cast<size_t>(problem.edges()));
    for (int32_t p = 0; p < problem.devices(); ++p)
      for (int32_t q = 0; q < problem.devices(); ++q)
        if (p != q) CHECK(graph.wire(p, q, 12345) == problem.wire_ns(p, q, 12345));
    for (const auto scheduler : {heft, cpop, etf}) {
      const auto list = scheduler(graph);
      check_schedule_of(graph, list);
      CHECK_NOTHROW(check_placement(list.processor, problem.graph(), problem.cluster()));
      const auto schedule = order_schedule(list, problem.devices());
      const auto metrics = test::metrics_of(problem, {list.processor, &schedule});
      std::vector<int64_t> busy(metrics.devices.size(), 0);
      for (size_t task = 0; task < list.start.size(); ++task)
        busy[list.processor[task]] += list.end[task] - list.start[task];
      for (size_t d = 0; d < busy.size(); ++d) CHECK(metrics.devices[d].compute_busy_ns == busy[d]);
    }
  }
}

TEST_CASE("a task graph that contradicts itself is refused") {
  TaskGraph graph;
  CHECK_THROWS_AS(graph.index(), ArgumentError);
  graph = article_example();
  graph.edges.push_back({3, 2, 0, 1});
  CHECK_THROWS_AS(graph.index(), ArgumentError);
  graph = article_example();
  graph.cost[4] = -1;
  CHECK_THROWS_WITH_AS(graph.index(), "task graph: a cost is -1", ArgumentError);
  graph = article_example();
  graph.rate[1] = 0;
  CHECK_THROWS_AS(graph.index(), ArgumentError);
  graph = article_example();
  graph.group[3] = 12;
  CHECK_THROWS_WITH_AS(graph.index(), "task graph: group 12", ArgumentError);
}
