#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "simulator/order_program.h"
#include "simulator/simulator.h"

namespace trinity {

/// Simulation engine for pipelines: every device follows an order of its own, given in pieces. All
/// operators that a device runs between two incoming tensors are one event, so a run costs as much
/// proportional to its transfers and collectives. Results are bit-identical to EventLoop's (rules:
/// simulator.h). Not thread-safe; working memory is kept between runs.
///
/// Why that is exact. A device with an order runs its tasks one after the other, each as soon as
/// its predecessor has ended and its inputs have arrived. All times therefore follow from the
/// arrivals of transfers and collectives, and these from the order in which they are booked.
/// Bookings are made in order of time. At one instant transfers of ending tasks are booked first,
/// by task number; then the transfers of arriving collectives, by booking; then collectives, by
/// (micro-batch, collective). The event loop could book in another order only if tasks that take no
/// time send at one instant over one queue from two devices, or if a collective takes no time. In
/// these cases run() returns false.
///
/// Micro-batches repeat (mesh/order_periods.cpp). Once the state of devices that send each other messages in every
/// micro-batch equals an earlier state, shifted in time, they are periodic for as long as the order is. Periods are
/// then skipped, and the results follow from a run with fewer micro-batches.
///
/// Terms: a *row* is a collective or the route of a transfer (collectives come first); a *cell* is
/// a row in one micro-batch. A *segment* is a run of operators on one device without an incoming
/// tensor in between. A *mark* is a snapshot of the state that is searched for repetition.
class OrderEngine : OrderProgram {
 public:
  /// For problems on this cluster. Caches collective costs, too.
  explicit OrderEngine(const Cluster& cluster) : OrderProgram(cluster) {}

  /// True if the problem's rules are supported.
  static bool takes(const Problem& problem);

  /// Fills `metrics` as Simulator::run() does for the same order. Returns false, with `metrics`
  /// unchanged, if the result could differ from the event loop's, or if the order is faulty and the
  /// event loop should report why.
  bool run(const Problem& problem, std::span<const int32_t> placement, const OrderPieces& pieces,
           const Quotient* quotient, int64_t limit_ns, Metrics& metrics);

  /// Number of micro-batches that the last run skipped as repetitions.
  int32_t left_out() const { return period_.micros; }

 private:
  /// Progress of a row in one micro-batch.
  struct Cell {
    static constexpr int32_t kBooked = -1;
    int64_t time_ns = 0;  // before booking: ready time as known so far; afterwards: arrival
    int32_t missing = 0;  // inputs that have not arrived
    bool booked() const { return missing == kBooked; }
  };
  /// Types of events at one instant, in their order.
  static constexpr uint64_t kTaskSends = 0, kMemberSends = 1, kFreeSends = 2, kBooks = 3;
  struct Event {
    int64_t time_ns;
    uint64_t key;   // its type << 62, plus a number of that type
    uint64_t data;  // operator or collective << 32, micro-batch << 1, of operators: accumulation complete
    uint64_t kind() const { return key >> 62; }
    int32_t what() const { return static_cast<int32_t>(data >> 32); }
    int32_t micro() const { return static_cast<int32_t>(data & 0xffffffff) >> 1; }
    bool last() const { return (data & 1) != 0; }
    bool operator<(const Event& other) const {
      return time_ns != other.time_ns ? time_ns < other.time_ns : key < other.key;
    }
    bool operator>(const Event& other) const { return other < *this; }
  };
  struct Device {
    int32_t piece = 0, segment = 0;
    int64_t free_ns = 0;
    int32_t blocked = -1;   // row that it waits for
    int32_t base = 0;       // position of its piece's first operator
  };
  /// Log of segment starts of a device, in order of time.
  struct Started {
    int64_t time_ns;
    int32_t position, segment;
  };

  /// End of a hold: a position in a list and, in the chain `more` of ends_, events of rows.
  struct Use {
    int32_t list = -1, index = -1, more = -1;
  };
  struct End {
    enum Kind : uint8_t { starts, ends, sent, runs };
    Kind kind;       // of a member's collective: starts, ends; of a route's transfer: sent
    int32_t number;  // operator; for `sent` the route
    int32_t next;
  };
  /// Snapshot of a run before an event. Equal states have equal futures.
  struct Mark {
    int32_t micro = 0;  // micro-batches that the first list has run
    int64_t time_ns = 0;
    uint64_t hash = 0;  // of `state`
    std::vector<int64_t> state;
    std::vector<Device> devices;
  };
  /// A booking that has not arrived.
  struct Flight {
    int64_t end_ns;
    int32_t row, micro;
  };
  /// Devices that transfers and collectives of every micro-batch join. Until the last micro-batch nothing joins two
  /// components, so each repeats in its own time.
  struct Component {
    std::vector<int32_t> lists, devices, queues;  // lists: run in every micro-batch
    int32_t rows = 0;  // collectives and routes
    int32_t last_mark = 0, first_open = 0;  // earlier micro-batches are finished
    int32_t newest = 0;                     // last micro-batch begun
    size_t kept = 0;                        // valid entries of `marks`
    int32_t keeps_every = 1;                // interval of marks in micro-batches
    std::vector<Mark> marks;
    // Two marks with one state:
    int32_t micros = 0;  // micro-batches between them; 0: not found
    int64_t time_ns = 0;
    std::vector<std::pair<int32_t, int32_t>> pieces, between;  // by `devices`: piece and position at each mark
  };
  /// Micro-batches of an order that are skipped, as repetitions of those between two marks of each component.
  struct Period {
    int32_t micros = 0;
    std::vector<std::pair<int32_t, int32_t>> between;  // per device: its positions at the two marks
    OrderPieces rest;                         // the order without these micro-batches
  };
  /// Memory held from the run of its operator (or the start of a member's collective, or of a
  /// route's transfer) until its last use.
  struct Hold {
    int32_t op, route;  // route: the copy that is held; -1: an output
    Use until;
    int64_t bytes;
    bool accumulates;
    int32_t list = -1, index = -1;  // where it begins; -1: with the collective or the transfer
    int32_t first = -1, last = -1;  // positions between which it accumulates
  };
  /// Positions in a list at which a member's collective begins and ends; -1: at an instant of its
  /// own.
  struct WaitPositions {
    int32_t list = -1, starts = -1, ends = -1;
  };

  // order_periods.cpp: find and skip repetitions.
  void seek_period();
  bool runs_in_turn();
  void join_devices();
  bool find_components();
  bool count_rows();
  bool runs_each_time(const Route& route) const { return !route.last && !problem_->once(route.op); }
  /// -1: what runs in the last micro-batch alone.
  int32_t component_of(const Group& group) const {
    return group.once ? -1 : component_of_[group_devices_[group.devices.begin]];
  }
  int32_t component_of(const Event& event) const {
    if (event.kind() == kBooks) return component_of(groups_[event.what()]);
    return problem_->once(event.what()) ? -1 : component_of_[placement_[event.what()]];
  }
  int32_t component_of_row(int32_t row) const {
    return row < collectives() ? component_of(groups_[row]) : component_of_[routes_[row - collectives()].from];
  }
  int32_t& left(int32_t component, int32_t micro) {
    return left_[static_cast<size_t>(micro) * components_.size() + static_cast<size_t>(component)];
  }
  /// Counts a list or row that has run in a micro-batch.
  void count_run(int32_t component, int32_t micro) {
    if (seeks_ && component >= 0) --left(component, micro);
  }
  bool reached_mark(int32_t number) const {
    const auto& component = components_[number];
    return component.micros == 0 && pieces_done_[component.lists[0]] > component.last_mark;
  }
  void mark(int32_t number);
  void keep(Component& component, int64_t now_ns, uint64_t hash);
  void note(std::initializer_list<int64_t> values) { state_.insert(state_.end(), values); }
  void note_state(int32_t number, int64_t now_ns, int32_t first);
  void note_devices(const Component& component, int64_t now_ns);
  void note_events(int32_t number, int64_t now_ns);
  int32_t position(int32_t number, const Device& device) const;
  void set_period(Component& component, const Mark& before);
  int32_t micros_to_skip(const Component& component) const;
  int32_t equal_in_order(int32_t device, int32_t first, int32_t pieces, int32_t micros) const;
  void find_period();
  void leave_out(int32_t micros);
  void pass_copies();
  void shift(int32_t number, int64_t time_ns);
  bool run_rest(int64_t limit_ns);
  int64_t change(int32_t number) const;

  // order_engine.cpp: run.
  bool simulate(int64_t limit_ns);
  bool go_on(int64_t limit_ns);
  void begin();
  void open_rows(int32_t micro);
  void open(int32_t micro) {
    if (micro >= opened_) open_rows(micro);
  }
  void advance(int32_t device);
  void begin_segment(int32_t device, int32_t segment, int32_t list, int32_t micro,
                     int64_t start_ns);
  void feed(const Feed& feed, int32_t micro, int64_t time_ns);
  void push(int64_t time_ns, uint64_t kind, uint64_t number, int32_t what, int32_t micro,
            bool last = false) {
    const Event event{time_ns, kind << 62 | number,
                      static_cast<uint64_t>(what) << 32 | static_cast<uint64_t>(micro) << 1 | last};
    events_.insert(std::upper_bound(events_.begin(), events_.end(), event, std::greater<>()), event);
  }
  void push_book(int32_t collective, int32_t micro, int64_t time_ns);
  void send(int32_t op, int32_t micro, bool last, bool free);
  void check_turn(int32_t queue, int32_t device, bool free);
  void book_collective(int32_t collective, int32_t micro);
  int64_t book(std::span<const int32_t> queues, int64_t duration_ns);
  void note_booked(int32_t row, int32_t micro, int64_t end_ns);
  void arrive(int32_t collective, int32_t micro, int64_t time_ns);
  void wake(int32_t device, int32_t row) {
    if (devices_[device].blocked == row) advance(device);
  }

  // order_memory.cpp: memory of devices.
  void find_holds();
  void find_awaited();
  void note_awaited(int32_t list, const Segment& segment, int32_t collective);
  Use use_of(int32_t op, int32_t output, int32_t device);
  void join(Use& use, const Use& other);
  void join(Use& use, int32_t list, int32_t index);
  void join(Use& use, End::Kind kind, int32_t number);
  void hold(const Hold& hold);
  Use last_of(const Use& use);
  void find_levels();
  int32_t position_at(int32_t device, int64_t time_ns, size_t& hint) const;
  int32_t position_of(int32_t row, bool ends, int32_t micro, int32_t device);
  int32_t last_position(const Hold& hold, int32_t micro, int32_t first);
  bool sums_in_list(const Hold& hold) const;
  void find_bases();
  void settle(Hold& hold, int32_t micro);
  void add(int64_t bytes, int32_t first, int32_t last);
  int32_t device_of(const Hold& hold) const {
    return hold.route >= 0 ? routes_[static_cast<size_t>(hold.route)].to : placement_[hold.op];
  }
  void sum_levels(int32_t number);
  void finish(Metrics& metrics) const;

  Cell& cell_of(int32_t row, int32_t micro) {
    return cells_[static_cast<size_t>(micro) * rows() + static_cast<size_t>(row_place_[row])];
  }

  std::vector<Device> devices_;
  int32_t opened_ = 0;                                  // micro-batches that the tables below cover
  std::vector<Cell> cells_, first_cells_;               // [micro][row_place_]; initial values
  std::vector<int32_t> waiting_;                        // per collective: micro-batches to come
  std::vector<int64_t> all_arrived_;                    // per collective: time, or -1
  std::vector<int32_t> pieces_done_;                    // per list
  std::vector<Event> events_;                           // the first one last
  std::vector<int64_t> free_ns_, asked_ns_;             // per queue
  std::vector<int32_t> asked_by_;  // per queue: 2 * device, + 1: the task took no time
  uint64_t ticket_ = 0;
  int64_t now_ns_ = 0, step_ns_ = 0;
  int32_t booked_ = 0;
  bool unsure_ = false, rejected_ = false;

  bool seeks_ = false;
  std::vector<Component> components_;
  std::vector<int32_t> component_of_;                   // per device; -1: it runs in the last micro-batch alone
  std::vector<int32_t> queue_user_;                     // per queue: a device; -1: none in every micro-batch
  std::vector<int32_t> left_;                           // [micro][component]: lists and rows to come
  std::vector<Flight> flights_;                         // in order of booking; some have arrived
  std::vector<int64_t> state_;                          // state at a mark
  Period period_;

  std::vector<std::vector<Started>> started_;           // per device
  std::array<size_t, 4> hints_{};  // of position_at(): collectives' starts and ends, transfers'
  std::vector<Use> view_use_;                           // per operator
  std::vector<WaitPositions> wait_positions_;           // per operator, of members
  std::vector<End> ends_;
  std::vector<Hold> holds_;
  std::vector<int64_t> list_delta_;                     // per operator of the lists, and list
  std::vector<std::pair<int32_t, int32_t>> bases_;  // per list: first and last position
  std::vector<int64_t> delta_;                          // per position of a device
  bool levels_repeat_ = true;  // levels repeat between the marks of period_
};

}  // namespace trinity
