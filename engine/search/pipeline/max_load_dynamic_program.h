#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "search/pipeline/ideals.h"
#include "search/pipeline/max_load_cut.h"

namespace trinity {

/// Dynamic programs of max_load_cut(): over the prefixes of one order, and over all ideals of a
/// partial order. Both fill least[I][a][c], the minimum largest load of ideal I on a accelerators
/// and c CPUs, and search only for cuts with loads up to a limit. This prunes most of the table:
/// the remainder of I must fit on the remaining devices, each within the limit, so near the optimum
/// few ideals can end a part.

/// Traffic between groups of nodes. A net is the data that one group sends to a given set of
/// groups: its cost is charged once to the source's accelerator if a reader is elsewhere, and once
/// to every other accelerator with a reader.
struct LoadNets {
  struct Net {
    int32_t source = 0;
    std::vector<int32_t> readers;  ///< groups other than the source, ascending
    double transfer_s = 0;         ///< above 0
  };
  LoadNets(const LoadInstance& instance, const std::vector<std::vector<int32_t>>& groups);

  std::vector<Net> nets;
  std::vector<std::vector<int32_t>> touching;  ///< [group]: its nets
};

/// Bounds on cuts within a limit that follow from work alone. Not thread-safe.
class LoadWindow {
 public:
  LoadWindow(const LoadInstance& instance, const std::vector<std::vector<int32_t>>& groups);

  /// Minimum limit that the work allows.
  double least_limit() const;
  /// No cut has a larger load than this.
  double largest_limit() const { return largest_; }
  void set_limit(double limit);
  double limit() const { return limit_; }
  /// Maximum number of accelerators that may be used so far if `work`, `memory_bytes` and
  /// `unsupported` groups remain, with `cpus_left` CPUs; -1 if even all of them are too few.
  int32_t most_used(double work, int64_t memory_bytes, int32_t unsupported,
                    int32_t cpus_left) const;
  /// Maximum accelerator work that a CPU can take over.
  double cpu_work() const { return cpu_work_; }

 private:
  /// Maximum accelerator work that fits on a CPU within `limit`: a fractional knapsack.
  double work_of_cpu(double limit) const;

  const LoadInstance& instance_;
  std::vector<std::pair<double, double>> works_;  // (accelerator, CPU), cheapest for a CPU first
  double work_ = 0, largest_ = 0, limit_ = 0, cpu_work_ = 0;
};

enum class LoadOutcome { found, none, stopped };  ///< stopped: out of pairs

/// Writes to `device` the device of every node (accelerators in order, then CPUs) in the best cut
/// along the order of `groups` with loads up to the window's limit. Both throw Interrupted and
/// TimeIsUp.
LoadOutcome cut_along_order(const LoadInstance& instance,
                            const std::vector<std::vector<int32_t>>& groups,
                            const LoadWindow& window, int64_t pairs, const Deadline& deadline,
                            std::vector<int32_t>& device);

/// The same over all ideals of the groups.
LoadOutcome cut_over_all(const LoadInstance& instance,
                         const std::vector<std::vector<int32_t>>& groups, const Ideals& ideals,
                         const LoadWindow& window, int64_t pairs, const Deadline& deadline,
                         std::vector<int32_t>& device);

}  // namespace trinity
