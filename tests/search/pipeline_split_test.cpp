// Contiguous splits: exact, in the order of the forward pass.
#include "search/pipeline_split.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "graph/training.h"
#include "simulator/simulator.h"
#include "strategy/strategy.h"
#include "support/cases.h"

using namespace trinity;

namespace {

size_t at(int32_t i) { return static_cast<size_t>(i); }

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

TEST_CASE("a contiguous split has the least largest load, with parts of different speeds too") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "work");
    const auto parts = 1 + static_cast<int32_t>(random.below(4));
    std::vector<int64_t> work;
    for (uint64_t i = 0, n = at(parts) * (1 + random.below(8)); i < n; ++i)
      work.push_back(static_cast<int64_t>(random.below(12)));
    const auto part = contiguous_split(work, parts);
    CHECK(std::is_sorted(part.begin(), part.end()));
    CHECK(part.back() < parts);
    CHECK(largest(work, part, parts) == exhaustive(work, parts));
  }
  CHECK(contiguous_split({}, 3).empty());
  CHECK(contiguous_split(std::vector<int64_t>{5, 1, 1, 5, 1, 1}, 2) ==
        std::vector<int32_t>{0, 1, 1});
}

TEST_CASE("what a contiguous split refuses") {
  const std::vector<int64_t> three{1, 2, 3}, negative{1, -2};
  CHECK_THROWS_WITH_AS(contiguous_split(three, 2), "contiguous split: 3 loads for 2 parts",
                       ArgumentError);
  CHECK_THROWS_AS(contiguous_split(three, 0), ArgumentError);
  CHECK_THROWS_WITH_AS(contiguous_split(negative, 1), "contiguous split: a load is -2",
                       ArgumentError);
  const std::vector<int64_t> huge(3, int64_t{1} << 62);
  CHECK_THROWS_AS(contiguous_split(huge, 1), LimitError);
}

TEST_CASE("weights go with their first reader, whatever their number") {
  Operator weight;
  weight.name = "weight";
  weight.type = "Variable";
  weight.extra_parameter_bytes = 100;
  GraphBuilder builder("net");
  const int32_t w = builder.add_operator(weight);
  Tensor tensor;
  tensor.bytes = 100;
  const int32_t weights = builder.add_output(w, tensor);
  int32_t before = -1;
  for (int i = 0; i < 4; ++i) {
    Operator op;
    op.name = "layer" + std::to_string(i);
    op.type = "Work";
    op.measured_time_s = 1e-6;
    const int32_t id = builder.add_operator(op);
    if (before >= 0) builder.read(id, before);
    if (i == 3) builder.read(id, weights);
    before = builder.add_output(id, tensor);
  }
  const auto graph = std::make_shared<const Graph>(builder.build());
  const Problem problem(graph, test::uniform_cluster(2, 1e9, 0), {});
  CHECK(pipeline_order(problem) == std::vector<int32_t>{1, 2, 3, 0, 4});
  const auto split = gpipe_split(problem);
  CHECK(split.placement == std::vector<int32_t>{1, 0, 0, 1, 1});
  CHECK(split.load_ns == 2000);
  const std::vector<int32_t> back{1, 0}, wrong{2};
  CHECK(gpipe_split(problem, back).placement == std::vector<int32_t>{0, 1, 1, 0, 0});
  CHECK_THROWS_WITH_AS(gpipe_split(problem, wrong), "gpipe: expected devices from 0 to 1, got 2",
                       ArgumentError);
}

TEST_CASE("GPipe's split keeps units together and runs as a pipeline") {
  for (uint64_t index = 0; index < 30; ++index) {
    CAPTURE(index);
    RandomStream random(index, "net");
    const auto graph =
        std::make_shared<const Graph>(lower_to_training(*test::random_graph(random, 30), {}));
    const Problem problem(graph, test::uniform_cluster(3, 1e9, 1e-6),
                          SimulationRules::standard(*test::uniform_cluster(3, 1e9, 1e-6)));
    const auto split = gpipe_split(problem);
    CHECK_NOTHROW(check_placement(split.placement, *graph, problem.cluster()));
    for (int32_t o = 0; o < graph->operator_count(); ++o)
      for (const auto& reader : problem.readers(o))
        if (graph->op(o).phase == Phase::forward && graph->op(reader.op).phase == Phase::forward)
          CHECK(split.stage[at(o)] <= split.stage[at(reader.op)]);
    const auto schedule = pipeline_schedule(*graph, split.placement, 3, split.stage, 4,
                                            PipelineSchedule::one_f_one_b);
    Metrics metrics;
    Simulator(problem).run(Plan{split.placement, &schedule}, metrics);
    CHECK(metrics.step_time_ns >= split.load_ns);
  }
}
