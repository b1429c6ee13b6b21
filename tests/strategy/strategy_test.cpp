#include <doctest/doctest.h>

#include "base/error.h"
#include "strategy/cost.h"
#include "strategy/strategy.h"
#include "support/build.h"

using namespace trinity;

namespace {

std::shared_ptr<const Graph> pair_graph() {
  test::GraphMaker make("pair");
  const int a = make.op("a", 1e-3), b = make.op("b", 1e-3), c = make.op("c", 1e-3);
  make.edge(a, b, 8);
  make.colocate(b, c);
  return make.share();
}

}  // namespace

TEST_CASE("placements are checked for length, devices and colocation") {
  const auto graph = pair_graph();
  const auto cluster = test::uniform_cluster(2, 1e9, 0);
  const auto check = [&](std::vector<int32_t> p) { check_placement(p, *graph, *cluster); };
  check({0, 1, 1});
  CHECK_THROWS_WITH_AS(check({0, 1}), doctest::Contains("needs 3 entries, got 2"), ArgumentError);
  CHECK_THROWS_WITH_AS(check({0, 2, 2}), doctest::Contains("'b' is placed on device 3"),
                       ArgumentError);
  CHECK_THROWS_WITH_AS(check({0, -1, -1}), doctest::Contains("expected 1 to 2"), ArgumentError);
  CHECK_THROWS_WITH_AS(check({0, 1, 0}), doctest::Contains("'b' and 'c' are colocated"),
                       ArgumentError);
}

TEST_CASE("a strategy survives JSON, and a changed graph is noticed") {
  const auto graph = pair_graph();
  const auto cluster = test::uniform_cluster(2, 1e9, 0);
  const Strategy strategy{{1, 0, 0}};
  const auto text = strategy_to_json(strategy, *graph, *cluster, {{"seed", "3"}, {"by", "hand"}});
  CHECK(text == strategy_to_json(strategy, *graph, *cluster, {{"by", "hand"}, {"seed", "3"}}));
  const auto loaded = strategy_from_json(text, "file", *graph, *cluster);
  CHECK(loaded.strategy.placement == strategy.placement);
  CHECK(loaded.notes.at("seed") == "3");
  CHECK(loaded.same_graph);
  CHECK(loaded.same_cluster);
  test::GraphMaker make("pair");
  const int a = make.op("a", 2e-3), b = make.op("b", 1e-3), c = make.op("c", 1e-3);
  make.edge(a, b, 8);
  make.colocate(b, c);
  CHECK_FALSE(strategy_from_json(text, "file", *make.share(), *cluster).same_graph);
}

TEST_CASE("any damage to a strategy file is a file error, never a crash") {
  const auto graph = pair_graph();
  const auto cluster = test::uniform_cluster(2, 1e9, 0);
  const auto text = strategy_to_json({{1, 0, 0}}, *graph, *cluster, {{"seed", "3"}});
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char wrong : {'\0', '"', '{', '1', ','}) {
      std::string damaged = text;
      damaged[at] = wrong;
      try {
        strategy_from_json(damaged, "file", *graph, *cluster);
      } catch (const FileError&) {
      }
    }
    if (at + 1 < text.size())  // the last character is the newline
      CHECK_THROWS_AS(strategy_from_json(text.substr(0, at), "file", *graph, *cluster), FileError);
  }
}

TEST_CASE("operator times: measured, roofline, views") {
  const auto cluster = test::uniform_cluster(1, 1e9, 0);
  const auto graph = pair_graph();
  DeviceType type = cluster->type_of(0);  // 1 TFLOP/s, 100 GB/s, efficiencies 0.5 and 0.75
  type.launch_s = 1e-6;
  Device half = cluster->device(0);
  half.speed = 0.5;
  Operator op;
  op.type = "Gemm";
  op.flops = 1e9;
  op.traffic_bytes = 1e6;
  const auto time = [&](const Device& device) { return operator_time_s(*graph, op, device, type); };
  CHECK(time(cluster->device(0)) == doctest::Approx(1e-6 + 2e-3));
  CHECK(time(half) == doctest::Approx(2 * (1e-6 + 2e-3)));
  op.type = "Relu";
  op.flops = 1e6;
  op.traffic_bytes = 3e6;
  CHECK(time(cluster->device(0)) == doctest::Approx(1e-6 + 4e-5));
  op.type = "Reshape";
  CHECK(time(cluster->device(0)) == 0);
  op.measured_time_s = 3e-3;
  CHECK(time(half) == doctest::Approx(6e-3));
}
