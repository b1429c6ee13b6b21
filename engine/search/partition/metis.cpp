#include "search/partition/metis.h"

#include <metis.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "base/apart.h"
#include "search/partition/partition_options.h"
#include "search/partition/partition_weights.h"

namespace trinity {
namespace {

static_assert(sizeof(idx_t) == sizeof(int32_t), "METIS with 32-bit indices");

/// One METIS call: the part of every unit of `graph`. shares: [part].
Assignment call_metis(PartitionGraph graph, const std::vector<PartitionShare>& shares, bool memory,
                      const MetisOptions& wanted) {
  idx_t units = graph.units(), constraints = memory ? 2 : 1;
  auto parts = static_cast<idx_t>(shares.size());
  std::vector<idx_t> weights;
  for (size_t unit = 0; unit < graph.work.size(); ++unit) {
    weights.push_back(graph.work[unit]);
    if (memory) weights.push_back(graph.memory[unit]);
  }
  std::vector<real_t> targets;
  for (const auto& share : shares) {
    targets.push_back(static_cast<real_t>(share.work));
    if (memory) targets.push_back(static_cast<real_t>(share.memory));
  }
  std::vector<real_t> imbalance(static_cast<size_t>(constraints),
                                static_cast<real_t>(1 + wanted.imbalance));
  idx_t options[METIS_NOPTIONS], cut = 0;
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = static_cast<idx_t>(mix64(wanted.seed) >> 34);
  Assignment assignment(graph.work.size() + 1);  // and the status
  const auto partition = parts == 2 ? METIS_PartGraphRecursive : METIS_PartGraphKway;
  call_apart("metis", assignment.data(), assignment.size() * sizeof(assignment[0]), [&] {
    assignment.back() = partition(
        &units, &constraints, graph.first.data(), graph.neighbour.data(), weights.data(), nullptr,
        graph.bytes.data(), &parts, targets.data(), imbalance.data(), options, &cut,
        assignment.data());
  });
  const int status = assignment.back();
  assignment.pop_back();
  if (status == METIS_ERROR_MEMORY) throw LimitError("metis: not enough memory");
  if (status != METIS_OK) throw Error("metis: failed with status {}", status);
  return assignment;
}

/// True if a unit weighs more than half of the smallest device's share.
bool has_heavy_unit(const PartitionWeights& weights, bool memory) {
  const auto heavy = [](const std::vector<int32_t>& weight, double share) {
    const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
    return *std::max_element(weight.begin(), weight.end()) > share * total / 2;
  };
  PartitionShare least = weights.shares[0];
  for (const auto& share : weights.shares) {
    least.work = std::min(least.work, share.work);
    least.memory = std::min(least.memory, share.memory);
  }
  return heavy(weights.graph.work, least.work) ||
         (memory && heavy(weights.graph.memory, least.memory));
}

}  // namespace

Assignment metis_partition(const PlacementSpace& space, const MetisOptions& options) {
  each_partition_option(options, OptionRanges{});
  const PartitionWeights weights(space);
  const bool memory = weights.pressure > 0;
  if (space.devices() > 2 && !has_heavy_unit(weights, memory))
    return call_metis(weights.graph, weights.shares, memory, options);
  return bisect_recursively(
      weights, [&](std::span<const int32_t> units, const PartitionShare& first) {
        const PartitionShare second{1 - first.work, 1 - first.memory, 1 - first.combined};
        const auto parts =
            call_metis(weights.graph.restricted(units), {first, second}, memory, options);
        return std::vector<bool>(parts.begin(), parts.end());
      });
}

}  // namespace trinity
