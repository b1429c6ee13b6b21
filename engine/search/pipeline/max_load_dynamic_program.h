#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "search/pipeline/ideals.h"
#include "search/pipeline/max_load_cut.h"

namespace trinity {

/// The dynamic programs behind max_load_cut(): over the prefixes of one order, and over all
/// ideals of a partial order. Both fill least[I][a][c], the least largest load of ideal I on a
/// accelerators and c CPUs, and look only for cuts whose loads are at most a limit. That cuts
/// most of the table away: what is left of I must fit the devices that are left, each within the
/// limit, so for a limit near the optimum few ideals can end a part at all.

/// What groups of nodes send each other. A net is what one group sends to the same other groups:
/// its cost is charged once to the source's accelerator when a reader is elsewhere, and once to
/// every other accelerator with a reader.
struct LoadNets {
  struct Net {
    int32_t source = 0;
    std::vector<int32_t> readers;  ///< groups other than the source, ascending
    double transfer_s = 0;         ///< above 0
  };
  LoadNets(const LoadInstance& instance, const std::vector<std::vector<int32_t>>& groups);

  std::vector<Net> nets;
  std::vector<std::vector<int32_t>> touching;  ///< of every group: nets it is an end of
};

/// What no cut of some work within a limit can do better than.
class LoadWindow {
 public:
  LoadWindow(const LoadInstance& instance, const std::vector<std::vector<int32_t>>& groups);

  /// The least limit that the work alone allows.
  double least_limit() const;
  /// No cut has a larger load than this.
  double largest_limit() const { return largest_; }
  void set_limit(double limit);
  double limit() const { return limit_; }
  /// The most accelerators that may be used so far where `work` and `memory_bytes` and
  /// `unsupported` groups are left and `cpus_left` CPUs; -1 when even all of them are too few.
  int32_t most_used(double work, int64_t memory_bytes, int32_t unsupported,
                    int32_t cpus_left) const;
  /// The most accelerator work that a CPU can take over.
  double cpu_work() const { return cpu_work_; }

 private:
  /// The most accelerator work that fits on a CPU within `limit`: as a knapsack of fractions.
  double work_of_cpu(double limit) const;

  const LoadInstance& instance_;
  std::vector<std::pair<double, double>> works_;  // (accelerator, CPU), cheapest for a CPU first
  double work_ = 0, largest_ = 0, limit_ = 0, cpu_work_ = 0;
};

enum class LoadOutcome { found, none, stopped };  ///< stopped: out of pairs

/// Device of every node (accelerators in order, then CPUs) of the best cut along the order of
/// `groups`, in `device`; loads above the window's limit are not looked for. Both throw Interrupted
/// and TimeIsUp.
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
