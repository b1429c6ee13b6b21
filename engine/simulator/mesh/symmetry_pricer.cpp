#include "simulator/symmetry.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <list>
#include <numeric>

#include "base/index.h"
#include "graph/nameless.h"
#include "simulator/bind_schedule.h"
#include "simulator/mesh/replicas_alike.h"
#include "simulator/order_engine.h"
#include "strategy/mesh_schedule.h"

namespace trinity {

namespace {

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
  return kept(std::move(copies), keep);
}

}  // namespace

/// Lowered graphs of strategies with one structure. They do not depend on the cluster, so problems
/// with the same graph share them: changing constants of a cluster lowers once.
struct SymmetryPricer::Lowered {
  const Graph* graph = nullptr;  // lives as long as an evaluator with this entry
  Strategy of;
  LoweredGraph replica;  // or one pipeline group per class, if that may suffice
  Latest<bool, const ReplicaLanes> lanes{2};  // by whether all devices are one group
  /// The graphs of some pipeline groups in some replicas, by Symmetry::number and, if experts are sharded, the replicas.
  Latest<std::pair<std::vector<int32_t>, std::vector<int32_t>>, const LoweredGraph> copies{kMostBound};

  std::shared_ptr<const ReplicaLanes> lanes_of(bool all_one) {
    return lanes.find(all_one, [&] { return std::make_shared<const ReplicaLanes>(replica, all_one); });
  }
  std::shared_ptr<const LoweredGraph> copies_of(const Symmetry& symmetry) {
    auto replicas = symmetry.replicas;
    if (replica.ranks.empty()) std::iota(replicas.begin(), replicas.end(), 0);
    return copies.find({symmetry.number, replicas}, [&] {
      const Nameless nameless;
      const auto count = static_cast<int32_t>(replicas.size());
      auto made = made_alone(symmetry, replica.lanes)
                      ? copy_replica(replica, count, replicas)
                      : copy_replica(repeated(replica, symmetry.devices), count, replicas);
      return std::make_shared<const LoweredGraph>(
          simulated_alone(std::move(made), symmetry, replica.of.mesh.width()));
    });
  }
};

/// Copies bound to the cluster, and the devices of a mesh. Without a problem: the full mesh is simulated.
struct SymmetryPricer::Bound {
  std::shared_ptr<const Problem> problem;
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
  std::shared_ptr<Lowered> lowered;
  std::atomic<int64_t> operators = 0;  // of its largest graph
  Latest<std::shared_ptr<const LoweredGraph>, const Problem> problems{kMostBound};  // by their graph
  Latest<Mesh, Bound> bound{kMostBound};
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

std::shared_ptr<SymmetryPricer::Lowered> SymmetryPricer::lowered(const Parallelism& given, const Strategy& of) {
  static std::mutex mutex;
  static std::list<std::weak_ptr<Lowered>> known;  // entries in use
  const Graph* graph = &problem_->graph();
  {
    const std::lock_guard lock(mutex);
    known.remove_if([](const auto& one) { return one.expired(); });
    for (const auto& one : known)
      if (auto found = one.lock(); found && found->graph == graph && found->of == of) return found;
  }
  auto made = std::make_shared<Lowered>();
  made->graph = graph;
  made->of = of;
  auto lane = lower_lane(given, *graph, problem_->cluster(), parts_);
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
    auto given = *strategy.parallelism;
    given.inside = of.parallelism->inside;
    if (!given.tasks.empty()) {  // a strategy's own order, not used for lowering
      given.schedule = of.parallelism->schedule;
      given.micro_batches = 2 * given.mesh.pipeline;
      given.tasks.clear();
    }
    made->lowered = lowered(given, of);
    made->operators = made->lowered->replica.graph.operator_count();
    return made;
  });
}

std::shared_ptr<SymmetryPricer::Bound> SymmetryPricer::bind(Structure& structure, const Mesh& mesh) {
  auto result = std::make_shared<Bound>();
  auto lanes = structure.lowered->lanes_of(false);
  auto found = find(*lanes, mesh);
  if (found->share) {
    lanes = structure.lowered->lanes_of(true);
    found = find(*lanes, mesh);
  }
  const auto& symmetry = found->symmetry;
  if (!symmetry) return result;
  const auto& replica = structure.lowered->replica;
  if (all_differ(*symmetry, mesh) && operators_of_all(replica) > kMostOperators) return result;  // too large to be kept
  if (sums_aside(structure.lowered->replica.of) &&
      (symmetry->replicas.size() > 1 || !made_alone(*symmetry, std::vector<int32_t>(at(mesh.width()), 0))))
    return result;
  const auto copies = structure.lowered->copies_of(*symmetry);
  result->placement = bind_symmetry(*copies, mesh, *symmetry, result->quotient, *lanes);
  if (result->placement.empty()) return result;
  result->problem = structure.problems.find(copies, [&] {  // it keeps the copies
    return std::make_shared<const Problem>(std::shared_ptr<const Graph>(copies, &copies->graph), *problem_);
  });
  structure.operators = std::max<int64_t>(structure.operators, result->problem->operators());
  result->stage = copies->each(&OperatorRole::stage);
  result->turn = turns_inside(*result->problem, result->placement, result->stage, result->quotient.devices);
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
    bound.pieces = pipeline_pieces(bound.problem->graph(), bound.placement, bound.devices(), bound.stage,
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
        return engine.run(*bound.problem, bound.placement, *pieces, &bound.quotient, limit_ns, metrics);
      });
  if (!decided) run_events(bound, given, metrics, nullptr, limit_ns);
}

/// Runs the event loop where OrderEngine has returned false.
void SymmetryPricer::run_events(const Bound& bound, const Parallelism& given, Metrics& metrics,
                                Timeline* timeline, int64_t limit_ns) {
  const auto& problem = *bound.problem;
  const auto schedule = pipeline_schedule(problem.graph(), bound.placement, bound.devices(), bound.stage,
                                          given.micro_batches, schedule_of(given), bound.turn, given.tasks);
  Simulator(problem).run(Plan{bound.placement, &schedule, &bound.quotient}, metrics, timeline,
                         limit_ns);
}

std::shared_ptr<SymmetryPricer::Bound> SymmetryPricer::bound(const Strategy& strategy) {
  const auto of = structure(strategy);
  const auto& mesh = strategy.parallelism->mesh;
  return of->bound.find(mesh, [&] { return bind(*of, mesh); });
}

bool SymmetryPricer::price(const Strategy& strategy, Metrics& metrics, int64_t limit_ns) {
  const auto found = bound(strategy);
  if (found->problem) run(*found, *strategy.parallelism, metrics, limit_ns);
  return found->problem != nullptr;
}

bool SymmetryPricer::own(const Strategy& strategy, std::vector<OwnedBytes>& owners) {
  const auto& given = *strategy.parallelism;
  const auto found = bound(strategy);
  if (!found->problem) return false;
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
  auto devices = of->lowered->replica.home;
  const auto& ranks = of->lowered->replica.home_rank;
  for (size_t op = 0; op < devices.size(); ++op)
    devices[op] = mesh.device(devices[op] / width, ranks.empty() ? 0 : ranks[op], devices[op] % width);
  return devices;
}

int32_t SymmetryPricer::simulated_devices(const Strategy& strategy) {
  const auto found = bound(strategy);
  return found->problem ? found->devices() : -1;
}

}  // namespace trinity
