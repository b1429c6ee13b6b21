#include "search/best.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/stop.h"
#include "search/annealing.h"
#include "search/exhaustive.h"
#include "search/fm.h"
#include "search/local_search.h"
#include "search/metis.h"
#include "search/row_split.h"
#include "search/scotch.h"

namespace trinity {
namespace {

constexpr int32_t kManyUnits = 20'000, kFewUnits = 64;
constexpr double kMostExhaustive = 1 << 18;  // a budget in seconds allows any number of evaluations

/// Assignments that differ by more than the names of interchangeable devices.
class Distinct {
 public:
  explicit Distinct(const PlacementSpace& space) : space_(space) {}
  void add(Assignment assignment) {
    poll_stop();
    if (known_.insert(space_.key(assignment)).second) list_.push_back(std::move(assignment));
  }
  std::vector<Assignment> take() { return std::move(list_); }

 private:
  const PlacementSpace& space_;
  std::set<uint64_t> known_;
  std::vector<Assignment> list_;
};

}  // namespace

std::vector<Assignment> cheap_starts(const PlacementSpace& space, uint64_t seed) {
  Distinct starts(space);
  std::set<std::pair<int32_t, int64_t>> kinds;
  for (int32_t device = 0; device < space.devices(); ++device) {
    const int64_t capacity_bytes = space.problem().cluster().capacity_bytes(device);
    if (kinds.emplace(space.problem().cost_class(device), capacity_bytes).second)
      starts.add(Assignment(static_cast<size_t>(space.units()), device));
  }
  starts.add(contiguous_split(space));
  for (const double imbalance : {0.03, 0.3}) {
    starts.add(metis_partition(space, {.seed = seed, .imbalance = imbalance}));
    starts.add(scotch_map(space, {.seed = seed, .imbalance = imbalance}));
    if (space.units() > kManyUnits) continue;
    FmOptions fm;
    fm.seed = seed;
    fm.imbalance = imbalance;
    starts.add(fm_partition(space, fm));
  }
  return starts.take();
}

std::unique_ptr<Searcher> best_search(const PlacementSpace& space, BestOptions options) {
  if (options.evaluations < 1) throw ArgumentError("best: expected at least 1 evaluation");
  const double budget = std::min(kMostExhaustive, static_cast<double>(options.evaluations));
  if (space.choices() <= budget)
    return std::make_unique<Exhaustive>(space, ExhaustiveOptions{.most_placements = budget});
  Distinct starts(space);
  for (auto& start : options.starts) {
    space.check(start);
    starts.add(std::move(start));
  }
  for (auto& start : cheap_starts(space, options.seed)) starts.add(std::move(start));
  auto list = starts.take();
  const auto most = static_cast<size_t>(std::max<int64_t>(1, options.evaluations / 4));
  if (list.size() > most) list.resize(most);
  if (space.units() <= kFewUnits) {
    LocalSearchOptions local;
    local.seed = options.seed;
    local.starts = std::move(list);
    return std::make_unique<LocalSearch>(space, std::move(local));
  }
  AnnealingOptions annealing;
  annealing.seed = options.seed;
  annealing.scale = options.scale;
  annealing.evaluations =
      std::max<int64_t>(1, options.evaluations - static_cast<int64_t>(list.size()));
  annealing.starts = std::move(list);
  return std::make_unique<Annealing>(space, std::move(annealing));
}

}  // namespace trinity
