// Baechi: memory limits, schedules.
#include "search/construct/baechi.h"
#include "base/index.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"
#include "graph/training.h"
#include "strategy/strategy.h"
#include "support/cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

std::shared_ptr<const Problem> problem_of(std::shared_ptr<const Graph> graph, int devices,
                                          int64_t memory_bytes) {
  return test::share_problem(graph, test::uniform_spec(devices, 9.2e9, 5e-6, memory_bytes));
}

/// What a feasible result must be: units together, precedence, no overlap, memory within capacity.
void check_result(const Problem& problem, const BaechiResult& result) {
  REQUIRE(result.feasible);
  const auto& list = result.list;
  CHECK_NOTHROW(check_placement(list.processor, problem.graph(), problem.cluster()));
  const auto graph = make_task_graph(problem);
  for (const auto& edge : graph.edges) {
    const bool local = list.processor[at(edge.from)] == list.processor[at(edge.to)];
    const int64_t wire =
        local ? 0
              : graph.wire(list.processor[at(edge.from)], list.processor[at(edge.to)], edge.bytes);
    CHECK(list.start[at(edge.to)] >= list.end[at(edge.from)] + wire);
  }
  std::vector<std::tuple<int32_t, int64_t, int64_t>> runs;
  for (int32_t o = 0; o < graph.tasks; ++o)
    if (!graph.follows[at(o)])
      runs.emplace_back(list.processor[at(o)], list.start[at(o)], list.end[at(o)]);
  std::sort(runs.begin(), runs.end());
  for (size_t i = 1; i < runs.size(); ++i)
    if (std::get<0>(runs[i]) == std::get<0>(runs[i - 1]))
      CHECK(std::get<1>(runs[i]) >= std::get<2>(runs[i - 1]));
  for (int32_t d = 0; d < problem.devices(); ++d)
    CHECK(result.peak_bytes[at(d)] <= problem.cluster().capacity_bytes(d));
  std::vector<int32_t> sorted = list.sequence;
  std::sort(sorted.begin(), sorted.end());
  for (int32_t o = 0; o < graph.tasks; ++o) CHECK(sorted[at(o)] == o);
}

}  // namespace

TEST_CASE("m-ETF keeps precedence, units and memory, or says what does not fit") {
  int fitted = 0, refused = 0;
  for (uint64_t index = 0; index < 120; ++index) {
    CAPTURE(index);
    RandomStream random(test::law_seed(), "step", index);
    const auto graph =
        index % 3 == 0
            ? std::make_shared<const Graph>(lower_to_training(*test::random_graph(random, 25), {}))
            : test::random_step(random, 40, index % 3 == 1);
    const int64_t memory = 100000 + static_cast<int64_t>(random.below(900000));
    const auto problem = problem_of(graph, 1 + static_cast<int>(random.below(4)), memory);
    const auto result = m_etf(*problem);
    if (result.feasible) {
      ++fitted;
      check_result(*problem, result);
    } else {
      ++refused;
      CHECK(result.reason.find("bytes, more than is free on") != std::string::npos);
      CHECK(result.list.processor.empty());
    }
    CHECK(m_etf(*problem).list.start == result.list.start);
  }
  CHECK(fitted > 45);
  CHECK(refused > 40);
}

TEST_CASE("m-ETF leaves a full device; what fits nowhere is an answer, not an error") {
  // Two operators of 600 bytes of weights each in a chain, devices of 1000 bytes.
  test::GraphMaker make("chain");
  const int a = make.op("a", 1e-6, 600), b = make.op("b", 1e-6, 600);
  make.edge(a, b, 10);
  const auto graph = make.share();
  const auto two = m_etf(*problem_of(graph, 2, 1000));
  REQUIRE(two.feasible);
  CHECK(two.list.processor == std::vector<int32_t>{0, 1});
  CHECK(two.peak_bytes == std::vector<int64_t>{610, 600});
  const auto one = m_etf(*problem_of(graph, 1, 1000));
  CHECK_FALSE(one.feasible);
  CHECK(one.reason ==
        "operator 'b' needs 600 bytes, more than is free on any device after 1 of 2 operators");
}

TEST_CASE("m-ETF books channels: two tensors to one device come one after the other") {
  test::GraphMaker make("join");
  const int a = make.op("a", 10e-6), b = make.op("b", 10e-6), c = make.op("c", 1e-6);
  make.edge(a, c, 92000);  // 10 us and 5 us of latency each
  make.edge(b, c, 92000);
  const auto problem = problem_of(make.share(), 2, 1 << 30);
  const auto result = m_etf(*problem);
  REQUIRE(result.feasible);
  CHECK(result.list.processor[0] != result.list.processor[1]);
  CHECK(result.list.makespan == 26000);  // one wire of 15 us, beside one of a and b
}

TEST_CASE("m-TOPO fills devices up to a share of the memory") {
  test::GraphMaker make("chain");
  int before = make.op("0", 1e-6, 100);
  for (int i = 1; i < 9; ++i) {
    const int next = make.op(std::to_string(i), 1e-6, 100);
    make.edge(before, next, 0);
    before = next;
  }
  // 900 bytes on 3 devices: 300 + 100 a device.
  CHECK(m_topo(*problem_of(make.share(), 3, 1 << 20)) ==
        std::vector<int32_t>{0, 0, 0, 0, 1, 1, 1, 1, 2});
}
