#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/analysis.h"

namespace trinity {

/// Operators by start time, then by number. An operator that takes no time may thus follow a later
/// operator of its device that starts at the same instant; critical-path attribution and slack of
/// the two are then inexact. The weights in models/policies and the published ranking tables were
/// made with this order.
std::vector<int32_t> by_start(const Timeline& timeline);

/// Critical-path attribution: time by which every colocation unit delays a step. Immutable.
class Blame {
 public:
  struct Times {
    double computation_ns = 0;  ///< running on the path
    double held_ns = 0;         ///< on the path, ready, waiting for its device
    double queue_ns = 0;        ///< running while an operator of the path waited for the device
    double transfer_ns = 0;     ///< to or from another unit on the path; counts for both
  };

  /// No units.
  Blame() = default;
  /// path: critical path of the timeline; order: by_start().
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
