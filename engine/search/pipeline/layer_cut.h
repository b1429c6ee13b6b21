#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "search/pipeline/layer_row.h"

namespace trinity {

// Exact cuts of a row of layers into stages: runs of neighbours, each on a device of its own.
// Devices may be heterogeneous, and some may stay without a stage.

/// Maximum number of devices of least_load_cut(), which enumerates their subsets.
inline constexpr int32_t kMostLoadDevices = 12;

struct LeastLoadCut {
  std::vector<int32_t> device_of;  ///< [layer]; empty if no cut fits into memory
  double load_s = std::numeric_limits<double>::infinity();  ///< maximum over stages
};

/// The cut with the minimum largest load, over all orders of all devices. For a stage [first,
/// last), with m stages from it to the end, itself included:
///   load = max(compute seconds of its device per micro-batch, seconds of its narrowest link for
///   the bytes sent over its two cuts), because they overlap
///   memory = 2 parameters (with gradients) + optimiser state + min(m, micro_batches) activations,
///   because 1F1B has that many in flight
/// A dynamic program over subsets of devices: O(2^devices * devices * layers^2) at worst. Throws
/// ArgumentError for no layer, no device or more than kMostLoadDevices, no micro-batch; LimitError
/// for 2^26 subsets times layers; Interrupted.
LeastLoadCut least_load_cut(const LayerRow& row, int32_t micro_batches);

/// [layer]: device in GPipe's cut into one stage per device, in their order, with all devices taken
/// as equal: minimises the largest stage time, using mean times over devices (see cut_row()).
std::vector<int32_t> equal_work_cut(const LayerRow& row);

struct FastestOptions {
  int32_t micro_batches = 1;  ///< per step
  /// Only steps faster than this are of interest.
  double below_s = std::numeric_limits<double>::infinity();
  int64_t most_cuts = 100'000;  ///< maximum number tried, at most 2^50
};

struct FastestCut {
  bool complete = false;           ///< false: more cuts would have to be tried, and none was
  int64_t tried = 0;               ///< number of cuts that could be faster
  std::vector<int32_t> device_of;  ///< [layer]; empty: none is faster
  double step_time_s = 0;
};

/// Step times in seconds of some cuts ([layer] devices); infinite for a cut that does not fit. For
/// a step of `below_s` or longer, any such number may be returned.
using StepTimes = std::function<std::vector<double>(const std::vector<std::vector<int32_t>>& cuts,
                                                    double below_s)>;

/// The cut with the fastest step by `step_times_s`. It is called for 256 cuts at a time, and never
/// for cuts in which a device would be busy for `below_s` or longer (all micro-batches of its
/// layers, plus their updates once). Ties: the first cut in the order of (device, end) of the
/// stages. Throws ArgumentError for no layer or no device; Interrupted.
FastestCut fastest_cut(const LayerRow& row, const FastestOptions& options,
                       const StepTimes& step_times_s);

}  // namespace trinity
