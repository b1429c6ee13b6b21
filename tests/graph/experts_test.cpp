// Experts: found in a graph, and sharded over ranks.
#include "graph/experts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "support/layer_maker.h"

namespace trinity {
namespace {

/// Tokens [1, 8, 6] to four experts of two rows.
Graph batched() {
  test::LayerMaker b("experts");
  const int32_t x = b.add("x", "Gemm", {b.add("in", "Input", {}, {1, 8, 6})}, {1, 8, 6}, {6, 6});
  const int32_t rows = b.add("dispatch", "ExpertDispatch", {x}, {4, 2, 6});
  const auto product = [&](const char* name, int32_t of, int64_t from, int64_t to) {
    return b.add(name, "Einsum", {of}, {4, 2, to}, {4, from, to},
                 {{"equation", std::string("eci,eio->eco")}});
  };
  const int32_t gate = b.add("silu", "Swish", {product("gate", rows, 6, 10)}, {4, 2, 10});
  const int32_t inner = b.add("mul", "Mul", {gate, product("up", rows, 6, 10)}, {4, 2, 10});
  b.add("combine", "ExpertCombine", {product("down", inner, 10, 6)}, {1, 8, 6});
  return b.train();
}

/// The same with a branch of operators for every expert.
Graph branches() {
  test::LayerMaker b("experts");
  const int32_t x = b.add("x", "Gemm", {b.add("in", "Input", {}, {8, 6})}, {8, 6}, {6, 6});
  const int32_t rows = b.add("dispatch", "Gather", {x}, {4, 2, 6});
  std::vector<int32_t> results;
  for (const int32_t part : b.split("split", rows, 4, {2, 6})) {
    const auto name = fmt::format("expert_{}/", results.size());
    const int32_t up = b.add(name + "up", "Gemm", {part}, {2, 10}, {6, 10});
    results.push_back(b.add(name + "down", "Gemm", {b.add(name + "relu", "Relu", {up}, {2, 10})},
                            {2, 6}, {10, 6}));
  }
  const int32_t all = b.add("stack", "Concat", results, {4, 2, 6}, {},
                            {{"axis", int64_t{0}}, {"new_axis", int64_t{1}}});
  b.add("after", "Gelu", {all}, {4, 2, 6});
  return b.train();
}

int64_t count(const Graph& graph, const std::function<bool(const Operator&)>& is) {
  return std::count_if(graph.operators().begin(), graph.operators().end(), is);
}

/// FLOP of all but updates.
double work(const Graph& graph) {
  double flops = 0;
  for (const auto& op : graph.operators())
    if (op.phase != Phase::update) flops += op.flops;
  return flops;
}

TEST_CASE("experts are found in both forms, and nowhere else") {
  const auto one = find_experts(batched());
  REQUIRE(one.size() == 1);
  CHECK(one[0].name == "gate");
  CHECK(one[0].experts == 4);
  CHECK(one[0].members.size() == 5);
  CHECK(one[0].branches.empty());
  const auto other = find_experts(branches());
  REQUIRE(other.size() == 1);
  CHECK(other[0].experts == 4);
  CHECK(other[0].branches.size() == 4);
  CHECK(other[0].members.size() == 14);
  test::LayerMaker b("dense");
  b.add("x", "Gemm", {b.add("in", "Input", {}, {8, 6})}, {8, 6}, {6, 6});
  CHECK(find_experts(b.builder.build()).empty());
}

TEST_CASE("a rank holds its share of the experts and as much work") {
  for (const bool apart : {false, true}) {
    CAPTURE(apart);
    const Graph graph = apart ? branches() : batched();
    const auto spread = spread_experts(graph, 2);
    const int64_t dense = 36, experts = graph.parameter_count() - dense;
    CHECK(spread.graph.parameter_count() == dense + experts / 2);
    CHECK(count(spread.graph, is_exchange) == 4);
    CHECK(work(spread.graph) == work(graph));
    const auto exchange = spread.graph.find("dispatch/all_to_all");
    REQUIRE(exchange >= 0);
    const auto& rows = spread.graph.tensor(spread.graph.op(exchange).outputs[0]);
    CHECK(rows.shape == std::vector<int64_t>{2, 4, 6});
    CHECK(rows.bytes == 4 * 2 * 6 * 4);
    std::vector<bool> seen(static_cast<size_t>(graph.operator_count()), false);
    for (const auto& rank : spread.origin)
      for (const int32_t op : rank)
        if (op >= 0) seen[op] = true;
    CHECK(std::all_of(seen.begin(), seen.end(), [](bool found) { return found; }));
    for (int32_t op = 0; op < spread.graph.operator_count(); ++op)
      if (spread.graph.op(op).phase == Phase::update)
        CHECK(spread.spread[op] == (graph.op(spread.origin[0][op]).name == "x/update" ? 1 : 2));
  }
}

TEST_CASE("ranks that do not divide experts are refused with those that do") {
  CHECK_THROWS_WITH_AS(spread_experts(batched(), 3),
                       "mesh: expert = 3 does not divide the 4 experts of 'gate' (nearest that do: "
                       "2 or 4)",
                       ArgumentError);
}

}  // namespace
}  // namespace trinity
