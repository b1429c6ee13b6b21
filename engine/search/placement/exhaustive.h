#pragma once

#include "search/placement/searcher.h"

namespace trinity {

/// Evaluates every placement once: exact. If devices are interchangeable
/// (PlacementSpace::interchangeable), only one of all placements that differ by device names: unit
/// u goes to a used device or to the first unused one (restricted growth strings). Ends after
/// PlacementSpace::choices(). Not thread-safe.
class Exhaustive : public Searcher {
 public:
  /// Throws LimitError for more than 4 million placements; it states both numbers.
  explicit Exhaustive(const PlacementSpace& space);

 private:
  void propose(int32_t most, std::vector<Assignment>& trials) override;
  void learn(std::span<const Assignment> trials, std::span<const Score> scores) override;
  double limit() const override;
  bool advance();

  Assignment next_;
  bool done_ = false;
};

}  // namespace trinity
