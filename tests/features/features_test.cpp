#include <doctest/doctest.h>

#include <cmath>

#include "features/features.h"
#include "graph/operator_types.h"
#include "support/build.h"

using namespace trinity;

namespace {

/// Two operators, the second three times as long, on two devices.
Problem pair() {
  test::GraphMaker make("chain");
  const int a = make.op("a", 1e-3), b = make.op("b", 3e-3);
  make.edge(a, b, 100);
  return Problem(make.share(), test::uniform_cluster(2, 1e9, 0), SimulationRules{});
}

/// Two cliques of `size` nodes joined by one edge.
std::vector<std::vector<int32_t>> two_cliques(int32_t size) {
  std::vector<std::vector<int32_t>> neighbours(static_cast<size_t>(2 * size));
  for (int32_t a = 0; a < 2 * size; ++a)
    for (int32_t b = 0; b < 2 * size; ++b)
      if (a != b && (a / size == b / size || (a + b == 2 * size - 1 && std::abs(a - b) == 1)))
        neighbours[a].push_back(b);
  return neighbours;
}

double cosine(const std::vector<float>& vectors, int32_t a, int32_t b, int32_t width) {
  double dot = 0, aa = 0, bb = 0;
  for (int32_t k = 0; k < width; ++k) {
    const double x = vectors[a * width + k];
    const double y = vectors[b * width + k];
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  return dot / std::sqrt(aa * bb);
}

}  // namespace

TEST_CASE("node2vec puts members of a community near each other") {
  Node2VecOptions options;
  options.dimensions = 16;
  const auto vectors = node2vec(two_cliques(8), options, 1);
  double within = 0, across = 0;
  for (int32_t a = 0; a < 8; ++a) {
    for (int32_t b = 0; b < 8; ++b) {
      if (a != b) within += cosine(vectors, a, b, 16) / 56;
      across += cosine(vectors, a, b + 8, 16) / 64;
    }
  }
  CHECK(within > across + 0.5);
  CHECK(node2vec(two_cliques(8), options, 1) == vectors);
  CHECK(node2vec(two_cliques(8), options, 2) != vectors);
}

TEST_CASE("node2vec accepts nodes without neighbours") {
  const auto vectors = node2vec({{}, {2}, {1}}, Node2VecOptions{}, 1);
  for (const float value : vectors) CHECK(std::isfinite(value));
}

TEST_CASE("columns are standardised, constants become zero") {
  std::vector<float> matrix = {1, 5, 2, 5, 3, 5};
  standardise_columns(matrix, 2);
  CHECK(matrix[0] == doctest::Approx(-std::sqrt(1.5)));
  CHECK(matrix[2] == doctest::Approx(0));
  CHECK(matrix[1] == 0);
}

TEST_CASE("group embeddings: histogram, sums, adjacency, zeros for empty groups") {
  test::GraphMaker make("chain");
  const int a = make.op("a", 1e-3), b = make.op("b", 2e-3), c = make.op("c", 3e-3);
  make.edge(a, b, 100);
  make.edge(b, c, 200);
  const Problem problem(make.share(), test::uniform_cluster(2, 1e9, 0), SimulationRules{});
  const auto units = make_unit_graph(problem.graph());
  const auto features = unit_features(problem, units, FeatureOptions{}, 1);
  REQUIRE(features.type_count == 1);
  const GroupFeatures embedder(problem, units, features, 3);
  REQUIRE(embedder.width() == 1 + 2 + 6);
  std::vector<float> out(27);
  embedder.embed(std::vector<int32_t>{0, 0, 2}, out.data());
  const std::vector<float> head = {out[0], out[3], out[4], out[5], out[6], out[7], out[8]};
  CHECK(head == std::vector<float>{1, 0, 0, 1, 0, 0, 0});  // all of one type; edge to group 2
  CHECK(std::vector<float>(out.begin() + 9, out.begin() + 18) == std::vector<float>(9, 0.0f));
  CHECK(out[18 + 6] == 1);  // group 2 hears from group 0
  CHECK(out[2] == doctest::Approx(std::log1p(3000.0) / std::log1p(6000.0)));

  FeatureOptions options;
  options.mean_output_size = true;
  GroupFeatures(problem, units, features, 3, options)
      .embed(std::vector<int32_t>{0, 0, 2}, out.data());
  CHECK(out[1] == doctest::Approx(std::log1p(150.0) / std::log1p(300.0)));

  options = {};
  options.group_counts = true;
  GroupFeatures(problem, units, features, 3, options)
      .embed(std::vector<int32_t>{0, 0, 2}, out.data());
  CHECK(out[0] == doctest::Approx(2.0 / 3));  // two members, divided by the largest entry plus 1

  options = {};
  options.raw_output = options.adjacency_out = true;
  options.group_time = false;
  const GroupFeatures literal(problem, units, features, 3, options);
  REQUIRE(literal.width() == 1 + 1 + 3);
  literal.embed(std::vector<int32_t>{0, 0, 2}, out.data());
  CHECK(std::vector<float>(out.begin(), out.begin() + 5) == std::vector<float>{1, 1, 0, 0, 1});
  CHECK(std::vector<float>(out.begin() + 10, out.begin() + 15) ==
        std::vector<float>{1, 0, 0, 0, 0});  // it hears from group 0, which it does not say

  const auto position = work_position(problem, units);
  CHECK(position[0] < position[1]);
  CHECK(position[1] < position[2]);
  CHECK(position[2] < 1);
}

TEST_CASE("every operator may be a unit by itself") {
  test::GraphMaker make("chain");
  const int a = make.op("a", 1e-3), b = make.op("b", 3e-3), c = make.op("c", 5e-3);
  make.edge(a, b, 100);
  make.edge(b, c, 200);
  make.colocate(a, b);
  const Problem problem(make.share(), test::uniform_cluster(2, 1e9, 0), SimulationRules{});
  const auto units = make_unit_graph(problem.graph());
  const auto operators = make_operator_graph(problem.graph());
  CHECK(units.size() == 2);
  CHECK(units.unit_of == std::vector<int32_t>{0, 0, 1});
  CHECK(unit_times_s(problem, units)[0] == doctest::Approx(4e-3));
  REQUIRE(operators.size() == 3);
  CHECK(operators.unit_of == std::vector<int32_t>{0, 1, 2});
  CHECK(operators.edges.size() == 2);
  CHECK(operators.edges[0].bytes == 100);
  CHECK(unit_times_s(problem, operators)[1] == doctest::Approx(3e-3));
}

TEST_CASE("features of the released code: ratios to the mean, the type's index") {
  const auto problem = pair();
  const auto units = make_unit_graph(problem.graph());
  FeatureOptions options;
  options.scale_by_mean = options.type_index = true;
  options.depth = false;
  options.node2vec.dimensions = 2;
  const auto features = unit_features(problem, units, options, 1);
  REQUIRE(features.width == 5);
  CHECK(features.own_columns == 3);
  CHECK(features.values[0] == doctest::Approx(0.5));
  CHECK(features.values[5] == doctest::Approx(1.5));
  CHECK(features.values[1] == doctest::Approx(2));
  CHECK(features.values[2] == 0);
  CHECK(features.type_names == std::vector<std::string>{"Work"});
}

TEST_CASE("shared types: buckets, then every known type with its gradient") {
  const auto& names = shared_types();
  const auto known = operator_types();
  REQUIRE(names.size() == kOtherTypes + 2 * known.size());
  for (size_t i = 0; i < known.size(); ++i) {
    const auto at = kOtherTypes + static_cast<int32_t>(2 * i);
    CHECK(shared_type(known[i]) == at);
    CHECK(shared_type(known[i] + "Grad") == at + 1);
    CHECK(names[at + 1] == known[i] + "Grad");
  }
  CHECK(shared_type("MyOwnType") == 20);  // FNV-1a, modulo 32
  CHECK(shared_type("AnotherOwnType") == 2);
  CHECK(shared_type("other 1") < kOtherTypes);
}
