#include <doctest/doctest.h>

#include <set>

#include "base/error.h"
#include "graph/replicas.h"
#include "graph/training.h"
#include "support/build.h"

using namespace trinity;

namespace {

/// Operators "l0", "l1", ... in a chain, each with weights of the given bytes, lowered to training.
Graph chain(const std::vector<int64_t>& parameter_bytes) {
  test::GraphMaker make("chain");
  int before = -1;
  for (size_t i = 0; i < parameter_bytes.size(); ++i) {
    const int op = make.op("l" + std::to_string(i), 1e-3, parameter_bytes[i]);
    if (before >= 0) make.edge(before, op, 8);
    before = op;
  }
  make.output(before, 8);
  return lower_to_training(make.build(), {});
}

std::vector<std::string> inputs_of(const Graph& graph, const std::string& name) {
  const int32_t op = graph.find(name);
  REQUIRE(op >= 0);
  std::vector<std::string> producers;
  for (const int32_t input : graph.op(op).inputs)
    producers.push_back(graph.op(graph.tensor(input).producer).name);
  return producers;
}

using Names = std::vector<std::string>;

std::vector<int64_t> bucket_bytes(const Graph& graph) {
  std::vector<int64_t> bytes;
  for (const auto& collective : graph.collectives()) bytes.push_back(collective.bytes);
  return bytes;
}

}  // namespace

TEST_CASE("one replica is a copy") {
  const auto graph = chain({100, 200});
  const auto copy = replicate(graph, 1);
  CHECK(copy.graph.fingerprint() == graph.fingerprint());
  CHECK(copy.origin.size() == static_cast<size_t>(graph.operator_count()));
  CHECK(copy.origin[2] == 2);
  CHECK(copy.replica[2] == 0);
}

TEST_CASE("replicas are copies with all-reduces before the updates") {
  const auto graph = chain({100, 0, 200});
  const auto twice = replicate(graph, 3);
  const auto& g = twice.graph;
  // Two gradients of different units: two buckets of three members.
  CHECK(g.operator_count() == 3 * graph.operator_count() + 6);
  CHECK(g.unit_count() == 3 * graph.unit_count());
  CHECK(bucket_bytes(g) == std::vector<int64_t>{200, 100});  // backward runs from the end
  CHECK(inputs_of(g, "l2@1") == Names{"l1@1"});
  CHECK(inputs_of(g, "all_reduce0@2") == Names{"l2/grad@2"});
  CHECK(inputs_of(g, "l2/update@2") == Names{"all_reduce0@2"});
  CHECK(inputs_of(g, "l0/update@0") == Names{"all_reduce1@0"});
  const auto& member = g.op(g.find("all_reduce1@1"));
  CHECK(member.type == "AllReduce");
  CHECK(member.phase == Phase::update);
  CHECK(member.outputs.size() == 1);
  CHECK(g.tensor(member.outputs[0]).bytes == 100);
  CHECK(member.unit == g.op(g.find("l0@1")).unit);
  CHECK(g.collectives()[1].members.size() == 3);
  CHECK(g.collectives()[1].name == "all_reduce1");
  CHECK(g.collectives()[1].kind == CollectiveKind::all_reduce);
  CHECK(g.op(g.op(g.find("l0/grad@2")).forward).name == "l0@2");
  CHECK(g.parameter_bytes() == 3 * graph.parameter_bytes());
}

TEST_CASE("every operator has an origin") {
  const auto graph = chain({100, 0, 200});
  const auto result = replicate(graph, 2);
  std::set<std::pair<int32_t, int32_t>> seen;
  for (int32_t op = 0; op < result.graph.operator_count(); ++op) {
    const auto i = static_cast<size_t>(op);
    const auto& name = result.graph.op(op).name;
    const auto suffix = "@" + std::to_string(result.replica[i]);
    CHECK(name.ends_with(suffix));
    if (result.origin[i] < 0) {
      CHECK(name.starts_with("all_reduce"));
      CHECK(result.graph.op(op).collective >= 0);
      continue;
    }
    CHECK(name == graph.op(result.origin[i]).name + suffix);
    CHECK(result.graph.op(op).measured_time_s == graph.op(result.origin[i]).measured_time_s);
    CHECK(seen.insert({result.origin[i], result.replica[i]}).second);
  }
  CHECK(seen.size() == 2 * static_cast<size_t>(graph.operator_count()));
}

TEST_CASE("buckets fill in the order of backward and close before they overflow") {
  const auto graph = chain({10, 20, 30, 400, 50, 5});
  const std::vector<int32_t> together(static_cast<size_t>(graph.operator_count()), 0);
  const auto buckets = [&](int64_t bytes, std::span<const int32_t> device_of) {
    ReplicaOptions options;
    options.bucket_bytes = bytes;
    options.device_of = device_of;
    return bucket_bytes(replicate(graph, 2, options).graph);
  };
  using Bytes = std::vector<int64_t>;
  CHECK(buckets(60, together) == Bytes{55, 400, 60});
  CHECK(buckets(54, together) == Bytes{5, 50, 400, 50, 10});
  CHECK(buckets(1, together) == Bytes{5, 50, 400, 30, 20, 10});
  CHECK(buckets(1'000'000, together) == Bytes{515});
  CHECK(buckets(1'000'000, {}) == Bytes{5, 50, 400, 30, 20, 10});  // of one unit each

  std::vector<int32_t> apart;
  for (const auto& op : graph.operators()) apart.push_back((op.name[1] - '0') % 2);
  CHECK(buckets(1'000'000, apart) == Bytes{5 + 400 + 20, 50 + 30 + 10});
}

TEST_CASE("a bucket of several gradients has a tensor for each, and no unit of its producers") {
  const auto graph = chain({10, 20});
  const std::vector<int32_t> together(static_cast<size_t>(graph.operator_count()), 0);
  ReplicaOptions options;
  options.device_of = together;
  options.algorithm = CollectiveAlgorithm::ring;
  const auto g = replicate(graph, 2, options).graph;
  REQUIRE(g.collectives().size() == 1);
  CHECK(g.collectives()[0].algorithm == CollectiveAlgorithm::ring);
  const auto& member = g.op(g.find("all_reduce0@1"));
  CHECK(inputs_of(g, "all_reduce0@1") == Names{"l1/grad@1", "l0/grad@1"});
  REQUIRE(member.outputs.size() == 2);
  CHECK(g.tensor(member.outputs[0]).bytes == 20);
  CHECK(g.tensor(member.outputs[1]).bytes == 10);
  CHECK(g.op(g.find("l0/update@1")).inputs == std::vector<int32_t>{member.outputs[1]});
  CHECK(g.unit(member.unit).size() == 1);
}

TEST_CASE("updates keep the order of their inputs, and what they exchange stays in the replica") {
  test::GraphMaker make("g");
  const int forward = make.op("forward", 1), backward = make.op_of(Phase::backward, "backward", 1);
  const int first = make.op_of(Phase::update, "first", 1);
  const int second = make.op_of(Phase::update, "second", 1);
  make.edge(forward, backward, 8);
  const int a = make.output(backward, 10), b = make.output(backward, 20);
  make.read(first, b);
  make.edge(first, second, 4);
  make.read(second, b);
  make.read(second, a);
  const auto g = replicate(make.build(), 2).graph;
  REQUIRE(g.collectives().size() == 1);  // one unit
  CHECK(g.collectives()[0].bytes == 30);
  const auto& reduced = g.op(g.find("all_reduce0@1")).outputs;
  REQUIRE(reduced.size() == 2);
  CHECK(g.op(g.find("first@1")).inputs == std::vector<int32_t>{reduced[1]});
  const auto kept = g.op(g.find("first@1")).outputs[0];
  CHECK(g.op(g.find("second@1")).inputs == std::vector<int32_t>{kept, reduced[1], reduced[0]});
}

TEST_CASE("collectives within a graph are copied, and replicas can be replicated") {
  const auto nested = replicate(replicate(chain({100}), 2).graph, 2).graph;
  REQUIRE(nested.collectives().size() == 4);
  CHECK(nested.find("l0@1@0") >= 0);
  CHECK(inputs_of(nested, "l0/update@1@0") == Names{"all_reduce0@1@0"});
  CHECK(inputs_of(nested, "all_reduce0@1@0").size() == 1);

  test::GraphMaker make("forward");
  const int a = make.op("a", 1), b = make.op("b", 1);
  make.collective("sum", 8, {a, b});
  const auto copies = replicate(make.build(), 3).graph;
  REQUIRE(copies.collectives().size() == 3);
  CHECK(copies.collectives()[2].name == "sum@2");
  CHECK(copies.op(copies.collectives()[2].members[1]).name == "b@2");
}

TEST_CASE("replicas refuse nonsense") {
  const auto graph = chain({100});
  CHECK_THROWS_WITH_AS(replicate(graph, 0), doctest::Contains("expected at least 1 replica, got 0"),
                       ArgumentError);
  ReplicaOptions options;
  options.bucket_bytes = 0;
  CHECK_THROWS_WITH_AS(replicate(graph, 2, options), doctest::Contains("bucket_bytes must be at"),
                       ArgumentError);
  const int32_t wrong[] = {0, 0};
  options = {};
  options.device_of = wrong;
  CHECK_THROWS_WITH_AS(replicate(graph, 2, options),
                       doctest::Contains("expected the devices of 3 operators, got 2"),
                       ArgumentError);
  CHECK_THROWS_AS(replicate(graph, 1 << 30), LimitError);
}
