#pragma once

#include <cstdint>

#include "simulator/problem.h"

namespace trinity {

/// Lower bounds of a problem. They hold for any placement that keeps colocation units together, any
/// dispatch rule and any queue model. All are proven and computed in exact integer arithmetic.
struct Bounds {
  /// Longest path, every operator at its minimum cost, communication free.
  int64_t critical_path_ns = 0;
  /// Total work divided over all devices. On equal devices: (total cost) / devices, rounded up.
  /// Otherwise a dual value of the linear program "minimum T such that no device works longer than
  /// T" (manual/simulator.md "Bounds and oracles"): for any price per unit of time of each class of
  /// equal devices, buying all work at its cheapest class costs at most T times the sum of the
  /// prices.
  int64_t work_ns = 0;
  /// Work that must fall into some time interval, divided over the devices (Fernandez and Bussell,
  /// IEEE Trans. Computers 1973). Never below the two bounds above.
  int64_t interval_ns = 0;
  int64_t step_time_ns = 0;  ///< the largest of the above
  /// Lower bound on the largest peak of a device; see peak_memory_bound(). 0 if memory is not
  /// modelled.
  int64_t peak_memory_bytes = 0;
  /// Minimum number of devices that hold all fixed bytes, largest devices first; one more than the
  /// cluster has if all together do not. At least 1.
  int32_t least_devices = 1;

  bool operator==(const Bounds&) const = default;
};

/// Bounds on a step of `micro_batches` micro-batches. For an asynchronous stream: on the time of
/// that number of mini-batches in the steady state, where mini-batches overlap and only work
/// (updates included) binds; critical_path_ns and interval_ns are then 0. Pauses (device_dead_ns),
/// transfers and collectives count as free. Takes about one second for a million operators. Throws
/// ArgumentError for fewer than one micro-batch, LimitError if a bound exceeds 64 bits.
Bounds lower_bounds(const Problem& problem, int32_t micro_batches = 1, bool stream = false);

}  // namespace trinity
