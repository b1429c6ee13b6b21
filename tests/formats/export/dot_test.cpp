#include "formats/export/dot.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/build.h"

using namespace trinity;

namespace {

/// a -> b -> b/grad with a large and a small tensor, a and b colocated.
Graph small_graph() {
  test::GraphMaker make("x \"quoted\"");
  const int a = make.op("a", 1e-3);
  const int b = make.op("back\\slash & <b>\nline", 1e-3);
  const int grad = make.op_of(Phase::backward, "b/grad", 1e-3, b);
  const int update = make.op_of(Phase::update, "b/update", 1e-3, b);
  make.edge(a, b, 3'000'000);
  make.edge(a, b, 500'000);
  make.edge(b, grad, 10);
  make.edge(grad, update, 1'048'576);
  make.colocate(b, update);
  return make.build();
}

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a graph without placement: phases as borders, sizes of large edges, names escaped") {
  CHECK(graph_to_dot(small_graph()) ==
        R"(digraph "x \"quoted\"" {
  node [shape=box, style="filled", fillcolor=white, fontname="sans-serif"];
  edge [fontname="sans-serif", fontsize=10];
  n0 [label="a\nWork", style="filled,solid"];
  n1 [label="back\\slash &amp; <b> line\nWork", style="filled,solid"];
  n2 [label="b/grad\nWork", style="filled,dashed"];
  n3 [label="b/update\nWork", style="filled,dotted"];
  n0 -> n1 [label="3.5 MB"];
  n1 -> n2;
  n2 -> n3 [label="1.05 MB"];
}
)");
}

TEST_CASE("a placement colors nodes, adds a legend of the devices in use, thick edges between them") {
  DotOptions options{.placement = {0, 0, 4, 0}, .devices = {"gpu 0", "b", "c", "d", "gpu & 4"}};
  const auto text = graph_to_dot(small_graph(), options);
  CHECK(count(text, "fillcolor=\"#E69F00\", fontcolor=black") == 4);  // three nodes and the legend
  CHECK(count(text, "fillcolor=\"#0072B2\", fontcolor=white") == 2);
  CHECK(count(text, "d0 [label=\"gpu 0\"") == 1);
  CHECK(count(text, "d4 [label=\"gpu &amp; 4\"") == 1);
  CHECK(count(text, "d1 [") == 0);
  CHECK(count(text, "n0 -> n1 [label=\"3.5 MB\"];") == 1);
  CHECK(count(text, "n1 -> n2 [penwidth=3];") == 1);
  CHECK(count(text, "n2 -> n3 [label=\"1.05 MB\", penwidth=3];") == 1);
}

TEST_CASE("colors repeat from the ninth device on, and then nodes name their device") {
  DotOptions options{.placement = {8, 0, 0, 0}};
  for (int d = 0; d < 9; ++d) options.devices.push_back("gpu" + std::to_string(d));
  const auto text = graph_to_dot(small_graph(), options);
  CHECK(count(text, "a\\nWork\\ngpu8\", style=\"filled,solid\", fillcolor=\"#E69F00\"") == 1);
}

TEST_CASE("units become one node each") {
  DotOptions options{.placement = {1, 0, 1, 0}, .devices = {"p", "q"}, .units = true};
  const auto text = graph_to_dot(small_graph(), options);
  CHECK(count(text, "\\nWork\"") == 3);
  CHECK(count(text, "line + 1\\nWork\", style=\"filled,solid\"") == 1);
  CHECK(count(text, "b/grad\\nWork\", style=\"filled,dashed\"") == 1);
  CHECK(count(text, "n1 -> n2 [penwidth=3];") == 1);
  CHECK(count(text, "n2 -> n1 [label=\"1.05 MB\", penwidth=3];") == 1);
  options.placement = {1, 0, 1, 1};
  CHECK_THROWS_AS(graph_to_dot(small_graph(), options), ArgumentError);
}

TEST_CASE("placements that fit neither graph nor names are refused") {
  DotOptions options{.placement = {0, 0, 0}, .devices = {"p"}};
  CHECK_THROWS_AS(graph_to_dot(small_graph(), options), ArgumentError);
  options.placement = {0, 0, 0, 1};
  CHECK_THROWS_WITH_AS(graph_to_dot(small_graph(), options),
                       "operator 'b/update' is placed on device 2, expected 1 to 1 (devices with a name)",
                       ArgumentError);
  options.placement = {0, 0, 0, -1};
  CHECK_THROWS_AS(graph_to_dot(small_graph(), options), ArgumentError);
}
