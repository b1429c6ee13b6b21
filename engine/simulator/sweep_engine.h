#pragma once

#include "simulator/flows.h"
#include "simulator/ready_queue.h"
#include "simulator/record.h"

namespace trinity {

/// The fast road: one event per task, neither ends nor, in queues that one device feeds, transfers
/// need events of their own. First in, first out, tasks in the global order of (ready time, number)
/// fill every device and every queue that one device feeds in that order (README.md, "The
/// sweep"). By any other rule the devices' starts are taken in order of time: whatever is ready by
/// then, the starts before have told, and a queue that one device feeds is filled in order of its
/// starts. Channels that several devices feed have events between the tasks: when a transfer takes
/// its route (QueueModel::route), when it begins to flow and when it has flowed (fair). Whatever
/// comes before the task at hand the tasks before it have told, too. Micro-batches share the arrays
/// of the graph; of what is summed over them the last to start is the last to end.
class SweepEngine {
 public:
  /// What transfers go through: one send queue a device, all wires equal, no pauses, which most
  /// problems are; any queues that one device feeds; channels that several do.
  enum class Wiring { plain, queues, channels };

  explicit SweepEngine(const Problem& problem);

  /// Whether this road can take the schedule: no stream, an order of one micro-batch only, copies
  /// that devices do not make themselves, no collectives, no contention, times within its packed
  /// keys.
  static bool takes(const Problem& problem, const Schedule* schedule);

  /// Fills `record` (begun by this). Stops early, with record.rejected, once the step is certain to
  /// be longer than `limit_ns`. False where an order contradicts the graph, so that not everything
  /// ran.
  bool run(const Plan& plan, int64_t limit_ns, Record& record);

 private:
  struct Arrival {
    int64_t time_ns = 0;  // or never: its event is to come
    int32_t task = -1;  // whose output it is
    int32_t copy = 0;
  };
  /// A reader that waits for a transfer whose event is to come.
  struct Expected {
    int32_t task, next;  // the place of the next that waits for it, or -1
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
    EventQueue later;   // (ready time, task): ready, as is known, after the device's last start
    EventQueue chosen;           // the others, by priority
    std::vector<int32_t> stack;  // or lifo, the last to be ready on top
    int64_t next_ns;    // when it starts something next, or never
    int32_t at, end;    // where it is in the plan's order
  };
  static constexpr int kSmallShift = 20, kLargeShift = 24;  // bits of a task in a key
  template <int kShift, Wiring kWiring, bool kMicro, bool kRecord, DispatchRule kRule>
  class Run;
  template <int kShift, Wiring kWiring, bool kMicro, DispatchRule kRule>
  bool run_by(const Plan& plan, int64_t limit_ns, Record& record);
  template <int kShift, Wiring kWiring, bool kMicro>
  bool choose(const Plan& plan, int64_t limit_ns, Record& record);
  template <int kShift, bool kMicro>
  bool wire(const Plan& plan, int64_t limit_ns, Record& record);
  static Wiring wiring(const Problem& problem);
  void lay_out(int32_t runs);
  void begin_turns(const Schedule& schedule, size_t devices);
  int64_t book(Copy copy, int64_t bytes, Record& record, int32_t number);

  const Problem& problem_;
  const int op_bits_;  // that operators' numbers need
  int32_t runs_ = 0;   // micro-batches that it is laid out for
  ReadyStore store_;
  std::vector<Node> nodes_;              // one more than operators
  std::vector<Wire> wires_;              // per output; where all wires are equal
  // [operator][micro-batch]: inputs, in a state word's low bits; ready time and inputs missing.
  std::vector<uint64_t> missing_image_, state_;
  std::vector<int32_t> sources_;         // operators without inputs
  std::vector<uint8_t> summed_;          // per operator: micro-batches are summed for a reader
  std::vector<int32_t> to_run_;          // per operator: micro-batches that have not started
  std::vector<Arrival> arrivals_;        // [output][device]
  std::vector<int64_t> pair_free_;       // [from][to], for pair queues
  std::vector<int64_t> channel_free_;    // per channel, for routes
  std::vector<Expected> expected_;       // [micro-batch][edge]
  Flows flows_;                          // for fair shares
  EventQueue begins_;                    // (when a transfer takes its route or flows, its place)
  std::vector<int32_t> flowed_;          // transfers that have flowed at one instant
  std::vector<int32_t> next_position_;   // per device
  std::vector<Waiting> waiting_;         // per device
  EventQueue turns_;                     // (time, device): when devices start something
  std::vector<int32_t> due_;             // devices that do so at one instant
};

extern template bool SweepEngine::wire<SweepEngine::kSmallShift, true>(const Plan&, int64_t,
                                                                       Record&);
extern template bool SweepEngine::wire<SweepEngine::kLargeShift, true>(const Plan&, int64_t,
                                                                       Record&);

}  // namespace trinity
