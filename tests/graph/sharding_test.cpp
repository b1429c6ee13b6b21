#include "graph/sharding.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "graph/replicas.h"
#include "support/layer_maker.h"

namespace trinity {
namespace {

/// x -> first [16 weights] -> second [24 weights], trained by Adam.
Graph chain_of_two() {
  test::LayerMaker make("chain");
  const int32_t x = make.add("x", "Input", {}, {8, 4});
  make.add("second", "Gemm", {make.add("first", "Gemm", {x}, {8, 4}, {4, 4})}, {8, 6}, {6, 4});
  return make.train(TrainingOptions::Optimiser::adam);
}

struct ShardedReplicas {
  Sharded sharded;
  Replicated copies;
};

ShardedReplicas shard_and_replicate(const Graph& graph, int32_t level, int32_t replicas) {
  const std::vector<int32_t> device(static_cast<size_t>(graph.operator_count()), 0);
  const std::vector<int32_t> unit(device.size(), -1);
  auto sharded = shard_states(graph, {level, replicas, 1 << 20, device, unit});
  const std::vector<int32_t> same(static_cast<size_t>(sharded.graph.operator_count()), 0);
  ReplicaOptions options;
  options.device_of = same;
  options.zero_stage = level;
  options.gathered = sharded.gathered;
  auto copies = replicate(sharded.graph, replicas, options);
  return {std::move(sharded), std::move(copies)};
}

const Collective& collective(const Graph& graph, std::string_view name) {
  for (const auto& found : graph.collectives())
    if (found.name == name) return found;
  throw ArgumentError(fmt::format("no collective '{}'", name));
}

TEST_CASE("sharded updates keep a share of the state, and gather what they have updated") {
  const Graph graph = chain_of_two();
  const auto made = shard_and_replicate(graph, 1, 4);
  const auto& update = made.copies.graph.op(made.copies.graph.find("second/update@3"));
  CHECK(update.persistent_bytes == 2 * 24 * 4 / 4);
  const auto& reduced = collective(made.copies.graph, "reduce_scatter0");
  CHECK(reduced.kind == CollectiveKind::reduce_scatter);
  CHECK(reduced.bytes == (16 + 24) * 4);
  CHECK(made.copies.graph.op(reduced.members[0]).phase == Phase::update);
  const auto& gathered = collective(made.copies.graph, "weights0");
  CHECK(gathered.kind == CollectiveKind::all_gather);
  CHECK(gathered.bytes == (16 + 24) * 4);
  CHECK(gathered.members.size() == 4);
}

TEST_CASE("sharded gradients are reduced after every micro-batch") {
  const auto made = shard_and_replicate(chain_of_two(), 2, 4);
  const auto& reduced = collective(made.copies.graph, "reduce_scatter0");
  const auto& member = made.copies.graph.op(reduced.members[0]);
  CHECK(member.phase == Phase::backward);
  CHECK(made.copies.graph.tensor(member.outputs[0]).bytes == 24 * 4 / 4);
}

TEST_CASE("sharded weights are gathered before they are read, one unit ahead") {
  const auto made = shard_and_replicate(chain_of_two(), 3, 4);
  const Graph& graph = made.copies.graph;
  CHECK(graph.op(graph.find("second@0")).parameter_bytes() == 24 * 4 / 4);
  CHECK(collective(graph, "first/gather").bytes == 16 * 4);
  CHECK(collective(graph, "second/gather_again").bytes == 24 * 4);
  const auto reads = [&](const char* reader, const char* from) {
    for (const int32_t input : graph.op(graph.find(reader)).inputs)
      if (graph.tensor(input).producer == graph.find(from)) return true;
    return false;
  };
  CHECK(reads("second@1", "second/gather@1"));
  CHECK(reads("second/gather@1", "first@1"));
  CHECK(reads("second/grad@1", "second/gather_again@1"));
  CHECK_FALSE(reads("second/grad@1", "second/gather@1"));
}

TEST_CASE("sharding refuses what makes no sense") {
  const Graph graph = chain_of_two();
  const std::vector<int32_t> device(static_cast<size_t>(graph.operator_count()), 0);
  CHECK_THROWS_WITH_AS(shard_states(graph, {4, 2, 1, device, {}}),
                       "sharding graph 'chain': expected ZeRO stage 1, 2 or 3, got 4",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(shard_states(graph, {1, 1, 1, device, {}}),
                       "sharding graph 'chain': expected at least 2 replicas, got 1",
                       ArgumentError);
  CHECK_THROWS_AS(shard_states(graph, {3, 2, 1, device, {}}), ArgumentError);
}

}  // namespace
}  // namespace trinity
