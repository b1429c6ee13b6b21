#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trinity {

/// What one device did during a step.
struct DeviceMetrics {
  int64_t compute_busy_ns = 0;    ///< sum of operator times
  int64_t send_busy_ns = 0;       ///< sum of outgoing transfer and collective times
  int64_t peak_memory_bytes = 0;  ///< 0 where memory is not accounted
  int64_t bytes_sent = 0, bytes_received = 0;

  bool operator==(const DeviceMetrics&) const = default;
};

/// Prices one plan. Peaks are maxima over devices; communication counts bytes sent plus bytes
/// received by a device.
struct Metrics {
  int64_t step_time_ns = 0;
  int64_t peak_memory_bytes = 0;
  int64_t peak_communication_bytes = 0;
  int64_t total_communication_bytes = 0;  ///< bytes sent by all devices together
  int64_t excess_memory_bytes = 0;        ///< largest excess of a device over its capacity
  int32_t transfers = 0;                  ///< copies between two devices; collectives not counted
  /// The step is longer than the limit it was simulated under; step_time_ns is then that limit
  /// plus one, and nothing else is filled.
  bool rejected = false;
  /// Placement or graph contradict the schedule (Schedule::contradicts): everything here is what
  /// the placement costs first in, first out, and the plan does not fit.
  bool unscheduled = false;
  std::vector<DeviceMetrics> devices;

  bool feasible() const { return excess_memory_bytes <= 0 && !unscheduled; }
  double step_time_s() const { return static_cast<double>(step_time_ns) / 1e9; }
  bool operator==(const Metrics&) const = default;

  /// Makes this the result of a plan whose step is longer than `limit_ns`.
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
  int32_t task = 0, output = 0;  ///< producer, and which of its outputs
  int32_t from = 0, to = 0;      ///< devices; with broadcast `to` is the first receiver

  bool operator==(const Transfer&) const = default;
};

/// One run of a collective.
struct CollectiveRun {
  int32_t collective = 0, micro_batch = 0;
  int64_t ready_ns = 0, start_ns = 0, end_ns = 0;  ///< ready: its last member was ready

  bool operator==(const CollectiveRun&) const = default;
};

/// Bytes on a device from this operator start on, until the next entry of the device.
struct MemoryLevel {
  int64_t time_ns = 0;
  int64_t bytes = 0;

  bool operator==(const MemoryLevel&) const = default;
};

/// What bytes of a device's memory are there for.
enum class MemoryOwner : uint8_t {
  weights,               ///< trainable ones and others, in all versions that a stream keeps
  optimizer,             ///< state that stays from step to step
  gradients,             ///< of weights: what updates and reductions read
  activations,           ///< outputs of forward operators, first or recomputed
  activation_gradients,  ///< outputs of backward operators that no update reads
  delayed,   ///< of both, what only weight parts of a backward pass in two still wait for
  received,  ///< copies from other devices that nobody here has read yet
  gathered,  ///< weights gathered for their use (ZeRO-3) or after their update
  workspace,
  framework  ///< what the training software holds itself
};
inline constexpr size_t kMemoryOwners = 10;
const char* memory_owner_name(MemoryOwner owner);

/// Bytes by owner.
using OwnedBytes = std::array<int64_t, kMemoryOwners>;

/// Start and end of everything, filled on request. Tasks are numbered micro-batch * operators +
/// operator; one that does not run (an update of an earlier micro-batch) starts and ends at -1.
struct Timeline {
  int32_t micro_batches = 1;
  /// An asynchronous stream, all of it: micro_batches counts its mini-batches, and updates run in
  /// each. Metrics are those of a step (see Simulator), not of the stream.
  bool stream = false;
  std::vector<int32_t> device;                      ///< per task
  std::vector<int64_t> ready_ns, start_ns, end_ns;  ///< per task; ready: its inputs had arrived
  std::vector<Transfer> transfers;                  ///< sorted by start, producer, receiver
  std::vector<CollectiveRun> collectives;           ///< in order of booking
  std::vector<std::vector<MemoryLevel>> memory;     ///< per device, where memory is accounted
  bool wants_owners = false;  ///< asks for what follows
  /// Per device, where memory is accounted: who owns its peak, in the first slot that has it. The
  /// sum is DeviceMetrics::peak_memory_bytes.
  std::vector<OwnedBytes> owners;
};

}  // namespace trinity
