// Pipelines of stages of known times, one operator forward, backward and for the update in each.
#pragma once

#include <string>
#include <vector>

#include "support/cases.h"
#include "support/reference.h"

namespace trinity::test {

constexpr int64_t kUnit = 1000;  // ns
constexpr int64_t kKept = 1000;  // bytes that a forward keeps for its backward

struct Stages {
  std::vector<double> forward, backward;  ///< units
  int64_t crossing_bytes = 0;             ///< between neighbours, either way
  int64_t update_ns = 0;
  int64_t weight_bytes = 0;  ///< of the first stage; stage s has s + 1 times as many
  int64_t kept_bytes = kKept;
  int64_t gradient_bytes = 0;  ///< of every stage's weights
};

inline std::shared_ptr<const Graph> graph_of(const Stages& stages) {
  GraphMaker make("stages");
  const auto time_s = [](double units) { return units * kUnit * 1e-9; };
  const size_t p = stages.forward.size();
  std::vector<int> forward, backward(p);
  for (size_t s = 0; s < p; ++s) {
    const auto weights = static_cast<int64_t>(s + 1) * stages.weight_bytes;
    forward.push_back(make.op("f" + std::to_string(s), time_s(stages.forward[s]), weights));
    if (s > 0) make.edge(forward[s - 1], forward[s], stages.crossing_bytes);
  }
  for (size_t s = p; s-- > 0;) {
    backward[s] = make.op_of(Phase::backward, "b" + std::to_string(s), time_s(stages.backward[s]),
                             forward[s]);
    make.edge(forward[s], backward[s], stages.kept_bytes);
    if (s + 1 < p) make.edge(backward[s + 1], backward[s], stages.crossing_bytes);
  }
  for (size_t s = 0; s < p; ++s)
    make.edge(backward[s],
              make.op_of(Phase::update, "u" + std::to_string(s),
                         static_cast<double>(stages.update_ns) * 1e-9, forward[s]),
              stages.gradient_bytes);
  return make.share();
}

struct RanStages {
  double units = 0;  ///< step time
  Metrics metrics;
  Timeline timeline;
  Schedule schedule;
};

/// Runs a pipeline whose operators are in stages. The reference gives the same.
inline RanStages run(const std::shared_ptr<const Graph>& graph, const ClusterSpec& spec,
                     const std::vector<int32_t>& placement, const std::vector<int32_t>& stage,
                     int micro_batches, PipelineSchedule kind) {
  const auto problem = make_problem(graph, spec);
  RanStages ran;
  ran.schedule =
      pipeline_schedule(*graph, placement, problem.devices(), stage, micro_batches, kind);
  const Plan plan{placement, &ran.schedule};
  Simulator(problem).run(plan, ran.metrics, &ran.timeline);
  check_reference(problem, plan, ran.metrics, ran.timeline);
  ran.units = static_cast<double>(ran.metrics.step_time_ns) / kUnit;
  return ran;
}

/// Runs the stages on devices in turn, by default one device per stage; 1000 bytes take one
/// unit on a link.
inline RanStages run(const Stages& stages, int micro_batches, PipelineSchedule kind,
                     QueueModel queue = QueueModel::pair, int devices = 0) {
  const auto graph = graph_of(stages);
  if (devices == 0) devices = static_cast<int>(stages.forward.size());
  auto spec = uniform_spec(devices, 1e9, 0);
  spec.queue = queue;
  const auto stage = stages_of(*graph);
  auto placement = stage;
  for (int32_t& device : placement) device %= devices;
  return run(graph, spec, placement, stage, micro_batches, kind);
}

}  // namespace trinity::test
