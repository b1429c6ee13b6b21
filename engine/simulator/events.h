#pragma once

#include "base/stop.h"
#include "cluster/collectives.h"
#include "simulator/bookings.h"
#include "simulator/contention.h"
#include "simulator/engine.h"
#include "simulator/flows.h"
#include "simulator/ready_queue.h"

namespace trinity {

/// The general simulation engine: a loop over instants with events for the ends of tasks, transfers
/// and collectives (rules: simulator.h). It handles every plan that SweepEngine does not. Where
/// both apply, results are equal and the sweep is four to five times faster. Not thread-safe;
/// working memory is kept between runs.
class EventLoop : public Engine {
 public:
  explicit EventLoop(const Problem& problem);

  void run(const Plan& plan, int64_t limit_ns, Record& record) override;

 private:
  using Entry = EventQueue::Entry;

  /// A copy or a run of a collective that has not arrived yet.
  struct Arrival {
    int32_t index;  // into record.copies or record.collectives
    bool collective;
    int32_t flows = 0;  // fair: flows that must end first
    int64_t bytes = 0;  // fair: bytes of each flow
  };

  void begin(const Plan& plan, int64_t limit_ns, Record& record);
  void begin_tasks();
  /// Earliest end of a running task.
  int64_t next_end() {
    if (problem_.tables().contends()) drop_moved_ends();
    return ends_.first();
  }
  int64_t next_instant() {
    return std::min({next_end(), arriving_.first(), frees_.first(), begins_.first(),
                     flows_.next_end_ns()});
  }
  void drop_moved_ends();
  void push_moved_ends();
  void instant();
  void begin_instant();
  bool start_best();
  bool idle(int32_t device) const;
  int32_t choice(int32_t device);
  int32_t head(size_t list);
  bool has_asides() const { return next_in_order_.size() > devices(); }
  bool earlier(int32_t a, int32_t b) const;
  void touch(int32_t device);
  void start(int32_t task, int32_t device);
  void make_ready(int32_t task, int32_t op);
  void give(int32_t task, int32_t op);
  void end_task(int32_t task);
  void hand_out(int32_t task, int32_t op);
  void enqueue(int32_t task, int32_t output, int32_t from, int32_t to);
  int64_t copy_inputs(int32_t task, int32_t device);
  int32_t& copy_of(int32_t task, int32_t tensor, int32_t device);
  void flow(int32_t arrival, int64_t latency_ns);
  void begin_flows(int32_t arrival);
  void arrive(int32_t arrival);
  void arrive_copy(Copy& copy);
  void arrive_collective(CollectiveRun& run);
  void find_ring(int32_t collective);
  void book_collective(int32_t collective, int32_t micro);
  void book_first(EventQueue& queue);
  const CollectiveGroup& group_of(int32_t collective);
  int64_t wire_ns(int32_t from, int32_t to, int64_t bytes) const {
    return problem_.wire_ns(plan_.cluster_device(from), plan_.cluster_device(to), bytes);
  }
  size_t devices() const { return running_.size(); }
  [[noreturn]] void report_deadlock();

  /// task / operators by a multiplication, exact below 2^31 (Lemire, Kaser and Kurz, "Faster
  /// remainder by direct computation", 2019).
  int32_t micro_of(int32_t task) const {
    if (micro_batches_ == 1) return 0;
    return static_cast<int32_t>(
        static_cast<unsigned __int128>(inverse_) * static_cast<uint32_t>(task) >> 63);
  }
  int32_t op_of(int32_t task) const { return task - micro_of(task) * operators_; }
  int32_t device_of(int32_t op) const { return plan_.placement[op]; }
  bool member(int32_t op) const { return members_ && problem_.graph().op(op).collective >= 0; }
  /// True if `reader` waits for the last micro-batch of `op`.
  bool accumulates(int32_t op, int32_t reader) const {
    return micro_batches_ > 1 && once(reader) && !once(op);
  }
  /// True if `op` runs in the last micro-batch only.
  bool once(int32_t op) const { return !stream_ && problem_.once(op); }
  bool fair() const { return problem_.rules().queue == QueueModel::fair; }
  bool receiver() const { return problem_.rules().queue == QueueModel::receiver; }

  /// State of a task before it starts.
  struct Task {
    int64_t ready_ns;
    int32_t missing;  // inputs that have not arrived
  };

  const Problem& problem_;
  const bool members_;
  const int32_t operators_;
  const uint64_t inverse_;  // 2^63 / operators_, rounded up
  Flows flows_;
  Plan plan_;
  DispatchRule dispatch_ = DispatchRule::fifo;
  int32_t micro_batches_ = 1, unfinished_ = 0;
  bool stream_ = false;
  int64_t limit_ns_ = kNoLimit, now_ns_ = 0;
  Record* record_ = nullptr;

  std::vector<Task> tasks_;
  std::vector<int32_t> to_end_;         // per operator: micro-batches that have not ended
  std::vector<int32_t> last_ended_;     // per operator: the task that ended last of all
  std::vector<EventQueue> waiting_;           // per device: ready tasks, by dispatch rule
  std::vector<int32_t> next_in_order_;  // per list of the schedule's order: position in it
  std::vector<int32_t> running_;        // per device: task, or -1
  std::vector<int64_t> begin_ns_;       // per device: start of the running task
  Contention contention_;
  std::vector<int32_t> next_position_;    // per device
  std::vector<uint8_t> touched_;          // per device: whether it is in touched_list_
  std::vector<int32_t> touched_list_;     // devices that may have something to start
  size_t touched_count_ = 0;              // of touched_list_
  std::vector<int32_t> choices_;          // tasks that these devices start
  EventQueue ends_;                             // (end, task)
  EventQueue arriving_;                         // (end, booking)
  EventQueue frees_;                            // (end of pause, device)
  EventQueue begins_;                           // (begin of flows, booking)
  EventQueue bookable_;                         // (micro-batch, collective)
  EventQueue local_;  // (micro-batch, collective) of collectives on one device
  std::vector<Arrival> arrivals_;         // in order of booking
  std::vector<int32_t> sent_;  // [output][device]: the last task that sent the output there
  std::vector<int32_t> to_copy_;          // receiver: [run][tensor][device]: copy to make, or -1
  std::vector<int32_t> members_missing_;  // [micro-batch][collective]
  CollectiveGroups groups_;               // groups of devices, for collective costs
  std::vector<int32_t> ring_;             // devices of the current collective
  Bookings queues_;
  std::vector<int32_t> ended_flows_;
  StopPoll stop_;
};

}  // namespace trinity
