#include "simulator/symmetry.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <list>
#include <numeric>
#include <optional>

#include "base/index.h"
#include "graph/nameless.h"
#include "simulator/bind_schedule.h"
#include "simulator/mesh/replicas_alike.h"
#include "simulator/order_engine.h"
#include "strategy/mesh_schedule.h"

namespace trinity {

namespace {

/// The graph of some pipeline groups in some replicas.
struct Copies {
  std::vector<int32_t> number;    // Symmetry::number
  std::vector<int32_t> replicas;  // if experts are sharded; else the first ones
  LoweredGraph copies;
};

/// True if the devices of every stage that are simulated are the first ones of their classes (LoweredGraph::lanes).
bool made_alone(const Symmetry& symmetry, const std::vector<int32_t>& lanes) {
  for (size_t u = 0; u < symmetry.devices.size(); ++u) {
    const auto lane = static_cast<int32_t>(u % lanes.size());
    if (symmetry.devices[u] != (lanes[at(lane)] == lane)) return false;
  }
  return true;
}

/// Where an operator of some copies of a replica runs: the device of the replica, and the copy.
struct CopyOf {
  int32_t device, copy;
};
CopyOf copy_of(int32_t rank, int32_t width, int32_t copies) {
  return {rank / width / copies * width + rank % width, rank / width % copies};
}

/// The pipeline groups that are simulated, of all that some replica simulates.
LoweredGraph simulated_alone(LoweredGraph copies, const Symmetry& symmetry, int32_t width) {
  const auto count = static_cast<int32_t>(symmetry.replicas.size());
  std::vector<bool> keep;
  for (const auto& role : copies.roles) {
    const auto [device, copy] = copy_of(role.device, width, count);
    keep.push_back(symmetry.number[at(device) * at(count) + at(copy)] >= 0);
  }
  if (std::find(keep.begin(), keep.end(), false) == keep.end()) return copies;
  return kept(copies, keep);
}

}  // namespace

/// Lowered graphs of strategies with one structure. They do not depend on the cluster, so problems
/// with the same graph share them: changing constants of a cluster lowers once.
struct SymmetryPricer::Lowered {
  const Graph* graph = nullptr;  // lives as long as an evaluator with this entry
  Strategy of;
  bool all_lanes = false;  // all pipeline groups, even if one per class would do
  LoweredGraph replica;  // or one pipeline group per class, if that may suffice
  std::mutex mutex;        // guards the members below
  std::optional<ReplicaLanes> lanes, whole;  // made on first use
  std::vector<std::shared_ptr<const Copies>> copies;

  const ReplicaLanes& lanes_of(bool all_one) {
    const std::lock_guard lock(mutex);
    auto& found = all_one ? whole : lanes;
    if (!found) found.emplace(replica, all_one);
    return *found;
  }
  std::shared_ptr<const Copies> copies_of(const Symmetry& symmetry) {
    const std::lock_guard lock(mutex);
    auto replicas = symmetry.replicas;
    if (replica.ranks.empty()) std::iota(replicas.begin(), replicas.end(), 0);
    for (const auto& made : copies)
      if (made->replicas == replicas && made->number == symmetry.number) return made;
    auto made = std::make_shared<Copies>();
    made->number = symmetry.number;
    made->replicas = std::move(replicas);
    const Nameless nameless;
    const auto count = static_cast<int32_t>(made->replicas.size());
    made->copies = made_alone(symmetry, replica.lanes)
                       ? copy_replica(replica, count, made->replicas)
                       : copy_replica(repeated(replica, symmetry.devices), count, made->replicas);
    made->copies = simulated_alone(std::move(made->copies), symmetry, replica.of.mesh.width());
    copies.push_back(made);
    return made;
  }
};

/// Copies bound to the cluster, with idle simulators.
struct SymmetryPricer::Made {
  std::shared_ptr<const Copies> of;
  std::shared_ptr<const Problem> problem;
};

/// Order and devices of a mesh for a structure. Without a graph: the full mesh is simulated.
struct SymmetryPricer::Bound {
  Mesh mesh;
  std::shared_ptr<Made> made;
  Quotient quotient;
  std::vector<int32_t> placement, stage;
  std::vector<int32_t> turn;  // of turns_inside()
  std::mutex mutex;           // guards the members below
  PipelineSchedule schedule{};
  PipelineOrder tasks;
  std::function<OrderPieces(int32_t)> pieces;  // of schedule and tasks
  std::shared_ptr<const OrderPieces> order;    // the latest

  int32_t devices() const { return static_cast<int32_t>(quotient.devices.size()); }
};

struct SymmetryPricer::Structure {
  Strategy of;
  Parallelism given;
  std::atomic<int64_t> operators = 0;  // total held
  std::mutex mutex;  // guards the members below
  std::shared_ptr<Lowered> lowered;
  std::vector<std::shared_ptr<Made>> made;
  std::list<std::shared_ptr<Bound>> bound;  // latest first

  void count() { operators = lowered->replica.graph.operator_count(); }
};

namespace {

/// True if input-gradient reductions overlap with W operators: they coincide with others at one
/// instant in an order that differs between pipeline groups.
bool sums_aside(const Parallelism& given) { return given.overlap_tp_grad_allreduce && given.mesh.tensor > 1; }

bool all_differ(const Symmetry& symmetry, const Mesh& mesh) {
  return symmetry.replicas.size() == at(mesh.data) &&
         std::find(symmetry.devices.begin(), symmetry.devices.end(), false) == symmetry.devices.end();
}

/// Operators of all replicas and pipeline groups.
int64_t operators_of_all(const LoweredGraph& replica) {
  int64_t made = 0;
  for (size_t lane = 0; lane < replica.lanes.size(); ++lane) made += at(replica.lanes[lane]) == lane;
  return replica.of.mesh.data * int64_t{replica.graph.operator_count()} * std::ssize(replica.lanes) / made;
}

/// Devices of the copies' operators among a symmetry's representatives; empty if a collective joins devices that the
/// search for symmetry did not consider (ReplicaLanes::joins_copies()).
std::vector<int32_t> bind_symmetry(const LoweredGraph& copies, const Mesh& mesh,
                                   const Symmetry& symmetry, Quotient& quotient,
                                   const ReplicaLanes& lanes) {
  const auto made = static_cast<int32_t>(symmetry.replicas.size());
  const int32_t width = mesh.width();
  std::vector<int32_t> placement;
  for (const auto& role : copies.roles) {
    const auto [device, copy] = copy_of(role.device, width, made);
    placement.push_back(symmetry.number[at(device) * at(made) + at(copy)]);
  }
  quotient = symmetry.quotient;
  for (size_t c = 0; c < copies.collective.size(); ++c) {
    const auto [device, copy] = copy_of(copies.device_of(copies.graph.collectives()[c].members[0]), width, made);
    const int32_t inner = copies.collective[c];
    const int32_t group = inner >= 0                         ? lanes.group_of(inner, device)
                          : inner == LoweredGraph::kJoins ? lanes.joined_of(device)
                                                             : -1;
    const auto among = static_cast<size_t>(copies.among[c]);
    const auto& of = group < 0 ? symmetry.across[among] : symmetry.inner[among];
    quotient.group.push_back(of[at(group < 0 ? device : group) * at(made) + at(copy)]);
    if (quotient.group.back() < 0) return {};
  }
  return placement;
}

}  // namespace

SymmetryPricer::SymmetryPricer(std::shared_ptr<const Problem> problem)
    : problem_(std::move(problem)),
      structures_(kMostOperators, [](const Structure& kept) -> int64_t { return kept.operators; }) {}
SymmetryPricer::~SymmetryPricer() = default;

std::shared_ptr<SymmetryPricer::Lowered> SymmetryPricer::lowered(const Parallelism& given,
                                                                 const Strategy& of,
                                                                 bool whole) {
  static std::mutex mutex;
  static std::list<std::weak_ptr<Lowered>> known;  // entries in use
  const Graph* graph = &problem_->graph();
  {
    const std::lock_guard lock(mutex);
    known.remove_if([](const auto& one) { return one.expired(); });
    for (const auto& one : known)
      if (auto found = one.lock();
          found && found->graph == graph && found->all_lanes == whole && found->of == of)
        return found;
  }
  auto made = std::make_shared<Lowered>();
  made->graph = graph;
  made->of = of;
  made->all_lanes = whole;
  auto lane = whole ? std::nullopt : lower_lane(given, *graph, problem_->cluster(), parts_);
  const Nameless nameless;
  made->replica = lane ? std::move(*lane) : lower_replica(given, *graph, problem_->cluster());
  const std::lock_guard lock(mutex);
  known.push_back(made);
  return made;
}

std::shared_ptr<SymmetryPricer::Structure> SymmetryPricer::structure(
    const Strategy& strategy) {
  const auto of = structure_of(strategy);
  return structures_.find(of, [&] {
    auto made = std::make_shared<Structure>();
    made->of = of;
    made->given = *strategy.parallelism;
    made->given.inside = of.parallelism->inside;
    if (!made->given.tasks.empty()) {  // a strategy's own order, not used for lowering
      made->given.schedule = of.parallelism->schedule;
      made->given.micro_batches = 2 * made->given.mesh.pipeline;
      made->given.tasks.clear();
    }
    made->lowered = lowered(made->given, of, false);
    made->count();
    return made;
  });
}

std::shared_ptr<SymmetryPricer::Bound> SymmetryPricer::bound(Structure& of, const Mesh& mesh) {
  const auto found = std::find_if(of.bound.begin(), of.bound.end(),
                                  [&](const auto& kept) { return kept->mesh == mesh; });
  if (found != of.bound.end()) {
    of.bound.splice(of.bound.begin(), of.bound, found);
    return of.bound.front();
  }
  of.bound.push_front(bind(of, mesh));
  if (of.bound.size() > kMostBound) of.bound.pop_back();
  of.count();
  return of.bound.front();
}

std::shared_ptr<SymmetryPricer::Bound> SymmetryPricer::bind(Structure& structure,
                                                            const Mesh& mesh) {
  auto result = std::make_shared<Bound>();
  result->mesh = mesh;
  auto found = find(structure.lowered->lanes_of(false), mesh);
  if (!structure.lowered->all_lanes && found->share) {
    structure.lowered = lowered(structure.lowered->replica.of, structure.lowered->of, true);
    structure.made.clear();  // their collective numbers are outdated
    found = find(structure.lowered->lanes_of(false), mesh);
  }
  const ReplicaLanes* lanes = &structure.lowered->lanes_of(found->share);
  if (found->share) found = find(*lanes, mesh);
  const auto& symmetry = found->symmetry;
  if (!symmetry) return result;
  const auto& replica = structure.lowered->replica;
  if (all_differ(*symmetry, mesh) && operators_of_all(replica) > kMostOperators) return result;  // too large to be kept
  if (sums_aside(structure.lowered->replica.of) &&
      (symmetry->replicas.size() > 1 || !made_alone(*symmetry, std::vector<int32_t>(at(mesh.width()), 0))))
    return result;
  result->made = make(structure, *symmetry);
  result->placement =
      bind_symmetry(result->made->of->copies, mesh, *symmetry, result->quotient, *lanes);
  result->stage = result->made->of->copies.each(&OperatorRole::stage);
  if (result->placement.empty())
    result->made.reset();
  else
    result->turn = turns_inside(*result->made->problem, result->placement, result->stage, result->quotient.devices);
  return result;
}

std::shared_ptr<const SymmetrySearch> SymmetryPricer::find(const ReplicaLanes& lanes,
                                                           const Mesh& mesh) {
  return found_.find({mesh, lanes.outline()}, [&] {
    std::call_once(once_, [this] { pieces_alike_ = pieces_alike(problem_->cluster()); });
    return prices_.with(
        [this] { return std::make_unique<CollectiveGroups>(problem_->cluster()); },
        [&](CollectiveGroups& prices) {
          return std::make_shared<const SymmetrySearch>(
              find_symmetry(lanes, mesh, *problem_, prices, pieces_alike_));
        });
  });
}

std::shared_ptr<SymmetryPricer::Made> SymmetryPricer::make(Structure& structure,
                                                           const Symmetry& symmetry) const {
  const auto copies = structure.lowered->copies_of(symmetry);
  for (const auto& made : structure.made)
    if (made->of == copies) return made;
  auto made = std::make_shared<Made>();
  made->of = copies;
  // The problem lives no longer than its owner, which it must not keep alive.
  const std::shared_ptr<const Graph> graph(std::shared_ptr<void>(), &copies->copies.graph);
  made->problem = std::make_shared<const Problem>(graph, *problem_);
  structure.made.push_back(made);
  return made;
}

std::shared_ptr<const OrderPieces> SymmetryPricer::order(Bound& bound, const Parallelism& given) {
  const auto schedule = schedule_of(given);
  const std::lock_guard lock(bound.mutex);
  if (bound.order && bound.order->micro_batches == given.micro_batches && bound.schedule == schedule &&
      bound.tasks == given.tasks)
    return bound.order;
  if (!bound.pieces || bound.schedule != schedule || bound.tasks != given.tasks) {
    bound.pieces = nullptr;
    bound.order.reset();
    bound.schedule = schedule;
    bound.tasks = given.tasks;
    bound.pieces = pipeline_pieces(bound.made->problem->graph(), bound.placement, bound.devices(), bound.stage,
                                   schedule, bound.turn, bound.tasks);
  }
  bound.order = std::make_shared<const OrderPieces>(bound.pieces(given.micro_batches));
  return bound.order;
}

void SymmetryPricer::run(Bound& bound, const Parallelism& given, Metrics& metrics, int64_t limit_ns) {
  const auto pieces = order(bound, given);
  const bool decided = engines_.with(
      [this] { return std::make_unique<OrderEngine>(problem_->cluster()); },
      [&](OrderEngine& engine) {
        return engine.run(*bound.made->problem, bound.placement, *pieces, &bound.quotient, limit_ns, metrics);
      });
  if (!decided) run_events(bound, given, metrics, nullptr, limit_ns);
}

/// Runs the event loop where OrderEngine has returned false.
void SymmetryPricer::run_events(const Bound& bound, const Parallelism& given, Metrics& metrics,
                                Timeline* timeline, int64_t limit_ns) {
  const auto& problem = *bound.made->problem;
  const auto schedule = pipeline_schedule(problem.graph(), bound.placement, bound.devices(), bound.stage,
                                          given.micro_batches, schedule_of(given), bound.turn, given.tasks);
  Simulator(problem).run(Plan{bound.placement, &schedule, &bound.quotient}, metrics, timeline,
                         limit_ns);
}

std::shared_ptr<SymmetryPricer::Bound> SymmetryPricer::bound(const Strategy& strategy) {
  const auto of = structure(strategy);
  const std::lock_guard lock(of->mutex);
  return bound(*of, strategy.parallelism->mesh);
}

bool SymmetryPricer::price(const Strategy& strategy, Metrics& metrics, int64_t limit_ns) {
  const auto found = bound(strategy);
  if (found->made) run(*found, *strategy.parallelism, metrics, limit_ns);
  return found->made != nullptr;
}

bool SymmetryPricer::own(const Strategy& strategy, std::vector<OwnedBytes>& owners) {
  const auto& given = *strategy.parallelism;
  const auto found = bound(strategy);
  if (!found->made) return false;
  Metrics metrics;
  Timeline timeline;
  timeline.wants_owners = true;
  run_events(*found, given, metrics, &timeline, kNoLimit);
  owners.assign(at(problem_->devices()), {});
  for (size_t d = 0; d < owners.size() && !timeline.owners.empty(); ++d)
    if (const int32_t simulated = found->quotient.of[d]; simulated >= 0)
      owners[d] = timeline.owners[at(simulated)];
  return true;
}

std::vector<int32_t> SymmetryPricer::home(const Strategy& strategy) {
  const auto& mesh = strategy.parallelism->mesh;
  const int32_t width = mesh.width();
  const auto of = structure(strategy);
  const std::lock_guard lock(of->mutex);
  auto devices = of->lowered->replica.home;
  const auto& ranks = of->lowered->replica.home_rank;
  for (size_t op = 0; op < devices.size(); ++op)
    devices[op] = mesh.device(devices[op] / width, ranks.empty() ? 0 : ranks[op], devices[op] % width);
  return devices;
}

int32_t SymmetryPricer::simulated_devices(const Strategy& strategy) {
  const auto found = bound(strategy);
  return found->made ? found->devices() : -1;
}

}  // namespace trinity
