// Baechi: favourite children, memory limits, schedules.
#include "search/construct/baechi.h"
#include "base/index.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/error.h"
#include "base/stop.h"
#include "formats/instances/pipedream.h"
#include "graph/training.h"
#include "search/construct/favourite_child.h"
#include "strategy/strategy.h"
#include "support/cases.h"
#include "support/shared_data.h"
#include "support/tier.h"

using namespace trinity;

namespace {

SctProgram random_program(RandomStream& random, int32_t most) {
  SctProgram program;
  const auto below = [&](uint64_t bound) { return static_cast<int32_t>(random.below(bound)); };
  const int32_t count = 2 + below(static_cast<uint64_t>(most) - 1);
  for (int32_t o = 0; o < count; ++o) {
    program.time.push_back(1 + below(9));
    for (int32_t from = 0; from < o; ++from)
      if (below(3) == 0) program.edges.push_back({from, o, 1.0 + below(9)});
  }
  return program;
}

/// The favourites form paths: at most one child an operator and one parent, along edges.
void check_paths(const SctProgram& program, const FavouriteChildren& found) {
  int32_t children = 0;
  for (size_t o = 0; o < program.time.size(); ++o) {
    const int32_t child = found.child[o];
    if (child < 0) continue;
    ++children;
    CHECK(found.parent[at(child)] == static_cast<int32_t>(o));
    CHECK(std::any_of(program.edges.begin(), program.edges.end(), [&](const auto& e) {
      return at(e.from) == o && e.to == child && !e.joined;
    }));
  }
  CHECK(children == std::count_if(found.parent.begin(), found.parent.end(),
                                  [](int32_t parent) { return parent >= 0; }));
}

/// The longest path when the wires of edges with x = 0 are free.
double longest(const SctProgram& program, const std::vector<bool>& free) {
  std::vector<double> end(program.time);
  double last = 0;
  for (size_t o = 0; o < end.size(); ++o) {
    for (size_t e = 0; e < program.edges.size(); ++e)
      if (at(program.edges[e].to) == o)
        end[o] = std::max(end[o], end[at(program.edges[e].from)] + program.time[o] +
                                      (free[e] ? 0 : program.edges[e].wire));
    last = std::max(last, end[o]);
  }
  return last;
}

/// The least of longest() over all integer choices of favourites.
double best_integer(const SctProgram& program) {
  double best = 1e300;
  for (uint32_t set = 0; set < 1u << program.edges.size(); ++set) {
    std::vector<int32_t> out(program.time.size(), 0), in = out;
    std::vector<bool> free;
    bool valid = true;
    for (size_t e = 0; e < program.edges.size(); ++e) {
      free.push_back(set >> e & 1);
      if (!free.back()) continue;
      valid = valid && ++out[at(program.edges[e].from)] <= 1 && ++in[at(program.edges[e].to)] <= 1;
    }
    if (valid) best = std::min(best, longest(program, free));
  }
  return best;
}

std::shared_ptr<const Problem> problem_of(std::shared_ptr<const Graph> graph, int devices,
                                          int64_t memory_bytes) {
  const auto cluster =
      std::make_shared<const Cluster>(test::uniform_spec(devices, 9.2e9, 5e-6, memory_bytes));
  return std::make_shared<const Problem>(graph, cluster, SimulationRules::standard(*cluster));
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

TEST_CASE("favourite children: the program bounds every choice, and rounding gives paths") {
  int integral = 0;
  for (uint64_t seed = 0; seed < 80; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "programme");
    const auto program = random_program(random, 6);
    const auto found = favourite_children(program);
    CHECK(found.solved);
    check_paths(program, found);
    if (program.edges.size() > 14) continue;
    const double best = best_integer(program);
    // The preferred savings may cost a thousandth.
    CHECK(found.makespan <= best * 1.0011);
    std::vector<bool> free;
    bool whole = true;
    for (const double x : found.x) {
      free.push_back(x < 0.5);
      whole = whole && (x < 1e-6 || x > 1 - 1e-6);
    }
    if (!whole) continue;
    ++integral;
    CHECK(longest(program, free) == doctest::Approx(best).epsilon(2e-3));
  }
  CHECK(integral > 40);
}

TEST_CASE("Ctrl-C stays ours while a program is solved") {
  RandomStream random(5, "favourite children", 1);
  const auto program = random_program(random, 200);
  struct sigaction ours = {}, before = {};
  ours.sa_handler = [](int) {};
  sigaction(SIGINT, &ours, &before);
  std::atomic<bool> done{false}, taken{false};
  std::thread watcher([&] {
    struct sigaction now = {};
    while (!done) {
      sigaction(SIGINT, nullptr, &now);
      if (now.sa_handler != ours.sa_handler) taken = true;
    }
  });
  const auto found = favourite_children(program);
  done = true;
  watcher.join();
  sigaction(SIGINT, &before, nullptr);
  CHECK(found.solved);
  CHECK(found.iterations > 100);
  CHECK_FALSE(taken);
}

TEST_CASE("a fork has one favourite, the one on the longer path; joined edges have none") {
  SctProgram fork;
  fork.time = {1, 5, 9};
  fork.edges = {{0, 1, 4}, {0, 2, 4}};
  auto found = favourite_children(fork);
  CHECK(found.child == std::vector<int32_t>{2, -1, -1});
  CHECK(found.parent == std::vector<int32_t>{-1, -1, 0});
  CHECK(found.makespan == doctest::Approx(10));  // 1 + 9, and 1 + 4 + 5
  fork.edges[1].joined = true;
  found = favourite_children(fork);
  CHECK(found.child == std::vector<int32_t>{1, -1, -1});
}

TEST_CASE("beyond its limits the program is not solved, and the longest paths have favourites") {
  SctProgram fork;
  fork.time = {1, 9, 5};
  fork.edges = {{0, 1, 4}, {0, 2, 4}};
  const auto found = favourite_children(fork, {.most_edges = 1});
  CHECK_FALSE(found.solved);
  CHECK(found.child == std::vector<int32_t>{1, -1, -1});
  RandomStream random(3, "programme");
  const auto program = random_program(random, 60);
  const auto stopped = favourite_children(program, {.most_iterations = 2});
  CHECK_FALSE(stopped.solved);
  check_paths(program, stopped);
  const auto solved = favourite_children(program);
  CHECK(solved.solved);
  CHECK(solved.x == favourite_children(program).x);
  stop_flag() = true;
  CHECK_THROWS_AS(favourite_children(program), Interrupted);
  stop_flag() = false;
}

TEST_CASE("m-ETF and m-SCT keep precedence, units and memory, or say what does not fit") {
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
    for (const auto method : {m_etf, m_sct}) {
      const auto result = method(*problem);
      if (result.feasible) {
        ++fitted;
        check_result(*problem, result);
      } else {
        ++refused;
        CHECK(result.reason.find("bytes, more than is free on") != std::string::npos);
        CHECK(result.list.processor.empty());
      }
      CHECK(method(*problem).list.start == result.list.start);
    }
  }
  CHECK(fitted > 90);
  CHECK(refused > 80);
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

TEST_CASE("m-SCT waits for a favourite child, m-ETF does not") {
  // a ends at 10 on device 0 and feeds c (long) and b; c is its favourite. x keeps device 1 busy.
  test::GraphMaker make("fork");
  const int a = make.op("a", 10e-6), b = make.op("b", 20e-6), c = make.op("c", 40e-6);
  make.edge(a, b, 92000);
  make.edge(a, c, 92000);
  const auto problem = problem_of(make.share(), 2, 1 << 30);
  const auto etf = m_etf(*problem), sct = m_sct(*problem);
  CHECK(etf.list.processor[2] != etf.list.processor[0]);  // b first, as the lower operator
  CHECK(sct.list.processor[2] == sct.list.processor[0]);
  CHECK(etf.list.makespan == 65000);
  CHECK(sct.list.makespan == 50000);
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

namespace {

/// A profile that one device has no memory for, and four have.
void check_profile(const std::string& path, int64_t memory_bytes) {
  const auto graph = std::make_shared<const Graph>(lower_to_training(read_pipedream(path), {}));
  const auto problem = problem_of(graph, 4, memory_bytes);
  for (const auto method : {m_etf, m_sct}) {
    const auto result = method(*problem);
    check_result(*problem, result);
    CHECK_FALSE(method(*problem_of(graph, 1, memory_bytes)).feasible);
    CHECK(std::count(result.list.processor.begin(), result.list.processor.end(), 0) <
          problem->operators());
  }
}

}  // namespace

TEST_CASE("profiles: m-ETF fits into less memory than one device needs") {
  check_profile(test::data("profiles/small.graph.txt"), 40'000'000);
}
