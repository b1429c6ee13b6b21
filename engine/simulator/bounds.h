#pragma once

#include <cstdint>

#include "simulator/problem.h"

namespace trinity {

/// What no plan of a problem can beat: any placement that keeps colocation units together, any
/// dispatch rule, any queue model. All are proven, in exact integer arithmetic.
struct Bounds {
  /// Longest path, every operator at its least cost, wires free.
  int64_t critical_path_ns = 0;
  /// The work spread over all devices as evenly as a split of every unit could: (total cost) /
  /// devices, rounded up, on equal devices. Elsewhere a value of the dual of the linear program
  /// "least T such that no device works longer" (manual/simulator.md "Bounds and oracles"): for any
  /// price per time of each class of equal devices, the work bought at its cheapest class costs at
  /// most T of everything.
  int64_t work_ns = 0;
  /// The work that must fall into some interval, spread evenly (Fernandez and Bussell, IEEE Trans.
  /// Computers 1973); never below the two above.
  int64_t interval_ns = 0;
  int64_t step_time_ns = 0;  ///< the largest of the above
  /// The largest peak of a device; see peak_memory_bound(). 0 where memory is not accounted.
  int64_t peak_memory_bytes = 0;
  /// The fewest devices that hold all fixed bytes, largest first; one more than there are when all
  /// together do not. At least 1.
  int32_t least_devices = 1;

  bool operator==(const Bounds&) const = default;
};

/// Bounds on a step of `micro_batches` micro-batches, or, of an asynchronous stream, on the time
/// that as many mini-batches take in the steady state: they overlap, so that the work alone binds
/// them, updates included in each, and critical_path_ns and interval_ns are 0. Pauses
/// (device_dead_ns), wires and collectives are taken as free. About one second for a million
/// operators. Throws ArgumentError for fewer than one micro-batch, LimitError when a bound exceeds
/// 64 bits.
Bounds lower_bounds(const Problem& problem, int32_t micro_batches = 1, bool stream = false);

}  // namespace trinity
