#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/words.h"

namespace trinity {

/// Activity of one device during a step.
struct DeviceMetrics {
  int64_t compute_busy_ns = 0;    ///< sum of operator times
  int64_t send_busy_ns = 0;       ///< sum of outgoing transfer and collective times
  int64_t peak_memory_bytes = 0;  ///< 0 if memory is not modelled
  int64_t bytes_sent = 0, bytes_received = 0;

  bool operator==(const DeviceMetrics&) const = default;
};

/// Simulation result of one plan. Peaks are maxima over devices. Communication counts the bytes
/// that a device sends plus those that it receives.
struct Metrics {
  int64_t step_time_ns = 0;
  int64_t peak_memory_bytes = 0;
  int64_t peak_communication_bytes = 0;
  int64_t total_communication_bytes = 0;  ///< sum of bytes_sent over all devices
  int64_t excess_memory_bytes = 0;        ///< maximum over devices of peak memory minus capacity
  int32_t transfers = 0;                  ///< copies between two devices; collectives not counted
  /// The step exceeds the limit given to the simulation. step_time_ns is then that limit plus one,
  /// and nothing else is filled.
  bool rejected = false;
  /// The schedule contradicts the placement or the graph (Schedule::contradicts). The metrics are
  /// as for first in, first out, and the plan is infeasible.
  bool unscheduled = false;
  std::vector<DeviceMetrics> devices;

  bool feasible() const { return excess_memory_bytes <= 0 && !unscheduled; }
  double step_time_s() const { return static_cast<double>(step_time_ns) / 1e9; }
  bool operator==(const Metrics&) const = default;

  /// Turns this into the result of a plan whose step exceeds `limit_ns`.
  void reject(int64_t limit_ns) {
    step_time_ns = limit_ns + 1;
    peak_memory_bytes = peak_communication_bytes = 0;
    total_communication_bytes = excess_memory_bytes = 0;
    transfers = 0;
    rejected = true;
    unscheduled = false;
    for (auto& device : devices) device = {};
  }
};

/// One transfer of a tensor between devices. `task` is micro-batch * operators + operator.
struct Transfer {
  int64_t enqueued_ns = 0, start_ns = 0, end_ns = 0;
  int64_t bytes = 0;
  int32_t task = 0, output = 0;  ///< producer, and index of its output
  int32_t from = 0, to = 0;      ///< devices; with broadcast `to` is the first receiver

  bool operator==(const Transfer&) const = default;
};

/// One run of a collective.
struct CollectiveRun {
  int32_t collective = 0, micro_batch = 0;
  int64_t ready_ns = 0, start_ns = 0, end_ns = 0;  ///< ready: when its last member was ready

  bool operator==(const CollectiveRun&) const = default;
};

/// Bytes held on a device from this operator start until the next entry of the device.
struct MemoryLevel {
  int64_t time_ns = 0;
  int64_t bytes = 0;

  bool operator==(const MemoryLevel&) const = default;
};

/// Purpose of memory on a device.
enum class MemoryOwner : uint8_t {
  weights,               ///< trained and untrained, in all versions that a stream keeps
  optimizer,             ///< optimiser state
  gradients,             ///< of weights: read by updates and reductions
  activations,           ///< outputs of forward operators, first or recomputed
  activation_gradients,  ///< outputs of backward operators that no update reads
  delayed,   ///< activations and their gradients that only weight-gradient (W) operators still need
  received,  ///< copies from other devices that have not been read yet
  gathered,  ///< weights gathered for use (ZeRO-3) or after their update
  workspace,
  framework  ///< memory of the training software itself
};
inline constexpr size_t kMemoryOwners = 10;
template <>
inline constexpr auto kWords<MemoryOwner> =
    words("owner", "weights", "optimizer", "gradients", "activations", "activation_gradients", "delayed", "received",
          "gathered", "workspace", "framework");

/// Bytes by owner, indexed by MemoryOwner.
using OwnedBytes = std::array<int64_t, kMemoryOwners>;

/// Bytes of an output or a workspace that a device holds at its peak memory.
struct PeakTensor {
  int32_t device = 0;
  int32_t op = 0;  ///< producer
  MemoryOwner owner = MemoryOwner::activations;
  int64_t bytes = 0;

  bool operator==(const PeakTensor&) const = default;
};

/// Start and end of every event of a run, filled on request. Tasks are numbered micro-batch *
/// operators + operator; one that does not run (an update of an earlier micro-batch) starts and
/// ends at -1.
struct Timeline {
  int32_t micro_batches = 1;
  /// The whole run of an asynchronous stream: micro_batches counts its mini-batches, and updates
  /// run in each. Metrics describe a step (see Simulator), not the stream.
  bool stream = false;
  std::vector<int32_t> device;                      ///< per task
  std::vector<int64_t> ready_ns, start_ns, end_ns;  ///< per task; ready: all inputs had arrived
  std::vector<Transfer> transfers;                  ///< sorted by start, producer, receiver
  std::vector<CollectiveRun> collectives;           ///< in order of booking
  std::vector<std::vector<MemoryLevel>> memory;     ///< per device, if memory is modelled
  bool wants_owners = false;  ///< request for `owners`
  /// Per device, if memory is modelled: peak memory by owner, in the first slot that reaches the
  /// peak. The sum is DeviceMetrics::peak_memory_bytes.
  std::vector<OwnedBytes> owners;
  std::vector<PeakTensor> at_peak;  ///< what `owners` counts apart from permanent memory
};

}  // namespace trinity
