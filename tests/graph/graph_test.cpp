#include <doctest/doctest.h>

#include <boost/graph/topological_sort.hpp>

#include "base/error.h"
#include "graph/units.h"
#include "support/build.h"
#include "support/damage.h"
#include "support/layer_maker.h"

using namespace trinity;

TEST_CASE("building numbers operators topologically and keeps the order of addition") {
  test::GraphMaker make("g");
  const int late = make.op("late", 1), early = make.op("early", 1), free = make.op("free", 1);
  make.edge(early, late, 10);
  (void)free;
  const auto graph = make.build();
  CHECK(graph.op(0).name == "early");
  CHECK(graph.op(1).name == "late");
  CHECK(graph.op(2).name == "free");
  CHECK(graph.depth()[1] == 1);
  CHECK(graph.edge_count() == 1);
  std::vector<int32_t> order;  // Boost.Graph accepts the CSR graph as it is
  boost::topological_sort(graph.csr(), std::back_inserter(order));
  CHECK(order.size() == 3);
}

TEST_CASE("an operator that reads a tensor twice has one edge") {
  test::GraphMaker make("g");
  const int a = make.op("a", 1), b = make.op("b", 1);
  const int tensor = make.output(a, 8);
  make.read(b, tensor);
  make.read(b, tensor);
  const auto graph = make.build();
  CHECK(graph.edge_count() == 1);
  CHECK(graph.op(1).inputs.size() == 2);
}

TEST_CASE("a cycle is reported by the names of its operators") {
  test::GraphMaker make("loop");
  const int a = make.op("a", 1), b = make.op("b", 1), c = make.op("c", 1), d = make.op("d", 1);
  make.edge(a, b, 1);
  make.edge(b, c, 1);
  make.edge(c, b, 1);
  make.edge(c, d, 1);
  const auto text = test::message_of<ArgumentError>([&] { make.build(); });
  CHECK(text.starts_with("graph 'loop' has a cycle: "));
  const bool named = text.find("b -> c -> b") != std::string::npos ||
                     text.find("c -> b -> c") != std::string::npos;
  CHECK(named);
}

TEST_CASE("a builder that starts from a graph adds, moves and removes operators at given positions") {
  test::GraphMaker make("g");
  for (const char* name : {"a", "b", "c", "d"}) make.op(name, 1);
  make.edge(0, 1, 10);
  make.edge(1, 3, 20);
  make.colocate(1, 3);
  const auto graph = make.build();
  GraphBuilder builder(graph);
  const int32_t id = builder.add_operator({.name = "e"});
  builder.put_before(1, id);
  builder.put_before(0, 2);
  builder.move_output(graph.op(0).outputs[0], id);
  builder.rename(3, "f");
  const auto derived = builder.derive(std::vector<int32_t>{1});
  CHECK(derived.origin == std::vector<int32_t>{2, 0, 1, 1, 3});
  const auto& made = derived.graph;
  const std::vector<std::string> names = {"c", "a", "e", "b", "f"};
  for (int32_t op = 0; op < 5; ++op) CHECK(made.op(op).name == names[op]);
  CHECK(made.op(1).outputs.empty());
  CHECK(made.tensor(made.op(3).inputs[0]).producer == 2);
  CHECK(made.op(3).unit == made.op(4).unit);
  CHECK(made.unit_count() == 4);

  GraphBuilder fewer(made);
  fewer.remove(0);
  fewer.remove(4);
  std::vector<int32_t> numbers;
  const auto rest = fewer.build(&numbers);
  CHECK(numbers == std::vector<int32_t>{1, 2, 3});
  CHECK(rest.operator_count() == 3);
  CHECK(rest.tensors().size() == 2);
  GraphBuilder wrong(made);
  wrong.remove(2);
  CHECK_THROWS_AS(wrong.build(), ArgumentError);
}

TEST_CASE("colocation makes units, numbered by their first operator") {
  test::GraphMaker make("g");
  for (const char* name : {"a", "b", "c", "d", "e"}) make.op(name, 1);
  make.colocate(3, 1);
  make.colocate(4, 3);
  const auto graph = make.build();
  CHECK(graph.unit_count() == 3);
  CHECK(std::vector<int32_t>(graph.units().begin(), graph.units().end()) ==
        std::vector<int32_t>{0, 1, 2, 1, 1});
  CHECK(graph.unit(1).size() == 3);
  CHECK(graph.unit(1)[2] == 4);
}

TEST_CASE("the fingerprint notices a changed cost, size, name or edge") {
  const auto fingerprint = [](double time_s, int64_t bytes, const char* name, bool edge) {
    test::GraphMaker make("g");
    const int a = make.op("a", time_s), b = make.op(name, 1);
    const int tensor = make.output(a, bytes);
    if (edge) make.read(b, tensor);
    return make.build().fingerprint();
  };
  const auto base = fingerprint(1, 8, "b", true);
  CHECK(base == fingerprint(1, 8, "b", true));
  CHECK(base != fingerprint(2, 8, "b", true));
  CHECK(base != fingerprint(1, 9, "b", true));
  CHECK(base != fingerprint(1, 8, "c", true));
  CHECK(base != fingerprint(1, 8, "b", false));
}

namespace {

/// image -> conv -> relu -> (left, right) -> loss
Graph forward_graph() {
  test::LayerMaker make("net");
  const std::vector<int64_t> shape = {1, 8, 4, 4};
  const int32_t image = make.add("image", "Input", {}, {1, 3, 4, 4});
  const int32_t conv = make.add("conv", "Conv", {image}, shape, {8, 3, 3, 3});
  const int32_t relu = make.add("relu", "Relu", {conv}, shape);
  const int32_t left = make.add("left", "Sigmoid", {relu}, shape);
  const int32_t right = make.add("right", "Sigmoid", {relu}, shape);
  make.add("loss", "SoftmaxCrossEntropyLoss", {left, right}, {1});
  return make.builder.build();
}

}  // namespace

TEST_CASE("training lowering adds gradients, their sums and updates, and colocates them") {
  const auto forward = forward_graph();
  const auto graph = lower_to_training(forward, {});
  const auto at = [&](const char* name) { return graph.op(graph.find(name)); };
  CHECK(graph.find("image/grad") == -1);      // no gradient flows into data
  REQUIRE(graph.find("relu/grad_sum") >= 0);  // relu's output has two readers
  CHECK(at("relu/grad_sum").inputs.size() == 2);
  REQUIRE(graph.find("conv/update") >= 0);
  CHECK(at("conv/update").persistent_bytes == at("conv").parameter_bytes());  // momentum
  CHECK(at("conv/grad").outputs.size() == 1);  // the weight gradient; the image wants none
  CHECK(graph.tensor(at("conv/grad").outputs[0]).bytes == at("conv").parameter_bytes());
  CHECK(graph.op(at("conv/update").forward).name == "conv");
  for (const char* name : {"conv/grad", "conv/update"}) CHECK(at(name).unit == at("conv").unit);
  CHECK(at("relu/grad").unit == at("relu").unit);
  CHECK(graph.unit_count() == forward.operator_count());

  TrainingOptions free;
  free.colocate = TrainingOptions::Colocate::parameters;
  const auto freer = lower_to_training(forward, free);
  CHECK(freer.op(freer.find("conv/grad")).unit == freer.op(freer.find("conv")).unit);
  CHECK(freer.op(freer.find("left/grad")).unit != freer.op(freer.find("left")).unit);
  CHECK_THROWS_AS(lower_to_training(graph, {}), ArgumentError);
}

TEST_CASE("units sum tensors once per pair, whoever reads them") {
  const auto graph = lower_to_training(forward_graph(), {});
  const auto units = make_unit_graph(graph);
  CHECK(units.size() == graph.unit_count());
  for (const auto& edge : units.edges) CHECK(edge.from != edge.to);
  const int32_t conv = graph.op(graph.find("conv")).unit, relu = graph.op(graph.find("relu")).unit;
  int count = 0;
  for (const auto& edge : units.edges)
    if (edge.from == conv && edge.to == relu) {
      ++count;
      CHECK(edge.bytes == 8 * 16 * 4);
    }
  CHECK(count == 1);
}

TEST_CASE("names that are no UTF-8 are refused with the byte, wherever they stand") {
  const auto refused = [](auto body) {
    GraphBuilder builder("g");
    return test::message_of<ArgumentError>([&] { body(builder); });
  };
  const auto named = [](const char* name) { return Operator{.name = name}; };
  CHECK(
      refused([&](GraphBuilder& b) { b.add_operator(named("caf\xe9/two")); }) ==
      "operator 'caf\\xE9/two': expected a name in UTF-8, got byte 0xE9 at position 4 (of Latin-1, "
      "iconv -f latin1 -t utf8 makes UTF-8)");
  CHECK(refused([&](GraphBuilder& b) {
          auto op = named("a");
          op.type = "\xff";
          b.add_operator(op);
        }).starts_with("operator type '\\xFF'"));
  CHECK(refused([&](GraphBuilder& b) {
          auto op = named("a");
          op.parameters.push_back({"w\xc3", {2}});
          b.add_operator(op);
        }).starts_with("parameter 'w\\xC3'"));
  CHECK(refused([&](GraphBuilder& b) {
          b.add_output(b.add_operator(named("a")), {.name = "\xed\xa0\x80"});  // a surrogate
        }).starts_with("tensor '\\xED\\xA0\\x80'"));
  CHECK(refused([&](GraphBuilder& b) {
          Collective collective;
          collective.name = "\xc0\xaf";  // longer than needed
          collective.members = {b.add_operator(named("a"))};
          b.add_collective(collective);
        }).starts_with("collective '\\xC0\\xAF'"));
  CHECK(refused([&](GraphBuilder& b) {
          b.add_operator(named("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"));
        }) == "no error");
}
