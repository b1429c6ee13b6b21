#include "search/searcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace trinity {

Score step_time_score(const Metrics& metrics) {
  return {std::max<int64_t>(0, metrics.excess_memory_bytes),
          static_cast<double>(metrics.step_time_ns)};
}

Searcher::Trials Searcher::ask(int32_t most) {
  if (!trials_.empty()) throw ArgumentError("the placements asked for last have not been scored");
  if (most < 1) throw ArgumentError(fmt::format("expected at least 1 placement, got {}", most));
  if (!exhausted_) propose(most, trials_);
  exhausted_ = trials_.empty();
  Trials result;
  if (exhausted_) return result;
  for (const auto& trial : trials_) result.placements.push_back(space_.placement(trial));
  result.limit = limit();
  evaluations_ += static_cast<int64_t>(trials_.size());
  return result;
}

void Searcher::tell(std::span<const Score> scores) {
  if (scores.size() != trials_.size())
    throw ArgumentError(fmt::format("expected {} scores, got {}", trials_.size(), scores.size()));
  for (size_t i = 0; i < scores.size(); ++i)
    if (!std::isfinite(scores[i].value))
      throw ArgumentError(
          fmt::format("score {} is {}, expected a finite number", i + 1, scores[i].value));
  for (size_t i = 0; i < scores.size(); ++i) {
    if (best() && scores[i] >= best_) continue;
    best_ = scores[i];
    best_assignment_ = trials_[i];
  }
  auto trials = std::move(trials_);
  trials_.clear();
  learn(trials, scores);
}

}  // namespace trinity
