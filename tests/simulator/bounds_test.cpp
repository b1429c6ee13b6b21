// Lower bounds: by hand, against a naive interval bound, and against every placement of small
// graphs.
#include "simulator/bounds.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "graph/training.h"
#include "simulator/memory_bound.h"
#include "simulator/simulator.h"
#include "support/build.h"
#include "support/cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

constexpr double kNs = 1e-9;

/// One operator before and one after `middle` parallel ones, all of one time.
std::shared_ptr<const Graph> spindle(int middle, double time_ns) {
  test::GraphMaker make("spindle");
  const int first = make.op("first", time_ns * kNs);
  std::vector<int> between;
  for (int i = 0; i < middle; ++i) {
    between.push_back(make.op("m" + std::to_string(i), time_ns * kNs));
    make.edge(first, between.back(), 100);
  }
  const int last = make.op("last", time_ns * kNs);
  for (const int op : between) make.edge(op, last, 100);
  return make.share();
}

/// Two device types of which one computes and the other moves data four times as fast.
ClusterSpec two_types(int of_first, int of_second) {
  auto spec = test::uniform_spec(of_first + of_second, 1e9, 1e-6);
  auto& slow = spec.device_types[0];
  slow.peak_flops_per_s[DType::float32] = 1e9;
  slow.memory_bandwidth_bytes_per_s = 1e9;
  slow.compute_efficiency = slow.memory_efficiency = 1;
  auto fast = slow;
  fast.name = "compute";
  fast.peak_flops_per_s[DType::float32] = 4e9;
  fast.memory_bandwidth_bytes_per_s = 0.25e9;
  spec.device_types.push_back(fast);
  for (int d = of_first; d < of_first + of_second; ++d) spec.devices[d].type = 1;
  return spec;
}

int roofline_op(GraphBuilder& builder, int number, double flops, double traffic_bytes) {
  return builder.add_operator({.name = "op" + std::to_string(number), .type = "Work",
                               .flops = flops, .traffic_bytes = traffic_bytes});
}

/// a (100 bytes out), a view of its output, and b (7 bytes of workspace, 30 out) that reads both.
std::shared_ptr<const Graph> viewed_twice(int64_t fixed_a, int64_t fixed_b) {
  GraphBuilder builder("viewed");
  const int a = builder.add_operator(
      {.name = "a", .type = "Work", .measured_time_s = 1e-6, .extra_parameter_bytes = fixed_a});
  const int data = builder.add_output(a, {.bytes = 100});
  const int view = builder.add_operator(
      {.name = "view", .type = "Reshape", .inputs = {data}, .measured_time_s = 0});
  const int same = builder.add_output(view, {.bytes = 100});
  const int b = builder.add_operator({.name = "b", .type = "Work", .inputs = {data, same},
                                      .measured_time_s = 1e-6, .extra_parameter_bytes = fixed_b,
                                      .workspace_bytes = 7});
  builder.add_output(b, {.bytes = 30});
  return std::make_shared<const Graph>(builder.build());
}

/// The bound by its definition: the least T at least `known` such that no interval between whole
/// nanoseconds is asked for more than it has. Equal devices.
int64_t naive_interval_bound(const Problem& problem, int64_t known) {
  const int32_t n = problem.operators();
  std::vector<int64_t> earliest(static_cast<size_t>(n), 0);
  for (int32_t o = 0; o < n; ++o)
    for (const auto& reader : problem.readers(o)) {
      auto& start = earliest[reader.op];
      start = std::max(start, earliest[o] + problem.cost_ns(0, o));
    }
  const auto overlap = [](int64_t start, int64_t cost, int64_t a, int64_t b) {
    return std::max<int64_t>(0, std::min(start + cost, b) - std::max(start, a));
  };
  const auto feasible = [&](int64_t t) {
    for (int64_t a = 0; a < t; ++a)
      for (int64_t b = a + 1; b <= t; ++b) {
        int64_t demand = 0;
        for (int32_t o = 0; o < n; ++o) {
          const int64_t cost = problem.cost_ns(0, o);
          const int64_t latest = t - problem.tail_ns(o) - cost;
          demand += std::min(overlap(earliest[o], cost, a, b), overlap(latest, cost, a, b));
        }
        if (demand > (b - a) * problem.devices()) return false;
      }
    return true;
  };
  while (!feasible(known)) ++known;
  return known;
}

/// Two members that reduce random tensors, and one that reads both results.
void add_collective(GraphBuilder& builder, RandomStream& random, const std::vector<int>& outputs) {
  Collective reduce;
  reduce.name = "reduce";
  reduce.bytes = 5000;
  Operator op;
  op.type = "AllReduce";
  op.phase = Phase::update;
  op.workspace_bytes = 90000;  // of no slot, as it occupies no device
  std::vector<int> reduced;
  for (const char* name : {"member0", "member1"}) {
    op.name = name;
    reduce.members.push_back(builder.add_operator(op));
    const int read = outputs[random.below(outputs.size())];
    builder.read(reduce.members.back(), read);
    Tensor tensor;
    tensor.bytes = random.below(2) ? builder.tensor(read).bytes : 20000;
    reduced.push_back(builder.add_output(reduce.members.back(), tensor));
  }
  op.name = "after";
  op.workspace_bytes = 0;
  op.measured_time_s = 3000 * kNs;
  const int after = builder.add_operator(op);
  for (const int tensor : reduced) builder.read(after, tensor);
  builder.add_collective(reduce);
}

/// Small operators of all kinds: measured and roofline, free, views, units, workspaces, updates.
std::shared_ptr<const Graph> random_small_graph(RandomStream& random) {
  GraphBuilder builder("small");
  const auto count = static_cast<int>(2 + random.below(5));
  std::vector<int> outputs;
  for (int i = 0; i < count; ++i) {
    Operator op;
    op.name = "op" + std::to_string(i);
    const bool view = !outputs.empty() && random.below(6) == 0;
    op.type = view ? "Reshape" : random.below(4) ? "Work" : "Relu";
    if (random.below(2)) {
      op.measured_time_s = static_cast<double>(random.below(20000)) * kNs;
    } else {
      op.flops = static_cast<double>(random.below(20000));
      op.traffic_bytes = static_cast<double>(random.below(20000));
    }
    op.extra_parameter_bytes = static_cast<int64_t>(random.below(20000));
    op.workspace_bytes = random.below(4) ? 0 : static_cast<int64_t>(random.below(20000));
    if (i == count - 1 && random.below(2)) op.phase = Phase::update;
    const int number = builder.add_operator(op);
    const auto reads = outputs.empty() ? 0 : view ? 1 : random.below(3);
    for (uint64_t r = 0; r < reads; ++r)
      builder.read(number, outputs[random.below(outputs.size())]);
    for (uint64_t t = 0; op.phase != Phase::update && t < 1 + random.below(2); ++t) {
      Tensor tensor;
      tensor.bytes = static_cast<int64_t>(random.below(30000));
      outputs.push_back(builder.add_output(number, tensor));
    }
    if (i > 0 && random.below(5) == 0) builder.colocate(number, number - 1);
  }
  if (random.below(3) == 0) add_collective(builder, random, outputs);
  return std::make_shared<const Graph>(builder.build());
}

struct Best {
  int64_t step_time_ns = std::numeric_limits<int64_t>::max();
  int64_t peak_memory_bytes = std::numeric_limits<int64_t>::max();
};

/// The least step and the least peak over all placements of the units.
Best best_of_all(const Problem& problem, const Schedule& schedule) {
  Simulator simulator(problem);
  const auto& graph = problem.graph();
  std::vector<int32_t> unit_device(static_cast<size_t>(graph.unit_count()), 0);
  std::vector<int32_t> placement(static_cast<size_t>(problem.operators()));
  Metrics metrics;
  Best best;
  for (;;) {
    for (size_t o = 0; o < placement.size(); ++o) placement[o] = unit_device[graph.units()[o]];
    simulator.run(Plan{placement, &schedule}, metrics);
    best.step_time_ns = std::min(best.step_time_ns, metrics.step_time_ns);
    best.peak_memory_bytes = std::min(best.peak_memory_bytes, metrics.peak_memory_bytes);
    size_t u = 0;
    while (u < unit_device.size() && ++unit_device[u] == problem.devices()) unit_device[u++] = 0;
    if (u == unit_device.size()) return best;
  }
}

ClusterSpec random_small_cluster(RandomStream& random) {
  const auto devices = static_cast<int>(2 + random.below(2));
  auto spec = random.below(2) ? two_types(1, devices - 1)
                              : test::uniform_spec(devices, 1e9, 1e-6 * double(random.below(3)));
  for (auto& device : spec.devices) device.speed = random.below(2) ? 1 : 0.5;
  spec.queue = test::kQueues[random.below(5)];
  return spec;
}

}  // namespace

TEST_CASE("a chain: the path, and half of it as work on two devices") {
  test::GraphMaker make("chain");
  const int a = make.op("a", 3 * kNs), b = make.op("b", 4 * kNs), c = make.op("c", 6 * kNs);
  make.edge(a, b, 10);
  make.edge(b, c, 10);
  const auto bounds = lower_bounds(test::make_problem(make.share(), test::uniform_spec(2, 1e9, 0)));
  CHECK(bounds.critical_path_ns == 13);
  CHECK(bounds.work_ns == 7);
  CHECK(bounds.interval_ns == 13);
  CHECK(bounds.step_time_ns == 13);
}

TEST_CASE("the interval between the first and the last operator beats path and work") {
  const auto problem = test::make_problem(spindle(4, 10), test::uniform_spec(2, 1e9, 0));
  const auto bounds = lower_bounds(problem);
  CHECK(bounds.critical_path_ns == 30);
  CHECK(bounds.work_ns == 30);
  CHECK(bounds.interval_ns == 40);  // 10, then 40 of work on two devices, then 10
  CHECK(bounds.step_time_ns == 40);
  CHECK(lower_bounds(test::make_problem(spindle(4, 10), test::uniform_spec(1, 1e9, 0)))
            .step_time_ns == 60);
  CHECK(lower_bounds(test::make_problem(spindle(4, 10), test::uniform_spec(4, 1e9, 0)))
            .step_time_ns == 30);
}

TEST_CASE("work rounds up, and counts every micro-batch but updates once") {
  test::GraphMaker three("three");
  for (const char* name : {"a", "b", "c"}) three.op(name, 5 * kNs);
  CHECK(lower_bounds(test::make_problem(three.share(), test::uniform_spec(2, 1e9, 0))).work_ns ==
        8);

  test::GraphMaker update("update");
  update.op("gradient", 10 * kNs);
  update.op_of(Phase::update, "update", 5 * kNs);
  update.edge(0, 1, 0);
  const auto problem = test::make_problem(update.share(), test::uniform_spec(1, 1e9, 0));
  const auto bounds = lower_bounds(problem, 4);
  CHECK(bounds.critical_path_ns == 15);
  CHECK(bounds.work_ns == 45);
  CHECK(bounds.step_time_ns == 45);
  CHECK(lower_bounds(problem).step_time_ns == 15);
  CHECK_THROWS_AS(lower_bounds(problem, 0), ArgumentError);
}

TEST_CASE("devices of one type at two speeds share work by speed, exactly") {
  auto spec = test::uniform_spec(3, 1e9, 0);
  spec.devices[2].speed = 0.5;
  test::GraphMaker make("independent");
  for (int i = 0; i < 100; ++i) make.op("op" + std::to_string(i), 1e-6);
  const auto bounds = lower_bounds(test::make_problem(make.share(), spec));
  CHECK(bounds.critical_path_ns == 1000);
  CHECK(bounds.work_ns == 40000);  // 100 us at 1 + 1 + 1/2
  CHECK(bounds.interval_ns == 40000);
}

TEST_CASE("devices of two types: the linear program's optimum") {
  GraphBuilder builder("types");
  // 4000 and 1000 ns on the two types, three times; then 1000 and 4000 ns, once
  for (int i = 0; i < 3; ++i) roofline_op(builder, i, 4000, 0);
  roofline_op(builder, 3, 0, 1000);
  const auto graph = std::make_shared<const Graph>(builder.build());
  const auto problem = test::make_problem(graph, two_types(1, 1));
  REQUIRE(problem.cost_ns(0, 0) == 4000);
  REQUIRE(problem.cost_ns(1, 0) == 1000);
  REQUIRE(problem.cost_ns(0, 3) == 1000);
  REQUIRE(problem.cost_ns(1, 3) == 4000);
  // 2600 of the 3000 ns stay on the second device; the rest takes 1600 ns on the first.
  CHECK(lower_bounds(problem).work_ns == 2600);
  CHECK(lower_bounds(problem).critical_path_ns == 1000);
}

TEST_CASE("one operator a device, a slow and a fast one, is no violation") {
  // Two operators of 10 ns on devices of 10 and 12 ns: both run at once and end at 12. Demand in
  // [4, 6] must be weighted by device, not taken from the fast one's overlap.
  auto spec = test::uniform_spec(2, 1e9, 0);
  spec.devices[1].speed = 10.0 / 12;
  test::GraphMaker make("pair");
  make.op("a", 10 * kNs);
  make.op("b", 10 * kNs);
  const auto problem = test::make_problem(make.share(), spec);
  REQUIRE(problem.cost_ns(1, 0) == 12);
  CHECK(lower_bounds(problem).step_time_ns <= 12);
}

TEST_CASE("the interval bound never exceeds the naive one, and seldom misses it") {
  int equal = 0, better = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    RandomStream random(test::law_seed(), "interval", i);
    test::GraphMaker make("small");
    std::vector<int> outputs;
    for (int o = 0; o < 9; ++o) {
      const int op = make.op("op" + std::to_string(o), static_cast<double>(random.below(9)) * kNs);
      if (o > 0) make.read(op, outputs[random.below(3) ? 0 : random.below(outputs.size())]);
      for (int r = 1; r < o && o == 8; ++r) make.read(op, outputs[r]);
      outputs.push_back(make.output(op, 8));
    }
    const auto problem =
        test::make_problem(make.share(), test::uniform_spec(2 + int(i % 2), 1e9, 0));
    const auto bounds = lower_bounds(problem);
    const int64_t known = std::max(bounds.critical_path_ns, bounds.work_ns);
    const int64_t naive = naive_interval_bound(problem, known);
    CHECK(bounds.interval_ns <= naive);
    CHECK(bounds.interval_ns >= known);
    equal += bounds.interval_ns == naive;
    better += naive > known;
  }
  CHECK(better > 25);
  CHECK(equal >= 50);
}

TEST_CASE("memory: fixed bytes spread, one operator's needs, views for nothing") {
  const auto graph = viewed_twice(1000, 500);
  const auto bound_at = [&](int64_t memory_bytes) {
    return lower_bounds(test::make_problem(graph, test::uniform_spec(4, 1e9, 0, memory_bytes)));
  };
  CHECK(bound_at(600).peak_memory_bytes == 1100);  // a: 1000 fixed, 100 out
  CHECK(bound_at(600).least_devices == 3);
  CHECK(bound_at(300).least_devices == 5);  // more than there are
  CHECK(bound_at(1500).least_devices == 1);

  const auto cluster = test::uniform_cluster(4, 1e9, 0);
  auto rules = SimulationRules::standard(*cluster);
  rules.memory = MemoryModel::none;
  CHECK(lower_bounds(Problem(graph, cluster, rules)).peak_memory_bytes == 0);
  rules.memory = MemoryModel::outputs_only;
  CHECK(lower_bounds(Problem(graph, cluster, rules)).peak_memory_bytes == 100);
}

TEST_CASE("two inputs that are views of one tensor count once") {
  const auto problem = test::make_problem(viewed_twice(0, 0), test::uniform_spec(1, 1e9, 0));
  const std::vector<int32_t> placement(3, 0);
  const auto metrics = test::metrics_of(problem, {placement});
  CHECK(lower_bounds(problem).peak_memory_bytes == 137);  // b: 100 in, 30 out, 7 workspace
  CHECK(metrics.peak_memory_bytes == 137);
}

TEST_CASE("no placement beats the bounds") {
  int tight_steps = 0, tight_peaks = 0;
  for (uint64_t i = 0; i < test::draws(480); ++i) {
    CAPTURE(i);
    RandomStream random(test::law_seed(), "bounds", i);
    const auto graph = random_small_graph(random);
    const auto cluster = std::make_shared<const Cluster>(random_small_cluster(random));
    auto rules = SimulationRules::standard(*cluster);
    if (i % 8 == 7 && graph->collectives().empty()) rules.memory = MemoryModel::outputs_only;
    const Problem problem(graph, cluster, rules);
    Schedule schedule;
    if (i % 8 != 7 && i % 3 == 2) schedule.micro_batches = 2;
    if (i % 8 != 7 && i % 5 == 4) schedule.dispatch = DispatchRule::lifo;
    const auto bounds = lower_bounds(problem, schedule.micro_batches);
    const auto best = best_of_all(problem, schedule);
    CHECK(bounds.step_time_ns <= best.step_time_ns);
    CHECK(bounds.peak_memory_bytes <= best.peak_memory_bytes);
    CHECK(bounds.critical_path_ns <= bounds.step_time_ns);
    CHECK(bounds.work_ns <= bounds.interval_ns);
    CHECK(bounds.least_devices == 1);
    tight_steps += bounds.step_time_ns == best.step_time_ns;
    tight_peaks += bounds.peak_memory_bytes == best.peak_memory_bytes;
  }
  CHECK(tight_steps > test::least(40));
  CHECK(tight_peaks > test::least(40));
}

namespace {

/// A training step of layers in a row, some with a side branch; some are views.
std::shared_ptr<const Graph> random_training_step(RandomStream& random, int layers) {
  GraphBuilder builder("layers");
  const auto add = [&](const std::string& name, bool view, std::vector<int> reads, int64_t bytes) {
    Operator op;
    op.name = name;
    op.type = view ? "Reshape" : random.below(3) ? "Work" : "Relu";
    op.measured_time_s = view ? 0 : static_cast<double>(random.below(4) * 1000) * kNs;
    op.measured_backward_time_s = op.measured_time_s;
    if (!view && random.below(2)) op.extra_parameter_bytes = int64_t(random.below(3000));
    if (random.below(5) == 0) op.workspace_bytes = int64_t(random.below(3000));
    const int number = builder.add_operator(op);
    for (const int tensor : reads) builder.read(number, tensor);
    Tensor tensor;
    tensor.bytes = view ? builder.tensor(reads[0]).bytes : bytes;
    return builder.add_output(number, tensor);
  };
  int last = add("data", false, {}, 500);
  for (int i = 0; i < layers; ++i) {
    const auto name = "layer" + std::to_string(i);
    const auto bytes = static_cast<int64_t>(random.below(10000));
    const int before = last;
    last = add(name, i > 0 && random.below(4) == 0, {before}, bytes);
    if (random.below(4) == 0)
      last = add(name + "/join", false, {last, add(name + "/side", false, {before}, bytes)}, bytes);
  }
  const auto forward = builder.build();
  TrainingOptions options;
  if (random.below(2)) options.colocate = TrainingOptions::Colocate::parameters;
  return std::make_shared<const Graph>(lower_to_training(forward, options));
}

}  // namespace

TEST_CASE("memory: what backward reads of forward exists when it turns") {
  test::GraphMaker make("turn");
  // Three layers keep 1000, 2000 and 4000 bytes for their gradients; 10 between neighbours.
  std::vector<int> forward, backward;
  for (int i = 0; i < 3; ++i) {
    forward.push_back(make.op("f" + std::to_string(i), 1e-6, 300));
    if (i > 0) make.edge(forward[size_t(i) - 1], forward[size_t(i)], 10);
  }
  const int loss = make.op("loss", 1e-6);
  make.edge(forward[2], loss, 10);
  for (int i = 2, before = loss; i >= 0; --i) {
    backward.push_back(make.op("b" + std::to_string(i), 1e-6));
    make.edge(before, backward.back(), 10);
    make.edge(forward[size_t(i)], backward.back(), int64_t{1000} << i);
    before = backward.back();
  }
  const auto graph = make.share();
  const auto bound_on = [&](int devices, int32_t micro_batches, bool stream) {
    return peak_memory_bound(test::make_problem(graph, test::uniform_spec(devices, 1e9, 0)),
                             micro_batches, stream);
  };
  // 900 fixed, 7000 kept, what the loss reads and writes; alone, the last layer needs most.
  CHECK(bound_on(1, 1, false) == 7920);
  CHECK(bound_on(1, 4, false) == 7920);
  CHECK(bound_on(1, 4, true) == 7920);
  CHECK(bound_on(2, 1, false) == 300 + 10 + 10 + 4000);
  const Problem problem = test::make_problem(graph, test::uniform_spec(1, 1e9, 0));
  const auto metrics = test::metrics_of(problem, {std::vector<int32_t>(7, 0)});
  CHECK(metrics.peak_memory_bytes == 7920);
}

TEST_CASE("no plan's fullest device of a training step holds less than the bound") {
  for (uint64_t i = 0; i < test::draws(2000); ++i) {
    CAPTURE(i);
    RandomStream random(test::law_seed(), "steps", i);
    const auto graph = random_training_step(random, 2 + int(random.below(9)));
    auto spec = test::random_cluster(random, 1 + int(random.below(4)));
    spec.queue = i % 7 == 6 ? QueueModel::receiver : test::kQueues[i % 5];
    const auto problem = test::make_problem(graph, spec);
    const auto placement = test::random_placement(random, *graph, problem.devices());
    Schedule schedule;
    schedule.dispatch = test::kDispatchRules[i % 2];
    schedule.micro_batches = 1 + int32_t(i % 3);
    const auto metrics = test::metrics_of(problem, {placement, &schedule});
    CHECK(peak_memory_bound(problem, schedule.micro_batches, false) <= metrics.peak_memory_bytes);
  }
}

TEST_CASE("the least peak of all placements of training steps is near the bound") {
  double ratios = 0;
  for (uint64_t i = 0; i < 40; ++i) {
    CAPTURE(i);
    RandomStream random(test::law_seed(), "optima", i);
    const auto graph = random_training_step(random, 3 + int(random.below(3)));
    if (graph->unit_count() > 12) continue;
    const auto problem = test::make_problem(graph, test::uniform_spec(2, 1e9, 1e-6));
    const auto best = best_of_all(problem, Schedule{});
    const auto bound = lower_bounds(problem).peak_memory_bytes;
    CHECK(bound <= best.peak_memory_bytes);
    ratios += double(best.peak_memory_bytes) / double(bound) - 1;
  }
  CHECK(ratios / 40 < 0.2);
}
