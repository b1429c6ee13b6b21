#include <doctest/doctest.h>

#include <limits>

#include "base/error.h"
#include "graph/training.h"
#include "support/build.h"

using namespace trinity;

TEST_CASE("building renumbers the members of collectives") {
  test::GraphMaker make("g");
  const int late = make.op("late", 1), other = make.op("other", 1), early = make.op("early", 1);
  make.edge(early, late, 10);
  make.collective("sum", 40, {other, late});
  make.collective("lone", 0, {early}, CollectiveKind::broadcast);
  const auto graph = make.build();
  REQUIRE(graph.collectives().size() == 2);
  const auto& sum = graph.collectives()[0];
  CHECK(sum.name == "sum");
  CHECK(sum.bytes == 40);
  CHECK(sum.members == std::vector<int32_t>{graph.find("other"), graph.find("late")});
  CHECK(std::is_sorted(sum.members.begin(), sum.members.end()));
  CHECK(graph.op(graph.find("late")).collective == 0);
  CHECK(graph.op(graph.find("other")).collective == 0);
  CHECK(graph.op(graph.find("early")).collective == 1);
}

TEST_CASE("broken collectives are refused by name") {
  const auto fails = [](Collective collective, const char* text) {
    GraphBuilder builder("g");
    for (const char* name : {"a", "b", "c"}) builder.add_operator({.name = name, .type = "Work"});
    builder.op(2).phase = Phase::update;
    builder.add_collective({"first", {}, {}, 1, {1}});
    CHECK_THROWS_WITH_AS(builder.add_collective(std::move(collective)), doctest::Contains(text),
                         ArgumentError);
    CHECK(builder.op(0).collective == -1);
  };
  fails({"x", {}, {}, 1, {}}, "collective 'x' has no members");
  fails({"x", {}, {}, -1, {0}}, "collective 'x': bytes must not be negative, got -1");
  fails({"x", {}, {}, 1, {0, 3}}, "collective 'x': no operator number 3");
  fails({"x", {}, {}, 1, {-1}}, "collective 'x': no operator number -1");
  fails({"x", {}, {}, 1, {0, 0}}, "collective 'x': operator 'a' is named twice");
  fails({"x", {}, {}, 1, {0, 1}}, "collective 'x': operator 'b' is a member of collective 'first'");
  fails({"x", {}, {}, 1, {0, 2}},
        "collective 'x': expected operators of one phase, got 'a' of phase forward and 'c' of phase "
        "update");
  fails({"first", {}, {}, 1, {0}}, "collective 'first' is already in graph 'g'");
  fails({"", {}, {}, 1, {0}}, "a collective needs a name");
}

TEST_CASE("a collective that waits for itself is refused") {
  const auto fails = [](test::GraphMaker& make, const char* text) {
    CHECK_THROWS_WITH_AS(make.build(), doctest::Contains(text), ArgumentError);
  };
  SUBCASE("directly") {
    test::GraphMaker make("g");
    const int a = make.op("a", 1), b = make.op("b", 1);
    make.edge(a, b, 8);
    make.collective("sum", 8, {a, b});
    fails(make,
          "graph 'g': collective 'sum' waits for itself: its member 'b' needs the output of its "
          "member 'a'");
  }
  SUBCASE("by way of an operator") {
    test::GraphMaker make("g");
    const int a = make.op("a", 1), between = make.op("between", 1), b = make.op("b", 1);
    make.edge(make.op("source", 1), a, 8);
    make.edge(a, between, 8);
    make.edge(between, b, 8);
    make.edge(b, make.op("sink", 1), 8);
    make.collective("sum", 8, {b, a});
    fails(make, "collective 'sum' waits for itself: its member 'b' needs the output of its member "
                "'a'");
  }
  SUBCASE("by way of another collective") {
    test::GraphMaker make("g");
    const int a = make.op("a", 1), b = make.op("b", 1), c = make.op("c", 1), d = make.op("d", 1);
    make.edge(a, c, 8);
    make.edge(d, b, 8);
    make.collective("one", 8, {a, b});
    make.collective("two", 8, {c, d});
    fails(make, "waits for itself: its member");
  }
  SUBCASE("collectives one after the other are fine") {
    test::GraphMaker make("g");
    const int a = make.op("a", 1), b = make.op("b", 1), c = make.op("c", 1), d = make.op("d", 1);
    make.edge(a, c, 8);
    make.edge(b, c, 8);
    make.edge(b, d, 8);
    make.collective("one", 8, {a, b});
    make.collective("two", 8, {c, d});
    CHECK(make.build().collectives().size() == 2);
  }
}

TEST_CASE("the fingerprint notices collectives and workspaces") {
  const auto fingerprint = [](CollectiveKind kind, CollectiveAlgorithm algorithm, int64_t bytes,
                              std::vector<int32_t> members, int64_t workspace) {
    GraphBuilder builder("g");
    for (const char* name : {"a", "b", "c"})
      builder.add_operator({.name = name, .type = "Work", .workspace_bytes = workspace});
    if (!members.empty()) builder.add_collective({"x", kind, algorithm, bytes, members});
    return builder.build().fingerprint();
  };
  const auto all_reduce = CollectiveKind::all_reduce;
  const auto ring = CollectiveAlgorithm::ring;
  const auto base = fingerprint(all_reduce, ring, 8, {0, 1}, 0);
  CHECK(base == fingerprint(all_reduce, ring, 8, {1, 0}, 0));
  CHECK(base != fingerprint(CollectiveKind::broadcast, ring, 8, {0, 1}, 0));
  CHECK(base != fingerprint(all_reduce, CollectiveAlgorithm::tree, 8, {0, 1}, 0));
  CHECK(base != fingerprint(all_reduce, ring, 9, {0, 1}, 0));
  CHECK(base != fingerprint(all_reduce, ring, 8, {0, 2}, 0));
  CHECK(base != fingerprint(all_reduce, ring, 8, {}, 0));
  CHECK(base != fingerprint(all_reduce, ring, 8, {0, 1}, 1));
}

TEST_CASE("costs that are negative, no numbers or too large are refused with the operator's name") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto add = [](auto change) {
    Operator op{.name = "a", .type = "Work"};
    change(op);
    GraphBuilder("g").add_operator(op);
  };
  const auto fails = [&](const char* text, auto change) {
    CHECK_THROWS_WITH_AS(add(change), doctest::Contains(text), ArgumentError);
  };
  for (const double wrong : {-1.0, kInfinity, kNan})
    fails("operator 'a': flops must be finite and not negative",
          [=](Operator& op) { op.flops = wrong; });
  for (const double wrong : {kInfinity, -kInfinity, kNan}) {
    fails("'a': traffic_bytes must be finite", [=](Operator& op) { op.traffic_bytes = wrong; });
    fails("'a': measured_time_s must", [=](Operator& op) { op.measured_time_s = wrong; });
    fails("measured_backward_time_s", [=](Operator& op) { op.measured_backward_time_s = wrong; });
  }
  fails("'a': persistent_bytes must not be", [](Operator& op) { op.persistent_bytes = -1; });
  fails("'a': workspace_bytes must not be", [](Operator& op) { op.workspace_bytes = -1; });
  fails("extra_parameter_bytes must not be", [](Operator& op) { op.extra_parameter_bytes = -1; });
  fails("parameter 'w': extent -2", [](Operator& op) { op.parameters = {{"w", {-2, 3}, {}}}; });
  constexpr int64_t kMuch = (int64_t{1} << 50) + 1;
  CHECK_THROWS_AS(add([](Operator& op) { op.workspace_bytes = kMuch; }), LimitError);
  CHECK_THROWS_AS(add([](Operator& op) {
                    op.parameters = {{"w", {int64_t{1} << 40, int64_t{1} << 40}, {}}};
                  }),
                  LimitError);

  test::GraphMaker make("g");
  const int op = make.op("a", 1);
  CHECK_THROWS_AS(make.output(op, -1), ArgumentError);
  CHECK_THROWS_AS(make.output(op, kMuch), LimitError);
  for (int i = 0; i < 1025; ++i) make.output(op, kMuch - 1);
  CHECK_THROWS_WITH_AS(make.build(), doctest::Contains("more than 2^60 bytes"), LimitError);
}

TEST_CASE("a forward operator that does not exist is refused") {
  test::GraphMaker make("g");
  make.op_of(Phase::backward, "a", 1, 7);
  CHECK_THROWS_WITH_AS(make.build(), doctest::Contains("'a': its forward operator, number 7"),
                       ArgumentError);
}

TEST_CASE("training lowering gives collectives their opposite") {
  test::GraphMaker make("g");
  std::vector<int32_t> scatter, sum;
  const int loss = make.op("loss", 1);
  for (const char* name : {"x", "y"}) {
    const std::string device = name;
    const int weights = make.op(device + "_weights", 1, 100);
    scatter.push_back(make.op(device + "_scatter", 1));
    sum.push_back(make.op(device + "_sum", 1));
    make.edge(weights, scatter.back(), 8);
    make.edge(scatter.back(), sum.back(), 4);
    make.edge(sum.back(), loss, 4);
  }
  make.output(loss, 4);
  make.collective("scatter", 16, scatter, CollectiveKind::reduce_scatter);
  make.collective("sum", 8, sum);
  const auto graph = lower_to_training(make.build(), {});
  REQUIRE(graph.collectives().size() == 4);
  const auto check = [&](size_t i, const char* name, CollectiveKind kind, int64_t bytes,
                         const char* member) {
    const auto& collective = graph.collectives()[i];
    CHECK(collective.name == name);
    CHECK(collective.kind == kind);
    CHECK(collective.bytes == bytes);
    CHECK(collective.members.size() == 2);
    CHECK(graph.op(graph.find(member)).collective == static_cast<int32_t>(i));
  };
  check(0, "scatter", CollectiveKind::reduce_scatter, 16, "x_scatter");
  check(1, "sum", CollectiveKind::all_reduce, 8, "y_sum");
  check(2, "scatter/grad", CollectiveKind::all_gather, 16, "x_scatter/grad");
  check(3, "sum/grad", CollectiveKind::all_reduce, 8, "y_sum/grad");
  CHECK(graph.op(graph.find("x_sum/grad")).inputs.size() == 1);  // keeps no forward tensor alive
}
