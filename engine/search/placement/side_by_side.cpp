#include "search/placement/side_by_side.h"

#include <algorithm>
#include <cmath>

#include "base/stop.h"

namespace trinity {
namespace {

constexpr int64_t kMostAtOnce = 256;

void run(const SideSearch& search, int64_t evaluations) {
  Metrics metrics;
  std::vector<Score> scores;
  const int64_t last = search.searcher->evaluations() + evaluations;
  while (search.searcher->evaluations() < last) {
    const int64_t left = last - search.searcher->evaluations();
    const auto trials = search.searcher->ask(static_cast<int32_t>(std::min(left, kMostAtOnce)));
    if (trials.placements.empty()) return;
    const int64_t limit_ns = limit_ns_of(trials.limit);
    scores.clear();
    for (const auto& placement : trials.placements) {
      search.simulator->run(placement, metrics, nullptr, limit_ns);
      scores.push_back({std::max<int64_t>(0, metrics.excess_memory_bytes), metrics.step_time_s()});
    }
    search.searcher->tell(scores);
  }
}

}  // namespace

int64_t limit_ns_of(double limit_s) {
  return limit_s < 9e9 ? std::llround(limit_s * 1e9) + 1 : kNoLimit;
}

void run_side_by_side(std::span<const SideSearch> searches, int64_t evaluations, ThreadPool& pool) {
  pool.parallel_for(static_cast<int>(searches.size()), [&](int item, int) {
    poll_stop();
    run(searches[static_cast<size_t>(item)], evaluations);
  });
}

}  // namespace trinity
