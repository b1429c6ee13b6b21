#include "search/placement/side_by_side.h"

#include <algorithm>
#include <cmath>

#include "base/stop.h"

namespace trinity {
namespace {

constexpr int64_t kMostAtOnce = 256;

/// A nanosecond more: the limit itself must not be lost in rounding.
int64_t limit_of(const Searcher::Trials& trials) {
  return trials.limit < 9e9 ? std::llround(trials.limit * 1e9) + 1 : kNoLimit;
}

void run(const SideSearch& search, int64_t evaluations) {
  Metrics metrics;
  std::vector<Score> scores;
  const int64_t last = search.searcher->evaluations() + evaluations;
  while (search.searcher->evaluations() < last) {
    const int64_t left = last - search.searcher->evaluations();
    const auto trials = search.searcher->ask(static_cast<int32_t>(std::min(left, kMostAtOnce)));
    if (trials.placements.empty()) return;
    const int64_t limit_ns = limit_of(trials);
    scores.clear();
    for (const auto& placement : trials.placements) {
      search.simulator->run(placement, metrics, nullptr, limit_ns);
      scores.push_back({std::max<int64_t>(0, metrics.excess_memory_bytes), metrics.step_time_s()});
    }
    search.searcher->tell(scores);
  }
}

}  // namespace

void run_side_by_side(std::span<const SideSearch> searches, int64_t evaluations, ThreadPool& pool) {
  pool.parallel_for(static_cast<int>(searches.size()), [&](int item, int) {
    poll_stop();
    run(searches[static_cast<size_t>(item)], evaluations);
  });
}

}  // namespace trinity
