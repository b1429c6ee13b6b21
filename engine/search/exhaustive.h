#pragma once

#include "search/searcher.h"

namespace trinity {

struct ExhaustiveOptions {
  double most_placements = 4e6;  ///< more than this are refused
  int32_t batch = 256;
};

/// Every placement once: exact. Where devices are interchangeable (PlacementSpace::interchangeable)
/// only one of all placements that differ by names of devices: unit u goes to a device in use or to
/// the first unused one (restricted growth strings). Exhausted after PlacementSpace::choices().
class Exhaustive : public Searcher {
 public:
  /// Throws LimitError when there are more placements than allowed; it states both numbers.
  explicit Exhaustive(const PlacementSpace& space, ExhaustiveOptions options = {});

 private:
  void propose(int32_t most, std::vector<Assignment>& trials) override;
  void learn(std::span<const Assignment> trials, std::span<const Score> scores) override;
  double limit() const override;
  bool advance();

  ExhaustiveOptions options_;
  Assignment next_;
  bool done_ = false;
};

}  // namespace trinity
