// Meshes of which one replica and pipeline group per class is simulated, against the whole graph.
#include "simulator/symmetry.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <numeric>
#include <optional>

#include "simulator/order_engine.h"
#include "simulator/pricer.h"
#include "strategy/mesh_schedule.h"
#include "support/cases.h"
#include "support/random_meshes.h"
#include "support/reference.h"
#include "support/tier.h"

namespace trinity {
namespace {

Metrics whole(const Strategy& strategy, const std::shared_ptr<const Problem>& problem) {
  const auto low = lower(strategy, problem->graph(), problem->cluster());
  const auto graph = std::make_shared<const Graph>(low.made.graph);
  const Problem bound(graph, problem->shared_cluster(), problem->rules());
  const auto schedule = bind_schedule(low.arranged.schedule, low.arranged.placement, bound,
                                      OnContradiction::fail);
  Metrics metrics;
  Timeline timeline;  // which the event loop alone fills
  Simulator(bound).run(Plan{low.arranged.placement, &schedule}, metrics, &timeline);
  return metrics;
}

struct Seen {
  int classes = 0, whole = 0;
  int unlike = 0;    // of which no two devices are equivalent
  int replicas = 0;  // of several replicas
  int part = 0;      // by fewer devices than a replica has
  int64_t devices = 0, simulated = 0;
};

/// False where the order contradicts the graph; the simulation of all devices says so, too.
bool priced(const Strategy& strategy, const std::shared_ptr<const Problem>& problem,
            SymmetryPricer& pricer, Metrics& metrics) {
  try {
    return pricer.price(strategy, metrics, kNoLimit);
  } catch (const ScheduleError&) {
    CHECK_THROWS_AS(whole(strategy, problem), ScheduleError);
    return false;
  }
}

/// Another strategy of the same mesh, which shares what its first one was made of.
void check_kin(RandomStream& random, Strategy strategy,
               const std::shared_ptr<const Problem>& problem, SymmetryPricer& pricer) {
  auto& given = *strategy.parallelism;
  given.zero_stage = static_cast<int32_t>(random.below(4));
  given.recompute = random.below(2) == 0 ? Recompute::full : Recompute::none;
  given.micro_batches *= 2;
  Metrics metrics;
  if (priced(strategy, problem, pricer, metrics)) REQUIRE(metrics == whole(strategy, problem));
}

/// Graphs and meshes: layers that differ; equal ones; equal ones on eight stages; operators that are
/// placed inside their stages; decoders whose sequence is sharded; many replicas, of which a node may
/// hold several; decoders on nodes in which replicas or parts of the sequence share links; buckets
/// that hold gradients of several layers; experts in all layers; experts after dense layers.
enum class Blocks { any, alike, stages, placed, sequence, replicas, nodes, buckets, experts, dense };

std::shared_ptr<const Graph> graph_of(RandomStream& random, Blocks kind, int32_t layers) {
  if (kind == Blocks::experts && random.below(3) == 0)
    return test::blocks(random, layers, true, true);
  if (kind == Blocks::experts || kind == Blocks::dense)
    return test::decoder(random, layers, 8, kind == Blocks::dense);
  if (kind == Blocks::sequence || kind == Blocks::nodes || kind == Blocks::buckets)
    return test::decoder(random, layers);
  return test::blocks(random, layers,
                      kind != Blocks::any && kind != Blocks::placed && kind != Blocks::replicas);
}

/// Whether sequence_parallel has something to shard.
bool has_sequence(const Graph& graph) {
  for (int32_t op = 0; op < graph.operator_count(); ++op)
    if (graph.op(op).type == "Gather") return true;
  return false;
}

void check_one(uint64_t draw, Seen& seen, Blocks kind = Blocks::any,
               uint64_t seed = test::law_seed()) {
  constexpr const char* kStreams[] = {"symmetry", "alike", "stages",  "placed",  "sequence",
                                      "replicas", "nodes", "buckets", "experts", "dense"};
  constexpr int32_t kLayers[] = {8, 16, 16, 8, 16, 4, 16, 24, 17, 19};
  const auto number = static_cast<size_t>(kind);
  RandomStream random(seed, kStreams[number], draw);
  const auto graph = graph_of(random, kind, kLayers[number]);
  Strategy strategy;
  strategy.parallelism = test::mesh_of(random);
  auto& mesh = strategy.parallelism->mesh;
  if (!has_sequence(*graph)) strategy.parallelism->sequence_parallel = false;
  if (kind == Blocks::alike && random.below(3) == 0)
    test::unequal_stages(random, *strategy.parallelism, 16);
  if (kind == Blocks::sequence) test::share_sequence(random, *strategy.parallelism);
  if (kind == Blocks::nodes) test::share_nodes(random, *strategy.parallelism);
  const bool experts = kind == Blocks::experts || kind == Blocks::dense;
  if (experts) test::share_experts(random, *strategy.parallelism, kLayers[number]);
  if (kind == Blocks::buckets) test::share_buckets(random, *strategy.parallelism, 24);
  if (kind == Blocks::replicas) {
    mesh.data = 6 + 2 * static_cast<int32_t>(random.below(4));
    mesh.tensor = 1 + static_cast<int32_t>(random.below(2));
    mesh.pipeline = std::min(mesh.pipeline, 2);
  }
  if (kind == Blocks::placed) test::place_inside(random, *graph, *strategy.parallelism);
  if (kind == Blocks::stages) {
    mesh.pipeline = 8;
    mesh.data = std::min(mesh.data, 2);
    mesh.order.clear();
    strategy.parallelism->micro_batches = 8;
    strategy.parallelism->recompute = static_cast<Recompute>(random.below(3));
    if (random.below(4) == 0) {
      strategy.parallelism->stages.assign(8, 2);
      strategy.parallelism->stages.front() = 1, strategy.parallelism->stages.back() = 3;
    }
  }
  const auto devices = static_cast<int>(mesh.device_count());
  const bool in_nodes = kind == Blocks::nodes || (experts && random.below(2) == 0);
  const auto cluster = in_nodes ? test::nodes_of(random, mesh) : test::cluster_of(random, devices);
  if (!in_nodes && random.below(3) == 0) {
    mesh.devices.resize(static_cast<size_t>(cluster->device_count()));
    std::iota(mesh.devices.begin(), mesh.devices.end(), 0);
    for (size_t i = mesh.devices.size(); i > 1; --i)
      std::swap(mesh.devices[i - 1], mesh.devices[random.below(i)]);
    mesh.devices.resize(static_cast<size_t>(devices));
  }
  const auto problem = test::share_problem(graph, cluster);
  SymmetryPricer pricer(problem);
  Metrics metrics;
  std::vector<int32_t> home;
  try {
    check_mesh(*strategy.parallelism, *cluster);
    home = lower(strategy, *graph, *cluster).arranged.home;
  } catch (const ArgumentError&) {
    return;
  }
  const int32_t simulated = pricer.simulated_devices(strategy);
  if (simulated < 0) {
    ++seen.whole;
    return;
  }
  if (!priced(strategy, problem, pricer, metrics)) return;
  const bool fewer = simulated < devices;
  ++(fewer ? seen.classes : seen.unlike);
  if (fewer) {
    if (simulated > mesh.pipeline * mesh.width()) ++seen.replicas;
    if (simulated < mesh.pipeline * mesh.width()) ++seen.part;
    seen.devices += devices;
    seen.simulated += simulated;
  }
  const auto expected = whole(strategy, problem);
  CAPTURE(draw);
  CHECK(pricer.home(strategy) == home);
  CHECK(metrics.step_time_ns == expected.step_time_ns);
  REQUIRE(metrics == expected);
  Metrics again;
  REQUIRE(pricer.price(strategy, again, expected.step_time_ns));
  CHECK(again == expected);
  REQUIRE(pricer.price(strategy, again, expected.step_time_ns - 1));
  CHECK(again.rejected);
  if (draw % 4 == 0) check_kin(random, strategy, problem, pricer);
}

Seen seen_in(uint64_t draws, Blocks kind = Blocks::any) {
  Seen seen;
  for (uint64_t draw = 0; draw < test::draws(draws); ++draw) check_one(draw, seen, kind);
  return seen;
}

std::string counts_of(const Seen& seen) {
  return fmt::format("{} by classes ({} of {} devices), {} of several replicas, {} by part of one",
                     seen.classes, seen.simulated, seen.devices, seen.replicas, seen.part);
}

TEST_CASE("one device of each class gives the whole graph's metrics") {
  const Seen seen = seen_in(3000);
  MESSAGE(counts_of(seen) << ", " << seen.unlike << " of which no two are equivalent, "
                          << seen.whole << " whole");
  CHECK(seen.classes >= test::least(1200));
  CHECK(seen.unlike >= test::least(100));
  CHECK(seen.simulated * 3 < seen.devices * 2);
}

TEST_CASE("replicas of which a node has several give the metrics of all") {
  const Seen seen = seen_in(1000, Blocks::replicas);
  MESSAGE(counts_of(seen));
  CHECK(seen.classes >= test::least(400));
  CHECK(seen.simulated * 4 < seen.devices);
}

TEST_CASE("operators placed inside stages cost in one replica of a class what they cost in all") {
  const Seen seen = seen_in(600, Blocks::placed);
  MESSAGE(counts_of(seen) << ", " << seen.whole << " whole");
  CHECK(seen.classes >= test::least(120));
  CHECK(seen.simulated * 3 < seen.devices * 2);
}

TEST_CASE("equal layers, on two stages or eight, give the metrics of all") {
  Seen seen = seen_in(1000, Blocks::alike);
  check_one(336, seen, Blocks::alike, 5007);  // a stage of one layer, whose sums are elsewhere
  MESSAGE(counts_of(seen));
  CHECK(seen.replicas >= test::least(10));
  CHECK(seen_in(600, Blocks::stages).part >= test::least(20));
}

TEST_CASE("sharded sequences give the metrics of all, on nodes that share links, too") {
  Seen seen = seen_in(400, Blocks::sequence);
  // a tensor group and a group of parts of the sequence cost the same and take other queues
  check_one(40, seen, Blocks::sequence, 20261128);
  check_one(179, seen, Blocks::sequence, 20261130);  // data innermost: rings that visit replicas in turns
  MESSAGE(counts_of(seen));
  CHECK(seen.part >= test::least(20));
  CHECK(seen.simulated * 3 < seen.devices * 2);
  CHECK(seen_in(300, Blocks::nodes).part >= test::least(10));
}

TEST_CASE("buckets of several layers and sharded experts give the metrics of all") {
  for (const auto kind : {Blocks::buckets, Blocks::experts, Blocks::dense}) {
    const Seen seen = seen_in(240, kind);
    MESSAGE(counts_of(seen));
    CHECK(seen.classes >= test::least(40));
  }
}

/// Samples a mesh that lowers, its cluster and its graph; nothing where it is refused.
struct Drawn {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Cluster> cluster;
  Strategy strategy;
};

std::optional<Drawn> drawn(const char* stream, uint64_t draw, bool many = false, bool placed = false) {
  RandomStream random(test::law_seed(), stream, draw);
  Drawn found{test::blocks(random, 8, many && random.below(2) == 0), nullptr, {}};
  auto& mesh = found.strategy.parallelism.emplace(test::mesh_of(random));
  mesh.sequence_parallel = false;
  if (many) {
    mesh.mesh.data = 1 + static_cast<int32_t>(random.below(2));
    mesh.micro_batches = 24 + static_cast<int32_t>(random.below(80));
  }
  if (placed) test::place_inside(random, *found.graph, mesh);
  found.cluster = test::cluster_of(random, static_cast<int>(mesh.mesh.device_count()));
  try {
    lower(found.strategy, *found.graph, *found.cluster);
  } catch (const ArgumentError&) {
    return std::nullopt;
  }
  return found;
}

/// Whether the engine decided; then it has to be as the event loop is.
bool check_pieces(const Drawn& given, OrderEngine& engine) {
  const auto low = lower(given.strategy, *given.graph, *given.cluster);
  const auto graph = std::make_shared<const Graph>(low.made.graph);
  const auto problem = test::make_problem(graph, given.cluster);
  const auto& spec = low.arranged.schedule;
  Schedule schedule;
  OrderPieces pieces;
  try {
    schedule = bind_schedule(spec, low.arranged.placement, problem, OnContradiction::fail);
    pieces = pipeline_pieces(*graph, low.arranged.placement, given.cluster->device_count(),
                             spec.stage, parse_choice<PipelineSchedule>(spec.name), {}, spec.tasks)(spec.micro_batches);
  } catch (const ScheduleError&) {
    return false;
  }
  Metrics found, expected;
  Timeline timeline;  // which the event loop alone fills
  const auto run = [&](int64_t limit_ns) {
    return engine.run(problem, low.arranged.placement, pieces, nullptr, limit_ns, found);
  };
  if (!run(kNoLimit)) return false;
  Simulator(problem).run(Plan{low.arranged.placement, &schedule}, expected, &timeline);
  REQUIRE(found == expected);
  REQUIRE(run(expected.step_time_ns));
  CHECK(found == expected);
  REQUIRE(run(expected.step_time_ns - 1));
  expected.reject(expected.step_time_ns - 1);
  CHECK(found == expected);
  return true;
}

TEST_CASE("an order in pieces takes as long as it takes task by task") {
  int decided = 0, others = 0, turning = 0;
  for (uint64_t draw = 0; draw < test::draws(600); ++draw)
    if (const auto given = drawn("pieces", draw)) {
      CAPTURE(draw);
      OrderEngine engine(*given->cluster);
      const bool found = check_pieces(*given, engine);
      ++(found ? decided : others);
      turning += found && is_v_shaped(schedule_of(*given->strategy.parallelism));
    }
  MESSAGE(decided << " decided, " << turning << " of a V, " << others << " left to events");
  CHECK(decided >= test::least(150));
  CHECK(turning >= test::least(10));  // whose weight gradients take other turns in other micro-batches
}

TEST_CASE("micro-batches that repeat others take as long as all of them") {
  int decided = 0, repeated = 0;
  int64_t left_out = 0, all = 0;
  for (uint64_t draw = 0; draw < test::draws(400); ++draw)
    if (const auto given = drawn("periods", draw, true)) {
      CAPTURE(draw);
      OrderEngine engine(*given->cluster);
      if (!check_pieces(*given, engine)) continue;
      ++decided;
      repeated += engine.left_out() > 0;
      left_out += engine.left_out();
      all += given->strategy.parallelism->micro_batches;
    }
  MESSAGE(decided << " decided, " << repeated << " of them with " << left_out << " of " << all
                  << " micro-batches left out");
  CHECK(repeated >= test::least(140));  // half: without an order's own period only speed is lost
}

int32_t simulated(const ClusterSpec& spec, const Parallelism& given) {
  RandomStream random(1, "one", 0);
  SymmetryPricer pricer(test::share_problem(test::blocks(random, 8), spec));
  Strategy strategy;
  strategy.parallelism = given;
  return pricer.simulated_devices(strategy);
}

TEST_CASE("equal devices are found, and only what differs is simulated in addition") {
  Parallelism given;
  given.mesh.data = 8;
  given.mesh.tensor = 4;
  given.mesh.pipeline = 2;
  given.micro_batches = 4;
  auto spec = test::rail_spec(16, 4);
  spec.queue = QueueModel::route;
  CHECK(simulated(spec, given) == 2);  // a stage each
  auto named = spec;
  named.device_types.push_back(named.device_types[0]);
  named.device_types[1].name = "other";
  for (size_t d = 0; d < named.devices.size(); d += 3) named.devices[d].type = 1;
  CHECK(simulated(named, given) == 2);
  auto wide = test::rail_spec(8, 8);
  wide.queue = QueueModel::route;
  CHECK(simulated(wide, given) == 2 * 2);  // a node's first replica, and its second
  auto slow = spec;
  slow.devices[5].speed = 0.5;
  CHECK(simulated(slow, given) == 2 * 2 * 2);  // two replicas, in each two pipeline groups
  auto thin = spec;
  thin.links[7].bandwidth_bytes_per_s /= 2;
  const int32_t found = simulated(thin, given);
  CHECK(found > 2);
  CHECK(found <= 2 * 2 * 4);
}

TEST_CASE("lowered graphs equal the slow reference") {
  int compared = 0;
  int placed = 0;
  for (uint64_t draw = 0; draw < test::draws(700); ++draw) {
    const auto given = drawn("reference", draw, false, draw % 7 > 3);
    if (!given || given->strategy.parallelism->mesh.device_count() > 8) continue;
    const auto low = lower(given->strategy, *given->graph, *given->cluster);
    const auto graph = std::make_shared<const Graph>(low.made.graph);
    const auto problem = test::make_problem(graph, given->cluster);
    const auto& [placement, home, spec] = low.arranged;
    CAPTURE(draw);
    std::optional<Schedule> schedule;
    try {
      schedule = bind_schedule(spec, placement, problem, OnContradiction::fail);
    } catch (const ScheduleError&) {  // operators inside stages leave devices without virtual stages
      ThreadPool pool(1);
      StrategyPricer pricer(test::share_problem(given->graph, given->cluster), pool);
      std::vector<Metrics> refused;
      CHECK_THROWS_AS(pricer.run({&given->strategy, 1}, refused, kNoLimit, OnContradiction::fail), ScheduleError);
      continue;
    }
    const Plan plan{placement, &*schedule};
    Metrics expected, found;
    Timeline slow, timeline;
    try {
      Simulator(problem).run(plan, found, &timeline);
    } catch (const ScheduleError&) {  // an order that contradicts the graph
      CHECK_THROWS_AS(test::simulate_reference(problem, plan, expected, slow), ArgumentError);
      continue;
    }
    test::simulate_reference(problem, plan, expected, slow);
    CHECK(timeline.start_ns == slow.start_ns);
    CHECK(timeline.transfers == slow.transfers);
    CHECK(timeline.collectives == slow.collectives);
    REQUIRE(found == expected);
    ++(draw % 7 > 3 ? placed : compared);
  }
  CHECK(compared >= test::least(100));
  CHECK(placed >= test::least(25));
}

}  // namespace
}  // namespace trinity
