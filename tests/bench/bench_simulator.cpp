// The simulator against a textbook event loop, over graph sizes, and by its rules and engines, in one run:
// ninja -C build bench_simulator && build/bench_simulator [TABLE ...]; without numbers of tables: all
#define DOCTEST_CONFIG_IMPLEMENT  // support/tier.h has attributes of test cases
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>

#include "bench/subjects.h"
#include "bench/textbook.h"
#include "simulator/events.h"
#include "simulator/simulator.h"
#include "support/build.h"
#include "support/cases.h"

using namespace trinity;
using namespace trinity::bench;

namespace {

constexpr int kRepetitions = 9;
constexpr size_t kPlacements = 64, kEventPlacements = 16;

/// A way to simulate a list of placements: step times.
struct Competitor {
  std::string name;
  std::function<void(std::vector<int64_t>& steps)> run;
};

Competitor textbook(const Subject& subject, const Placements& placements) {
  return {"textbook loop", [&](std::vector<int64_t>& steps) {
            for (size_t i = 0; i < placements.size(); ++i)
              steps[i] = TextbookLoop(subject.textbook, placements[i], kDevices).run();
          }};
}

/// One simulator; every placement with its own schedule, or all with the only one, or without.
Competitor simulator(std::string name, const std::shared_ptr<const Problem>& problem,
                     const Placements& placements, std::vector<Schedule> schedules = {}) {
  const auto one = std::make_shared<Simulator>(*problem);
  return {std::move(name),
          [=, &placements, bound = problem, metrics = Metrics()](auto& steps) mutable {
            for (size_t i = 0; i < placements.size(); ++i) {
              Plan plan{placements[i], nullptr};
              if (!schedules.empty()) plan.schedule = &schedules[i % schedules.size()];
              one->run(plan, metrics);
              steps[i] = metrics.step_time_ns;
            }
          }};
}

/// The event loop, which takes what the sweep takes, too, without memory.
Competitor event_loop(std::string name, const std::shared_ptr<const Problem>& problem,
                      const Placements& placements, Schedule schedule = {}) {
  const auto loop = std::make_shared<EventLoop>(*problem);
  return {std::move(name),
          [=, &placements, bound = problem, record = Record()](auto& steps) mutable {
            for (size_t i = 0; i < placements.size(); ++i) {
              loop->run({placements[i], &schedule}, kNoLimit, record);
              steps[i] = record.step_ns;
            }
          }};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Result {
  std::string name;
  double us = 0;            // a placement
  double times_faster = 0;  // than the first competitor
  std::vector<int64_t> steps;
};

/// Medians over repetitions, in each of which all compete in turn; the first only warms up.
/// `times_faster` is the median of the ratios within the repetitions.
std::vector<Result> race(const std::vector<Competitor>& competitors, size_t placements,
                         int repetitions) {
  std::vector<Result> results;
  for (const auto& competitor : competitors)
    results.push_back({competitor.name, 0, 0, std::vector<int64_t>(placements)});
  std::vector<std::vector<double>> us(results.size()), times_faster(results.size());
  for (int repetition = 0; repetition <= repetitions; ++repetition) {
    for (size_t c = 0; c < results.size(); ++c) {
      const auto start = std::chrono::steady_clock::now();
      competitors[c].run(results[c].steps);
      const std::chrono::duration<double, std::micro> time =
          std::chrono::steady_clock::now() - start;
      if (repetition == 0) continue;
      us[c].push_back(time.count() / static_cast<double>(placements));
      times_faster[c].push_back(us[0].back() / us[c].back());
    }
  }
  for (size_t c = 0; c < results.size(); ++c) {
    results[c].us = median(us[c]);
    results[c].times_faster = median(times_faster[c]);
  }
  return results;
}

/// Stops everything unless all results have the steps of the first.
void check_equal(const std::vector<Result>& results, const std::string& where) {
  const auto& first = results.front();
  for (const auto& result : results)
    for (size_t i = 0; i < first.steps.size(); ++i)
      if (result.steps[i] != first.steps[i])
        throw std::runtime_error(fmt::format("{}, placement {}: '{}' gives {} ns, '{}' {} ns",
                                             where, i, first.name, first.steps[i], result.name,
                                             result.steps[i]));
}

double per_second(const Result& result) { return 1e6 / result.us; }

void print_head(const char* title, const char* columns) {
  fmt::print("\n{}\n{}\n", title, columns);
}

/// Rows of the first two tables: the reference loop, then trinity without memory and with it.
void compare(const Subject& subject, const Family& family, size_t count, int repetitions) {
  const auto placements = family.placements(subject.operators, count);
  const auto results =
      race({textbook(subject, placements), simulator("trinity, plain", subject.plain, placements),
            simulator("trinity, with memory", subject.exact, placements)},
           count, repetitions);
  check_equal(results, fmt::format("{}, {}", subject.name, family.name));
  const auto size = static_cast<double>(subject.operators + subject.edges);
  for (const auto& result : results)
    fmt::print("{:<20}{:<8}{:<21}{:>14.1f}{:>14.1f}{:>14.2f}{:>8.2f}\n", subject.name, family.name,
               result.name, result.us, per_second(result), result.us * 1e3 / size,
               result.times_faster);
}

constexpr const char* kComparison =
    "graph               family  simulation             us/placement  placements/s  ns/(op+edge)  "
    "faster";

void bench_reference(const std::vector<const Subject*>& subjects) {
  print_head("1. Against the textbook event loop (step times of all placements checked equal)",
             kComparison);
  for (const auto* subject : subjects)
    for (const auto& family : {kRandom, kGrouped, kBlocks})
      compare(*subject, family, kPlacements, kRepetitions);
}

/// Fewer placements and repetitions where one takes long.
void bench_scaling() {
  print_head("2. Over the number of operators (synthetic training steps)", kComparison);
  for (const int32_t operators : {1000, 10000, 100000, 1000000}) {
    const auto count = std::clamp<size_t>(3200000 / static_cast<size_t>(operators), 3, kPlacements);
    const Subject subject(training_step(fmt::format("{} operators", operators), operators,
                                        static_cast<int32_t>(operators * 1.72)));
    compare(subject, kGrouped, count, operators < 1000000 ? kRepetitions : 5);
  }
}

/// The longest path from an operator's start to the end of the step.
Schedule critical_path(const Problem& problem) {
  Schedule schedule;
  schedule.dispatch = DispatchRule::priority;
  for (int32_t o = 0; o < problem.operators(); ++o)
    schedule.priority.push_back(problem.least_cost_ns(o) + problem.tail_ns(o));
  return schedule;
}

/// Calls take(placement, timeline) for every run.
void each_run(const Problem& problem, const Placements& placements,
              const std::function<void(const Placement&, const Timeline&)>& take) {
  Simulator simulator(problem);
  Metrics metrics;
  Timeline timeline;
  for (const auto& placement : placements) {
    simulator.run(placement, metrics, &timeline);
    take(placement, timeline);
  }
}

std::vector<Schedule> replays(const Problem& problem, const Placements& placements) {
  std::vector<Schedule> result;
  each_run(problem, placements, [&](const Placement&, const Timeline& timeline) {
    result.push_back(test::order_of(problem, timeline));
  });
  return result;
}

/// Rows of one graph and one memory model, all compared with the first.
void event_rows(const Subject& subject, MemoryModel memory) {
  const auto placements = kGrouped.placements(subject.operators, kEventPlacements);
  const auto problem = subject.problem(QueueModel::sender, memory);
  Schedule four, sixteen, lifo, lifo_four;
  four.micro_batches = lifo_four.micro_batches = 4;
  sixteen.micro_batches = 16;
  lifo.dispatch = lifo_four.dispatch = DispatchRule::lifo;
  const auto fair = subject.problem(QueueModel::fair, memory);
  std::vector<Competitor> rows = {
      simulator("fifo: the sweep", problem, placements),
      simulator("order: a replay of these runs", problem, placements, replays(*problem, placements)),
      simulator("lifo", problem, placements, {lifo}),
      simulator("fifo, fair queue", fair, placements)};
  const size_t looped = rows.size();
  if (memory == MemoryModel::none) {
    rows.push_back(event_loop("fifo: the event loop", problem, placements));
    rows.push_back(event_loop("lifo: the event loop", problem, placements, lifo));
    rows.push_back(event_loop("fair queue: the event loop", fair, placements));
  }
  const auto route = subject.problem(QueueModel::route, memory);
  rows.push_back(
      simulator("priority: critical path", problem, placements, {critical_path(*problem)}));
  rows.push_back(simulator("fifo, route queue", route, placements));
  std::vector<int32_t> micro_batches(rows.size(), 1);  // of every row
  const auto add = [&](Competitor row, int32_t count) {
    rows.push_back(std::move(row));
    micro_batches.push_back(count);
  };
  add(simulator("fifo, 4 micro-batches", problem, placements, {four}), 4);
  add(simulator("lifo, 4 micro-batches", problem, placements, {lifo_four}), 4);
  add(simulator("fifo, 16 micro-batches", problem, placements, {sixteen}), 16);
  const size_t swept = rows.size() - 3;
  if (memory == MemoryModel::none) {
    add(event_loop("fifo, 4: the event loop", problem, placements, four), 4);
    add(event_loop("lifo, 4: the event loop", problem, placements, lifo_four), 4);
    add(event_loop("fifo, 16: the event loop", problem, placements, sixteen), 16);
  }
  const auto results = race(rows, kEventPlacements, 7);
  check_equal({results[0], results[1]}, "a replay");
  if (memory == MemoryModel::none) {
    check_equal({results[0], results[looped]}, "fifo");
    check_equal({results[2], results[looped + 1]}, "lifo");
    check_equal({results[3], results[looped + 2]}, "fair");
    for (size_t i = 0; i < 3; ++i)
      check_equal({results[swept + i], results[swept + 3 + i]}, "micro-batches");
  }
  for (const auto& result : results) {
    const int32_t times = micro_batches[static_cast<size_t>(&result - results.data())];
    const auto size = static_cast<double>(subject.operators + subject.edges) * times;
    fmt::print("{:<18}{:<30}{:<11}{:>14.1f}{:>14.1f}{:>16.2f}{:>10.2f}\n", subject.name, result.name,
               memory == MemoryModel::none ? "plain" : "with memory", result.us, per_second(result),
               result.us * 1e3 / size, 1 / result.times_faster / times);
  }
}

void bench_events(const std::vector<const Subject*>& subjects) {
  print_head("3. Rules and the event loop (groups). longer: a micro-batch's time over the sweep's",
             "graph             plan                          memory       us/placement  placements/s"
             "  ns/(task+edge)    longer");
  for (const auto* subject : subjects)
    for (const auto memory : {MemoryModel::none, MemoryModel::slots}) event_rows(*subject, memory);
}

void run(const std::set<std::string>& wanted) {
  const auto asked = [&](const char* table) { return wanted.empty() || wanted.count(table) > 0; };
  double load = 0;
  getloadavg(&load, 1);
  fmt::print(
      "Compiler {}, {}; {} cores at load {:.1f}, one thread unless said. Wall time, medians of {} "
      "repetitions (1,000,000 operators: 5, table 3: 7) after one to warm up; in each the rows of "
      "a "
      "group take turns over {} placements (fewer above 50,000 operators, table 3: {}) on {} "
      "devices "
      "({} us, {} GB/s). faster: than the group's first row, median of the repetitions' ratios.\n",
      __VERSION__, TRINITY_FLAGS, std::thread::hardware_concurrency(), load, kRepetitions,
      kPlacements, kEventPlacements, kDevices, kLatencyNs / 1000, kBytesPerNs);
  const Subject inception(published("inceptionv3_size", "InceptionV3 size", 12745, 21928));
  const Subject gnmt(published("gnmt_size", "GNMT size", 8738, 16564));
  for (const auto* subject : {&inception, &gnmt})
    fmt::print("{}: {} operators, {} edges\n", subject->name, subject->operators, subject->edges);
  if (asked("1")) bench_reference({&inception, &gnmt});
  if (asked("2")) bench_scaling();
  if (asked("3")) bench_events({&inception, &gnmt});
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
