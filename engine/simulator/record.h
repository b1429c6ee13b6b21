#pragma once

#include <span>
#include <vector>

#include "simulator/metrics.h"
#include "simulator/problem.h"
#include "simulator/simulator.h"

namespace trinity {

/// A transfer as the engines record it.
struct Copy {
  int64_t start_ns, end_ns;
  int32_t task, output, from, to;
};

/// Running totals of a device; they become DeviceMetrics.
struct DeviceState {
  int64_t free_ns = 0;       ///< end of its last task, plus its pause
  int64_t send_free_ns = 0;  ///< end of its last transfer, plus its pause
  int64_t compute_ns = 0, send_ns = 0, sent_bytes = 0, received_bytes = 0;
  int64_t remaining_ns = 0;  ///< work not yet started; only under a limit
  const int64_t* cost_ns = nullptr;
};

/// Raw result of one run, from which totals, memory and timeline are computed. Vectors keep their
/// capacity between runs. Not thread-safe.
struct Record {
  bool tasks = false;  ///< request positions, starts and copies (for memory and timeline)
  bool times = false;  ///< also request ready and end times (for the timeline)

  int32_t micro_batches = 1;  ///< runs of forward and backward: mini-batches of a stream
  bool stream = false;        ///< updates run in each of them (Schedule::stream)
  std::span<const int32_t> weight_versions;  ///< per device; empty: one each
  std::vector<int64_t> run_end_ns;           ///< streams: end of every mini-batch
  std::vector<DeviceState> devices;
  int64_t step_ns = 0;  ///< end of the last task; if rejected: a lower bound on it
  int64_t last_ns = 0;  ///< the last event, pauses included
  int32_t transfers = 0;
  bool rejected = false;

  /// Compute tasks of device d have positions first_position[d] + k in order of their start. Every
  /// device has at least one position and one spare position at the end.
  std::vector<int32_t> first_position;
  std::vector<int64_t> start_at;  ///< start time of the task at every position
  std::vector<int32_t> position;  ///< per task
  /// Tasks in the order in which they delivered their outputs; empty after a sweep.
  std::vector<int32_t> order;
  /// Copies in order of booking, which is the order of their producers in `order`. Only the first
  /// copy_count entries are valid.
  std::vector<Copy> copies;
  size_t copy_count = 0;
  /// After a sweep: [micro-batch of the reader][edge]: what the reader reads. An output of the
  /// producer (micro-batch * outputs + output index) or a copy (its index plus the number of all
  /// outputs).
  std::vector<int32_t> source;
  bool swept = false;
  std::vector<CollectiveRun> collectives;
  std::vector<int64_t> ready_ns, end_ns;  ///< per task

  /// Resets the record for a run of a plan: idle devices, positions laid out, all else empty.
  void begin(const Problem& problem, const Plan& plan, bool limited);
  void add_copy(const Copy& copy) {
    if (copy_count == copies.size()) copies.resize(2 * copy_count + 64);
    copies[copy_count++] = copy;
  }
};

}  // namespace trinity
