// Results that must not change, or change in a known way, when a problem is changed.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "simulator/sweep_engine.h"
#include "support/cases.h"
#include "support/rebuild.h"
#include "support/tier.h"

using namespace trinity;

namespace {

using test::kDispatchRules;
using test::kQueues;

test::Ran run(const Problem& problem, std::span<const int32_t> placement,
              const Schedule& schedule) {
  return test::simulate(problem, {placement, &schedule});
}

int64_t step(const Problem& problem, const test::Case& c) {
  return test::metrics_of(problem, c.plan()).step_time_ns;
}

/// Case `index`, whose queue model, rule and micro-batches take turns.
test::Case random_case(uint64_t index, int queues, bool collectives) {
  return test::random_case(index, {.queue = kQueues[index % static_cast<uint64_t>(queues)],
                                   .dispatch = kDispatchRules[index / 5 % 3],
                                   .most_micro_batches = index % 2 ? 3 : 1,
                                   .collectives = collectives && index % 4 == 0});
}

/// A collective that takes no time and that nothing waits for sends a plan to the event loop.
void add_idle_collective(GraphBuilder& builder) {
  Operator op;
  op.type = "AllReduce";
  std::vector<int32_t> members;
  for (const char* name : {"idle0", "idle1"}) {
    op.name = name;
    members.push_back(builder.add_operator(op));
  }
  builder.add_collective({"idle", CollectiveKind::all_reduce, {}, 1000, members});
}

/// Both problems give the same for the plan of a case.
void check_unchanged(const Problem& before, const Problem& after, const test::Case& c) {
  const auto expected = run(before, c.placement, c.schedule);
  const auto found = run(after, c.placement, c.schedule);
  CHECK(found.metrics == expected.metrics);
  CHECK(test::equal(found.timeline, expected.timeline));
}

/// The other problem's results equal `plain`'s, whatever operators it has beyond.
void check_same(const test::Ran& plain, test::Ran other) {
  CHECK(other.metrics == plain.metrics);
  auto& timeline = other.timeline;
  timeline.collectives.clear();
  const auto runs = static_cast<size_t>(timeline.micro_batches);
  const size_t n = plain.timeline.end_ns.size() / runs, all = timeline.end_ns.size() / runs;
  const auto keep = [&](auto& values) {  // of every micro-batch the first n of all
    for (size_t t = 0; t < n * runs; ++t) values[t] = values[t / n * all + t % n];
    values.resize(n * runs);
  };
  for (auto* times : {&timeline.ready_ns, &timeline.start_ns, &timeline.end_ns}) keep(*times);
  keep(timeline.device);
  for (auto& sent : timeline.transfers) {
    const auto task = static_cast<size_t>(sent.task);
    sent.task = static_cast<int32_t>(task / all * n + task % all);
  }
  CHECK(test::equal(timeline, plain.timeline));
}

}  // namespace

constexpr DispatchRule kRules[] = {DispatchRule::fifo, DispatchRule::lifo, DispatchRule::priority,
                                   DispatchRule::order};

/// The schedule of a placement by one rule; an order is one that lifo gave.
Schedule schedule_by(DispatchRule rule, std::span<const int32_t> placement,
                     const Problem& problem) {
  Schedule schedule;
  schedule.dispatch = rule;
  RandomStream random(1, "priority", static_cast<uint64_t>(problem.operators()));
  if (rule == DispatchRule::priority)
    for (int32_t o = 0; o < problem.operators(); ++o)
      schedule.priority.push_back(static_cast<int64_t>(random.below(5)));
  if (rule != DispatchRule::order) return schedule;
  schedule.dispatch = DispatchRule::lifo;
  return test::order_of(problem, run(problem, placement, schedule).timeline);
}

/// A plan that the sweep takes gives the same results in the event loop.
void check_sweep(const Problem& plain, const ClusterSpec& spec, std::vector<int32_t> placement,
                 Schedule schedule) {
  const auto slow = test::changed(plain, spec, add_idle_collective);
  REQUIRE(SweepEngine::takes(plain, &schedule));
  REQUIRE_FALSE(SweepEngine::takes(slow, &schedule));
  const auto swept = run(plain, placement, schedule);
  placement.insert(placement.end(), 2, placement[0]);
  if (!schedule.priority.empty()) schedule.priority.resize(placement.size());
  check_same(swept, run(slow, placement, schedule));
}

TEST_CASE("the sweep equals the event loop by every rule, with pauses and micro-batches too") {
  for (uint64_t i = 0; i < test::draws(6000); ++i) {
    CAPTURE(i);
    const auto c = test::random_case(i, {.queue = kQueues[i % 5],
                                         .most_operators = i % 20 ? 40 : 200,
                                         .most_devices = i % 7 ? 4 : 12});
    auto rules = c.problem->rules();
    const bool shared = rules.queue == QueueModel::route || rules.queue == QueueModel::fair;
    rules.device_dead_ns = i / 5 % 2 ? 5700 : 0;
    rules.link_dead_ns = !shared && i / 10 % 2 ? 25000 : 0;
    rules.dead_after_free = i / 20 % 2;
    const Problem plain(std::make_shared<const Graph>(c.problem->graph()),
                        std::make_shared<const Cluster>(c.spec), rules);
    auto schedule = schedule_by(kRules[i % 4], c.placement, plain);
    if (i % 4 != 3) schedule.micro_batches = 1 + static_cast<int32_t>(i % 11 % 7);
    check_sweep(plain, c.spec, c.placement, schedule);
  }
}

TEST_CASE("the sweep equals the event loop when hundreds are ready at once") {
  for (uint64_t i = 0; i < test::draws(100); ++i) {
    CAPTURE(i);
    RandomStream random(test::law_seed(), "wide", i);
    test::GraphMaker make("wide");
    for (int o = 0; o < 800; ++o) {  // that read any earlier ones
      make.op("op" + std::to_string(o), 1e-9 * static_cast<double>(random.below(3000)));
      make.output(o, static_cast<int64_t>(random.below(10000)));
      for (uint64_t reads = o < 5 ? 0 : 1 + random.below(2); reads > 0; --reads)
        make.read(o, static_cast<int>(random.below(static_cast<uint64_t>(o))));
    }
    auto spec = test::uniform_spec(1 + static_cast<int>(i / 5 % 5), 5e9, i % 2 ? 0 : 1e-6);
    spec.queue = kQueues[i % 5];
    const auto plain = test::make_problem(make.share(), spec);
    const auto placement = test::random_placement(random, plain.graph(), plain.devices());
    auto schedule = schedule_by(kRules[i / 5 % 4], placement, plain);
    if (schedule.dispatch != DispatchRule::order) schedule.micro_batches = i / 20 % 2 ? 3 : 1;
    check_sweep(plain, spec, placement, schedule);
  }
}

TEST_CASE("in a fixed order faster is never slower") {
  for (uint64_t i = 0; i < test::draws(300); ++i) {
    CAPTURE(i);
    auto c = random_case(i, 3, false);
    c.schedule = test::order_of(*c.problem, run(*c.problem, c.placement, c.schedule).timeline);
    const int64_t before = step(*c.problem, c);
    const auto after = [&](auto change) {
      auto spec = c.spec;
      change(spec);
      return step(test::changed(*c.problem, spec, [](GraphBuilder&) {}), c);
    };
    CHECK(after([](ClusterSpec&) {}) == before);
    RandomStream random(test::law_seed(), "faster", i);
    const auto d = random.below(c.spec.devices.size()), l = random.below(c.spec.links.size());
    for (const double factor : {1.1, 2.0, 50.0}) {
      CAPTURE(factor);
      CHECK(after([=](ClusterSpec& s) { s.devices[d].speed *= factor; }) <= before);
      CHECK(after([=](ClusterSpec& s) { s.devices[d].speed /= factor; }) >= before);
      CHECK(after([=](ClusterSpec& s) { s.links[l].bandwidth_bytes_per_s *= factor; }) <= before);
      CHECK(after([=](ClusterSpec& s) { s.links[l].bandwidth_bytes_per_s /= factor; }) >= before);
      CHECK(after([=](ClusterSpec& s) { s.links[l].latency_s /= factor; }) <= before);
      CHECK(after([=](ClusterSpec& s) { s.links[l].latency_s *= factor; }) >= before);
    }
  }
}

TEST_CASE("relabelling equal devices permutes their metrics and changes nothing else") {
  for (uint64_t i = 0; i < test::draws(200); ++i) {
    CAPTURE(i);
    auto c = random_case(i, 4, false);  // fair shares break ties by the channels' numbers
    const int devices = c.problem->devices();
    const auto problem =
        test::changed(*c.problem, test::uniform_spec(devices, 3e9, 2e-6), [](GraphBuilder&) {});
    std::vector<int32_t> label(static_cast<size_t>(devices));
    std::iota(label.begin(), label.end(), 0);
    RandomStream random(test::law_seed(), "labels", i);
    for (size_t d = label.size(); d > 1; --d) std::swap(label[d - 1], label[random.below(d)]);
    const auto before = run(problem, c.placement, c.schedule);
    for (int32_t& device : c.placement) device = label[device];
    auto after = run(problem, c.placement, c.schedule);
    CHECK(after.timeline.start_ns == before.timeline.start_ns);
    CHECK(after.timeline.end_ns == before.timeline.end_ns);
    auto permuted = before.metrics;
    for (size_t d = 0; d < label.size(); ++d)
      permuted.devices[label[d]] = before.metrics.devices[d];
    CHECK(after.metrics == permuted);
  }
}

TEST_CASE("names change nothing") {
  for (uint64_t i = 0; i < 60; ++i) {
    CAPTURE(i);
    const auto c = random_case(i, 5, true);
    const auto other = test::changed(*c.problem, c.spec, [](GraphBuilder& builder) {
      for (int32_t op = 0; op < builder.operator_count(); ++op)
        builder.op(op).name = "renamed" + std::to_string(builder.operator_count() - op);
    });
    REQUIRE(other.graph().fingerprint() != c.problem->graph().fingerprint());
    check_unchanged(*c.problem, other, c);
  }
}

namespace {

/// The graph with its operators in one forced order, so that every order of addition gives it.
Graph forced(const Graph& graph) {
  auto builder = test::builder_of(graph);
  for (int32_t op = 1; op < builder.operator_count(); ++op)
    builder.read(op, builder.add_output(op - 1, Tensor{}));
  return builder.build();
}

/// The same graph, added in another order.
Graph shuffled(const Graph& graph, RandomStream& random) {
  const auto n = static_cast<size_t>(graph.operator_count());
  std::vector<int32_t> order(n), op_of(n), tensor_of(graph.tensors().size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  GraphBuilder builder(graph.name());
  for (const int32_t op : order) {
    auto bare = graph.op(op);
    bare.inputs.clear();
    op_of[op] = builder.add_operator(std::move(bare));
  }
  std::reverse(order.begin(), order.end());
  for (const int32_t op : order)
    for (const int32_t tensor : graph.op(op).outputs)
      tensor_of[tensor] = builder.add_output(op_of[op], graph.tensor(tensor));
  for (const int32_t op : order)
    for (const int32_t input : graph.op(op).inputs) builder.read(op_of[op], tensor_of[input]);
  return builder.build();
}

}  // namespace

TEST_CASE("the order in which operators and tensors are added changes nothing") {
  for (uint64_t i = 0; i < 60; ++i) {
    CAPTURE(i);
    const auto c = random_case(i, 5, false);
    RandomStream random(test::law_seed(), "shuffle", i);
    const auto graph = std::make_shared<const Graph>(forced(c.problem->graph()));
    const auto other = std::make_shared<const Graph>(shuffled(*graph, random));
    CHECK(other->fingerprint() == graph->fingerprint());
    const auto cluster = std::make_shared<const Cluster>(c.spec);
    const auto& rules = c.problem->rules();
    check_unchanged({graph, cluster, rules}, {other, cluster, rules}, c);
  }
}

TEST_CASE("a second read of a tensor by the same operator changes nothing") {
  for (uint64_t i = 0; i < test::draws(150); ++i) {
    CAPTURE(i);
    const auto c = random_case(i, 5, false);
    const auto other = test::changed(*c.problem, c.spec, [](GraphBuilder& builder) {
      for (int32_t op = 0; op < builder.operator_count(); ++op)
        for (const int32_t input : TensorNumbers(builder.op(op).inputs))
          builder.read(op, input);
    });
    check_unchanged(*c.problem, other, c);
  }
}

namespace {

/// A description whose times come out in whole nanoseconds, everything `k` times as slow.
ClusterSpec whole_spec(uint64_t shape, int devices, double k) {
  auto spec = shape % 2
                  ? test::node_spec(2, (devices + 1) / 2, 1e9 / k, 5e8 / k, 2e-6 * k, 6e-6 * k)
                  : test::uniform_spec(devices, 1e9 / k, 4e-6 * k);
  for (size_t d = 0; d < spec.devices.size(); d += 2) spec.devices[d].speed = 0.5;
  return spec;
}

}  // namespace

TEST_CASE("everything k times as slow takes k times as long") {
  for (uint64_t i = 0; i < test::draws(160); ++i) {
    CAPTURE(i);
    const auto c = random_case(i, 4, false);  // fair shares are rounded
    const int devices = c.problem->devices();
    auto rules = c.problem->rules();
    const Problem one(std::make_shared<const Graph>(c.problem->graph()),
                      std::make_shared<const Cluster>(whole_spec(i, devices, 1)), rules);
    const auto before = run(one, c.placement, c.schedule).metrics;
    for (const int k : {2, 3, 10}) {
      CAPTURE(k);
      auto builder = test::builder_of(c.problem->graph());
      for (int32_t op = 0; op < builder.operator_count(); ++op)
        if (builder.op(op).measured()) builder.op(op).measured_time_s *= k;
      auto slower = rules;
      slower.device_dead_ns *= k;
      slower.link_dead_ns *= k;
      const Problem scaled(std::make_shared<const Graph>(builder.build()),
                           std::make_shared<const Cluster>(whole_spec(i, devices, k)), slower);
      auto expected = before;
      expected.step_time_ns *= k;
      for (auto& device : expected.devices) {
        device.compute_busy_ns *= k;
        device.send_busy_ns *= k;
      }
      CHECK(run(scaled, c.placement, c.schedule).metrics == expected);
    }
  }
}

namespace {

/// Every operator as two halves, one after the other: operator o becomes 2 o and 2 o + 1.
std::shared_ptr<const Graph> halved(const Graph& graph, RandomStream& random) {
  GraphBuilder builder(graph.name());
  std::vector<int32_t> tensor_of;
  for (const auto& op : graph.operators()) {
    Operator half;
    half.phase = op.phase;
    half.type = "Work";
    const auto cost = std::llround(std::max(0.0, op.measured_time_s) * 1e9);
    const auto first = static_cast<int64_t>(random.below(static_cast<uint64_t>(cost) + 1));
    half.name = op.name + "/first";
    half.measured_time_s = static_cast<double>(first) * 1e-9;
    const int32_t a = builder.add_operator(half);
    half.name = op.name + "/second";
    half.measured_time_s = static_cast<double>(cost - first) * 1e-9;
    const int32_t b = builder.add_operator(half);
    builder.read(b, builder.add_output(a, Tensor{}));
    for (const int32_t input : op.inputs) builder.read(a, tensor_of[input]);
    for (const int32_t output : op.outputs)
      tensor_of.push_back(builder.add_output(b, graph.tensor(output)));
  }
  return std::make_shared<const Graph>(builder.build());
}

/// A sequence with both halves wherever an operator was.
Schedule halved(const Schedule& schedule) {
  auto result = schedule;
  result.order.clear();
  for (const int32_t task : schedule.order)
    result.order.insert(result.order.end(), {2 * task, 2 * task + 1});
  for (int32_t& first : result.order_first) first *= 2;
  return result;
}

}  // namespace

TEST_CASE("two halves one after the other are as good as the whole") {
  for (uint64_t i = 0; i < test::draws(150); ++i) {
    CAPTURE(i);
    auto c = random_case(i, 5, false);
    const auto spec = whole_spec(0, c.problem->devices(), 1);
    auto rules = c.problem->rules();
    rules.device_dead_ns = 0;
    const auto cluster = std::make_shared<const Cluster>(spec);
    const Problem whole(std::make_shared<const Graph>(c.problem->graph()), cluster, rules);
    c.schedule = test::order_of(whole, run(whole, c.placement, c.schedule).timeline);
    const auto before = run(whole, c.placement, c.schedule);
    RandomStream random(test::law_seed(), "halves", i);
    const Problem halves(halved(whole.graph(), random), cluster, rules);
    std::vector<int32_t> placement;
    for (const int32_t device : c.placement) placement.insert(placement.end(), 2, device);
    const auto after = run(halves, placement, halved(c.schedule));
    CHECK(after.metrics.step_time_ns == before.metrics.step_time_ns);
    CHECK(after.metrics.transfers == before.metrics.transfers);
    for (size_t t = 0; t < before.timeline.end_ns.size(); ++t) {
      CHECK(after.timeline.start_ns[2 * t] == before.timeline.start_ns[t]);
      CHECK(after.timeline.end_ns[2 * t + 1] == before.timeline.end_ns[t]);
    }
  }
}

namespace {

/// Both graphs in one, the second one's operators after the first one's.
std::shared_ptr<const Graph> together(const Graph& a, const Graph& b) {
  auto builder = test::builder_of(a);
  const int32_t operators = builder.operator_count(), tensors = builder.tensor_count();
  for (auto op : b.operators()) {
    op.name = "other/" + op.name;
    op.inputs.clear();
    builder.add_operator(std::move(op));
  }
  for (const auto& tensor : b.tensors()) builder.add_output(operators + tensor.producer, tensor);
  for (int32_t op = 0; op < b.operator_count(); ++op)
    for (const int32_t input : b.op(op).inputs) builder.read(operators + op, tensors + input);
  for (auto collective : b.collectives()) {
    collective.name = "other/" + collective.name;
    for (int32_t& member : collective.members) member += operators;
    builder.add_collective(collective);
  }
  return std::make_shared<const Graph>(builder.build());
}

/// A schedule for `operators` operators, with priorities that do not depend on their number.
Schedule schedule_for(int32_t operators, DispatchRule rule, int32_t micro_batches) {
  Schedule schedule;
  schedule.dispatch = rule;
  schedule.micro_batches = micro_batches;
  if (rule == DispatchRule::priority) schedule.priority.assign(static_cast<size_t>(operators), 1);
  return schedule;
}

}  // namespace

TEST_CASE("two graphs on devices of their own do not notice each other") {
  for (uint64_t i = 0; i < test::draws(150); ++i) {
    CAPTURE(i);
    RandomStream random(test::law_seed(), "disjoint", i);
    auto spec = test::uniform_spec(6, 2e9, 3e-6);
    spec.queue = kQueues[i % 5];
    const auto cluster = std::make_shared<const Cluster>(spec);
    const auto rules = SimulationRules::standard(*cluster);
    const auto a = test::random_step(random, 30, i % 2 == 0);
    const auto b = test::random_step(random, 20, i % 2 == 0);
    auto of_a = test::random_placement(random, *a, 3), of_b = test::random_placement(random, *b, 3);
    for (int32_t& device : of_b) device += 3;
    auto both = of_a;
    both.insert(both.end(), of_b.begin(), of_b.end());
    const auto measure = [&](const std::shared_ptr<const Graph>& graph, const auto& placement) {
      const auto schedule = schedule_for(graph->operator_count(), kDispatchRules[i / 5 % 3],
                                         1 + static_cast<int32_t>(i % 3));
      return run({graph, cluster, rules}, placement, schedule).metrics;
    };
    const auto first = measure(a, of_a), second = measure(b, of_b);
    const auto joint = measure(together(*a, *b), both);
    CHECK(joint.step_time_ns == std::max(first.step_time_ns, second.step_time_ns));
    CHECK(joint.transfers == first.transfers + second.transfers);
    for (size_t d = 0; d < 6; ++d) CHECK(joint.devices[d] == (d < 3 ? first : second).devices[d]);
  }
}

TEST_CASE("on one device the step is the sum of the work and nothing is sent") {
  for (uint64_t i = 0; i < 50; ++i) {
    auto c = test::random_case(i, {});
    auto rules = c.problem->rules();
    rules.device_dead_ns = 0;
    const Problem problem(std::make_shared<const Graph>(c.problem->graph()),
                          std::make_shared<const Cluster>(c.spec), rules);
    for (int32_t d = 0; d < problem.devices(); ++d) {
      std::fill(c.placement.begin(), c.placement.end(), d);
      int64_t work = 0;
      for (const int64_t cost : problem.costs(d)) work += cost;
      const auto metrics = test::metrics_of(problem, {c.placement});
      CHECK(metrics.step_time_ns == work);
      CHECK(metrics.total_communication_bytes == 0);
    }
  }
}

TEST_CASE("a tensor without bytes costs its latency") {
  test::GraphMaker make("empty");
  const int a = make.op("a", 10e-6), b = make.op("b", 5e-6), c = make.op("c", 5e-6);
  make.edge(a, b, 0);
  make.edge(a, c, 0);
  const auto graph = make.share();
  for (const auto queue : kQueues) {
    CAPTURE(std::string(choice_name(queue)));
    auto spec = test::uniform_spec(2, 1e9, 3e-6);
    spec.queue = queue;
    const auto problem = test::make_problem(graph, spec);
    const auto result = run(problem, std::vector<int32_t>{0, 1, 1}, {});
    const bool waits = queue != QueueModel::none && queue != QueueModel::fair;
    CHECK(result.timeline.ready_ns == std::vector<int64_t>{0, 13000, waits ? 16000 : 13000});
    CHECK(result.metrics.step_time_ns == 23000);
    CHECK(result.metrics.transfers == 2);
    CHECK(result.metrics.total_communication_bytes == 0);
  }
}
