#include "search/placement/searcher.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"

namespace trinity {

Searcher::Searcher(const PlacementSpace& space, std::vector<Assignment> starts)
    : space_(space), starts_(std::move(starts)) {
  if (starts_.empty()) starts_.emplace_back(static_cast<size_t>(space.units()), 0);
  for (const auto& start : starts_) space.check(start);
}

Searcher::Trials Searcher::ask(int32_t most) {
  if (!trials_.empty()) throw ArgumentError("expected scores of the placements asked for last "
                                            "before further ones");
  if (most < 1) throw ArgumentError("expected at least 1 placement, got {}", most);
  Trials result;
  while (static_cast<int32_t>(trials_.size()) < most && started_ < starts_.size())
    trials_.push_back(starts_[started_++]);
  if (trials_.empty()) {
    propose(most, trials_);
    result.limit = limit();
  }
  for (const auto& trial : trials_) result.placements.push_back(space_.placement(trial));
  evaluations_ += static_cast<int64_t>(trials_.size());
  return result;
}

void Searcher::note(const Assignment& assignment, const Score& score) {
  if (best() && score >= best_) return;
  best_ = score;
  best_assignment_ = assignment;
}

void Searcher::tell(std::span<const Score> scores) {
  if (scores.size() != trials_.size())
    throw ArgumentError("expected {} scores, got {}", trials_.size(), scores.size());
  for (size_t i = 0; i < scores.size(); ++i)
    if (!std::isfinite(scores[i].value))
      throw ArgumentError("score {} is {}, expected a finite number", i + 1, scores[i].value);
  for (size_t i = 0; i < scores.size(); ++i) note(trials_[i], scores[i]);
  auto trials = std::move(trials_);
  trials_.clear();
  learn(trials, scores);
}

}  // namespace trinity
