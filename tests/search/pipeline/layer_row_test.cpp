// Rows of layers: of a graph by hand and recounted on random ones, and of networks.
#include "search/pipeline/layer_row.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/index.h"
#include "support/cases.h"

using namespace trinity;
using Numbers = std::vector<double>;

namespace {

/// Cuts of a row that a tensor goes over, counted reader by reader.
void add_crossings(const Graph& graph, const LayerRow& row, Numbers& forward, Numbers& backward) {
  for (int32_t t = 0; t < static_cast<int32_t>(graph.tensors().size()); ++t) {
    const int32_t from = row.layer_of[graph.tensor(t).producer];
    for (int32_t cut = 0; cut <= row.count(); ++cut) {
      bool ahead = false, back = false;
      for (int32_t o = 0; o < graph.operator_count(); ++o) {
        const auto& inputs = graph.op(o).inputs;
        if (std::find(inputs.begin(), inputs.end(), t) == inputs.end()) continue;
        ahead = ahead || (from < cut && row.layer_of[o] >= cut);
        back = back || (from >= cut && row.layer_of[o] < cut);
      }
      const auto bytes = static_cast<double>(graph.tensor(t).bytes);
      if (ahead) forward[cut] += bytes;
      if (back) backward[cut] += bytes;
    }
  }
}

double sum(const Numbers& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }

PipelineNetwork chain(int32_t nodes) {
  PipelineNetwork network;
  network.bandwidth_bytes_per_s = 1e9;
  for (int32_t n = 0; n < nodes; ++n) {
    PipelineNetwork::Node node;
    node.time = 1 + n % 3;
    node.output_bytes = 1e9 * (1 + n % 2);
    node.unit = n;
    network.nodes.push_back(node);
    if (n > 0) network.edges.emplace_back(n - 1, n);
  }
  return network;
}

}  // namespace

TEST_CASE("a graph's row has times of each kind of device, bytes of layers and of cuts") {
  test::GraphMaker maker("steps");
  const int a = maker.op("a", 1e-3, 100), b = maker.op("b", 2e-3), c = maker.op("c", 4e-3, 50);
  const int both = maker.output(a, 10);  // read by two layers: it goes over the first cut once
  maker.read(b, both);
  maker.read(c, both);
  maker.edge(b, c, 20);
  const int back_c = maker.op_of(Phase::backward, "back c", 8e-3, c);
  const int back_a = maker.op_of(Phase::backward, "back a", 16e-3, a);
  const int update = maker.op_of(Phase::update, "update a", 32e-3, a);
  maker.edge(c, back_c, 5);
  maker.edge(back_c, back_a, 7);
  maker.edge(back_a, update, 3);
  auto spec = test::uniform_spec(3, 1e9, 0, 1000);
  spec.devices[1].speed = 2;
  spec.links[2].bandwidth_bytes_per_s = 5e8;
  const auto row = layer_row_of(test::make_problem(maker.share(), spec));
  REQUIRE(row.count() == 3);
  CHECK(row.layer_of == std::vector<int32_t>{0, 1, 2, 2, 0, 0});
  CHECK(row.type == std::vector<std::string>(3, "Work"));
  CHECK(row.parameter_bytes == Numbers{100, 0, 50});
  CHECK(row.fixed_bytes == Numbers{100, 0, 50});
  CHECK(row.activation_bytes == Numbers{10, 20, 5});
  CHECK(row.forward_bytes == Numbers{0, 10, 30, 0});
  CHECK(row.backward_bytes == Numbers{0, 7, 7, 0});
  REQUIRE(row.kinds.size() == 2);
  CHECK(row.kinds[1].device == 1);
  CHECK(row.kinds[1].forward_s[2] == doctest::Approx(2e-3));
  CHECK(row.kinds[0].backward_s[0] == doctest::Approx(48e-3));
  CHECK(row.kinds[0].update_s[0] == doctest::Approx(32e-3));
  CHECK(row.kinds[0].update_s[2] == 0);
  CHECK(row.devices[2].kind == 0);
  CHECK(row.devices[2].capacity_bytes == 1000);
  CHECK(row.devices[0].send_bytes_per_s == 5e8);  // the narrowest of its links
}

TEST_CASE("rows of random training steps hold all times and bytes, and every cut what crosses it") {
  int with_collectives = 0;
  for (uint64_t index = 0; index < 60; ++index) {
    CAPTURE(index);
    const auto drawn = test::mixed_case(index);
    const auto& problem = *drawn.problem;
    const auto& graph = problem.graph();
    const auto row = layer_row_of(problem);
    with_collectives += graph.collectives().empty() ? 0 : 1;
    CHECK(sum(row.parameter_bytes) == static_cast<double>(graph.parameter_bytes()));
    for (const auto& kind : row.kinds) {
      const auto costs = problem.costs(kind.device);
      const double all_s =
          static_cast<double>(std::accumulate(costs.begin(), costs.end(), int64_t{0})) / 1e9;
      CHECK(sum(kind.forward_s) + sum(kind.backward_s) == doctest::Approx(all_s));
      for (int32_t l = 0; l < row.count(); ++l) CHECK(kind.update_s[l] <= kind.backward_s[l]);
    }
    Numbers forward(at(row.count()) + 1, 0), backward = forward;
    add_crossings(graph, row, forward, backward);
    CHECK(row.forward_bytes == forward);
    CHECK(row.backward_bytes == backward);
    for (int32_t o = 0; o < graph.operator_count(); ++o)
      for (const int32_t other : graph.unit(graph.units()[o]))
        if (graph.op(o).phase == Phase::forward && graph.op(other).phase == Phase::forward)
          CHECK(row.layer_of[o] == row.layer_of[other]);
  }
  CHECK(with_collectives > 0);
}

TEST_CASE("a network's row has a layer a node, or runs of them where there are many") {
  PipelineMachine machine;
  machine.devices = 2;
  machine.bandwidth_bytes_per_s = 2e9;
  const auto row = layer_row_of(chain(4), machine);
  REQUIRE(row.count() == 4);
  CHECK(row.layer_of == std::vector<int32_t>{0, 1, 2, 3});
  CHECK(row.kinds[0].forward_s == Numbers{1, 2, 3, 1});
  CHECK(row.device_count() == 2);
  // A layer's transfers: what it sends, and what it gets, there and back: 2 * 1 GB a s.
  CHECK(row.forward_bytes == Numbers{0, 2e9, 6e9, 6e9, 2e9});
  const auto many = layer_row_of(chain(3000), machine);
  CHECK(many.count() == 1024);
  CHECK(std::is_sorted(many.layer_of.begin(), many.layer_of.end()));
  CHECK(sum(many.kinds[0].forward_s) == 6000);
}

TEST_CASE(
    "a row of groups sums times and memory of their nodes; a graph without forward has none") {
  LoadInstance instance;
  instance.accelerators = 2;
  for (int32_t n = 0; n < 3; ++n) instance.nodes.push_back({1.0 + n, 0, 0, 10 + n, n, false, true});
  LoadOrder order;
  order.groups = {{1}, {0, 2}};
  const auto row = layer_row_of(instance, order);
  CHECK(row.layer_of == std::vector<int32_t>{1, 0, 1});
  CHECK(row.kinds[0].forward_s == Numbers{2, 4});
  CHECK(row.fixed_bytes == Numbers{11, 22});
  test::GraphMaker maker("backwards");
  maker.op_of(Phase::backward, "b", 1e-3);
  const auto problem = test::make_problem(maker.share(), test::uniform_spec(1, 1e9, 0));
  CHECK_THROWS_WITH_AS(layer_row_of(problem), "graph 'backwards' has no forward operators",
                       ArgumentError);
}
