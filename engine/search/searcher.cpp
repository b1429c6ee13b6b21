#include "search/searcher.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"

namespace trinity {

Searcher::Trials Searcher::ask(int32_t most) {
  if (!trials_.empty()) throw ArgumentError("the placements asked for last have not been scored");
  if (most < 1) throw ArgumentError(fmt::format("expected at least 1 placement, got {}", most));
  propose(most, trials_);
  Trials result;
  if (trials_.empty()) return result;
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
