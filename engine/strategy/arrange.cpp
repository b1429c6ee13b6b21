// The placement of a lowered graph, and the part of a strategy that determines the graph.
#include <algorithm>

#include "base/index.h"
#include "graph/subgraph.h"
#include "strategy/lower.h"
#include "strategy/mesh_schedule.h"
#include "strategy/mesh_words.h"

namespace trinity {
namespace {

/// A visitor that resets fields.
struct WordResetter {
  Parallelism& given;
  KeptBy result;
  const Parallelism plain = {};

  template <class Get>
  void operator()(const MeshWord& word, Get get) {
    if ((word.free & result) != 0) get(given) = get(plain);
  }
  void group(const char*, auto words) { words(); }
};

}  // namespace

Parallelism without(Parallelism given, KeptBy result) {
  each_mesh_word(WordResetter{given, result});
  return given;
}

Strategy structure_of(const Strategy& strategy) {
  Strategy same = strategy;
  same.replication.reset();
  if (!same.parallelism) return same;
  auto& given = *same.parallelism;
  const std::string schedule = pipeline_schedule_name(schedule_of(given));
  given = without(std::move(given), kStructure);
  given.schedule = schedule == "gpipe" ? "1f1b" : schedule;
  if (given.mesh.data == 1) given.sync = {};
  if (given.mesh.context == 1) given.cp_comm_type = {};
  if (given.mesh.placement == 1) given.inside.clear();
  given.sync.every = std::min(given.sync.every, 1);
  same.placement.clear();
  same.schedule = {};
  return same;
}

bool goes_in_rings(const Parallelism& given) {
  return given.cp_comm_type == ContextKind::ring && given.mesh.context > 1;
}

bool joins_context(const Parallelism& given) {
  return given.mesh.context > 1 &&
         (given.sync.kind == Synchronise::all_reduce || given.mesh.data == 1);
}

int32_t shard_group(const Parallelism& given) {
  const auto& way = given.sync;
  if (joins_context(given)) return given.mesh.data * given.mesh.context;
  if (given.mesh.data == 1) return 1;
  return way.in_runs() ? way.inner : given.mesh.data;
}

bool copies_are_alike(const Parallelism& given) {
  return given.sync.kind == Synchronise::all_reduce;
}

Arrangement arrange(const LoweredGraph& made, const Strategy& strategy) {
  if (!strategy.parallelism) {
    Arrangement same{made.rank, made.home, strategy.schedule};
    same.schedule.stage = made.stage;
    return same;
  }
  const auto& given = *strategy.parallelism;
  const auto& mesh = given.mesh;
  std::vector<int32_t> device;
  for (int32_t stage = 0; stage < mesh.pipeline; ++stage)
    for (int32_t replica = 0; replica < mesh.data; ++replica)
      for (int32_t part = 0; part < mesh.width(); ++part)
        device.push_back(mesh.device(stage, replica, part));
  const auto placed = [&](const std::vector<int32_t>& ranks) {
    std::vector<int32_t> devices(ranks.size());
    std::transform(ranks.begin(), ranks.end(), devices.begin(),
                   [&](int32_t r) { return device[r]; });
    return devices;
  };
  Arrangement result{placed(made.rank), placed(made.home), {}};
  result.schedule.name = given.tasks.empty() ? pipeline_schedule_name(schedule_of(given)) : given.schedule;
  result.schedule.tasks = given.tasks;
  result.schedule.micro_batches = given.micro_batches;
  result.schedule.stage = made.stage;
  if (!made.turn.empty()) {
    result.schedule.name = kRoundRobin;
    result.schedule.stage = made.turn;
  }
  return result;
}

LoweredReplica kept(const LoweredReplica& replica, const std::vector<bool>& devices) {
  std::vector<bool> keep;
  for (const auto& role : replica.roles) keep.push_back(devices[role.device]);
  auto part = subgraph(replica.graph, keep);
  LoweredReplica result;
  result.of = replica.of;
  result.graph = std::move(part.graph);
  result.home = replica.home;
  result.home_rank = replica.home_rank;
  result.ranks = replica.ranks;
  result.layers = replica.layers;
  result.pipeline = replica.pipeline;
  for (const int32_t op : part.origin) result.roles.push_back(replica.roles[op]);
  for (const int32_t collective : part.collective) {
    result.collective.push_back(replica.collective[collective]);
    if (!replica.joined.empty()) result.joined.push_back(replica.joined[collective]);
  }
  return result;
}

std::vector<CycleStep> cycle_of(const Strategy& strategy) {
  if (!strategy.parallelism) return {{strategy, 1}};
  const auto& given = *strategy.parallelism;
  const int32_t every = given.sync.every;
  if (!given.sync.seldom() || given.mesh.data == 1 || every < 2) return {{strategy, 1}};
  std::vector<CycleStep> steps(2, {strategy, 1});
  steps[0].strategy.parallelism->sync.every = 1;
  steps[1].strategy.parallelism->sync.every = 0;
  steps[1].count = every - 1;
  return steps;
}

}  // namespace trinity
