// The simulator against a textbook event loop, over graph sizes, on several threads, under limits,
// and on the plans that only its event loop takes, in one run:
// ninja -C build bench_simulator && build/bench_simulator [TABLE ...]; without numbers of tables: all
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/random.h"
#include "bench/plain_heap.h"
#include "bench/textbook.h"
#include "simulator/batch.h"
#include "simulator/simulator.h"
#include "simulator/symmetry.h"
#include "support/build.h"
#include "support/cases.h"
#include "support/layered.h"

using namespace trinity;
using bench::FlatGraph;
using bench::PlainHeapLoop;
using bench::TextbookGraph;
using bench::TextbookLoop;

namespace {

constexpr int kDevices = 4, kGroups = 128, kRepetitions = 9;
constexpr size_t kPlacements = 64, kEventPlacements = 16;
constexpr double kBytesPerNs = 12, kLatencyNs = 5000;

using Edge = std::pair<int32_t, int32_t>;

/// Operators in topological order, each with one output tensor.
struct Shape {
  std::string name;
  std::vector<int64_t> cost_ns, bytes;
  std::vector<Edge> edges;  // sorted
};

/// Reads "N M", N lines "cost_ns output_bytes" and M lines "source target"; empty when absent.
Shape read_shape(const std::string& name, const std::string& path) {
  Shape shape{name, {}, {}, {}};
  std::FILE* pipe = popen(fmt::format("zcat '{}' 2>&1", path).c_str(), "r");
  if (!pipe) return shape;
  long long a = 0, b = 0, operators = 0, edges = 0;
  bool good = std::fscanf(pipe, "%lld %lld", &operators, &edges) == 2;
  for (long long o = 0; o < operators && good; ++o) {
    good = std::fscanf(pipe, "%lld %lld", &a, &b) == 2;
    shape.cost_ns.push_back(a);
    shape.bytes.push_back(b);
  }
  for (long long e = 0; e < edges && good; ++e) {
    good = std::fscanf(pipe, "%lld %lld", &a, &b) == 2;
    shape.edges.emplace_back(static_cast<int32_t>(a), static_cast<int32_t>(b));
  }
  if (pclose(pipe) != 0 || !good) return Shape{name, {}, {}, {}};
  return shape;
}

/// Operators in layers of 1 to 12, each of which reads at least one of the layer before.
std::set<Edge> layered_edges(RandomStream& random, int32_t operators, size_t edges) {
  std::vector<int32_t> first{0}, layer;  // of every layer; of every operator
  while (static_cast<int32_t>(layer.size()) < operators) {
    const auto left = static_cast<size_t>(operators) - layer.size();
    const auto width = std::min(left, size_t{1 + random.below(12)});
    layer.insert(layer.end(), width, static_cast<int32_t>(first.size()) - 1);
    first.push_back(static_cast<int32_t>(layer.size()));
  }
  const auto draw = [&](int32_t from, int32_t to) {
    return from + static_cast<int32_t>(random.below(static_cast<uint64_t>(to - from)));
  };
  std::set<Edge> result;
  for (int32_t o = first[1]; o < operators; ++o)
    result.emplace(draw(first[layer[o] - 1], first[layer[o]]), o);
  while (result.size() < edges) {
    const int32_t o = draw(first[2], operators);
    result.emplace(draw(first[layer[o] - 2], first[layer[o]]), o);
  }
  return result;
}

/// A training step: forward operators in layers; for each, in reverse, a backward one that reads
/// its output and its readers' gradients; updates behind some of these.
Shape training_step(const std::string& name, int32_t operators, int32_t edges) {
  RandomStream random(1, "training step", static_cast<uint64_t>(operators));
  Shape shape{name, {}, {}, {}};
  const int32_t forward = operators * 9 / 20, updates = operators - 2 * forward;
  const int32_t layered = edges - forward - updates;  // forward and mirrored
  std::vector<int32_t> backward(forward);
  int32_t next = forward;
  for (int32_t f = forward - 1; f >= 0; --f) {
    backward[f] = next++;
    shape.edges.emplace_back(f, backward[f]);
    const auto before = int64_t{f} * updates / forward,
               after = (int64_t{f} + 1) * updates / forward;
    if (after > before) shape.edges.emplace_back(backward[f], next++);
  }
  for (const auto& [from, to] : layered_edges(random, forward, static_cast<size_t>(layered / 2))) {
    shape.edges.emplace_back(from, to);
    shape.edges.emplace_back(backward[to], backward[from]);
  }
  if (layered % 2 > 0) shape.edges.emplace_back(0, backward[1]);
  std::sort(shape.edges.begin(), shape.edges.end());
  for (int32_t o = 0; o < operators; ++o) {
    shape.cost_ns.push_back(std::llround(std::exp(9 + 1.2 * random.normal())) + 1);
    shape.bytes.push_back(std::llround(std::exp(10.5 + 2.5 * random.normal())));
  }
  return shape;
}

TextbookGraph textbook_graph(const Shape& shape) {
  const size_t n = shape.cost_ns.size();
  TextbookGraph graph{std::vector<std::vector<int>>(n), std::vector<int>(n), shape.cost_ns, {}};
  for (const auto& [from, to] : shape.edges) {
    graph.readers[from].push_back(to);
    ++graph.inputs[to];
  }
  for (const int64_t bytes : shape.bytes)
    graph.wire_ns.push_back(static_cast<int64_t>(
        std::floor(kLatencyNs + static_cast<double>(bytes) / kBytesPerNs + 0.5)));
  return graph;
}

std::shared_ptr<const Graph> graph_of(const Shape& shape) {
  test::GraphMaker make(shape.name);
  std::vector<int> tensors;
  for (size_t o = 0; o < shape.cost_ns.size(); ++o) {
    const int op = make.op(fmt::format("op{}", o), static_cast<double>(shape.cost_ns[o]) * 1e-9);
    tensors.push_back(make.output(op, shape.bytes[o]));
  }
  for (const auto& [from, to] : shape.edges) make.read(to, tensors[from]);
  return make.share();
}

using Placement = std::vector<int32_t>;
using Placements = std::vector<Placement>;

int32_t some_device(RandomStream& random) { return static_cast<int32_t>(random.below(kDevices)); }

/// Each operator alone.
Placement scattered(RandomStream& random, size_t operators) {
  Placement placement(operators);
  for (auto& device : placement) device = some_device(random);
  return placement;
}

/// Contiguous groups of one size on random devices.
Placement grouped(RandomStream& random, size_t operators) {
  Placement group(kGroups), placement(operators);
  for (auto& device : group) device = some_device(random);
  for (size_t o = 0; o < operators; ++o) placement[o] = group[o * kGroups / operators];
  return placement;
}

/// One contiguous block a device; its bounds stray by up to a tenth of its size.
Placement blocks(RandomStream& random, size_t operators) {
  Placement placement(operators, kDevices - 1);
  const double size = static_cast<double>(operators) / kDevices;
  size_t o = 0;
  for (int32_t device = 0; device < kDevices - 1; ++device) {
    const double cut = size * (device + 1 + 0.2 * (random.uniform() - 0.5));
    for (; o < static_cast<size_t>(cut); ++o) placement[o] = device;
  }
  return placement;
}

struct Family {
  const char* name;
  Placement (*draw)(RandomStream&, size_t);

  Placements placements(size_t operators, size_t count) const {
    Placements result;
    for (size_t i = 0; i < count; ++i) {
      RandomStream random(2, name, i);
      result.push_back(draw(random, operators));
    }
    return result;
  }
};

constexpr Family kRandom{"random", scattered}, kGrouped{"groups", grouped},
    kBlocks{"blocks", blocks};

/// A graph in every form that is measured.
struct Subject {
  explicit Subject(const Shape& shape)
      : name(shape.name),
        operators(shape.cost_ns.size()),
        edges(shape.edges.size()),
        textbook(textbook_graph(shape)),
        flat(textbook),
        graph(graph_of(shape)),
        plain(problem(QueueModel::sender, MemoryModel::none)),
        exact(problem(QueueModel::sender, MemoryModel::slots)) {}

  std::shared_ptr<const Problem> problem(QueueModel queue, MemoryModel memory) const {
    auto spec = test::uniform_spec(kDevices, kBytesPerNs * 1e9, kLatencyNs * 1e-9);
    spec.queue = queue;
    const auto cluster = std::make_shared<const Cluster>(spec);
    auto rules = SimulationRules::standard(*cluster);
    rules.memory = memory;
    return std::make_shared<const Problem>(graph, cluster, rules);
  }

  std::string name;
  size_t operators, edges;
  TextbookGraph textbook;
  FlatGraph flat;
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Problem> plain, exact;
};

constexpr int64_t kRejected = -1;

/// A way to price a list of placements: step times, or kRejected.
struct Competitor {
  std::string name;
  std::function<void(std::vector<int64_t>& steps)> run;
  int passes = 1;  // that `run` makes over the list
};

Competitor textbook(const Subject& subject, const Placements& placements) {
  return {"textbook loop", [&](std::vector<int64_t>& steps) {
            for (size_t i = 0; i < placements.size(); ++i)
              steps[i] = TextbookLoop(subject.textbook, placements[i], kDevices).run();
          }};
}

Competitor plain_heap(const Subject& subject, const Placements& placements) {
  return {"plain 4-ary heap", [&, loop = PlainHeapLoop(subject.flat, kDevices)](auto& steps) mutable {
            for (size_t i = 0; i < placements.size(); ++i) steps[i] = loop.run(placements[i]);
          }};
}

/// One simulator; every placement with its own schedule, or all with the only one, or without.
Competitor simulator(std::string name, const std::shared_ptr<const Problem>& problem,
                     const Placements& placements, std::vector<Schedule> schedules = {},
                     int64_t limit_ns = kNoLimit) {
  const auto one = std::make_shared<Simulator>(*problem);
  return {std::move(name),
          [=, &placements, bound = problem, metrics = Metrics()](auto& steps) mutable {
            for (size_t i = 0; i < placements.size(); ++i) {
              Plan plan{placements[i], nullptr};
              if (!schedules.empty()) plan.schedule = &schedules[i % schedules.size()];
              one->run(plan, metrics, nullptr, limit_ns);
              steps[i] = metrics.rejected ? kRejected : metrics.step_time_ns;
            }
          }};
}

Competitor batch(std::string name, const Problem& problem, const Placements& placements,
                 ThreadPool& pool, size_t cache_bytes, int passes) {
  const auto all = std::make_shared<BatchSimulator>(problem, pool, cache_bytes);
  std::vector<Plan> plans;
  plans.reserve(placements.size());
  for (const auto& placement : placements) plans.push_back({placement, nullptr});
  return {std::move(name),
          [=, metrics = std::vector<Metrics>()](auto& steps) mutable {
            for (int pass = 0; pass < passes; ++pass) all->run(plans, metrics);
            for (size_t i = 0; i < plans.size(); ++i) steps[i] = metrics[i].step_time_ns;
          },
          passes};
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
      us[c].push_back(time.count() / static_cast<double>(placements) / competitors[c].passes);
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

/// Rows of the first two tables: the reference loop, plain, with memory.
void compare(const Subject& subject, const Family& family, size_t count, int repetitions) {
  const auto placements = family.placements(subject.operators, count);
  const auto results =
      race({textbook(subject, placements), plain_heap(subject, placements),
            simulator("trinity, plain", subject.plain, placements),
            simulator("trinity, with memory", subject.exact, placements)},
           count, repetitions);
  check_equal(results, fmt::format("{}, {}", subject.name, family.name));
  const auto size = static_cast<double>(subject.operators + subject.edges);
  for (const auto& result : results)
    fmt::print("{:<20}{:<8}{:<21}{:>14.1f}{:>14.1f}{:>14.2f}{:>8.2f}{:>8.2f}\n", subject.name,
               family.name, result.name, result.us, per_second(result), result.us * 1e3 / size,
               result.times_faster, result.times_faster / results[1].times_faster);
}

constexpr const char* kComparison =
    "graph               family  simulation             us/placement  placements/s  ns/(op+edge)  "
    "faster  than heap";

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

void bench_threads(const Subject& subject) {
  print_head(fmt::format("3. A batch of {} plans on threads ({}, groups, with memory)", kPlacements,
                         subject.name)
                 .c_str(),
             "batch                              us/placement  placements/s  speed-up");
  const auto placements = kGrouped.placements(subject.operators, kPlacements);
  const auto& problem = *subject.exact;
  ThreadPool single(1), pair(2);
  const size_t cache = BatchSimulator::kCacheBytes;
  const auto results =
      race({batch("no cache, 1 thread", problem, placements, single, 0, 1),
            batch("no cache, 2 threads", problem, placements, pair, 0, 1),
            batch("cache on, later passes, 1 thread", problem, placements, single, cache, 20),
            batch("cache on, later passes, 2 threads", problem, placements, pair, cache, 20)},
           kPlacements, kRepetitions);
  check_equal(results, "batches");
  for (const auto& result : results)
    fmt::print("{:<33}{:>14.1f}{:>14.1f}{:>10.2f}\n", result.name, result.us, per_second(result),
               result.times_faster);
}

/// Limits every placement to the best step of them all.
void reject(const Subject& subject, const std::shared_ptr<const Problem>& problem,
            const char* memory) {
  const auto placements = kGrouped.placements(subject.operators, kPlacements);
  const auto unlimited = simulator("no limit", problem, placements);
  std::vector<int64_t> steps(kPlacements);
  unlimited.run(steps);
  const int64_t best = *std::min_element(steps.begin(), steps.end());
  const auto results = race({unlimited, simulator("the best step", problem, placements, {}, best)},
                            kPlacements, kRepetitions);
  for (size_t i = 0; i < kPlacements; ++i)
    if (results[1].steps[i] != (steps[i] > best ? kRejected : steps[i]))
      throw std::runtime_error(fmt::format("{}, placement {}: step {} ns, limit {} ns, but {}",
                                           subject.name, i, steps[i], best,
                                           results[1].steps[i] == kRejected ? "rejected" : "not"));
  const auto rejected = std::count(results[1].steps.begin(), results[1].steps.end(), kRejected);
  for (const auto& result : results)
    fmt::print("{:<20}{:<13}{:<13}{:>14.1f}{:>14.1f}{:>8.2f}{:>10}\n", subject.name, memory,
               result.name, result.us, per_second(result), result.times_faster,
               &result == &results[0] ? 0 : rejected);
}

void bench_rejection(const std::vector<const Subject*>& subjects) {
  print_head("4. Early rejection (groups; rejected exactly where the step is longer)",
             "graph               memory       limit          us/placement  placements/s  faster  "
             "rejected");
  for (const auto* subject : subjects) {
    reject(*subject, subject->plain, "plain");
    reject(*subject, subject->exact, "with memory");
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

std::vector<Schedule> replays(const Problem& problem, const Placements& placements) {
  Simulator simulator(problem);
  Metrics metrics;
  Timeline timeline;
  std::vector<Schedule> result;
  for (const auto& placement : placements) {
    simulator.run(placement, metrics, &timeline);
    result.push_back(test::order_of(problem, timeline));
  }
  return result;
}

/// Rows of one graph and one memory model, all beside the first.
void event_rows(const Subject& subject, MemoryModel memory) {
  const auto placements = kGrouped.placements(subject.operators, kEventPlacements);
  const auto problem = subject.problem(QueueModel::sender, memory);
  Schedule four, lifo;
  four.micro_batches = 4;
  lifo.dispatch = DispatchRule::lifo;
  const auto results =
      race({simulator("fifo: the sweep", problem, placements),
            simulator("order: a replay of these runs", problem, placements,
                      replays(*problem, placements)),
            simulator("lifo", problem, placements, {lifo}),
            simulator("priority: critical path", problem, placements, {critical_path(*problem)}),
            simulator("fifo, route queue", subject.problem(QueueModel::route, memory), placements),
            simulator("fifo, fair queue", subject.problem(QueueModel::fair, memory), placements),
            simulator("fifo, 4 micro-batches", problem, placements, {four})},
           kEventPlacements, 7);
  check_equal({results[0], results[1]}, "a replay");
  for (const auto& result : results) {
    const int micro_batches = &result == &results.back() ? four.micro_batches : 1;
    const auto size = static_cast<double>(subject.operators + subject.edges) * micro_batches;
    fmt::print("{:<18}{:<30}{:<11}{:>14.1f}{:>14.1f}{:>16.2f}{:>10.2f}\n", subject.name, result.name,
               memory == MemoryModel::none ? "plain" : "with memory", result.us, per_second(result),
               result.us * 1e3 / size, 1 / result.times_faster / micro_batches);
  }
}

void bench_events(const std::vector<const Subject*>& subjects) {
  print_head("5. The event loop (groups). longer: a micro-batch's time over the sweep's",
             "graph             plan                          memory       us/placement  placements/s"
             "  ns/(task+edge)    longer");
  for (const auto* subject : subjects)
    for (const auto memory : {MemoryModel::none, MemoryModel::slots}) event_rows(*subject, memory);
}

/// Processor time.
double ms_of(const std::function<void()>& work) {
  const auto start = std::clock();
  work();
  return 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

Strategy mesh_of(int32_t tensor, int32_t pipeline, int32_t data, int32_t micro_batches,
                 int32_t shard) {
  Strategy strategy;
  auto& given = strategy.parallelism.emplace();
  given.mesh.data = data;
  given.mesh.tensor = tensor;
  given.mesh.pipeline = pipeline;
  given.micro_batches = micro_batches;
  given.shard = shard;
  given.bucket_bytes = 1;  // every gradient by itself, as those of large layers are
  return strategy;
}

/// One row: what a strategy takes whose structure was not seen before (another one was), and later.
void bench_mesh(const std::shared_ptr<const Graph>& graph, int32_t devices, bool slow,
                const Strategy& strategy) {
  auto spec = test::rail_spec(devices / 8, 8);
  spec.queue = QueueModel::route;
  if (slow) spec.devices[5].speed = 0.5;
  const auto cluster = std::make_shared<const Cluster>(std::move(spec));
  const auto problem =
      std::make_shared<const Problem>(graph, cluster, SimulationRules::standard(*cluster));
  const auto other = mesh_of(2, 2, devices / 4, 4, 0);
  std::vector<double> unseen, later;
  int32_t simulated = 0, lowered = 0;
  Metrics metrics;
  for (int i = 0; i < 5; ++i) {
    SymmetryPricer pricer(problem);
    pricer.price(other, metrics, kNoLimit);
    bool priced = false;
    unseen.push_back(ms_of([&] { priced = pricer.price(strategy, metrics, kNoLimit); }));
    later.push_back(ms_of([&] { pricer.price(strategy, metrics, kNoLimit); }));
    simulated = pricer.simulated_devices(strategy);
    lowered = pricer.lowered_layers(strategy);
    if (simulated >= 0 && !priced) throw std::runtime_error("a mesh could not be priced");
  }
  const auto& mesh = strategy.parallelism->mesh;
  fmt::print("{:<10}{:<16}{:<8}{:>10}{:>9}{:>12.2f}{:>12.2f}{:>14.3f}\n", devices,
             fmt::format("{}x{}x{} of {}", mesh.tensor, mesh.pipeline, mesh.data,
                         strategy.parallelism->micro_batches),
             slow ? "one" : "none", simulated < 0 ? devices : simulated,
             lowered < 0 ? std::string("all") : fmt::format("{}", lowered), median(unseen),
             median(later), static_cast<double>(metrics.step_time_ns) * 1e-6);
}

void bench_meshes() {
  print_head("6. Meshes over the number of devices (128 equal layers, tensor x pipeline x data of "
             "micro-batches, shard 1, queue route); processor time, medians of 5",
             "devices   mesh            slower   simulated  lowered   unseen ms    later ms       "
             "step ms");
  const auto graph = std::make_shared<const Graph>(test::layered_graph(128));
  for (const bool slow : {false, true})
    for (const int32_t devices : {8, 64, 256, 1024, 4096, 16384, 65536})
      bench_mesh(graph, devices, slow, mesh_of(4, 2, devices / 8, 8, 1));
  bench_mesh(graph, 1024, false, mesh_of(8, 8, 16, 32, 1));
  bench_mesh(graph, 16384, false, mesh_of(8, 16, 128, 128, 1));
}

/// The graph of that name in the shared data, or one of its size.
Shape published(const std::string& file, const std::string& name, int32_t operators,
                int32_t edges) {
  const std::string path =
      fmt::format("{}/../shared/data/synthetic/{}.txt.gz", TRINITY_SOURCE_DIR, file);
  auto shape = read_shape(name, path);
  if (!shape.edges.empty()) return shape;
  fmt::print("{} is not here: a synthetic training step of the same size instead\n", path);
  return training_step(name, operators, edges);
}

void run(const std::set<std::string>& wanted) {
  const auto asked = [&](const char* table) { return wanted.empty() || wanted.count(table) > 0; };
  double load = 0;
  getloadavg(&load, 1);
  fmt::print(
      "Compiler {}, {}; {} cores at load {:.1f}, one thread unless said. Wall time, medians of {} "
      "repetitions (1,000,000 operators: 5, table 5: 7) after one to warm up; in each the rows of "
      "a "
      "group take turns over {} placements (fewer above 50,000 operators, table 5: {}) on {} "
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
  if (asked("3")) bench_threads(inception);
  if (asked("4")) bench_rejection({&inception, &gnmt});
  if (asked("5")) bench_events({&inception, &gnmt});
  if (asked("6")) bench_meshes();
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
