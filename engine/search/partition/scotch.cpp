#include "search/partition/scotch.h"

// scotch.h requires stdio.h before it.
#include <scotch.h>
#include <stdio.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "base/error.h"
#include "base/hash.h"
#include "search/partition/partition_options.h"
#include "search/partition/partition_weights.h"

namespace trinity {
namespace {

static_assert(sizeof(SCOTCH_Num) == sizeof(int32_t), "Scotch with 32-bit numbers");

void expect(int status, const char* call) {
  if (status != 0) throw Error("scotch: {} failed", call);
}

/// RAII for the library's objects.
struct Source {
  SCOTCH_Graph value;
  Source() { expect(SCOTCH_graphInit(&value), "graphInit"); }
  ~Source() { SCOTCH_graphExit(&value); }
};
struct Target {
  SCOTCH_Arch value;
  Target() { expect(SCOTCH_archInit(&value), "archInit"); }
  ~Target() { SCOTCH_archExit(&value); }
};
/// One thread and a random stream of its own.
struct Context {
  SCOTCH_Context value;
  explicit Context(SCOTCH_Num seed) {
    expect(SCOTCH_contextInit(&value), "contextInit");
    expect(SCOTCH_contextThreadSpawn(&value, 1, nullptr), "contextThreadSpawn");
    expect(SCOTCH_contextOptionSetNum(&value, SCOTCH_OPTIONNUMDETERMINISTIC, 1), "contextOption");
    SCOTCH_contextRandomClone(&value);
    SCOTCH_contextRandomSeed(&value, seed);
    SCOTCH_contextRandomReset(&value);
  }
  ~Context() { SCOTCH_contextExit(&value); }
};
struct ScotchStrategy {
  SCOTCH_Strat value;
  ScotchStrategy() { expect(SCOTCH_stratInit(&value), "stratInit"); }
  ~ScotchStrategy() { SCOTCH_stratExit(&value); }
};

/// [from][to], symmetric, the shortest 10.
std::vector<SCOTCH_Num> distances(const Problem& problem) {
  double bytes = 0;
  for (const int64_t output : problem.all_output_bytes()) bytes += static_cast<double>(output);
  const auto mean = static_cast<int64_t>(bytes / std::max(1, problem.outputs()));
  const int32_t n = problem.devices();
  std::vector<double> time_ns(static_cast<size_t>(n) * static_cast<size_t>(n), 0);
  double least = std::numeric_limits<double>::infinity();
  for (int32_t a = 0; a < n; ++a)
    for (int32_t b = 0; b < n; ++b) {
      if (a == b) continue;
      auto& time =
          time_ns[static_cast<size_t>(a) * static_cast<size_t>(n) + static_cast<size_t>(b)];
      time =
          1 + 0.5 * static_cast<double>(problem.wire_ns(a, b, mean) + problem.wire_ns(b, a, mean));
      least = std::min(least, time);
    }
  std::vector<SCOTCH_Num> result;
  for (const double time : time_ns)
    result.push_back(static_cast<SCOTCH_Num>(std::min(1e4, 10 * time / least) + 0.5));
  return result;
}

void complete_target(const std::vector<SCOTCH_Num>& share, Target& target) {
  expect(SCOTCH_archCmpltw(&target.value, static_cast<SCOTCH_Num>(share.size()), share.data()),
         "archCmpltw");
}

void distance_target(const std::vector<SCOTCH_Num>& share, const std::vector<SCOTCH_Num>& distance,
                     Target& target) {
  const size_t n = share.size();
  std::vector<SCOTCH_Num> first, neighbour, length;
  for (size_t a = 0; a < n; ++a) {
    first.push_back(static_cast<SCOTCH_Num>(neighbour.size()));
    for (size_t b = 0; b < n; ++b) {
      if (a == b) continue;
      neighbour.push_back(static_cast<SCOTCH_Num>(b));
      length.push_back(distance[a * n + b]);
    }
  }
  first.push_back(static_cast<SCOTCH_Num>(neighbour.size()));
  Source graph;
  ScotchStrategy strategy;
  expect(SCOTCH_graphBuild(&graph.value, 0, static_cast<SCOTCH_Num>(n), first.data(), nullptr,
                           share.data(), nullptr, static_cast<SCOTCH_Num>(neighbour.size()),
                           neighbour.data(), length.data()),
         "graphBuild");
  expect(SCOTCH_archBuild(&target.value, &graph.value, 0, nullptr, &strategy.value), "archBuild");
}

std::vector<SCOTCH_Num> whole_shares(const std::vector<PartitionShare>& shares) {
  std::vector<SCOTCH_Num> whole;
  for (const auto& share : shares)
    whole.push_back(std::max(1, static_cast<SCOTCH_Num>(std::lround(share.combined * 1e4))));
  return whole;
}

}  // namespace

Assignment scotch_map(const PlacementSpace& space, const ScotchOptions& options) {
  each_partition_option(options, OptionRanges{});
  Assignment parts(static_cast<size_t>(space.units()), 0);
  if (space.devices() == 1) return parts;
  const PartitionWeights weights(space);
  const auto& from = weights.graph;
  const auto distance = distances(space.problem());
  const auto share = whole_shares(weights.shares);
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const auto seed = static_cast<SCOTCH_Num>(mix64(options.seed) >> 34);
  SCOTCH_randomSeed(seed);
  SCOTCH_randomReset();
  Target target;
  if (*std::max_element(distance.begin(), distance.end()) == 10) {
    complete_target(share, target);
  } else {
    distance_target(share, distance, target);
  }
  Source graph;
  ScotchStrategy strategy;
  expect(SCOTCH_graphBuild(&graph.value, 0, from.units(), from.first.data(), nullptr,
                           from.combined.data(), nullptr,
                           static_cast<SCOTCH_Num>(from.neighbour.size()), from.neighbour.data(),
                           from.bytes.data()),
         "graphBuild");
  expect(SCOTCH_stratGraphMapBuild(&strategy.value, SCOTCH_STRATDEFAULT, space.devices(),
                                   options.imbalance),
         "stratGraphMapBuild");
  Context context(seed);
  Source bound;
  expect(SCOTCH_contextBindGraph(&context.value, &graph.value, &bound.value), "contextBindGraph");
  expect(SCOTCH_graphMap(&bound.value, &target.value, &strategy.value, parts.data()), "graphMap");
  return parts;
}

}  // namespace trinity
