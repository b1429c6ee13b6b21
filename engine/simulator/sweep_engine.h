#pragma once

#include "simulator/flows.h"
#include "simulator/ready_queue.h"
#include "simulator/record.h"

namespace trinity {

/// The fast simulation engine: one event per task. Ends of tasks, and transfers in queues that one
/// device feeds, need no events of their own. Not thread-safe; working memory is kept between runs.
///
/// First in, first out: tasks in the global order of (ready time, number) fill every device and
/// every queue with one sender in that order (engine/simulator/README.md). With the other
/// rules, device starts are processed in order of time: earlier starts determine what is ready by
/// then, and queues with one sender fill in order of starts. Channels with several senders have
/// events between the tasks: when a transfer takes its route (QueueModel::route), and when it
/// begins and ends to flow (fair). Micro-batches share the arrays of the graph. For tensors that
/// accumulate over micro-batches, the last task to start is the last to end.
class SweepEngine {
 public:
  /// Communication model. plain: one send queue per device, equal links, no pauses (most problems);
  /// queues: any queues with one sender; channels: channels with several senders.
  enum class Wiring { plain, queues, channels };

  explicit SweepEngine(const Problem& problem);

  /// True if this engine supports the schedule: no stream, an order of at most one micro-batch, no
  /// copies by the receiver, no collectives, no contention, and times that fit its packed keys.
  static bool takes(const Problem& problem, const Schedule* schedule);

  /// Fills `record`, which it resets first. Stops early, with record.rejected, once the step is
  /// certain to exceed `limit_ns`. Returns false if an order contradicts the graph, so that not
  /// every task ran.
  bool run(const Plan& plan, int64_t limit_ns, Record& record);

 private:
  struct Arrival {
    int64_t time_ns = 0;  // kNever until its event occurs
    int32_t task = -1;  // producer
    int32_t copy = 0;
  };
  /// A reader that waits for a transfer without known arrival.
  struct Expected {
    int32_t task, next;  // next entry that waits for the same transfer, or -1
  };
  /// Hot data of an operator and its outputs, stored together.
  struct Node {
    int32_t first_edge, first_output;
  };
  struct Wire {
    int64_t time_ns, bytes;
  };
  /// Ready tasks of a device; not used first in, first out.
  struct Waiting {
    EventQueue later;   // (ready time, task): known to be ready after the device's last start
    EventQueue chosen;           // the others, by priority
    std::vector<int32_t> stack;  // with lifo: the last to be ready on top
    int64_t next_ns;    // next start, or never
    int32_t at, end;    // range in the plan's order
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
  const int op_bits_;  // bits of an operator index
  int32_t runs_ = 0;   // micro-batches of the current layout
  ReadyStore store_;
  std::vector<Node> nodes_;              // operators + 1 entries
  std::vector<Wire> wires_;              // per output; if all links are equal
  // [operator][micro-batch]: initial and current state word: ready time, and in the low bits the
  // number of missing inputs.
  std::vector<uint64_t> missing_image_, state_;
  std::vector<int32_t> sources_;         // operators without inputs
  std::vector<uint8_t> summed_;          // per operator: a reader accumulates it over micro-batches
  std::vector<int32_t> to_run_;          // per operator: micro-batches that have not started
  std::vector<Arrival> arrivals_;        // [output][device]
  std::vector<int64_t> pair_free_;       // [from][to], for pair queues
  std::vector<int64_t> channel_free_;    // per channel, for routes
  std::vector<Expected> expected_;       // [micro-batch][edge]
  Flows flows_;                          // for fair shares
  EventQueue begins_;                    // (time, transfer): takes its route, or begins to flow
  std::vector<int32_t> flowed_;          // transfers that end to flow at one instant
  std::vector<int32_t> next_position_;   // per device
  std::vector<Waiting> waiting_;         // per device
  EventQueue turns_;                     // (time, device): next starts
  std::vector<int32_t> due_;             // devices that start at one instant
};

extern template bool SweepEngine::wire<SweepEngine::kSmallShift, true>(const Plan&, int64_t,
                                                                       Record&);
extern template bool SweepEngine::wire<SweepEngine::kLargeShift, true>(const Plan&, int64_t,
                                                                       Record&);

}  // namespace trinity
