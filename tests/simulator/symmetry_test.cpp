// Meshes of which only one replica and lane of a kind is simulated against the whole graph.
#include "simulator/symmetry.h"

#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "simulator/order_engine.h"
#include "simulator/pricer.h"
#include "strategy/mesh_schedule.h"
#include "support/build.h"
#include "support/layered.h"
#include "support/reference.h"

namespace trinity {
namespace {

/// Residual blocks of two products as a training step; what stands between them is free where a
/// draw says so, so that much happens at one instant.
/// alike: all blocks are the same.
std::shared_ptr<const Graph> blocks(RandomStream& random, int layers, bool alike = false) {
  const auto times = alike ? 1 + random.below(3) : 0;
  const bool sums = alike && random.below(2) == 0;
  const bool free = random.below(2) == 0, chosen = random.below(3) == 0;
  const auto adapt = [&](Operator& op) {
    const bool product = !op.parameters.empty();
    if (product) op.flops = 1e9 * static_cast<double>(alike ? times : 1 + random.below(3));
    if (!product && free) op.measured_time_s = op.measured_backward_time_s = 0;
    if (chosen) op.measured_time_s = op.measured_backward_time_s = 1e-6;
  };
  const auto residual = [&] { return alike ? sums : random.below(2) == 0; };
  test::LayeredOptions options;
  if (alike) options = {random.below(3) == 0, random.below(3) == 0};
  return std::make_shared<const Graph>(test::layered_graph(layers, adapt, residual, options));
}

/// Decoders whose sequence can be shared out, at costs of their own.
std::shared_ptr<const Graph> decoder(RandomStream& random, int layers) {
  const auto times = 1 + random.below(3);
  const bool free = random.below(3) == 0;
  const auto adapt = [&](Operator& op) {
    if (!op.parameters.empty()) op.flops *= static_cast<double>(times);
    if (op.parameters.empty() && free) op.measured_time_s = op.measured_backward_time_s = 0;
  };
  test::DecoderOptions options;
  options.key_heads = random.below(3) == 0 ? 4 : 8;
  options.vocabulary = random.below(2) == 0 ? 64 : 67;
  options.tied = random.below(2) == 0;
  options.mask = random.below(3) == 0;
  return std::make_shared<const Graph>(test::decoder_graph(layers, adapt, options));
}

/// Machines whose devices are linked in pairs, too.
ClusterSpec meshed(int nodes, int members) {
  auto spec = test::node_spec(nodes, members, 1e10, 1e10, 1e-6, 5e-6);
  for (int n = 0; n < nodes; ++n)
    for (int a = 0; a < members; ++a)
      for (int b = a + 1; b < members; ++b)
        spec.links.push_back(
            {fmt::format("n{}/d{}", n, a), fmt::format("n{}/d{}", n, b), 4e10, 2e-6});
  return spec;
}

/// One device or link is slower than all others.
void break_one(RandomStream& random, ClusterSpec& spec) {
  if (random.below(2) == 0)
    spec.devices[random.below(spec.devices.size())].speed = 0.7;
  else
    spec.links[random.below(spec.links.size())].bandwidth_bytes_per_s *= 0.3;
}

std::shared_ptr<const Cluster> cluster_of(RandomStream& random, int devices) {
  ClusterSpec spec;
  const int members = 1 << random.below(4), nodes = (devices + members - 1) / members;
  switch (random.below(4)) {
    case 0:
      spec = test::uniform_spec(devices, 1e10, 1e-6);
      break;
    case 1:
      spec = test::node_spec(nodes, members, 1e11, 2e10, 1e-6, 5e-6);
      break;
    case 2:
      spec = meshed(nodes, members);
      break;
    default:
      spec = test::rail_spec(nodes, members);
  }
  if (random.below(3) == 0) {  // types that differ in name alone
    spec.device_types.push_back(spec.device_types[0]);
    spec.device_types[1].name = "other";
    for (auto& device : spec.devices) device.type = static_cast<int32_t>(random.below(2));
  }
  constexpr QueueModel kQueues[] = {QueueModel::sender, QueueModel::pair,  QueueModel::route,
                                    QueueModel::route,  QueueModel::route, QueueModel::none,
                                    QueueModel::fair,   QueueModel::receiver};
  spec.queue = kQueues[random.below(8)];
  if (random.below(3) == 0) break_one(random, spec);
  return std::make_shared<const Cluster>(std::move(spec));
}

Parallelism mesh_of(RandomStream& random) {
  Parallelism given;
  const auto pick = [&](std::initializer_list<int32_t> list) {
    return *(list.begin() + random.below(list.size()));
  };
  given.mesh.data = pick({1, 2, 2, 3, 4, 8});
  given.mesh.tensor = pick({1, 2, 4});
  given.mesh.pipeline = pick({1, 2, 4});
  given.micro_batches = pick({1, 2, 4, 8});
  given.shard = pick({0, 0, 1, 2, 3});
  given.sequence_parallel = random.below(2) == 0;
  given.scatter_gather = random.below(2) == 0;
  given.overlap_tensor = random.below(2) == 0;
  given.bucket_bytes = pick({1, 3000, 25'000'000});
  given.recompute = random.below(3) == 0 ? Recompute::full : Recompute::none;
  constexpr const char* kSchedules[] = {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v"};
  given.schedule = kSchedules[random.below(6)];
  if (given.schedule == "interleaved" && given.mesh.pipeline > 1)
    given.virtual_stages = pick({1, 2});
  if (given.schedule == "zb-v" && given.mesh.pipeline > 1) given.virtual_stages = 2;
  constexpr Axis kAxes3[] = {Axis::tensor, Axis::data, Axis::pipeline};
  if (random.below(2) == 0) given.mesh.order = {kAxes3[random.below(3)]};
  return given;
}

/// The same with the sequence shared out.
void share_sequence(RandomStream& random, Parallelism& given) {
  given.mesh.context = random.below(2) == 0 ? 2 : 4;
  given.mesh.data = std::min(given.mesh.data, 3);
  given.scatter_gather = given.overlap_tensor = false;
  constexpr ContextKind kKinds[] = {ContextKind::all_gather, ContextKind::ring,
                                    ContextKind::all_to_all};
  given.context_kind = kKinds[random.below(3)];
}

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
  int folded = 0, whole = 0, few = 0, reduced = 0, lanes = 0;
  int several = 0;  // of several replicas
  int context = 0;  // by fewer devices than a replica has, all of one kind in a stage or ring
  int devices_of_few = 0;  // of which the virtual stages of a device are one layer
  int64_t devices = 0, simulated = 0;
};

/// Another strategy of the same mesh, which shares what its first one was made of.
void check_kin(RandomStream& random, Strategy strategy,
               const std::shared_ptr<const Problem>& problem, SymmetryPricer& pricer) {
  auto& given = *strategy.parallelism;
  given.shard = static_cast<int32_t>(random.below(4));
  given.recompute = random.below(2) == 0 ? Recompute::full : Recompute::none;
  given.micro_batches *= 2;
  Metrics metrics;
  if (pricer.price(strategy, metrics, kNoLimit)) REQUIRE(metrics == whole(strategy, problem));
}

/// Stages with one layer at least.
void unequal_stages(RandomStream& random, Parallelism& given, int32_t layers) {
  given.stages.assign(static_cast<size_t>(given.mesh.pipeline * given.virtual_stages), 1);
  for (auto left = layers - static_cast<int32_t>(given.stages.size()); left > 0; --left)
    ++given.stages[random.below(given.stages.size())];
}

/// Layers of any kind; equal ones; equal ones of which those at the ends of stages do otherwise:
/// they repeat their forward pass without waiting, or gather weights ahead for no next one.
/// Many of them on many stages, or on virtual stages of many devices. Or of any kind, with operators that are placed inside their stages, unit by
/// unit. Or decoders whose sequence is shared out.
enum class Blocks { any, alike, ends, stages, placed, sequence, rounds };

/// Several virtual stages of every device, whose gradients share buckets, whose weights are
/// gathered one for the next or that turn round in a V, or not.
void take_rounds(RandomStream& random, Parallelism& given) {
  constexpr const char* kSchedules[] = {"interleaved", "zb-interleaved", "zb-v"};
  given.schedule = kSchedules[random.below(3)];
  given.mesh.pipeline = 6;
  given.mesh.data = std::min(given.mesh.data, 2);
  given.mesh.order.clear();
  given.virtual_stages = 2;
  given.micro_batches = 6 * (1 + static_cast<int32_t>(random.below(3)));
  given.recompute = static_cast<Recompute>(random.below(3));
}

void place_inside(RandomStream& random, const Graph& graph, Parallelism& given) {
  given.mesh.placement = 2 + static_cast<int32_t>(random.below(2));
  std::vector<int32_t> of_unit;
  for (int32_t unit = 0; unit < graph.unit_count(); ++unit)
    of_unit.push_back(static_cast<int32_t>(random.below(static_cast<size_t>(given.mesh.placement))));
  for (const int32_t unit : graph.units()) given.inside.push_back(of_unit[static_cast<size_t>(unit)]);
}

void check_one(uint64_t draw, Seen& seen, Blocks kind = Blocks::any, uint64_t seed = 7) {
  constexpr const char* kStreams[] = {"symmetry", "alike", "ends", "stages", "placed", "sequence",
                                      "rounds"};
  constexpr int32_t kLayers[] = {8, 16, 24, 16, 8, 16, 24};
  const auto number = static_cast<size_t>(kind);
  RandomStream random(seed, kStreams[number], draw);
  const auto graph = kind == Blocks::sequence
                         ? decoder(random, kLayers[number])
                         : blocks(random, kLayers[number], kind != Blocks::any && kind != Blocks::placed);
  Strategy strategy;
  strategy.parallelism = mesh_of(random);
  auto& mesh = strategy.parallelism->mesh;
  if (kind == Blocks::alike && random.below(3) == 0)
    unequal_stages(random, *strategy.parallelism, 16);
  if (kind == Blocks::ends) {
    mesh.pipeline = random.below(2) == 0 ? 2 : 4;
    mesh.tensor = 1;
    mesh.order.clear();
    strategy.parallelism->recompute = random.below(2) == 0 ? Recompute::full : Recompute::none;
    strategy.parallelism->shard = strategy.parallelism->recompute == Recompute::full ? 1 : 3;
    if (random.below(3) == 0) unequal_stages(random, *strategy.parallelism, 24);
  }
  if (kind == Blocks::sequence) share_sequence(random, *strategy.parallelism);
  if (kind == Blocks::rounds) take_rounds(random, *strategy.parallelism);
  if (kind == Blocks::placed) place_inside(random, *graph, *strategy.parallelism);
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
  const auto cluster = cluster_of(random, devices);
  if (random.below(3) == 0) {
    mesh.devices.resize(static_cast<size_t>(cluster->device_count()));
    std::iota(mesh.devices.begin(), mesh.devices.end(), 0);
    for (size_t i = mesh.devices.size(); i > 1; --i)
      std::swap(mesh.devices[i - 1], mesh.devices[random.below(i)]);
    mesh.devices.resize(static_cast<size_t>(devices));
  }
  const auto problem =
      std::make_shared<const Problem>(graph, cluster, SimulationRules::standard(*cluster));
  SymmetryPricer pricer(problem);
  Metrics metrics;
  try {
    check_mesh(*strategy.parallelism, *cluster);
    lower(strategy, *graph, *cluster);
  } catch (const ArgumentError&) {
    return;
  }
  const int32_t simulated = pricer.simulated_devices(strategy);
  if (simulated < 0) {
    ++seen.whole;
    return;
  }
  if (!pricer.price(strategy, metrics, kNoLimit)) {  // an order that contradicts the graph
    CHECK_THROWS_AS(whole(strategy, problem), ScheduleError);
    return;
  }
  ++seen.folded;
  if (pricer.lowered_layers(strategy) >= 0) {
    ++seen.few;
    if (simulated > mesh.pipeline) ++seen.lanes;
    if (simulated > mesh.pipeline * mesh.width()) ++seen.several;
    if (simulated < mesh.pipeline * mesh.width()) ++seen.context;
    if (mesh.pipeline > 1 && mesh.data > 1 && strategy.parallelism->shard < 2) ++seen.reduced;
    if (kind == Blocks::rounds && pricer.lowered_layers(strategy) == 20) ++seen.devices_of_few;
  }
  seen.devices += devices;
  seen.simulated += simulated;
  const auto expected = whole(strategy, problem);
  CAPTURE(draw);
  CHECK(metrics.step_time_ns == expected.step_time_ns);
  REQUIRE(metrics == expected);
  Metrics again;
  REQUIRE(pricer.price(strategy, again, expected.step_time_ns));
  CHECK(again == expected);
  REQUIRE(pricer.price(strategy, again, expected.step_time_ns - 1));
  CHECK(again.rejected);
  if (draw % 4 == 0) check_kin(random, strategy, problem, pricer);
}

TEST_CASE("what is simulated for its class gives the whole graph's metrics") {
  Seen seen;
  for (uint64_t draw = 0; draw < 3000; ++draw) check_one(draw, seen);
  MESSAGE(seen.folded << " folded (" << seen.simulated << " of " << seen.devices << " devices), "
                      << seen.whole << " whole");
  CHECK(seen.folded > 1200);
  CHECK(seen.simulated * 2 < seen.devices);
}

TEST_CASE("operators placed inside stages cost in one replica of a kind what they cost in all") {
  Seen seen;
  for (uint64_t draw = 0; draw < 600; ++draw) check_one(draw, seen, Blocks::placed);
  MESSAGE(seen.folded << " folded (" << seen.simulated << " of " << seen.devices << " devices), "
                      << seen.whole << " whole");
  CHECK(seen.folded > 120);
  CHECK(seen.simulated * 2 < seen.devices);
  CHECK(seen.few == 0);
}

TEST_CASE("a few of many equal layers give the metrics of all") {
  Seen seen;
  for (uint64_t draw = 0; draw < 1800; ++draw) check_one(draw, seen, Blocks::alike);
  check_one(336, seen, Blocks::alike, 5007);  // a stage of one layer, whose sums are elsewhere
  MESSAGE(seen.folded << " folded, " << seen.few << " of them from a few layers, "
                      << seen.reduced << " of pipelines whose stages reduce gradients, "
                      << seen.several << " of several replicas");
  CHECK(seen.few > 250);
  CHECK(seen.several > 20);
  CHECK(seen.reduced > 50);
}

TEST_CASE("a few layers give the metrics of all where the ends of stages do otherwise") {
  Seen seen;
  for (uint64_t draw = 0; draw < 500; ++draw) check_one(draw, seen, Blocks::ends);
  MESSAGE(seen.folded << " folded, " << seen.few << " of them from a few layers");
  CHECK(seen.few > 50);
}

TEST_CASE("a few stages, or layers of them, give the metrics of all") {
  Seen seen;
  for (uint64_t draw = 0; draw < 1500; ++draw) check_one(draw, seen, Blocks::stages);
  MESSAGE(seen.folded << " folded, " << seen.few << " of them from a few, " << seen.lanes
                      << " by several lanes");
  CHECK(seen.few > 200);
  CHECK(seen.lanes > 20);
}

TEST_CASE("a few devices give the metrics of all where their virtual stages are joined") {
  Seen seen;
  for (uint64_t draw = 0; draw < 700; ++draw) check_one(draw, seen, Blocks::rounds);
  MESSAGE(seen.folded << " folded, " << seen.few << " of them from a few layers, "
                      << seen.devices_of_few << " by device");
  CHECK(seen.few > 100);
  CHECK(seen.devices_of_few > 60);
}

TEST_CASE("a few layers give the metrics of all where the sequence is shared out") {
  Seen seen;
  for (uint64_t draw = 0; draw < 250; ++draw) check_one(draw, seen, Blocks::sequence);
  MESSAGE(seen.folded << " folded (" << seen.simulated << " of " << seen.devices << " devices), "
                      << seen.few << " of them from a few layers, " << seen.context
                      << " by some of a stage's devices");
  CHECK(seen.context > 20);
  CHECK(seen.simulated * 2 < seen.devices);
}

/// Draws a mesh that lowers, its cluster and its graph; nothing where it is refused.
struct Drawn {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Cluster> cluster;
  Strategy strategy;
};

std::optional<Drawn> drawn(const char* stream, uint64_t draw, bool many = false,
                           bool placed = false, bool sequence = false) {
  RandomStream random(11, stream, draw);
  Drawn found{sequence ? decoder(random, 4) : blocks(random, 8, many && random.below(2) == 0),
              nullptr, {}};
  found.strategy.parallelism = mesh_of(random);
  if (sequence) share_sequence(random, *found.strategy.parallelism);
  if (many) {
    found.strategy.parallelism->mesh.data = 1 + static_cast<int32_t>(random.below(2));
    found.strategy.parallelism->micro_batches = 24 + static_cast<int32_t>(random.below(80));
  }
  if (placed) place_inside(random, *found.graph, *found.strategy.parallelism);
  found.cluster =
      cluster_of(random, static_cast<int>(found.strategy.parallelism->mesh.device_count()));
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
  const Problem problem(graph, given.cluster, SimulationRules::standard(*given.cluster));
  const auto& spec = low.arranged.schedule;
  Schedule schedule;
  OrderPieces pieces;
  try {
    schedule = bind_schedule(spec, low.arranged.placement, problem, OnContradiction::fail);
    pieces = pipeline_pieces(*graph, low.arranged.placement, given.cluster->device_count(),
                             spec.stage, spec.micro_batches, parse_pipeline_schedule(spec.name));
  } catch (const ScheduleError&) {
    return false;
  }
  Metrics found, expected;
  Timeline timeline;  // which the event loop alone fills
  const OrderGraph all(problem);
  if (!engine.run(all, low.arranged.placement, pieces, nullptr, kNoLimit, found)) return false;
  Simulator(problem).run(Plan{low.arranged.placement, &schedule}, expected, &timeline);
  REQUIRE(found == expected);
  REQUIRE(engine.run(all, low.arranged.placement, pieces, nullptr, expected.step_time_ns,
                     found));
  CHECK(found == expected);
  REQUIRE(engine.run(all, low.arranged.placement, pieces, nullptr, expected.step_time_ns - 1,
                     found));
  expected.reject(expected.step_time_ns - 1);
  CHECK(found == expected);
  return true;
}

TEST_CASE("an order in pieces takes as long as it takes task by task") {
  int decided = 0, others = 0, turning = 0;
  for (uint64_t draw = 0; draw < 600; ++draw)
    if (const auto given = drawn("pieces", draw)) {
      CAPTURE(draw);
      OrderEngine engine(*given->cluster);
      const bool found = check_pieces(*given, engine);
      ++(found ? decided : others);
      turning += found && is_v_shaped(schedule_of(*given->strategy.parallelism));
    }
  MESSAGE(decided << " decided, " << turning << " of a V, " << others
                  << " left to the event loop");
  CHECK(decided > 150);
  CHECK(turning > 10);  // whose weight parts take other turns in other micro-batches
}

TEST_CASE("micro-batches that repeat others take as long as all of them") {
  int decided = 0, repeated = 0;
  int64_t left_out = 0, all = 0;
  for (uint64_t draw = 0; draw < 400; ++draw)
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
  CHECK(repeated > 50);
}

/// Lists of the same numbers but for their names.
bool numbered_alike(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  std::map<int32_t, int32_t> to, from;
  bool alike = a.size() == b.size();
  for (size_t i = 0; i < a.size() && alike; ++i)
    alike = to.emplace(a[i], b[i]).first->second == b[i] &&
            from.emplace(b[i], a[i]).first->second == a[i];
  return alike;
}

/// The groups of what is made are those of all lanes.
void check_groups(const LoweredReplica& lane, const LoweredReplica& replica,
                  const LoweredReplica& all) {
  const ReplicaLanes made(lane, false), whole(replica, false);
  REQUIRE(made.lanes().size() == whole.lanes().size());
  for (size_t c = 0; c < lane.graph.collectives().size(); ++c)
    CHECK(made.groups()[static_cast<size_t>(made.group_of(static_cast<int32_t>(c)))] ==
          whole.groups()[static_cast<size_t>(whole.group_of(all.collective[c]))]);
  for (size_t l = 0; l < made.lanes().size(); ++l) {
    CHECK(made.lanes()[l].devices == whole.lanes()[l].devices);
    const auto kind = static_cast<size_t>(made.lanes()[l].kind);  // of all lanes those are alike, too
    CHECK(whole.lanes()[kind].kind == whole.lanes()[l].kind);
    const std::set<std::pair<int32_t, int32_t>> sends(made.lanes()[l].sends.begin(),
                                                      made.lanes()[l].sends.end());
    CHECK(sends == std::set<std::pair<int32_t, int32_t>>(whole.lanes()[l].sends.begin(),
                                                         whole.lanes()[l].sends.end()));
    const auto groups = [l](const ReplicaLanes& of) {
      std::vector<std::vector<int32_t>> devices;
      for (const int32_t group : of.lanes()[l].groups)
        devices.push_back(of.groups()[static_cast<size_t>(group)]);
      return devices;
    };
    CHECK(groups(made) == groups(whole));
  }
}

TEST_CASE("a lane of each kind is what all lanes have of it") {
  int lanes = 0, several = 0, context[3] = {0, 0, 0};
  for (uint64_t draw = 0; draw < 800; ++draw) {
    const auto given = drawn("lanes", draw, draw >= 200 && draw < 400, false, draw >= 400);
    if (!given) continue;
    const auto& mesh = given->strategy.parallelism->mesh;
    LaneParts parts;
    const auto lane =
        lower_lane(*given->strategy.parallelism, *given->graph, *given->cluster, parts);
    const int32_t width = mesh.width();
    if (!lane || width == 1) continue;
    ++lanes;
    const auto kinds = std::set<int32_t>(lane->lanes.begin(), lane->lanes.end()).size();
    several += kinds > 1 && static_cast<int32_t>(kinds) < width;
    if (mesh.context > 1 && static_cast<int32_t>(kinds) < width)
      ++context[static_cast<size_t>(given->strategy.parallelism->context_kind)];
    CAPTURE(draw);
    std::vector<bool> first;
    for (int32_t d = 0; d < mesh.pipeline * width; ++d)
      first.push_back(lane->lanes[static_cast<size_t>(d % width)] == d % width);
    const auto replica =
        lower_replica(*given->strategy.parallelism, *given->graph, *given->cluster);
    const auto all = kept(replica, first);
    REQUIRE(lane->graph.operator_count() == all.graph.operator_count());
    CHECK(lane->device == all.device);
    CHECK(lane->stage == all.stage);
    CHECK(lane->origin == all.origin);
    CHECK(lane->part == all.part);
    CHECK(lane->gathered == all.gathered);
    CHECK(lane->behind == all.behind);
    CHECK(lane->joined == all.joined);
    CHECK(numbered_alike(lane->together, all.together));
    check_groups(*lane, replica, all);
    for (int32_t op = 0; op < lane->graph.operator_count(); ++op) {
      const auto &a = lane->graph.op(op), &b = all.graph.op(op);
      REQUIRE(a.type == b.type);
      REQUIRE(a.inputs == b.inputs);
      REQUIRE(a.outputs == b.outputs);
      REQUIRE(a.collective == b.collective);
      CHECK(a.flops == b.flops);
      CHECK(a.traffic_bytes == b.traffic_bytes);
      CHECK(a.parameter_bytes() + a.persistent_bytes == b.parameter_bytes() + b.persistent_bytes);
      for (size_t o = 0; o < a.outputs.size(); ++o)
        CHECK(lane->graph.tensor(a.outputs[o]).bytes == all.graph.tensor(b.outputs[o]).bytes);
    }
    for (size_t c = 0; c < lane->graph.collectives().size(); ++c)
      CHECK(lane->graph.collectives()[c].bytes == all.graph.collectives()[c].bytes);
  }
  MESSAGE(lanes << " of meshes, " << several << " of several kinds; with the sequence shared out "
                << context[0] << " gather keys, " << context[1] << " pass them round, " << context[2]
                << " exchange heads");
  CHECK(lanes > 40);
  CHECK(several > 5);
  for (const int count : context) CHECK(count > 10);
}

int32_t simulated(const ClusterSpec& spec, const Parallelism& given) {
  RandomStream random(1, "one", 0);
  const auto cluster = std::make_shared<const Cluster>(spec);
  SymmetryPricer pricer(std::make_shared<const Problem>(blocks(random, 8), cluster,
                                                        SimulationRules::standard(*cluster)));
  Strategy strategy;
  strategy.parallelism = given;
  return pricer.simulated_devices(strategy);
}

TEST_CASE("equal devices are found, and only what differs is simulated beside them") {
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
  auto slow = spec;
  slow.devices[5].speed = 0.5;
  CHECK(simulated(slow, given) == 2 * 2 * 2);  // two replicas, in each two lanes
  auto thin = spec;
  thin.links[7].bandwidth_bytes_per_s /= 2;
  const int32_t found = simulated(thin, given);
  CHECK(found > 2);
  CHECK(found <= 2 * 2 * 4);
}

TEST_CASE("lowered graphs equal the slow reference") {
  int compared = 0;
  int placed = 0;
  for (uint64_t draw = 0; draw < 700; ++draw) {
    const auto given = drawn("reference", draw, false, draw >= 400);
    if (!given || given->strategy.parallelism->mesh.device_count() > 8) continue;
    const auto low = lower(given->strategy, *given->graph, *given->cluster);
    const auto graph = std::make_shared<const Graph>(low.made.graph);
    const Problem problem(graph, given->cluster, SimulationRules::standard(*given->cluster));
    const auto& [placement, home, spec] = low.arranged;
    const auto schedule = bind_schedule(spec, placement, problem, OnContradiction::fail);
    const Plan plan{placement, &schedule};
    Metrics expected, found;
    Timeline slow, timeline;
    test::simulate_reference(problem, plan, expected, slow);
    Simulator(problem).run(plan, found, &timeline);
    CAPTURE(draw);
    CHECK(timeline.start_ns == slow.start_ns);
    CHECK(timeline.transfers == slow.transfers);
    CHECK(timeline.collectives == slow.collectives);
    REQUIRE(found == expected);
    ++(draw < 400 ? compared : placed);
  }
  CHECK(compared > 100);
  CHECK(placed > 50);
}

}  // namespace
}  // namespace trinity
