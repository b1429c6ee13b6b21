#include "simulator/symmetry.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "strategy/mesh_schedule.h"

namespace trinity {

/// The graph of some replicas and lanes, with simulators that nobody uses now.
struct SymmetryPricer::Made {
  std::vector<bool> devices;
  size_t replicas = 0;
  LoweredCopies copies;
  std::shared_ptr<const Problem> problem;
  std::vector<std::unique_ptr<Simulator>> idle;
};

/// What a mesh's order and devices make of a structure. Without a graph: nothing is alike.
struct SymmetryPricer::Bound {
  Mesh mesh;
  std::shared_ptr<Made> made;
  Quotient quotient;
  std::vector<int32_t> placement;
  std::string schedule_name;
  std::shared_ptr<const Schedule> schedule;  // the latest
};

struct SymmetryPricer::Structure {
  Strategy of;
  LoweredReplica replica;
  std::optional<ReplicaLanes> lanes, whole;  // made when first asked for
  std::vector<std::shared_ptr<Made>> made;
  std::list<std::shared_ptr<Bound>> bound;  // the latest first
};

SymmetryPricer::SymmetryPricer(std::shared_ptr<const Problem> problem)
    : problem_(std::move(problem)) {}
SymmetryPricer::~SymmetryPricer() = default;

std::shared_ptr<SymmetryPricer::Structure> SymmetryPricer::structure(const Strategy& strategy) {
  const Strategy of = structure_of(strategy);
  const auto found = std::find_if(structures_.begin(), structures_.end(),
                                  [&](const auto& kept) { return kept->of == of; });
  if (found != structures_.end()) {
    structures_.splice(structures_.begin(), structures_, found);
    return structures_.front();
  }
  auto made = std::make_shared<Structure>();
  made->of = of;
  made->replica = lower_replica(*strategy.parallelism, problem_->graph(), problem_->cluster());
  structures_.push_front(made);
  int64_t operators = 0;
  for (auto kept = structures_.begin(); kept != structures_.end();) {
    operators += (*kept)->replica.graph.operator_count();
    const bool goes = operators > kMostOperators && kept != structures_.begin();
    kept = goes ? structures_.erase(kept) : std::next(kept);
  }
  return made;
}

std::shared_ptr<SymmetryPricer::Bound> SymmetryPricer::bound(const Strategy& strategy) {
  const auto of = structure(strategy);
  const auto& mesh = strategy.parallelism->mesh;
  const auto found = std::find_if(of->bound.begin(), of->bound.end(),
                                  [&](const auto& kept) { return kept->mesh == mesh; });
  if (found != of->bound.end()) {
    of->bound.splice(of->bound.begin(), of->bound, found);
    return of->bound.front();
  }
  of->bound.push_front(bind(*of, mesh));
  if (of->bound.size() > kMostBound) of->bound.pop_back();
  return of->bound.front();
}

std::shared_ptr<SymmetryPricer::Bound> SymmetryPricer::bind(Structure& structure,
                                                            const Mesh& mesh) const {
  auto result = std::make_shared<Bound>();
  result->mesh = mesh;
  if (!structure.lanes) structure.lanes.emplace(structure.replica, false);
  const ReplicaLanes* lanes = &*structure.lanes;
  if (lanes_share_queues(*lanes, mesh, *problem_)) {
    if (!structure.whole) structure.whole.emplace(structure.replica, true);
    lanes = &*structure.whole;
  }
  const auto symmetry = find_symmetry(*lanes, mesh, *problem_);
  if (!symmetry) return result;
  result->made = make(structure, *symmetry);
  result->placement =
      bind_symmetry(result->made->copies, mesh, *symmetry, result->quotient, *lanes);
  return result;
}

std::shared_ptr<SymmetryPricer::Made> SymmetryPricer::make(Structure& structure,
                                                           const Symmetry& symmetry) const {
  for (const auto& made : structure.made)
    if (made->replicas == symmetry.replicas.size() && made->devices == symmetry.devices)
      return made;
  auto made = std::make_shared<Made>();
  made->devices = symmetry.devices;
  made->replicas = symmetry.replicas.size();
  const auto copies = static_cast<int32_t>(made->replicas);
  const bool all = std::all_of(symmetry.devices.begin(), symmetry.devices.end(),
                               [](bool simulated) { return simulated; });
  made->copies = copy_replica(all ? structure.replica : kept(structure.replica, symmetry.devices),
                              copies);
  // The problem lives no longer than what it is in, which it must not keep alive.
  const std::shared_ptr<const Graph> graph(std::shared_ptr<void>(), &made->copies.lowered.graph);
  made->problem =
      std::make_shared<const Problem>(graph, problem_->shared_cluster(), problem_->rules());
  structure.made.push_back(made);
  return made;
}

std::shared_ptr<const Schedule> SymmetryPricer::schedule(Bound& bound, const Parallelism& given) {
  const std::string name = pipeline_schedule_name(schedule_of(given));
  if (bound.schedule && bound.schedule_name == name &&
      bound.schedule->micro_batches == given.micro_batches)
    return bound.schedule;
  const auto& problem = *bound.made->problem;
  bound.schedule = std::make_shared<const Schedule>(pipeline_schedule(
      problem.graph(), bound.placement, static_cast<int32_t>(bound.quotient.devices.size()),
      bound.made->copies.lowered.stage, given.micro_batches, parse_pipeline_schedule(name)));
  bound.schedule_name = name;
  return bound.schedule;
}

void SymmetryPricer::run(Bound& bound, const Strategy& strategy, Metrics& metrics,
                         int64_t limit_ns) {
  auto& made = *bound.made;
  std::shared_ptr<const Schedule> order;
  std::unique_ptr<Simulator> simulator;
  {
    const std::lock_guard lock(mutex_);
    order = schedule(bound, *strategy.parallelism);
    if (!made.idle.empty()) {
      simulator = std::move(made.idle.back());
      made.idle.pop_back();
    }
  }
  if (!simulator) simulator = std::make_unique<Simulator>(*made.problem);
  simulator->run(Plan{bound.placement, order.get(), &bound.quotient}, metrics, nullptr, limit_ns);
  const std::lock_guard lock(mutex_);
  made.idle.push_back(std::move(simulator));
}

bool SymmetryPricer::price(const Strategy& strategy, Metrics& metrics, int64_t limit_ns) {
  try {
    std::shared_ptr<Bound> found;
    {
      const std::lock_guard lock(mutex_);
      found = bound(strategy);
    }
    if (!found->made) return false;
    run(*found, strategy, metrics, limit_ns);
    return true;
  } catch (const ArgumentError&) {
  } catch (const LimitError&) {
  }
  return false;  // the whole graph says what is wrong
}

std::vector<int32_t> SymmetryPricer::home(const Strategy& strategy) {
  const auto& mesh = strategy.parallelism->mesh;
  const int32_t width = mesh.width();
  const std::lock_guard lock(mutex_);
  auto devices = structure(strategy)->replica.home;
  for (int32_t& device : devices) device = mesh.device(device / width, 0, device % width);
  return devices;
}

int32_t SymmetryPricer::simulated_devices(const Strategy& strategy) {
  const std::lock_guard lock(mutex_);
  const auto found = bound(strategy);
  return found->made ? static_cast<int32_t>(found->quotient.devices.size()) : -1;
}

}  // namespace trinity
