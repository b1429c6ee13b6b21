// Results that must not change, or change in a known way, when a problem is changed. Every number of a plan is held by the
// reference simulator (reference_test.cpp).
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "support/cases.h"
#include "support/rebuild.h"
#include "support/tier.h"

using namespace trinity;

TEST_CASE("in a fixed order faster is never slower") {
  for (uint64_t i = 0; i < test::draws(300); ++i) {
    CAPTURE(i);
    auto c = test::random_case(i, {.queue = test::kQueues[i % 3], .dispatch = test::kDispatchRules[i / 5 % 3],
                                   .most_micro_batches = i % 2 ? 3 : 1});
    c.schedule = test::order_of(*c.problem, test::simulate(*c.problem, c.plan()).timeline);
    const auto after = [&](auto change) {
      auto spec = c.spec;
      change(spec);
      return test::metrics_of(test::changed(*c.problem, spec, [](GraphBuilder&) {}), c.plan()).step_time_ns;
    };
    const int64_t before = after([](ClusterSpec&) {});
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
    RandomStream random(test::law_seed(), "shuffle", i);
    const Graph graph = forced(*test::random_step(random, 40, false));
    const Graph other = shuffled(graph, random);
    CHECK(other.fingerprint() == graph.fingerprint());
    for (int32_t op = 0; op < graph.operator_count(); ++op) CHECK(other.op(op).name == graph.op(op).name);
  }
}
