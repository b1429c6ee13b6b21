// The laws of manual/simulator.md "Invariants" on random plans under every queue model and dispatch rule.
#include <doctest/doctest.h>

#include <algorithm>

#include "support/cases.h"
#include "support/laws.h"
#include "support/tier.h"

using namespace trinity;

namespace {

constexpr DispatchRule kDispatchRules[] = {DispatchRule::fifo, DispatchRule::lifo,
                                           DispatchRule::priority, DispatchRule::order};

/// Runs a case and judges it; for fixed orders, the replay of its first-in-first-out run.
void judge(test::Case c, bool replay) {
  Simulator simulator(*c.problem);
  Metrics metrics;
  Timeline timeline;
  timeline.wants_owners = true;
  simulator.run(c.plan(), metrics, &timeline);
  if (replay) {
    const int64_t step = metrics.step_time_ns;
    c.schedule = test::order_of(*c.problem, timeline);
    simulator.run(c.plan(), metrics, &timeline);
    CHECK(metrics.step_time_ns == step);
  }
  test::check_laws(*c.problem, c.plan(), metrics, timeline);
}

void judge_many(DispatchRule rule, int32_t micro_batches, bool collectives) {
  const bool replay = rule == DispatchRule::order;
  uint64_t index = 100000 + 1000 * static_cast<uint64_t>(rule) + (collectives ? 500000 : 0);
  for (const auto queue : test::kQueues)
    for (uint64_t i = 0; i < test::draws(200); ++i, ++index) {
      CAPTURE(index);
      judge(test::random_case(index, {.queue = queue,
                                      .dispatch = replay ? DispatchRule::fifo : rule,
                                      .most_operators = 60 / (micro_batches > 1 ? 2 : 1),
                                      .most_micro_batches = micro_batches,
                                      .collectives = collectives}),
            replay);
    }
}

}  // namespace

TEST_CASE("the laws hold under every queue model and dispatch rule") {
  for (const auto rule : kDispatchRules) judge_many(rule, 1, false);
}

TEST_CASE("the laws hold with collectives") {
  for (const auto rule : kDispatchRules) judge_many(rule, 1, true);
}

TEST_CASE("the laws hold with several micro-batches") {
  for (const auto rule : kDispatchRules) judge_many(rule, 4, false);
}

TEST_CASE("the laws hold with several micro-batches and collectives") {
  for (const auto rule : kDispatchRules) judge_many(rule, 4, true);
}

TEST_CASE("the laws hold without memory, with pauses and without queues") {
  for (uint64_t i = 0; i < test::draws(100); ++i) {
    CAPTURE(i);
    auto c = test::random_case(i, {.queue = QueueModel::none, .most_micro_batches = 3});
    auto rules = c.problem->rules();
    rules.memory = i % 2 ? MemoryModel::none : MemoryModel::slots;
    rules.device_dead_ns = 3000;
    rules.dead_after_free = i % 3 == 0;
    const auto cluster = std::make_shared<const Cluster>(c.spec);
    c.problem = std::make_shared<const Problem>(std::make_shared<const Graph>(c.problem->graph()),
                                                cluster, rules);
    judge(c, false);
  }
}

namespace {

/// A run of which each law can be broken: two devices, transfers, a collective.
struct Recorded {
  test::Case c;
  Metrics metrics;
  Timeline timeline;

  explicit Recorded(DispatchRule rule) {
    test::GraphMaker make("recorded");
    const int a = make.op("a", 5e-6), b = make.op("b", 4e-6), other = make.op("c", 3e-6);
    const int d = make.op("d", 2e-6), x = make.op("x", 0), y = make.op("y", 0);
    make.edge(a, d, 3000);
    make.edge(b, d, 2000);
    make.edge(other, y, 100);
    make.edge(d, x, 100);
    make.collective("sum", 500, {x, y});
    c.spec = test::uniform_spec(2, 1e9, 1e-6);
    c.problem = test::share_problem(make.share(), c.spec);
    c.placement = {0, 0, 0, 1, 1, 0};
    c.schedule.dispatch = rule;
    Simulator(*c.problem).run(c.plan(), metrics, &timeline);
  }
  bool breaks(const char* text) const {
    const auto broken = test::broken_laws(*c.problem, c.plan(), metrics, timeline);
    return std::any_of(broken.begin(), broken.end(), [&](const std::string& sentence) {
      return sentence.find(text) != std::string::npos;
    });
  }
};

}  // namespace

TEST_CASE("the laws notice every way of breaking a run") {
  const auto notices = [](const char* text, auto change, DispatchRule rule = DispatchRule::fifo) {
    Recorded run(rule);
    CHECK(test::broken_laws(*run.c.problem, run.c.plan(), run.metrics, run.timeline).empty());
    change(run);
    CHECK_MESSAGE(run.breaks(text), text);
  };
  const auto shift = [](Recorded& run, int32_t task, int64_t by) {
    run.timeline.start_ns[task] += by;
    run.timeline.end_ns[task] += by;
  };
  notices("runs for", [](Recorded& run) { ++run.timeline.end_ns[0]; });
  notices("on another device", [](Recorded& run) { run.timeline.device[1] = 1; });
  notices("its device is free at", [=](Recorded& run) { shift(run, 1, -1); });
  notices("its device idles before", [=](Recorded& run) { shift(run, 3, 1); });
  notices("though one that goes before it waits",
          [](Recorded& run) { run.c.schedule.dispatch = DispatchRule::lifo; });
  notices("is ready at", [](Recorded& run) { --run.timeline.ready_ns[3]; });
  notices("never sends output", [](Recorded& run) { run.timeline.transfers.pop_back(); });
  notices("twice",
          [](Recorded& run) { run.timeline.transfers.push_back(run.timeline.transfers[0]); });
  notices("two transfers", [](Recorded& run) { --run.timeline.transfers[1].start_ns; });
  notices("its queues are free", [](Recorded& run) { ++run.timeline.transfers[0].start_ns; });
  notices("does not run with", [](Recorded& run) { ++run.timeline.collectives[0].start_ns; });
  notices("collectives run, not", [](Recorded& run) { run.timeline.collectives.clear(); });
  notices("sums or peak", [](Recorded& run) { ++run.metrics.devices[0].bytes_sent; });
  notices("the step is not", [](Recorded& run) { ++run.metrics.step_time_ns; });
  notices("than everything together", [](Recorded& run) { run.metrics.step_time_ns *= 2; });
  notices("beats its bound", [](Recorded& run) { run.metrics.step_time_ns = 1; });
  notices("a task needs", [](Recorded& run) { run.metrics.devices[0].peak_memory_bytes = 1; });
  notices("more than everything",
          [](Recorded& run) { run.metrics.devices[1].peak_memory_bytes = 1 << 20; });
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
