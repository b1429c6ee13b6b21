#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "search/pipeline/layer_row.h"

namespace trinity {

// Exact cuts of a row of layers into stages, runs of neighbours that each have a device of their
// own, on devices that may differ. A device may be left without a stage.

/// The most devices of least_load_cut(), which looks at all sets of them.
inline constexpr int32_t kMostLoadDevices = 12;

struct LeastLoadCut {
  std::vector<int32_t> device_of;  ///< of every layer; empty where memory allows no cut
  double load_s = std::numeric_limits<double>::infinity();  ///< the largest of a stage
};

/// The cut whose largest load is least, over all orders of all devices. Of a stage [first, last)
/// with m stages behind it, that one included:
///   load = the more of the seconds that its device computes a micro-batch, and those that its
///          narrowest wire takes for what it sends over its two cuts (a wire works meanwhile)
///   memory = parameters twice (gradients) and state + min(m, micro_batches) times its activations
/// as 1F1B has that many in flight. A dynamic program over sets of devices:
/// O(2^devices * devices * layers^2) at worst. Throws ArgumentError for no layer, no device or more
/// than kMostLoadDevices, no micro-batch; LimitError for 2^26 sets of devices times layers;
/// Interrupted.
LeastLoadCut least_load_cut(const LayerRow& row, int32_t micro_batches);

/// GPipe's cut into as many stages as there are devices, in their order, all taken for equal: the
/// largest sum of a stage's times, means over the devices, is least (see cut_row()). The device
/// of every layer.
std::vector<int32_t> equal_work_cut(const LayerRow& row);

struct FastestOptions {
  int32_t micro_batches = 1;  ///< of a step
  /// Only a faster step than this is looked for.
  double below_s = std::numeric_limits<double>::infinity();
  int64_t most_cuts = 100'000;  ///< that may be tried, at most 2^50
};

struct FastestCut {
  bool complete = false;           ///< false: more would have to be tried, and none was
  int64_t tried = 0;               ///< how many cuts could be faster
  std::vector<int32_t> device_of;  ///< of every layer; empty where none is
  double step_time_s = 0;
};

/// What the steps of some cuts (devices of layers) take: seconds, infinite where one does not
/// fit. Of a step of `below_s` or more any such number may be told.
using StepTimes = std::function<std::vector<double>(const std::vector<std::vector<int32_t>>& cuts,
                                                    double below_s)>;

/// The cut whose step is fastest by `step_times_s`, which is asked for 256 cuts at a time, and
/// for none in which a device would be busy for `below_s` or longer: a device computes all
/// micro-batches of its layers, and their updates once. Of equal steps the first of all cuts in
/// the order of (device, end) of their stages. Throws ArgumentError for no layer or no device;
/// Interrupted.
FastestCut fastest_cut(const LayerRow& row, const FastestOptions& options,
                       const StepTimes& step_times_s);

}  // namespace trinity
