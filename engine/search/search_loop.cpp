#include "search/search_loop.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace trinity {
namespace {

/// Rejection is exact: a step of exactly the limit is simulated in full.
int64_t limit_ns(double limit) {
  constexpr double kLargest = 9e18;
  return limit >= kLargest ? kNoLimit : static_cast<int64_t>(std::floor(limit));
}

}  // namespace

Found run_search(Searcher& searcher, BatchSimulator& simulator, const Budget& budget,
                 const std::function<Score(const Metrics&)>& score,
                 const std::function<void(const Found&)>& improved) {
  if (budget.evaluations < 1) throw ArgumentError("expected a budget of at least 1 evaluation");
  Found found;
  std::vector<Plan> plans;
  std::vector<Metrics> metrics;
  std::vector<Score> scores;
  while (searcher.evaluations() < budget.evaluations && !(budget.stop && budget.stop())) {
    const int64_t left = budget.evaluations - searcher.evaluations();
    const auto trials = searcher.ask(static_cast<int32_t>(std::min<int64_t>(left, 1 << 20)));
    if (trials.placements.empty()) break;
    plans.clear();
    for (const auto& placement : trials.placements) plans.push_back({placement, nullptr});
    simulator.run(plans, metrics, score ? kNoLimit : limit_ns(trials.limit));
    scores.clear();
    for (const auto& result : metrics)
      scores.push_back(score ? score(result) : step_time_score(result));
    searcher.tell(scores);
    for (size_t i = 0; i < scores.size(); ++i) {
      if (!found.placement.empty() && scores[i] >= found.score) continue;
      found = {trials.placements[i], metrics[i], scores[i], searcher.evaluations()};
      if (improved) improved(found);
    }
  }
  return found;
}

}  // namespace trinity
