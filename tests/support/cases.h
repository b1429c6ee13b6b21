#pragma once

#include <memory>

#include "simulator/simulator.h"
#include "support/build.h"

namespace trinity::test {

/// The problem of a graph on a cluster under its standard rules.
inline Problem make_problem(std::shared_ptr<const Graph> graph,
                            std::shared_ptr<const Cluster> cluster) {
  const auto rules = SimulationRules::standard(*cluster);
  return {std::move(graph), std::move(cluster), rules};
}
inline Problem make_problem(std::shared_ptr<const Graph> graph, const ClusterSpec& spec) {
  return make_problem(std::move(graph), std::make_shared<const Cluster>(spec));
}
template <class Where>
std::shared_ptr<const Problem> share_problem(std::shared_ptr<const Graph> graph,
                                             const Where& where) {
  return std::make_shared<const Problem>(make_problem(std::move(graph), where));
}

/// Metrics of a simulated plan.
inline Metrics metrics_of(const Problem& problem, const Plan& plan) {
  Metrics metrics;
  Simulator(problem).run(plan, metrics);
  return metrics;
}

struct Ran {
  Metrics metrics;
  Timeline timeline;
};
inline Ran simulate(const Problem& problem, const Plan& plan) {
  Ran ran;
  Simulator(problem).run(plan, ran.metrics, &ran.timeline);
  return ran;
}

/// True if everything is equal, including memory levels.
inline bool equal(const Timeline& a, const Timeline& b) {
  return a.micro_batches == b.micro_batches && a.device == b.device && a.ready_ns == b.ready_ns &&
         a.start_ns == b.start_ns && a.end_ns == b.end_ns && a.transfers == b.transfers &&
         a.collectives == b.collectives && a.memory == b.memory;
}

/// A plan of a problem with everything it refers to.
struct Case {
  std::shared_ptr<const Problem> problem;
  ClusterSpec spec;  ///< description of the problem's cluster
  std::vector<int32_t> placement;
  Schedule schedule;

  Plan plan() const { return {placement, &schedule}; }
};

/// Options of random_case().
struct CaseOptions {
  QueueModel queue = QueueModel::sender;
  DispatchRule dispatch = DispatchRule::fifo;
  int most_operators = 60, most_devices = 6, most_micro_batches = 1;
  bool collectives = false;
};

/// A random training step: layered forward, backward and update operators with several outputs,
/// views, variables, workspace, operators and tensors without cost, and (optionally) collectives.
std::shared_ptr<const Graph> random_step(RandomStream& random, int operators, bool collectives);

/// A random cluster: devices of two types and several speeds around a switch, on a ring of
/// half-duplex links, or on two machines with one link between them.
ClusterSpec random_cluster(RandomStream& random, int devices);

/// A random problem, placement and schedule; equal for equal `index` and options.
Case random_case(uint64_t index, const CaseOptions& options);

inline constexpr QueueModel kQueues[] = {QueueModel::sender, QueueModel::pair, QueueModel::none,
                                         QueueModel::route, QueueModel::fair};
/// The dispatch rules that need no further data.
inline constexpr DispatchRule kDispatchRules[] = {DispatchRule::fifo, DispatchRule::lifo,
                                                  DispatchRule::priority};

/// Cycles through all queue models and dispatch rules; every second case has micro-batches, every
/// fourth collectives.
inline Case mixed_case(uint64_t index) {
  return random_case(index, {.queue = kQueues[index % 5],
                             .dispatch = kDispatchRules[index % 3],
                             .most_micro_batches = index % 2 ? 3 : 1,
                             .collectives = index % 4 == 0});
}

/// A schedule of fixed sequences that replays a recorded run.
Schedule order_of(const Problem& problem, const Timeline& timeline);

}  // namespace trinity::test
