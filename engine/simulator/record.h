#pragma once

#include <span>
#include <vector>

#include "simulator/metrics.h"
#include "simulator/problem.h"
#include "simulator/simulator.h"

namespace trinity {

/// A transfer as the engines write it.
struct Copy {
  int64_t start_ns, end_ns;
  int32_t task, output, from, to;
};

/// What a device has done so far; its sums become DeviceMetrics.
struct DeviceState {
  int64_t free_ns = 0;       ///< end of its last task, plus its pause
  int64_t send_free_ns = 0;  ///< the same of its send queue
  int64_t compute_ns = 0, send_ns = 0, sent_bytes = 0, received_bytes = 0;
  int64_t remaining_ns = 0;  ///< work not yet started; only under a limit
  const int64_t* cost_ns = nullptr;
};

/// What one run leaves behind for totals, memory and timeline. Vectors keep their capacity.
struct Record {
  bool tasks = false;  ///< whether positions, starts and copies are wanted (memory, timeline)
  bool times = false;  ///< whether ready and end times are wanted too (timeline)

  int32_t micro_batches = 1;  ///< runs of forward and backward: mini-batches of a stream
  bool stream = false;        ///< updates run in each of them (Schedule::stream)
  std::span<const int32_t> weight_versions;  ///< per device; empty: one each
  std::vector<int64_t> run_end_ns;           ///< streams: the end of every mini-batch
  std::vector<DeviceState> devices;
  int64_t step_ns = 0;  ///< end of the last task; beyond the limit: a bound on it
  int64_t last_ns = 0;  ///< the last event, pauses included
  int32_t transfers = 0;
  bool rejected = false;

  /// Compute tasks of device d take positions first_position[d] + k in order of their start; a
  /// device without any has one position all the same, and every device one spare one at the end.
  std::vector<int32_t> first_position;
  std::vector<int64_t> start_at;  ///< start time of the task at every position
  std::vector<int32_t> position;  ///< per task
  /// Tasks in the order in which they handed out their outputs; not where the sweep ran.
  std::vector<int32_t> order;
  /// Copies in order of booking, which is the order of their producers in `order`. Only the first
  /// copy_count hold something.
  std::vector<Copy> copies;
  size_t copy_count = 0;
  /// [micro-batch of the reader][edge], where the sweep ran: what the reader reads, an output of
  /// the producer (micro-batch * outputs + its number among all) or a copy (its number, after all
  /// of these).
  std::vector<int32_t> source;
  bool swept = false;
  std::vector<CollectiveRun> collectives;
  std::vector<int64_t> ready_ns, end_ns;  ///< per task

  /// Starts a run of a plan: devices at rest, positions laid out, everything else empty.
  void begin(const Problem& problem, const Plan& plan, bool limited);
  void add_copy(const Copy& copy) {
    if (copy_count == copies.size()) copies.resize(2 * copy_count + 64);
    copies[copy_count++] = copy;
  }
};

}  // namespace trinity
