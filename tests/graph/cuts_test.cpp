// Least cuts against the enumeration of all cuts.

#include "graph/cuts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/stop.h"
#include "support/build.h"
#include "support/damage.h"
#include "support/tier.h"

using namespace trinity;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr BackwardEdges kBackward[] = {BackwardEdges::free, BackwardEdges::counted,
                                       BackwardEdges::forbidden};

/// Cost of a cut by the definitions in cuts.h. `side`: bit v is set for the source's side.
double cost_of(const Graph& graph, uint32_t side, const CutOptions& options) {
  const auto on_source = [&](int v) { return (side >> v & 1) != 0; };
  std::set<int32_t> forward, backward;
  double capacity = 0;
  size_t number = 0;
  const auto [first, last] = boost::edges(graph.csr());
  for (auto edge = first; edge != last; ++edge, ++number) {
    const bool from = on_source(static_cast<int>(boost::source(*edge, graph.csr())));
    const bool to = on_source(static_cast<int>(boost::target(*edge, graph.csr())));
    if (from == to) continue;
    if (!from && options.backward == BackwardEdges::forbidden) return kNever;
    (from ? forward : backward).insert(graph.csr()[*edge].tensor);
    if (!options.edge_capacity.empty() && (from || options.backward == BackwardEdges::counted))
      capacity += options.edge_capacity[number];
  }
  if (!options.edge_capacity.empty()) return capacity;
  for (const int32_t tensor : forward) capacity += static_cast<double>(graph.tensor(tensor).bytes);
  if (options.backward == BackwardEdges::counted)
    for (const int32_t tensor : backward)
      capacity += static_cast<double>(graph.tensor(tensor).bytes);
  return capacity;
}

struct Best {
  double capacity = kNever;
  uint32_t smallest = 0;  ///< what all least cuts have in common
};

Best enumerate(const Graph& graph, const std::vector<int32_t>& sources,
               const std::vector<int32_t>& sinks, const CutOptions& options) {
  uint32_t in = 0, out = 0;
  for (const int32_t v : sources) in |= 1U << v;
  for (const int32_t v : sinks) out |= 1U << v;
  Best best;
  for (uint32_t side = 0; side < 1U << graph.operator_count(); ++side) {
    if ((side & in) != in || (side & out) != 0) continue;
    const double cost = cost_of(graph, side, options);
    if (cost > best.capacity || std::isinf(cost)) continue;
    best.smallest = cost < best.capacity ? side : best.smallest & side;
    best.capacity = cost;
  }
  return best;
}

uint32_t mask_of(const std::vector<int32_t>& operators) {
  uint32_t mask = 0;
  for (const int32_t v : operators) mask |= 1U << v;
  return mask;
}

/// Compares a cut with the best of all; true when there is one.
bool expect_least(const Graph& graph, const std::vector<int32_t>& sources,
                  const std::vector<int32_t>& sinks, const CutOptions& options) {
  const auto best = enumerate(graph, sources, sinks, options);
  if (std::isinf(best.capacity)) {
    CHECK_THROWS_AS(min_cut(graph, sources, sinks, options), ArgumentError);
    return false;
  }
  const auto cut = min_cut(graph, sources, sinks, options);
  CHECK(cut.capacity == doctest::Approx(best.capacity).epsilon(1e-12));
  CHECK(mask_of(cut.source_side) == best.smallest);
  CHECK(std::is_sorted(cut.source_side.begin(), cut.source_side.end()));
  CHECK(static_cast<double>(cut.bytes) == cost_of(graph, best.smallest, {}));
  return true;
}

/// One or two operators below `count`, none of `without`.
std::vector<int32_t> some(RandomStream& random, uint64_t count,
                          const std::vector<int32_t>& without) {
  std::vector<int32_t> list;
  for (int i = 0; i < 2; ++i) {
    const auto v = static_cast<int32_t>(random.below(count));
    const bool taken = std::find(without.begin(), without.end(), v) != without.end();
    if (!taken) list.push_back(v);
  }
  return list;
}

}  // namespace

TEST_CASE("least cuts are the least of all cuts") {
  int cuts = 0, refused = 0;
  for (uint64_t i = 0; i < test::draws(400); ++i) {
    RandomStream random(test::law_seed(), "cuts", i);
    const auto count = 3 + random.below(9);
    const auto graph = test::random_graph(random, static_cast<int>(count));
    const auto sources = some(random, count, {}), sinks = some(random, count, sources);
    if (sources.empty() || sinks.empty()) continue;
    // Whole capacities, fractions, and with edges that must not be cut.
    std::vector<double> whole, fraction, barred;
    for (int32_t e = 0; e < graph->edge_count(); ++e) {
      whole.push_back(static_cast<double>(random.below(6)));
      fraction.push_back(random.uniform() * 1e-3);
      barred.push_back(random.below(5) == 0 ? kNever : whole.back());
    }
    for (const auto backward : kBackward) {
      for (const auto& capacity : {std::vector<double>{}, whole, fraction, barred}) {
        const CutOptions options{backward, capacity};
        ++(expect_least(*graph, sources, sinks, options) ? cuts : refused);
      }
    }
  }
  CHECK(cuts >= test::least(2000));
  CHECK(refused >= test::least(100));
}

TEST_CASE("a tensor counts once however many readers it has") {
  test::GraphMaker make("fan");
  const int a = make.op("a", 1);
  const int tensor = make.output(a, 100);
  const int end = [&] {
    std::vector<int> readers;
    for (const char* name : {"b", "c", "d"}) readers.push_back(make.op(name, 1));
    const int out = make.op("end", 1);
    for (const int reader : readers) {
      make.read(reader, tensor);
      make.edge(reader, out, 60);
    }
    return out;
  }();
  const auto graph = make.build();
  const std::vector<int32_t> sources{a}, sinks{end};
  const auto cut = min_cut(graph, sources, sinks);
  CHECK(cut.bytes == 100);
  CHECK(cut.source_side == std::vector<int32_t>{0});
  const std::vector<double> edges{100, 100, 100, 60, 60, 60};
  CHECK(min_cut(graph, sources, sinks, {BackwardEdges::free, edges}).capacity == 180);
}

TEST_CASE("a cut says what is wrong with what it was given") {
  test::GraphMaker make("pair");
  const int a = make.op("alpha", 1), b = make.op("beta", 1);
  make.edge(a, b, 8);
  const auto graph = make.build();
  const std::vector<int32_t> first{0}, second{1};
  const auto text = [&](const auto& sources, const auto& sinks, const CutOptions& options) {
    return test::message_of<ArgumentError>([&] { min_cut(graph, sources, sinks, options); });
  };
  CHECK(text(first, first, {}) == "operator 'alpha' is both a source and a sink");
  CHECK(text(second, first, {BackwardEdges::forbidden, {}}) ==
        "no cut can separate 'beta' from 'alpha'");
  const std::vector<double> none{kNever}, negative{-1.0}, two{1.0, 1.0};
  CHECK(text(first, second, {BackwardEdges::free, none}) == "no cut can separate 'alpha' from "
                                                            "'beta'");
  CHECK(text(first, second, {BackwardEdges::free, negative}) ==
        "edge 1 has capacity -1, expected 0 or more");
  CHECK(text(first, second, {BackwardEdges::free, two}) ==
        "expected 1 capacities, one per edge, got 2");
  CHECK_THROWS_AS(parse_choice<BackwardEdges>("fre"), ArgumentError);
}

TEST_CASE("huge tensors and capacities keep their cuts exact") {
  test::GraphMaker make("huge");
  std::vector<int> middle;
  const int a = make.op("a", 1), z = make.op("z", 1);
  for (int i = 0; i < 400; ++i) {
    middle.push_back(make.op("m" + std::to_string(i), 1));
    make.edge(a, middle.back(), int64_t{1} << 50);
    make.edge(middle.back(), z, (int64_t{1} << 50) - 1);
  }
  const auto graph = make.build();
  const std::vector<int32_t> sources{graph.find("a")}, sinks{graph.find("z")};
  for (const auto backward : kBackward) {
    const auto cut = min_cut(graph, sources, sinks, {backward, {}});
    CHECK(cut.bytes == 400 * ((int64_t{1} << 50) - 1));
    CHECK(cut.source_side.size() == 401);
  }
  std::vector<double> capacity(800, 1e300);
  CHECK(min_cut(graph, sources, sinks, {BackwardEdges::free, capacity}).capacity ==
        doctest::Approx(4e302));
}

TEST_CASE("a wish to stop ends a cut") {
  test::GraphMaker make("grid");  // wide enough to keep the algorithm busy
  constexpr int kSize = 120;
  for (int i = 0; i < kSize * kSize; ++i) make.op("op" + std::to_string(i), 1);
  for (int i = 0; i < kSize * kSize; ++i) {
    if (i % kSize + 1 < kSize) make.edge(i, i + 1, 1 + i % 7);
    if (i + kSize < kSize * kSize) make.edge(i, i + kSize, 1 + i % 5);
  }
  const auto graph = make.build();
  const std::vector<int32_t> sources{0}, sinks{graph.operator_count() - 1};
  CHECK(min_cut(graph, sources, sinks).bytes == 2);
  stop_flag() = true;
  CHECK_THROWS_AS(min_cut(graph, sources, sinks), Interrupted);
  stop_flag() = false;
}
