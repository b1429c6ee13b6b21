#pragma once

#include "simulator/ready_queue.h"
#include "simulator/record.h"

namespace trinity {

/// The fast road: one event per operator, neither ends nor transfers need events of their own.
/// First in, first out, operators in the global order of (ready time, number) fill every device and
/// every queue that one device feeds in that order (manual/simulator.md "The sweep"). By any
/// other rule the devices' starts are taken in order of time: whatever is ready by then, the
/// starts before have told, and a queue that one device feeds is filled in order of its starts.
class SweepEngine {
 public:
  explicit SweepEngine(const Problem& problem);

  /// Whether this road can take the schedule: one micro-batch, queues fed by one device, no
  /// collectives, times within its packed keys.
  static bool takes(const Problem& problem, const Schedule* schedule);

  /// Fills `record` (begun by this). Stops early, with record.rejected, once the step is certain to
  /// be longer than `limit_ns`. False where an order contradicts the graph, so that not everything
  /// ran.
  bool run(const Plan& plan, int64_t limit_ns, Record& record);

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
  /// What a device may start, where it is not first in, first out.
  struct Waiting {
    EventQueue later;   // (ready time, operator): ready, as is known, after the device's last start
    EventQueue chosen;           // the others, by priority
    std::vector<int32_t> stack;  // or lifo, the last to be ready on top
    int64_t next_ns;    // when it starts something next, or never
    int32_t at, end;    // where it is in the plan's order
  };
  template <int kShift, bool kPlain, bool kRecord, DispatchRule kRule>
  class Run;
  template <int kShift, bool kPlain, DispatchRule kRule>
  bool run_by(const Plan& plan, int64_t limit_ns, Record& record);
  template <int kShift, bool kPlain>
  bool choose(const Plan& plan, int64_t limit_ns, Record& record);
  void begin_turns(const Schedule& schedule, size_t devices);
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
  std::vector<Waiting> waiting_;         // per device
  EventQueue turns_;                     // (time, device): when devices start something
  std::vector<int32_t> due_;             // devices that do so at one instant
};

}  // namespace trinity
