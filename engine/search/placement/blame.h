#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/analysis.h"

namespace trinity {

/// Operators in the order of their start, then of their numbers. What takes no time may so stand
/// behind what its device runs after it, from the same instant on; blame and slack of the two are
/// then off. The weights in models/policies and the tables of the manual's chapter "ranking" were
/// made so.
std::vector<int32_t> by_start(const Timeline& timeline);

/// How long every colocation unit holds up a step, along its critical path.
class Blame {
 public:
  struct Times {
    double computation_ns = 0;  ///< running on the path
    double held_ns = 0;         ///< on the path, ready, waiting for its device
    double queue_ns = 0;        ///< running while one on the path waited for the device
    double transfer_ns = 0;     ///< between it and another one on the path; counts for both
  };

  /// No units, no blame.
  Blame() = default;
  /// `path`: the critical one of the timeline; `order`: by_start().
  Blame(const Problem& problem, std::span<const int32_t> placement, const Timeline& timeline,
        const CriticalPath& path, std::span<const int32_t> order, int32_t units);

  const Times& of(int32_t unit) const { return times_[unit]; }
  double total(int32_t unit) const {
    const auto& t = times_[unit];
    return t.computation_ns + t.held_ns + t.queue_ns + t.transfer_ns;
  }

 private:
  std::vector<Times> times_;
};

}  // namespace trinity
