#include "strategy/splits.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "strategy/blocks.h"
#include "support/layer_maker.h"

namespace trinity {
namespace {

/// x [8, 6] -> gemm to [8, 4] -> softmax -> gemm to [8, 10], as a training step.
Graph two_products() {
  test::LayerMaker make("products", [](Operator& op) { op.attributes["transB"] = int64_t{1}; });
  const int32_t x = make.add("x", "Input", {}, {8, 6});
  const int32_t y = make.add("first", "Gemm", {x}, {8, 4}, {4, 6});
  const int32_t s = make.add("softmax", "Softmax", {y}, {8, 4});
  make.add("second", "Gemm", {s}, {8, 10}, {10, 4});
  return make.train();
}

Splits split(const Graph& graph, const char* name, std::vector<int32_t> factors,
             int32_t copies = 1) {
  Splits splits(static_cast<size_t>(graph.operator_count()));
  auto& entry = splits[graph.find(name)];
  entry.factors = std::move(factors);
  entry.copies = copies;
  return splits;
}

LoweredGraph lowered(const Graph& graph, const Splits& splits, int32_t devices = 8) {
  const std::vector<int32_t> placement(static_cast<size_t>(graph.operator_count()), 0);
  return lower_splits(graph, splits, placement, devices);
}

const Collective* find(const Graph& graph, std::string_view name) {
  for (const auto& collective : graph.collectives())
    if (collective.name == name) return &collective;
  return nullptr;
}

TEST_CASE("a cut's blocks tile a tensor, and its shares sum to one") {
  IterationSpace space;
  space.dimensions = {{"a", 7}, {"b", 5}, {"c", 3, DimensionRole::reduced}};
  const OperatorCut cut(space, {2, 3, 2}, 2);
  CHECK(cut.parts() == 24);
  const TensorAxes axes = {{0, 1}, {}};
  int64_t elements = 0;
  double shares = 0;
  for (int32_t part = 0; part < cut.parts(); ++part) {
    elements += block_elements(cut.block({35, 2}, axes, part));
    shares += cut.share(part);
  }
  CHECK(elements == 35 * 2 * 2 * 2);  // each of two summed parts in two copies
  CHECK(shares == doctest::Approx(2));
  CHECK(cut.missing(axes) == std::vector<int32_t>{2});
  const auto groups = cut.groups({2});
  CHECK(groups[0] == groups[2]);  // copies count fastest, then c
  CHECK(groups[0] != groups[1]);
}

TEST_CASE("nothing split lowers to the graph itself") {
  const Graph graph = two_products();
  CHECK(lowered(graph, {}).graph.fingerprint() == graph.fingerprint());
}

TEST_CASE("a reduced dimension makes partial sums, columns sum in backward") {
  const Graph graph = two_products();
  const auto rows = lowered(graph, split(graph, "first", {1, 1, 2}));
  REQUIRE(find(rows.graph, "first/sum1.0"));
  CHECK(find(rows.graph, "first/sum1.0")->bytes == 8 * 4 * 4);
  CHECK(rows.graph.collectives().size() == 1);
  const auto columns = lowered(graph, split(graph, "second", {1, 5, 1}));
  REQUIRE(find(columns.graph, "second/grad/sum1.0"));
  CHECK(find(columns.graph, "second/grad/sum1.0")->bytes == 8 * 4 * 4);
  const auto batch = lowered(graph, split(graph, "first", {4, 1, 1}));
  REQUIRE(batch.graph.collectives().size() == 1);
  CHECK(batch.graph.collectives()[0].bytes == 4 * 6 * 4);
  CHECK(batch.graph.op(batch.graph.collectives()[0].members[0]).phase == Phase::update);
}

TEST_CASE("a finer split stays where its data is, the rest goes near") {
  const Graph graph = two_products();
  auto splits = split(graph, "first", {2, 1, 1});
  splits[graph.find("softmax")].factors = {2, 2};
  const auto fine = lowered(graph, splits);
  const auto device = [&](const char* name) { return fine.device_of(fine.graph.find(name)); };
  CHECK(device("first@0") == 0);
  CHECK(device("first@1") == 4);  // two parts spread over eight devices
  CHECK(device("softmax@0") == device("first@0"));
  CHECK(device("softmax@1") == 2);
  CHECK(device("softmax@2") == device("first@1"));
  CHECK(device("softmax@3") == 6);
}

TEST_CASE("a split softmax exchanges two numbers a row") {
  const Graph graph = two_products();
  const auto wide = lowered(graph, split(graph, "softmax", {1, 4}));
  REQUIRE(find(wide.graph, "softmax/sum1.0"));
  CHECK(find(wide.graph, "softmax/sum1.0")->bytes == 8 * 2 * 4);
}

TEST_CASE("copies compute what one part does, without sums") {
  const Graph graph = two_products();
  const auto copied = lowered(graph, split(graph, "first", {1, 1, 1}, 3));
  CHECK(copied.graph.collectives().empty());
  int32_t copies = 0;
  for (const auto& op : copied.graph.operators())
    if (op.name.starts_with("first@")) {
      ++copies;
      CHECK(op.flops == 1e9);
      CHECK(op.parameter_bytes() == 4 * 6 * 4);
    }
  CHECK(copies == 3);
}

/// Both of these splits.
Splits both(Splits splits, const Splits& more) {
  for (size_t op = 0; op < splits.size(); ++op)
    if (!(more[op] == OperatorSplit{})) splits[op] = more[op];
  return splits;
}

TEST_CASE("a sum of which every device reads a piece is scattered, and its gradient gathered") {
  const Graph graph = two_products();
  const auto low =
      lowered(graph, both(split(graph, "first", {1, 1, 2}), split(graph, "softmax", {2, 1})));
  const auto* scatter = find(low.graph, "first/sum1.0");
  REQUIRE(scatter != nullptr);
  CHECK(scatter->kind == CollectiveKind::reduce_scatter);
  CHECK(scatter->bytes == 8 * 4 * 4);
  for (const int32_t member : scatter->members)
    CHECK(low.graph.tensor(low.graph.op(member).outputs[0]).bytes == 4 * 4 * 4);
  const auto* gather = find(low.graph, "softmax/grad/gather");
  REQUIRE(gather != nullptr);
  CHECK(gather->kind == CollectiveKind::all_gather);
  CHECK(gather->bytes == 8 * 4 * 4);
  CHECK(low.graph.op(gather->members[0]).phase == Phase::backward);
}

TEST_CASE("pieces that all devices read whole are gathered, for the backward pass again") {
  const Graph graph = two_products();
  auto splits = both(split(graph, "first", {2, 1, 1}), split(graph, "softmax", {2, 1}));
  splits = both(std::move(splits), split(graph, "second", {1, 2, 1}));
  const auto low = lowered(graph, splits);
  for (const char* name : {"softmax/gather", "softmax/gather2"}) {
    const auto* gather = find(low.graph, name);
    REQUIRE(gather != nullptr);
    CHECK(gather->kind == CollectiveKind::all_gather);
    CHECK(gather->members.size() == 2);
  }
  const auto& again = low.graph.op(find(low.graph, "softmax/gather2")->members[0]);
  CHECK(again.phase == Phase::backward);
  CHECK(again.inputs.size() ==
        1);  // no gradient comes into the last matmul, for which it would wait
}

TEST_CASE("partial gradients of weights share buckets where a size is given") {
  const Graph graph = two_products();
  const std::vector<int32_t> placement(static_cast<size_t>(graph.operator_count()), 0);
  const auto splits = both(split(graph, "first", {2, 1, 1}), split(graph, "second", {2, 1, 1}));
  const auto apart = lower_splits(graph, splits, placement, 8);
  CHECK(find(apart.graph, "first/grad/sum1.0") != nullptr);
  const auto low = lower_splits(graph, splits, placement, 8, {.bucket_bytes = 1 << 20});
  CHECK(find(low.graph, "first/grad/sum1.0") == nullptr);
  const auto* bucket = find(low.graph, "shared_gradients0.0");
  REQUIRE(bucket != nullptr);
  CHECK(bucket->bytes == (4 * 6 + 10 * 4) * 4);
  CHECK(low.graph.op(bucket->members[0]).phase == Phase::update);
}

TEST_CASE("splits that make no sense are refused") {
  const Graph graph = two_products();
  CHECK_THROWS_WITH_AS(lowered(graph, split(graph, "first", {1, 1})),
                       "splits of operator 'first': expected 3 factors, one per dimension, got 2",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(
      lowered(graph, split(graph, "first", {9, 1, 1})),
      "splits of operator 'first': dimension 'b': expected a factor from 1 to 8, got 9",
      ArgumentError);
  CHECK_THROWS_WITH_AS(lowered(graph, split(graph, "first", {8, 1, 1}), 4),
                       "splits of operator 'first': expected at most one part per device (4), got 8", ArgumentError);
  CHECK_THROWS_WITH_AS(lowered(graph, split(graph, "x", {2, 1})), doctest::Contains("sources and"),
                       ArgumentError);
  CHECK_THROWS_WITH_AS(lowered(graph, Splits(3)),
                       "splits: expected an entry for each of 9 operators, got 3", ArgumentError);
}

}  // namespace
}  // namespace trinity
