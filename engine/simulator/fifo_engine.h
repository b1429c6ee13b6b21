#pragma once

#include "simulator/ready_queue.h"
#include "simulator/record.h"

namespace trinity {

/// The fast road: one event per operator. Processing operators in the global order of (ready time,
/// number) fills every device and every queue that one device feeds in first-in-first-out order
/// (manual/simulator.md "The FIFO engine"), so neither ends nor transfers need events of
/// their own.
class FifoEngine {
 public:
  explicit FifoEngine(const Problem& problem);

  /// Whether this road can take the schedule: first in first out, one micro-batch, queues fed by
  /// one device, no collectives, times within its packed keys.
  static bool takes(const Problem& problem, const Schedule* schedule);

  /// Fills `record` (begun by this). Stops early, with record.rejected, once the step is certain to
  /// be longer than `limit_ns`.
  void run(std::span<const int32_t> placement, int64_t limit_ns, Record& record);

 private:
  struct Arrival {
    int64_t time_ns = 0;
    int32_t op = -1;  // whose output it is
    int32_t copy = 0;
  };
  /// What a run reads of an operator, and of an output, lies together.
  struct Node {
    int32_t first_edge, first_output;
  };
  struct Wire {
    int64_t time_ns, bytes;
  };
  template <int kShift, bool kPlain, bool kRecord>
  class Run;
  template <int kShift>
  void choose(const int32_t* placement, int64_t limit_ns, Record& record);
  int64_t book(Copy copy, Record& record, int32_t number);

  const Problem& problem_;
  ReadyStore store_;
  std::vector<Node> nodes_;              // one more than operators
  std::vector<Wire> wires_;              // per output; where all wires are equal
  std::vector<uint64_t> missing_image_;  // per operator: inputs, in a state word's low bits
  std::vector<uint64_t> state_;          // per operator: ready time, inputs still missing
  std::vector<int32_t> sources_;         // operators without inputs
  std::vector<Arrival> arrivals_;        // [output][device]
  std::vector<int64_t> pair_free_;       // [from][to], for pair queues
  std::vector<int32_t> next_position_;   // per device
};

}  // namespace trinity
