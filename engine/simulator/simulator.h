#pragma once

#include <limits>
#include <memory>
#include <span>

#include "simulator/metrics.h"
#include "simulator/problem.h"
#include "strategy/quotient.h"
#include "strategy/schedule.h"

namespace trinity {

/// What is simulated: where operators run, and how often and in which order.
struct Plan {
  std::span<const int32_t> placement;  ///< device of every operator (see check_placement)
  const Schedule* schedule = nullptr;  ///< one micro-batch, first in first out, when null
  /// Classes of devices that are alike, of which placement and schedule name one each; of a
  /// schedule in order (DispatchRule::order). Metrics are those of all devices.
  const Quotient* quotient = nullptr;
  uint64_t schedule_hash = 0;  ///< hash_value(*schedule); 0: not known

  /// Devices that placement and schedule go over.
  int32_t devices(const Problem& problem) const {
    return quotient ? static_cast<int32_t>(quotient->devices.size()) : problem.devices();
  }
  /// The cluster's number of one of them.
  int32_t cluster_device(int32_t device) const {
    return quotient ? quotient->devices[device] : device;
  }
};

inline constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

/// Simulates plans of one problem. Holds the working memory of one thread: make one per thread and
/// keep it, nothing is allocated after the first run.
///
/// TASKS. A task is (micro-batch, operator), numbered micro-batch * operators + operator. An
/// operator of phase update runs once, in the last micro-batch; a tensor that such an operator
/// reads from one that runs every micro-batch accumulates: these readers get it (on another device:
/// are sent it) when the last of its micro-batches has ended.
///
/// STREAMS. An asynchronous stream (Schedule::stream) runs every operator in every mini-batch,
/// updates too. Its step is micro_batches times the period: the time between the ends of the two
/// mini-batches that the schedule names over their number, and no less than any device computes (or
/// one sender's queue sends) per mini-batch, which bounds every steady state. Sums of a device
/// (time, bytes, transfers) are those of micro_batches mini-batches, peaks those of all the stream.
/// A device's fixed bytes count its weights as often as it keeps versions of them.
///
/// READY. A task is ready when all its inputs have arrived on its device, at 0 when it has none. A
/// reader on the producer's device sees a tensor at the producer's end.
///
/// DEVICES. A device runs one task at a time and never waits while a task is ready
/// (DispatchRule::order excepted, which waits for the head of its sequence). Which ready task it
/// takes: see DispatchRule. It is free again at the task's end plus its pause (device_dead_ns).
///
/// CONTENTION. Devices of one type on one node share its memory. While k of the n of them have
/// taken a task that costs something and not ended it (the copies of a receiver count), each of
/// these computes 1 + (c - 1) (k - 1) / (n - 1) times as slowly as alone, c being the contention
/// that its type states for the operator at hand (DeviceType, Efficiency; 1 where none is stated).
/// Copies are not slowed.
///
/// TRANSFERS. When a task ends, for every distinct other device with readers of an output one
/// transfer is enqueued, in order of first reader; all readers there share the copy. It starts when
/// the queue that it occupies is free and takes latency + bytes / bandwidth (wire_ns):
///   sender  the producer device's one queue, first in first out;
///   pair    one queue per ordered pair of devices;
///   none    no queue: it starts when enqueued;
///   route   all channels of the route at once, booked when enqueued, no back-filling;
///   fair    starts when enqueued: latency first, then its bytes flow at a max-min fair share of
///           every channel of its route. Rates are whole bytes/s (progressive filling, rounded
///           down, at least 1; channels of equal share in ascending order), recomputed after every
///           instant in which a flow begins or ends; a flow ends at the first whole nanosecond at
///           which all its bytes have flowed;
///   receiver  the receiving device, which computes nothing meanwhile: a device that takes a task
///           first copies, one after the other in the order of the task's inputs, what lies on
///           other devices and was not copied yet; then the task starts. Such a task is ready when
///           its inputs have been produced. (The executor's workers do so: engine/execute.)
///
/// COLLECTIVES. The members of a collective (per micro-batch) start together once all are ready and
/// what they occupy is free: with sender every member's send queue; with pair the queues from each
/// member to the next (by device number, the last to the first); with route the channels of these
/// routes; with none and receiver nothing. They take collective_cost() and end together, occupying
/// no device. With fair every such pair carries the bytes a ring sends between neighbours as one
/// flow, after the ring's whole latency; the collective ends with its last flow. Members on one
/// device count as one; a collective on one device takes no time.
///
/// INSTANTS. Of everything due at one instant the first of this list happens, again and again until
/// nothing is left: tasks end, in order of number; transfers and collectives arrive, in order of
/// booking; of the collectives on one device whose last member has become ready the first is booked,
/// by (micro-batch, collective); of all free devices' choices the one of least (ready time, number)
/// starts; the other collectives whose last member has become ready are booked, all of them, in
/// order of (micro-batch, collective). (These come last so that devices that behave alike come to a collective in one
/// state, whichever of them takes its turn first: manual/symmetry.md.)
///
/// MEMORY. Fixed bytes plus live tensors, in slots: slot k of a device reaches from the start of
/// its k-th task to the start of the next (the first from 0, the last to the end); an instant falls
/// into the slot of the latest task started by then. An output is held from its task's slot until
/// the slots in which its last local reader runs and its last outgoing transfer ends; a received
/// copy from the slot of its transfer's start until that of its last reader there; workspace in
/// its operator's slot. A member of a collective holds its inputs until the slot of the
/// collective's end, its outputs from that of its start. A tensor that accumulates is held once,
/// from its first task's slot. The output of a view (an in-place operator) takes nothing and
/// prolongs what it views on its device, unless it accumulates; that of a Variable takes nothing on
/// its device, where its weights are fixed bytes.
class Simulator {
 public:
  explicit Simulator(const Problem& problem);
  ~Simulator();
  Simulator(Simulator&&) noexcept;

  /// Simulates `plan`; fills `timeline` when given: of a plan with a quotient memory and its owners
  /// alone, by the devices that placement names. A plan whose step is longer than `limit_ns`
  /// is rejected, as early as that is certain. Throws ScheduleError for a schedule whose order
  /// contradicts the graph (it names the task that every waiting device is blocked at),
  /// ArgumentError for one that does not fit the problem, LimitError when the clock could overflow.
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
