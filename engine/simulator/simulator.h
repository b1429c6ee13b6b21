#pragma once

#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "simulator/problem.h"

namespace trinity {

/// What one device did during a step.
struct DeviceMetrics {
  int64_t compute_busy_ns = 0;  ///< sum of operator times
  int64_t send_busy_ns = 0;     ///< sum of outgoing transfer times
  int64_t peak_memory_bytes = 0;
  int64_t bytes_sent = 0, bytes_received = 0;
};

/// Prices one placement. Peaks are maxima over devices; communication counts bytes sent plus bytes
/// received by a device.
struct Metrics {
  int64_t step_time_ns = 0;
  int64_t peak_memory_bytes = 0;
  int64_t peak_communication_bytes = 0;
  int64_t total_communication_bytes = 0;  ///< bytes on all wires, each transfer once
  int64_t excess_memory_bytes = 0;        ///< largest excess of a device over its capacity
  int32_t transfers = 0;
  std::vector<DeviceMetrics> devices;

  bool feasible() const { return excess_memory_bytes <= 0; }
  double step_time_s() const { return static_cast<double>(step_time_ns) * 1e-9; }
};

/// One transfer of a tensor between devices.
struct Transfer {
  int32_t producer, output;  ///< operator, and which of its outputs
  int32_t from, to;          ///< devices; with broadcast `to` is the first receiver
  int64_t bytes;
  int64_t start_ns, end_ns;
  int32_t last_reader_slot;  ///< on `to`, in that device's order of execution
};

/// Start and end of everything, filled on request.
struct Timeline {
  std::vector<int64_t> start_ns, end_ns;  ///< per operator
  std::vector<Transfer> transfers;        ///< in order of booking
};

/// Simulates placements of one problem. Holds the working memory of one thread: make one per
/// thread and keep it, nothing is allocated after the first run.
///
/// Rules: a device runs ready operators one at a time in order of (ready time, operator number);
/// an operator is ready when all inputs have arrived; a reader on the same device sees a tensor at
/// its producer's end; for every other device with readers one transfer enters the producer's send
/// queue at that moment, in order of first reader, and all readers there share the copy. One event
/// per operator: processing operators in global order of (ready, number) fills every device and
/// send queue in first-in-first-out order.
///
/// Memory: fixed bytes plus live tensors, accounted in slots: slot k of a device reaches from the
/// start of its k-th operator to the start of the next. An output lives until its last local
/// reader and last outgoing transfer have ended, a received copy from its transfer's start until
/// its last reader there has ended.
class Simulator {
 public:
  explicit Simulator(const Problem& problem);

  /// Simulates `placement` (device of every operator, in range: see check_placement). Fills
  /// `timeline` when given.
  void run(std::span<const int32_t> placement, Metrics& metrics, Timeline* timeline = nullptr);

 private:
  struct Arrival {
    int64_t time_ns = 0;
    int32_t transfer = -1;
    int32_t epoch = -1;  // the operator whose output it is
  };

  void reset();
  void sweep(std::span<const int32_t> placement);
  void deliver(std::span<const int32_t> placement, int32_t op, int64_t end);
  Arrival& send(int32_t op, int32_t output, int32_t from, int32_t to, int64_t end);
  void push(int64_t ready, int32_t op);
  uint64_t pop();
  void total(std::span<const int32_t> placement, Metrics& metrics) const;
  void slot_memory(std::span<const int32_t> placement, Metrics& metrics);
  void outputs_only_memory(std::span<const int32_t> placement, Metrics& metrics);
  int32_t slot_at(int32_t device, int64_t time) const;
  void hold(int32_t device, int32_t first_slot, int32_t last_slot, int64_t bytes);

  const Problem& problem_;
  std::vector<uint64_t> heap_;
  std::vector<int64_t> ready_, start_, end_;
  std::vector<int32_t> missing_, slot_, edge_transfer_, output_last_slot_;
  std::vector<int64_t> device_free_, queue_free_;
  std::vector<std::vector<int64_t>> device_starts_;  // start times, in order of execution
  std::vector<std::vector<int64_t>> slot_delta_;     // bytes allocated minus freed, per slot
  std::vector<Arrival> arrivals_;                    // [output][device]
  std::vector<Transfer> transfers_;
  int64_t last_event_ = 0;
};

/// Simulates many placements on a thread pool, one simulator per thread. Results do not depend on
/// the number of threads.
class BatchSimulator {
 public:
  BatchSimulator(const Problem& problem, ThreadPool& pool);
  /// `placements` holds `count` placements one after the other; metrics[i] prices placement i.
  void run(std::span<const int32_t> placements, int32_t count, std::vector<Metrics>& metrics);

 private:
  const Problem& problem_;
  ThreadPool& pool_;
  std::vector<Simulator> simulators_;
};

}  // namespace trinity
