#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "search/placement/searcher.h"
#include "simulator/batch.h"
#include "support/cases.h"

namespace trinity::test {

/// A random graph of a few operators whose transfers take about as long as its operators, on a
/// cluster of `devices`. Cycles by `index` through: equal devices; devices of several speeds on a
/// ring of different links; equal devices with two pairs of operators that share a device; little
/// memory.
inline std::shared_ptr<const Problem> small_problem(uint64_t index, int operators, int devices) {
  RandomStream random(index, "small problem");
  GraphMaker make("small");
  std::vector<int> tensors;
  for (int i = 0; i < operators; ++i) {
    make.op("o" + std::to_string(i), 1e-6 * (1 + static_cast<double>(random.below(100))),
            static_cast<int64_t>(random.below(100'000)));
    tensors.push_back(make.output(i, 1000 + static_cast<int64_t>(random.below(60'000))));
  }
  for (int i = 1; i < operators; ++i) {
    const int first = std::max(0, i - 4);
    for (int draw = 0; draw < 2; ++draw) {
      const int from = first + static_cast<int>(random.below(static_cast<uint64_t>(i - first)));
      if (draw == 0 || random.below(2) == 0) make.read(i, tensors[from]);
    }
  }
  if (index % 4 == 2) {
    make.colocate(0, operators - 1);
    make.colocate(2, 4);
  }
  auto spec = uniform_spec(devices, 1e9, 2e-6);
  if (index % 4 == 1) {
    spec.links.clear();
    for (int d = 0; d < devices; ++d) {
      spec.devices[d].speed = 1 + 0.5 * d;
      if (devices == 2 && d == 1) break;
      spec.links.push_back({"d" + std::to_string(d), "d" + std::to_string((d + 1) % devices),
                            1e9 / (1 + d), 2e-6 * (1 + d)});
    }
  }
  const auto graph = make.share();
  if (index % 4 == 3) {
    int64_t bytes = graph->parameter_bytes();
    for (const auto& tensor : graph->tensors()) bytes += tensor.bytes / 2;
    spec.device_types[0].memory_bytes = bytes * 3 / (2 * devices);
  }
  return share_problem(graph, spec);
}

/// `count` groups of `size` operators: a random spanning tree and `size` more edges of `inside`
/// bytes in every group, and two edges of `between` bytes from each group to the next. All
/// operators take `time_s`.
inline std::shared_ptr<const Graph> planted_graph(int count, int size, int64_t inside,
                                                  int64_t between, double time_s = 1e-6) {
  RandomStream random(7, "planted");
  GraphMaker make("planted");
  for (int op = 0; op < count * size; ++op) make.op("o" + std::to_string(op), time_s);
  // Groups are scattered over the graph: op k belongs to group k % count.
  const auto draw = [&](int below) {
    return static_cast<int>(random.below(static_cast<uint64_t>(below)));
  };
  for (int group = 0; group < count; ++group) {
    for (int i = 1; i < size; ++i) make.edge(draw(i) * count + group, i * count + group, inside);
    for (int extra = 0; extra < size; ++extra) {
      const int to = 1 + draw(size - 1);
      make.edge(draw(to) * count + group, to * count + group, inside);
    }
    if (group + 1 == count) continue;
    make.edge(group, (size - 1) * count + group + 1, between);
    make.edge(count + group, (size - 2) * count + group + 1, between);
  }
  return make.share();
}

/// A graph of 160 operators on four devices.
inline Problem medium_problem() {
  return make_problem(planted_graph(8, 20, 2000, 500, 1e-5), uniform_spec(4, 1e9, 1e-6));
}

/// The step time in nanoseconds as a score.
inline Score score_of(const Metrics& metrics) {
  return {std::max<int64_t>(0, metrics.excess_memory_bytes),
          static_cast<double>(metrics.step_time_ns)};
}

inline Score price(const Problem& problem, const std::vector<int32_t>& placement) {
  return score_of(metrics_of(problem, {placement}));
}

/// Runs a search for `evaluations`; trials beyond its limits are rejected.
inline void run_search(Searcher& searcher, const Problem& problem, int64_t evaluations,
                       int threads = 1) {
  ThreadPool pool(threads);
  BatchSimulator simulator(problem, pool);
  std::vector<Metrics> metrics;
  while (searcher.evaluations() < evaluations) {
    const auto trials = searcher.ask(static_cast<int32_t>(evaluations - searcher.evaluations()));
    if (trials.placements.empty()) break;
    std::vector<Plan> plans;
    for (const auto& placement : trials.placements) plans.push_back({placement, nullptr});
    const bool limited = trials.limit < 9e18;
    simulator.run(plans, metrics,
                  limited ? static_cast<int64_t>(std::floor(trials.limit)) : kNoLimit);
    std::vector<Score> scores;
    for (const auto& result : metrics) scores.push_back(score_of(result));
    searcher.tell(scores);
  }
}

}  // namespace trinity::test
