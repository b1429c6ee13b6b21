// Rows cut into balanced parts: exact, in the order of the forward pass.
#include "search/partition/row_cut.h"
#include "base/index.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "graph/training.h"
#include "simulator/simulator.h"
#include "strategy/strategy.h"
#include "support/cases.h"
#include "support/tier.h"

using namespace trinity;

namespace {

int64_t largest(const std::vector<int64_t>& work, const std::vector<int32_t>& part, int32_t parts) {
  std::vector<int64_t> load(at(parts), 0);
  for (size_t e = 0; e < part.size(); ++e) load[at(part[e])] += work[at(part[e]) * part.size() + e];
  return *std::max_element(load.begin(), load.end());
}

/// The least largest load over all non-decreasing assignments.
int64_t exhaustive(const std::vector<int64_t>& work, int32_t parts) {
  std::vector<int32_t> part(work.size() / at(parts), 0);
  int64_t best = std::numeric_limits<int64_t>::max();
  const auto extend = [&](auto&& self, size_t element, int32_t first) -> void {
    if (element == part.size()) {
      best = std::min(best, largest(work, part, parts));
      return;
    }
    for (part[element] = first; part[element] < parts; ++part[element])
      self(self, element + 1, part[element]);
  };
  extend(extend, 0, 0);
  return best;
}

}  // namespace

TEST_CASE("a cut of a row has the least largest load, with parts of different speeds too") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    RandomStream random(test::law_seed(), "work", seed);
    const auto parts = 1 + static_cast<int32_t>(random.below(4));
    std::vector<int64_t> work;
    for (uint64_t i = 0, n = at(parts) * (1 + random.below(8)); i < n; ++i)
      work.push_back(static_cast<int64_t>(random.below(12)));
    const auto part = cut_row(work, work.size() / at(parts), parts);
    CHECK(std::is_sorted(part.begin(), part.end()));
    CHECK(part.back() < parts);
    CHECK(largest(work, part, parts) == exhaustive(work, parts));
  }
  CHECK(cut_row({}, 0, 3).empty());
  const std::vector<int64_t> alike{5, 1, 1}, twice{5, 1, 1, 5, 1, 1};
  CHECK(cut_row(twice, 3, 2) == std::vector<int32_t>{0, 1, 1});
  CHECK(cut_row(alike, 3, 2) == std::vector<int32_t>{0, 1, 1});
  CHECK(cut_row({0.5, 0.1, 0.1}, 2) == std::vector<int32_t>{0, 1, 1});
  CHECK(cut_row({0.0, 0.0}, 2) == std::vector<int32_t>{0, 0});
  CHECK(fill_row(alike, 3, 2, 4) == std::vector<int32_t>{2, 2, 2});
  CHECK(fill_row(alike, 3, 1, 6) == std::vector<int32_t>{0, 0, 1});
}

TEST_CASE("what a cut of a row refuses") {
  const std::vector<int64_t> three{1, 2, 3}, negative{1, -2};
  CHECK_THROWS_WITH_AS(cut_row(three, 2, 2), "row cut: 3 loads of 2 elements for 2 parts",
                       ArgumentError);
  CHECK_THROWS_AS(cut_row(three, 3, 0), ArgumentError);
  CHECK_THROWS_WITH_AS(cut_row(negative, 2, 1), "row cut: a load is -2", ArgumentError);
  CHECK_THROWS_WITH_AS(cut_row({0.5, std::nan("")}, 1), "row cut: a load is nan", ArgumentError);
  const std::vector<int64_t> huge(3, int64_t{1} << 62);
  CHECK_THROWS_AS(cut_row(huge, 3, 1), LimitError);
}

TEST_CASE("weights go with their first reader, whatever their number") {
  test::GraphMaker make("net");
  make.type(make.op("weight", 0, 100), "Variable");
  const int weights = make.output(0, 100);
  for (int i = 0, before = -1; i < 4; ++i) {
    const int op = make.op("layer" + std::to_string(i), 1e-6);
    if (before >= 0) make.read(op, before);
    if (i == 3) make.read(op, weights);
    before = make.output(op, 100);
  }
  const auto problem = test::make_problem(make.share(), test::uniform_spec(2, 1e9, 0));
  CHECK(pipeline_order(problem) == std::vector<int32_t>{1, 2, 3, 0, 4});
  CHECK(contiguous_cut(PlacementSpace(problem)) == Assignment{1, 0, 0, 1, 1});
}

TEST_CASE("a contiguous cut keeps units together and runs as a pipeline") {
  for (uint64_t index = 0; index < 30; ++index) {
    CAPTURE(index);
    RandomStream random(test::law_seed(), "net", index);
    const auto graph =
        std::make_shared<const Graph>(lower_to_training(*test::random_graph(random, 30), {}));
    const auto problem = test::make_problem(graph, test::uniform_spec(3, 1e9, 1e-6));
    const PlacementSpace space(problem);
    const auto placement = space.placement(contiguous_cut(space));
    CHECK_NOTHROW(check_placement(placement, *graph, problem.cluster()));
    for (int32_t o = 0; o < graph->operator_count(); ++o)
      for (const auto& reader : problem.readers(o))
        if (graph->op(o).phase == Phase::forward && graph->op(reader.op).phase == Phase::forward)
          CHECK(placement[at(o)] <= placement[at(reader.op)]);
    const auto schedule =
        pipeline_schedule(*graph, placement, 3, placement, 4, PipelineSchedule::one_f_one_b);
    const auto metrics = test::metrics_of(problem, {placement, &schedule});
    CHECK(metrics.feasible());
  }
}
