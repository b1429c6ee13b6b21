#include "search/partition/fm.h"

#include "base/stop.h"
#include "search/partition/fm_refine.h"
#include "search/partition/partition_options.h"
#include "search/partition/partition_weights.h"

namespace trinity {
namespace {

constexpr int32_t kStarts = 4;   // initial partitions per bisection
constexpr int32_t kPasses = 16;  // maximum per refinement
constexpr int32_t kRounds = 4;   // maximum refinements of all pairs of devices at the end

std::vector<bool> bisect(FmSides& sides, RandomStream& random) {
  std::vector<bool> best;
  std::pair<int64_t, int64_t> least;  // violation, cut
  for (int32_t start = 0; start < kStarts; ++start) {
    poll_stop();
    auto side = start == 0 ? sides.first_cells() : sides.grown(random);
    sides.refine(side, kPasses);
    const std::pair now{sides.violation(sides.first_weight(side)), sides.cut_bytes(side)};
    if (!best.empty() && now >= least) continue;
    best = std::move(side);
    least = now;
  }
  return best;
}

/// Refines the units of devices a and b. Returns true if something changed.
bool refine_pair(const Hypergraph& hypergraph, const PartitionWeights& weights, int32_t a,
                 int32_t b, double imbalance, Assignment& assignment) {
  std::vector<int32_t> units;
  std::vector<bool> side;
  for (int32_t unit = 0; unit < hypergraph.units; ++unit) {
    const int32_t device = assignment[unit];
    if (device != a && device != b) continue;
    units.push_back(unit);
    side.push_back(device == b);
  }
  if (units.size() < 3) return false;
  const double first = weights.shares[a].combined;
  const double second = weights.shares[b].combined;
  FmSides sides(hypergraph, weights.graph.combined, units, first / (first + second), imbalance);
  const auto before = side;
  sides.refine(side, kPasses);
  for (size_t i = 0; i < units.size(); ++i) assignment[units[i]] = side[i] ? b : a;
  return side != before;
}

}  // namespace

Assignment fm_partition(const PlacementSpace& space, const FmOptions& options) {
  each_partition_option(options, OptionRanges{});
  const PartitionWeights weights(space);
  const Hypergraph hypergraph(space);
  RandomStream random(options.seed, "fm");
  auto assignment =
      bisect_recursively(weights, [&](std::span<const int32_t> units, const PartitionShare& first) {
        FmSides sides(hypergraph, weights.graph.combined, units, first.combined, options.imbalance);
        return bisect(sides, random);
      });
  bool changed = true;
  for (int32_t round = 0; round < kRounds && changed; ++round) {
    changed = false;
    for (int32_t a = 0; a < space.devices(); ++a)
      for (int32_t b = a + 1; b < space.devices(); ++b) {
        poll_stop();
        changed |= refine_pair(hypergraph, weights, a, b, options.imbalance, assignment);
      }
  }
  return assignment;
}

}  // namespace trinity
