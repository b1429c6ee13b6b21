#pragma once

#include <limits>
#include <memory>
#include <span>

#include "simulator/metrics.h"
#include "simulator/problem.h"
#include "strategy/quotient.h"
#include "strategy/schedule.h"

namespace trinity {

/// A plan to simulate: where operators run, how many micro-batches there are and in which order
/// they run.
struct Plan {
  std::span<const int32_t> placement;  ///< device of every operator (see check_placement)
  const Schedule* schedule = nullptr;  ///< null: one micro-batch, first in, first out
  /// Equivalence classes of devices; placement and schedule name one representative per class.
  /// Needs a schedule with DispatchRule::order. Metrics cover all devices of the cluster.
  const Quotient* quotient = nullptr;
  uint64_t schedule_hash = 0;  ///< hash_value(*schedule); 0: unknown

  /// Number of devices that placement and schedule refer to: the representatives if there are
  /// any.
  int32_t devices(const Problem& problem) const {
    return quotient ? static_cast<int32_t>(quotient->devices.size()) : problem.devices();
  }
  /// The cluster's index of one of them.
  int32_t cluster_device(int32_t device) const {
    return quotient ? quotient->devices[device] : device;
  }
};

inline constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

/// Simulates plans of one problem. Not thread-safe: the object holds the working memory of one
/// thread. Make one per thread and keep it; nothing is allocated after the first run.
///
/// TASKS. A task is (micro-batch, operator), numbered micro-batch * operators + operator. An
/// operator of phase update runs once, in the last micro-batch. If such an operator reads a tensor
/// from one that runs in every micro-batch, the tensor accumulates: its readers receive it when the
/// last of its micro-batches has ended (on another device it is sent then).
///
/// STREAMS. An asynchronous stream (Schedule::stream) runs every operator in every mini-batch,
/// updates included. Its step is micro_batches times the period. The period is the time between the
/// ends of the two mini-batches that the schedule names, divided by their distance; it is at least
/// the time that any device computes (or one sender's queue sends) per mini-batch, which bounds
/// every steady state. Totals of a device (time, bytes, transfers) cover micro_batches
/// mini-batches, peaks the whole stream. A device's fixed bytes count its weights once per version
/// that it keeps.
///
/// READY. A task is ready when all its inputs have arrived on its device, at 0 if it has none. A
/// reader on the producer's device sees a tensor at the producer's end.
///
/// DEVICES. A device runs one task at a time and never waits while a task is ready. Exception:
/// DispatchRule::order waits for the head of its sequence. DispatchRule defines which ready task is
/// taken. The device is free again at the task's end plus its pause (device_dead_ns).
///
/// CONTENTION. Devices of one type on one node share its memory. While k of these n devices run a
/// task that costs something (the copies of a receiver count), each computes 1 + (c - 1) (k - 1) /
/// (n - 1) times as slowly as alone. c is the contention that the device type states for the
/// operator (DeviceType, Efficiency; 1 by default). Copies are not slowed.
///
/// TRANSFERS. When a task ends, one transfer per output is enqueued for every other device that has
/// readers of it, in order of first reader; all readers there share the copy. The transfer starts
/// when the queue that it occupies is free and takes latency + bytes / bandwidth (wire_ns). Queue
/// models:
///   sender  the producer device's one queue, first in first out;
///   pair    one queue per ordered pair of devices;
///   none    no queue: it starts when enqueued;
///   route   all channels of the route at once, booked when enqueued, no back-filling;
///   fair    starts when enqueued: latency first, then its bytes flow at a max-min fair share of
///           every channel of its route. Rates are whole bytes/s (progressive filling, rounded
///           down, at least 1; channels of equal share in ascending order), recomputed after every
///           instant in which a flow begins or ends; a flow ends at the first whole nanosecond at
///           which all its bytes have flowed;
///   receiver  the receiving device copies, and computes nothing meanwhile. A device that takes a
///             task first copies, one after the other in the order of the task's inputs, every
///             input that is on another device and was not copied yet; then the task starts. Such a
///             task is ready when its inputs have been produced. (The executor's workers do this:
///             engine/execute.)
///
/// COLLECTIVES. The members of a collective (per micro-batch) start together once all are ready and
/// the queues that they occupy are free: with sender every member's send queue; with pair the
/// queues from each member to the next (by device number, the last to the first); with route the
/// channels of these routes; with none and receiver nothing. They take collective_cost() and end
/// together, occupying no device. With fair every such pair carries the bytes that a ring sends
/// between neighbours as one flow, after the latency of the whole ring; the collective ends with
/// its last flow. Members on one device count as one; a collective on one device takes no time.
///
/// INSTANTS. At one instant the first applicable rule of this list is applied repeatedly until none
/// applies: (1) tasks end, in order of number; (2) transfers and collectives arrive, in order of
/// booking; (3) of the collectives on one device whose last member has become ready, the first is
/// booked, by (micro-batch, collective); (4) of all free devices' choices, the one with the
/// smallest (ready time, number) starts; (5) all other collectives whose last member has become
/// ready are booked, in order of (micro-batch, collective). Rule 5 comes last so that devices that
/// behave identically reach a collective in the same state, whichever takes its turn first
/// (manual/symmetry.md).
///
/// MEMORY. Fixed bytes plus live tensors, in slots. Slot k of a device lasts from the start of its
/// k-th task to the start of the next (the first from 0, the last to the end); an instant falls
/// into the slot of the latest task started by then. An output is held from its task's slot until
/// the slots in which its last local reader runs and its last outgoing transfer ends. A received
/// copy is held from the slot of its transfer's start until the slot of its last reader there;
/// workspace in its operator's slot. A member of a collective holds its inputs until the slot of
/// the collective's end, its outputs from the slot of its start. A tensor that accumulates is held
/// once, from its first task's slot. The output of a view (an in-place operator) takes no memory
/// and extends the life of the viewed tensor on its device, unless it accumulates. The output of a
/// Variable takes no memory on its device, where its weights are fixed bytes, and what a host keeps
/// of a tensor (Tensor::host_bytes) takes none anywhere.
class Simulator {
 public:
  explicit Simulator(const Problem& problem);
  ~Simulator();
  Simulator(Simulator&&) noexcept;

  /// Simulates `plan` and fills `timeline` if given (with representatives: only memory and its
  /// owners, per representative device). A plan whose step exceeds `limit_ns` is rejected as soon
  /// as that is certain. Throws ScheduleError if the schedule's order contradicts the graph (it
  /// names the task at which every waiting device is blocked), ArgumentError if the schedule does
  /// not fit the problem, LimitError if the clock could overflow.
  void run(const Plan& plan, Metrics& metrics, Timeline* timeline = nullptr,
           int64_t limit_ns = kNoLimit);
  void run(std::span<const int32_t> placement, Metrics& metrics, Timeline* timeline = nullptr,
           int64_t limit_ns = kNoLimit) {
    run(Plan{placement, nullptr}, metrics, timeline, limit_ns);
  }

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace trinity
