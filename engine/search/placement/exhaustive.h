#pragma once

#include "search/placement/searcher.h"

namespace trinity {

/// Every placement once: exact. Where devices are interchangeable (PlacementSpace::interchangeable)
/// only one of all placements that differ by names of devices: unit u goes to a device in use or to
/// the first unused one (restricted growth strings). Ends after PlacementSpace::choices().
class Exhaustive : public Searcher {
 public:
  /// Throws LimitError when there are more than 4 million placements; it states both numbers.
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
