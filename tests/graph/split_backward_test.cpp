#include "graph/split_backward.h"

#include <doctest/doctest.h>

#include <string>

#include "graph/operator_types.h"
#include "graph/recompute.h"
#include "support/layer_maker.h"

using namespace trinity;

namespace {

/// x -> Gemm "first" -> norm -> Gemm "second" -> matmul with a tied Variable -> loss. The Variable
/// is read by an embedding too.
Graph two_part_network() {
  test::LayerMaker make("network");
  const int32_t ids = make.add("ids", "Input", {}, {8});
  const int32_t table = make.add("table", "Variable", {}, {16, 4}, {16, 4});
  const int32_t x = make.add("embedding", "Gather", {table, ids}, {8, 4});
  const int32_t a = make.add("first", "Gemm", {x}, {8, 4}, {4, 4});
  const int32_t b = make.add("norm", "LayerNormalization", {a}, {8, 4}, {4});
  const int32_t c = make.add("second", "Gemm", {b}, {8, 4}, {4, 4});
  const int32_t d = make.add("logits", "MatMul", {c, table}, {8, 16});
  make.add("loss", "Softmax", {d}, {8, 16});
  return make.train();
}

const Operator& named(const Graph& graph, const char* name) {
  const int32_t found = graph.find(name);
  REQUIRE(found >= 0);
  return graph.op(found);
}

std::string writers(const Graph& graph, const Operator& op) {
  std::string text;
  for (const int32_t input : op.inputs)
    text += (text.empty() ? "" : " ") + graph.op(graph.tensor(input).producer).name;
  return text;
}

}  // namespace

TEST_CASE("a backward operator with weights becomes an input gradient and a weight gradient") {
  const auto whole = two_part_network();
  const auto cut = split_backward(whole);
  const auto& graph = cut.graph;
  CHECK(graph.operator_count() == whole.operator_count() + 4);
  CHECK(writers(graph, named(graph, "second/grad")) == "logits/grad");  // no activation
  CHECK(writers(graph, named(graph, "second/grad/weight")) == "logits/grad norm");
  CHECK(writers(graph, named(graph, "norm/grad")) == "second/grad first");
  CHECK(writers(graph, named(graph, "norm/grad/weight")) == "second/grad first");
  CHECK(writers(graph, named(graph, "second/update")) == "second/grad/weight");
  CHECK(writers(graph, named(graph, "logits/grad")) == "loss/grad table");
  CHECK(writers(graph, named(graph, "logits/grad/weight")) == "loss/grad second");
  CHECK(graph.find("embedding/grad/weight") == -1);  // wants no gradient of ids
  CHECK(find_joined_backward(graph) == -1);
  CHECK(whole.op(find_joined_backward(whole)).name == "logits/grad");
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    const auto& name = graph.op(op).name;
    const bool weight = name.size() > 7 && name.substr(name.size() - 7) == "/weight";
    CHECK(whole.op(cut.origin[op]).name == (weight ? name.substr(0, name.size() - 7) : name));
  }
}

TEST_CASE("the parts of a backward operator share its work") {
  const auto whole = two_part_network();
  const auto graph = split_backward(whole).graph;
  CHECK(graph.flops() == whole.flops());
  CHECK(named(graph, "first/grad").flops == 1e9);  // of 2e9
  CHECK(named(graph, "first/grad/weight").flops == 1e9);
  const double tensor = 8 * 4 * 4, weights = 4 * 4 * 4;
  CHECK(named(whole, "second/grad").traffic_bytes == 3 * tensor + 2 * weights);
  CHECK(named(graph, "second/grad").traffic_bytes == 2 * tensor + weights);
  CHECK(named(graph, "second/grad/weight").traffic_bytes == 2 * tensor + weights);
  const auto& part = named(graph, "second/grad/weight");
  CHECK(part.unit == named(graph, "second").unit);
  CHECK(graph.op(part.forward).name == "second");
  CHECK(part.type == "GemmGrad");
}

TEST_CASE("weight work is what no earlier stage waits for") {
  const auto graph = split_backward(two_part_network()).graph;
  const auto weight = find_weight_work(graph);
  std::string found;
  for (int32_t op = 0; op < graph.operator_count(); ++op)
    if (weight[op]) found += graph.op(op).name + "\n";
  CHECK(found ==
        "logits/grad/weight\nsecond/grad/weight\nnorm/grad/weight\nfirst/grad/weight\n"
        "embedding/grad\ntable/grad_sum\ntable/grad\n");
}

TEST_CASE("weight gradients that are not delayed are no separate work") {
  const auto whole = two_part_network();
  std::vector<bool> at_once(static_cast<size_t>(whole.operator_count()), false);
  at_once[static_cast<size_t>(whole.find("norm/grad"))] = true;
  const auto graph = split_backward(whole, at_once).graph;
  const auto weight = find_weight_work(graph);
  CHECK(is_weight_part(graph.op(graph.find("norm/grad/weight"))));
  CHECK_FALSE(weight[static_cast<size_t>(graph.find("norm/grad/weight"))]);
  CHECK(weight[static_cast<size_t>(graph.find("second/grad/weight"))]);
}

TEST_CASE("recomputation runs before the input gradient (B), and is kept for the weight gradient (W)") {
  const auto whole = two_part_network();
  std::vector<int32_t> stage(static_cast<size_t>(whole.operator_count()), 0);
  for (int32_t op = 0; op < whole.operator_count(); ++op)
    if (is_variable(whole.op(op))) stage[static_cast<size_t>(op)] = -1;
  const auto graph = split_backward(recompute(whole, stage).graph).graph;
  CHECK(writers(graph, named(graph, "second/grad/weight")) == "logits/grad norm/recompute");
  CHECK(writers(graph, named(graph, "second/grad")) == "logits/grad");
  const auto weight = find_weight_work(graph);
  for (int32_t op = 0; op < graph.operator_count(); ++op)
    if (graph.op(op).name.find("/recompute") != std::string::npos) CHECK(!weight[op]);
}
