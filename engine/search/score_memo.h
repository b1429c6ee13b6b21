#pragma once

#include <unordered_map>

#include "search/searcher.h"

namespace trinity {

/// The scores that a search has been told, so that it need not ask twice. Holds at most 2^21
/// entries (about 100 MB); what comes later is not remembered.
class ScoreMemo {
 public:
  explicit ScoreMemo(const PlacementSpace& space) : space_(space) {}

  struct Known {
    Score score;
    bool exact;  ///< otherwise the simulation was cut short: the value is at least `score.value`
  };
  /// Null when `assignment` has not been scored.
  const Known* find(const Assignment& assignment) const {
    const auto found = known_.find(space_.key(assignment));
    return found == known_.end() ? nullptr : &found->second;
  }
  /// `limit` is what the placement was asked for under.
  void add(const Assignment& assignment, const Score& score, double limit) {
    if (known_.size() < kMost || find(assignment))
      known_[space_.key(assignment)] = {score, score.value <= limit};
  }
  size_t size() const { return known_.size(); }

 private:
  static constexpr size_t kMost = size_t{1} << 21;
  const PlacementSpace& space_;
  std::unordered_map<uint64_t, Known> known_;
};

}  // namespace trinity
