#pragma once

#include <functional>
#include <numeric>

#include "graph/algorithms.h"
#include "simulator/mesh/order_memory.h"

namespace trinity {

/// Repetition in a run of many micro-batches, which is simulated only once.
///
/// Devices that messages of every micro-batch join are a component; until the last micro-batch nothing joins two of
/// them. A mark is the state of a component right before one of its events at time t: everything that decides its
/// future, with times relative to t and micro-batches relative to those that its first list has run. Past
/// events (a free queue, an available tensor) count as happening at t, because nothing is booked or
/// started earlier any more. Two marks with equal states, d ns and m micro-batches apart, have equal
/// futures as long as the devices' orders are equal. Everything between them therefore repeats after
/// the second mark, d ns later, if the order there equals the order between them with m added; and
/// so on. This holds until an event of the last micro-batch, for which accumulations and updates
/// wait, is distinguished from others; the last micro-batch is never skipped. Replicas of which one is slow
/// drift apart, so that their common state never returns, but the state of each does.
///
/// A state needs no cells. Every list runs its micro-batches in order, so devices' positions
/// determine what has begun; what ended after t belongs to a recorded segment. A row whose inputs
/// have all arrived is either a pending event or booked. Positions and events therefore determine,
/// input by input, what is booked and what is missing; of bookings, those that arrive after t are
/// recorded. Earlier micro-batches are finished in both states.
///
/// When every component has two equal marks, all skip one number of micro-batches, a multiple of all m, and the
/// clock of each is set forward by that many times d / m, its past included: only differences of times in one
/// component matter until the last micro-batch. Memory changes equally at equal positions of every copy, because a tensor belongs
/// to one micro-batch or accumulates from the first to the last one. If the changes of a stretch sum to zero, every copy
/// has the levels of the first.
class OrderPeriods : protected OrderMemory {
 protected:
  using OrderMemory::OrderMemory;

  /// For shorter runs the remainder would be almost as long as the run.
  static constexpr int32_t kFewestMicros = 24;
  static constexpr size_t kMostKept = size_t{1} << 19;  // numbers of all states

  static int64_t left_ns(int64_t time_ns, int64_t now_ns) { return std::max<int64_t>(time_ns - now_ns, 0); }

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

  /// Before a run: decides whether to search.
  void seek_period() {
    period_.micros = 0;
    const bool waits = std::none_of(groups_.begin(), groups_.end(), [](const Group& group) {
      return !group.once && group.missing == 0;
    });
    seeks_ = micros_ >= kFewestMicros && waits && runs_in_turn() && find_components();
  }

  /// True if every list runs its micro-batches in order.
  bool runs_in_turn() {
    auto& next = pieces_done_;  // reset at the start of a run
    next.assign(at(pieces_->lists()), 0);
    return std::all_of(pieces_->pieces.begin(), pieces_->pieces.end(), [&](const auto& piece) {
      return next[piece.list]++ == piece.micro_batch || list_once(piece.list);
    });
  }

  /// Sets component_of_ to the first device of each component, and the queues' users.
  void join_devices() {
    auto& root = component_of_;
    root.resize(positions_.size());
    std::iota(root.begin(), root.end(), 0);
    queue_user_.assign(queue_count_, -1);
    const auto use = [&](const auto& row, int32_t device) {
      for (const int32_t queue : in(queues_, row.queues)) {
        if (queue_user_[queue] < 0) queue_user_[queue] = device;
        join_sets(root, queue_user_[queue], device);
      }
    };
    for (const auto& route : routes_) {
      if (!runs_each_time(route)) continue;
      join_sets(root, route.from, route.to);
      use(route, route.from);
    }
    for (const auto& group : groups_) {
      if (group.once) continue;
      const int32_t first = group_devices_[group.devices.begin];
      for (const int32_t device : in(group_devices_, group.devices)) join_sets(root, first, device);
      use(group, first);
    }
    for (size_t d = 0; d < root.size(); ++d) root[d] = find_root(root, static_cast<int32_t>(d));
  }

  /// Returns false if there are none, or a message of every micro-batch joins no device with such work.
  bool find_components() {
    join_devices();
    std::vector<int32_t> number(positions_.size(), -1);  // [first device]
    size_t count = 0;
    for (int32_t list = 0; list < pieces_->lists(); ++list)
      if (int32_t& of = number[component_of_[list_device_[list]]]; of < 0 && !list_once(list))
        of = static_cast<int32_t>(count++);
    for (int32_t& of : component_of_) of = number[of];
    components_.resize(count);
    for (auto& component : components_) {
      component.lists.clear(), component.devices.clear(), component.queues.clear();
      component.rows = component.last_mark = component.first_open = component.newest = component.micros = 0;
      component.kept = 0;
      component.keeps_every = 1;
    }
    for (size_t d = 0; d < positions_.size(); ++d)
      if (component_of_[d] >= 0) components_[component_of_[d]].devices.push_back(static_cast<int32_t>(d));
    for (int32_t list = 0; list < pieces_->lists(); ++list)
      if (!list_once(list)) components_[component_of_[list_device_[list]]].lists.push_back(list);
    return count > 0 && count_rows();
  }

  /// Lists the queues of every component, and counts what runs in a micro-batch.
  bool count_rows() {
    bool counted = true;
    const auto count = [&](int32_t of) {
      counted = counted && of >= 0;
      if (counted) ++components_[of].rows;
    };
    for (size_t queue = 0; queue < queue_user_.size(); ++queue) {
      if (queue_user_[queue] < 0) continue;
      const int32_t of = component_of_[queue_user_[queue]];
      if (of < 0) return false;
      components_[of].queues.push_back(static_cast<int32_t>(queue));
    }
    for (const auto& group : groups_)
      if (!group.once) count(component_of(group));
    for (const auto& route : routes_)
      if (runs_each_time(route)) count(component_of_[route.from]);
    left_.clear();
    for (int32_t micro = 0; micro < micros_; ++micro)
      for (const auto& component : components_)
        left_.push_back(component.rows + static_cast<int32_t>(component.lists.size()));
    return counted;
  }

  /// Compares the present state of a component with stored ones, latest first, and stores it. If too many are
  /// stored, every second one is dropped and the interval of marks doubles. In the last quarter of the run the search
  /// ends: skipping saves time only if it removes an eighth of the run.
  void mark(int32_t number) {
    auto& component = components_[number];
    component.last_mark = pieces_done_[component.lists[0]];
    seeks_ = 4 * component.last_mark < 3 * micros_;
    if (!seeks_) return;
    const int64_t now_ns = events_.back().time_ns;
    std::erase_if(flights_, [now_ns](const Flight& flight) { return flight.end_ns <= now_ns; });
    while (component.first_open < micros_ && left(number, component.first_open) == 0) ++component.first_open;
    int32_t first = component.first_open;
    for (const auto& flight : flights_)
      if (component_of_row(flight.row) == number) first = std::min(first, flight.micro);
    if (first < 1) return;  // the first is always unique
    note_state(number, now_ns, first);
    uint64_t hash = 0;
    for (const int64_t value : state_) {
      hash = (hash ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 32;
    }
    for (size_t i = component.kept; i-- > 0;) {
      if (component.marks[i].hash != hash || component.marks[i].state != state_) continue;
      set_period(component, component.marks[i]);
      if (8 * micros_to_skip(component) >= micros_) return find_period();
      component.micros = 0;
    }
    if (component.last_mark % component.keeps_every == 0) keep(component, now_ns, hash);
  }

  /// Stores the present state.
  void keep(Component& component, int64_t now_ns, uint64_t hash) {
    auto& marks = component.marks;
    if (component.kept == marks.size()) marks.emplace_back();
    auto& mark = marks[component.kept++];
    mark.micro = component.last_mark;
    mark.time_ns = now_ns;
    mark.hash = hash;
    mark.state = state_;
    mark.devices.clear();
    for (const int32_t device : component.devices) mark.devices.push_back(devices_[device]);
    if (component.kept * state_.size() < kMostKept) return;
    component.keeps_every *= 2;
    const auto end = marks.begin() + static_cast<std::ptrdiff_t>(component.kept);
    component.kept = at(std::partition(marks.begin(), end, [&](const Mark& one) {
                          return one.micro % component.keeps_every == 0;
                        }) - marks.begin());
  }

  void note(std::initializer_list<int64_t> values) { state_.insert(state_.end(), values); }

  /// Writes the full state; micro-batches from `first` on are open.
  void note_state(int32_t number, int64_t now_ns, int32_t first) {
    const auto& component = components_[number];
    const int32_t micro = component.last_mark;
    state_.clear();
    note({first - micro, component.newest - micro});
    for (const int32_t list : component.lists) note({pieces_done_[list] - micro});
    for (const int32_t queue : component.queues)
      note({left_ns(free_ns_[queue], now_ns), asked_ns_[queue] == now_ns ? asked_by_[queue] : -1});
    note_devices(component, now_ns);
    note_events(number, now_ns);
    for (const auto& [end_ns, row, of] : flights_)
      if (component_of_row(row) == number) note({end_ns - now_ns, row, of - micro});
  }

  void note_devices(const Component& component, int64_t now_ns) {
    const int32_t micro = component.last_mark;
    for (const int32_t d : component.devices) {
      const auto& device = devices_[d];
      const bool over = device.piece == pieces_->piece_first[at(d) + 1];
      const auto piece = over ? OrderPieces::Piece{-1, micro} : pieces_->pieces[device.piece];
      note({piece.list, piece.micro_batch - micro, device.segment, device.blocked, left_ns(device.free_ns, now_ns)});
      // Segments that instants from now on fall into.
      const auto& list = started_[d];
      size_t first = list.size();
      while (first > 0 && list[first - 1].time_ns > now_ns) --first;
      for (size_t i = first > 0 ? first - 1 : 0; i < list.size(); ++i)
        note({list[i].time_ns - now_ns, list[i].segment});
      note({static_cast<int64_t>(list.size() - first)});
    }
  }

  /// The order of events with tickets follows from their order in the list: later tickets are greater.
  void note_events(int32_t number, int64_t now_ns) {
    const int32_t micro = components_[number].last_mark;
    int64_t count = 0;
    for (const auto& event : events_) {
      if (component_of(event) != number) continue;
      ++count;
      note({event.time_ns - now_ns, static_cast<int64_t>(event.kind()), event.what(), event.micro() - micro,
            event.last()});
    }
    note({count});
  }

  /// Position of the segment that a device begins next.
  int32_t position(int32_t number, const Device& device) const {
    if (device.piece == pieces_->piece_first[at(number) + 1]) return device.base;
    const int32_t list = pieces_->pieces[device.piece].list;
    return device.base + segments_[segment_first_[list] + device.segment].operators.begin - pieces_->list_first[list];
  }

  /// The present state equals a mark's.
  void set_period(Component& component, const Mark& before) {
    component.micros = component.last_mark - before.micro;
    component.time_ns = events_.back().time_ns - before.time_ns;
    component.pieces.clear();
    component.between.clear();
    for (size_t i = 0; i < component.devices.size(); ++i) {
      const int32_t d = component.devices[i];
      component.pieces.emplace_back(before.devices[i].piece, devices_[d].piece);
      component.between.emplace_back(position(d, before.devices[i]), position(d, devices_[d]));
    }
  }

  /// How many micro-batches of a component can be skipped from now on, as whole repetitions.
  int32_t micros_to_skip(const Component& component) const {
    // The last micro-batch, with operators that run once, would be another one if micro-batches were skipped.
    const bool begins_last =
        opened_ == micros_ || std::any_of(events_.begin(), events_.end(),
                                          [this](const Event& event) { return event.micro() == micros_ - 1; });
    if (begins_last) return 0;
    int32_t busiest = component.newest + 1;
    for (const int32_t list : component.lists) busiest = std::max(busiest, pieces_done_[list]);
    int32_t copies = std::max(0, (micros_ - busiest - 2) / component.micros);
    for (size_t i = 0; i < component.devices.size(); ++i) {
      const int32_t d = component.devices[i];
      const auto [first, second] = component.pieces[i];
      const int32_t pieces = second - first;
      if (pieces == 0) continue;
      const int32_t equal = equal_in_order(d, first, pieces, component.micros);
      copies = std::min(copies, (second + equal - 1 - devices_[d].piece) / pieces);
    }
    return std::max(0, copies) * component.micros;
  }

  /// Number of pieces from `first` on that recur `pieces` later, for micro-batches `micros` later.
  int32_t equal_in_order(int32_t device, int32_t first, int32_t pieces, int32_t micros) const {
    int32_t equal = 0;
    for (int32_t i = first; i + pieces < pieces_->piece_first[at(device) + 1]; ++i, ++equal) {
      const auto& here = pieces_->pieces[i];
      const auto& there = pieces_->pieces[i + pieces];
      if (here.list != there.list || here.micro_batch + micros != there.micro_batch) break;
    }
    return equal;
  }

  /// If all components repeat: how many micro-batches all of them skip. The search ends if that saves little.
  void find_period() {
    int64_t together = 1;
    int32_t most = micros_;
    for (const auto& component : components_) {
      if (component.micros == 0) return;
      together = std::min<int64_t>(std::lcm(together, int64_t{component.micros}), micros_);
      most = std::min(most, micros_to_skip(component));
    }
    const auto skipped = static_cast<int32_t>(most / together * together);
    const bool all = std::all_of(components_.begin(), components_.end(),
                                 [&](const Component& one) { return skipped % one.micros == 0; });
    if (all && 8 * skipped >= micros_)
      leave_out(skipped);
    else
      seeks_ = false;
  }

  void leave_out(int32_t micros) {
    period_.micros = micros;
    period_.between.assign(devices_.size(), {0, 0});
    std::vector<int32_t> skipped(devices_.size(), 0);  // pieces
    for (const auto& component : components_)
      for (size_t i = 0; i < component.devices.size(); ++i) {
        const auto [first, second] = component.pieces[i];
        period_.between[at(component.devices[i])] = component.between[i];
        skipped[at(component.devices[i])] = micros / component.micros * (second - first);
      }
    auto& rest = period_.rest;
    rest = {micros_ - micros, pieces_->operators, pieces_->list_first, {}, {}};
    for (size_t d = 0; d < devices_.size(); ++d) {
      rest.piece_first.push_back(static_cast<int32_t>(rest.pieces.size()));
      const auto begin = pieces_->pieces.begin();
      const int32_t done = devices_[d].piece;
      rest.pieces.insert(rest.pieces.end(), begin + pieces_->piece_first[d], begin + done);
      for (int32_t i = done + skipped[d]; i < pieces_->piece_first[d + 1]; ++i)
        rest.pieces.push_back({begin[i].list, begin[i].micro_batch - micros});
    }
    rest.piece_first.push_back(static_cast<int32_t>(rest.pieces.size()));
  }

  /// Continues after the copies, with the clock of every component as if these had run.
  void pass_copies() {
    for (size_t d = 0; d < devices_.size(); ++d)
      devices_[d].piece += period_.rest.piece_first[d] - pieces_->piece_first[d];
    for (int32_t& micros : waiting_) micros -= period_.micros;
    for (size_t c = 0; c < components_.size(); ++c)
      shift(static_cast<int32_t>(c), period_.micros / components_[c].micros * components_[c].time_ns);
    std::sort(events_.begin(), events_.end(), std::greater<>());
    step_ns_ = 0;  // of what is skipped or has run, everything runs again later
    pieces_ = &period_.rest;
    micros_ = pieces_->micro_batches;  // several, so the compiled order stays valid
    seeks_ = false;
  }

  void shift(int32_t number, int64_t time_ns) {
    const auto& component = components_[number];
    for (auto& event : events_)
      if (component_of(event) == number) event.time_ns += time_ns;
    for (const int32_t queue : component.queues) {
      free_ns_[queue] += time_ns;
      if (asked_ns_[queue] >= 0) asked_ns_[queue] += time_ns;
    }
    for (const int32_t d : component.devices) {
      devices_[d].free_ns += time_ns;
      for (auto& started : started_[d]) started.time_ns += time_ns;
    }
    for (int32_t row = 0; at(row) < rows(); ++row)
      if (component_of_row(row) == number)
        for (int32_t micro = 0; micro < opened_; ++micro) {
          int64_t& arrival_ns = arrival_ns_[cell_of(row, micro)];
          arrival_ns += arrival_ns < 0 ? -time_ns : time_ns;
        }
  }

  std::vector<Device> devices_;
  int32_t opened_ = 0;                                  // micro-batches that the tables below cover
  std::vector<int32_t> waiting_;                        // per collective: micro-batches to come
  std::vector<int64_t> all_arrived_;                    // per collective: time, or -1
  std::vector<int32_t> pieces_done_;                    // per list
  std::vector<Event> events_;                           // the first one last
  std::vector<int64_t> free_ns_, asked_ns_;             // per queue
  std::vector<int32_t> asked_by_;  // per queue: 2 * device, + 1: the task took no time
  int64_t step_ns_ = 0;
  bool seeks_ = false;
  std::vector<Component> components_;
  std::vector<int32_t> component_of_;                   // per device; -1: it runs in the last micro-batch alone
  std::vector<int32_t> queue_user_;                     // per queue: a device; -1: none in every micro-batch
  std::vector<int32_t> left_;                           // [micro][component]: lists and rows to come
  std::vector<Flight> flights_;                         // in order of booking; some have arrived
  std::vector<int64_t> state_;                          // state at a mark
};

}  // namespace trinity
