#include "search/placement/exhaustive.h"

#include <algorithm>

#include "base/error.h"

namespace trinity {

namespace {

constexpr double kMostPlacements = 4e6;
constexpr int32_t kBatch = 256;

}  // namespace

Exhaustive::Exhaustive(const PlacementSpace& space)
    : Searcher(space), next_(static_cast<size_t>(space.units()), 0) {
  if (space.choices() > kMostPlacements)
    throw LimitError("exhaustive: {} colocation units on {} devices have {:.3g} different placements, and at most "
                     "{:.3g} are tried", space.units(), space.devices(), space.choices(), kMostPlacements);
}

/// Advances to the next assignment in ascending order, last unit fastest. Returns false after the
/// last one.
bool Exhaustive::advance() {
  std::vector<int32_t> most(next_.size(), space().devices() - 1);  // [unit]
  if (space().interchangeable()) {
    int32_t used = 0;
    for (size_t unit = 0; unit < next_.size(); ++unit) {
      most[unit] = std::min(used, space().devices() - 1);
      used = std::max(used, next_[unit] + 1);
    }
  }
  for (size_t unit = next_.size(); unit-- > 0;) {
    if (next_[unit] < most[unit]) {
      ++next_[unit];
      return true;
    }
    next_[unit] = 0;
  }
  return false;
}

void Exhaustive::propose(int32_t most, std::vector<Assignment>& trials) {
  while (!done_ && static_cast<int32_t>(trials.size()) < std::min(most, kBatch)) {
    trials.push_back(next_);
    done_ = !advance();
  }
}

void Exhaustive::learn(std::span<const Assignment>, std::span<const Score>) {}

double Exhaustive::limit() const {
  if (!best() || !best()->fits()) return std::numeric_limits<double>::infinity();
  return best()->value;
}

}  // namespace trinity
