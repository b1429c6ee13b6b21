// Repetition in a run of many micro-batches, which is simulated only once.
//
// A mark is the state of a run right before an event at time t: everything that decides the future,
// with times relative to t and micro-batches relative to those that the first list has run. Past
// events (a free queue, an available tensor) count as happening at t, because nothing is booked or
// started earlier any more. Two marks with equal states, d ns and m micro-batches apart, have equal
// futures as long as the devices' orders are equal. Everything between them therefore repeats after
// the second mark, d ns later, if the order there equals the order between them with m added; and
// so on. This holds until an event of the last micro-batch, for which accumulations and updates
// wait, is distinguished from others; the last micro-batch is never skipped.
//
// A state needs no cells. Every list runs its micro-batches in order, so devices' positions
// determine what has begun; what ended after t belongs to a recorded segment. A row whose inputs
// have all arrived is either a pending event or booked. Positions and events therefore determine,
// input by input, what is booked and what is missing; of bookings, those that arrive after t are
// recorded. Earlier micro-batches are finished in both states.
//
// A run without `copies` repetitions of the stretch between the marks passes through the same
// states otherwise: its counters lack `copies` times the stretch's counters, and its step that many
// times d. Memory changes equally at equal positions of every copy, because a tensor belongs to one
// micro-batch or accumulates from the first to the last one. If the changes of a stretch sum to
// zero, every copy has the levels of the first.
#include <algorithm>

#include "base/index.h"
#include "simulator/order_engine.h"

namespace trinity {
namespace {

/// For shorter runs the remainder would be almost as long as the run.
constexpr int32_t kFewestMicros = 24;
constexpr size_t kMostKept = size_t{1} << 19;  // numbers of all states

int64_t since(int64_t time_ns, int64_t now_ns) { return std::max<int64_t>(time_ns - now_ns, 0); }

}  // namespace

/// Before a run: decides whether to search, and finds what a micro-batch consists of.
void OrderEngine::seek_period() {
  period_.copies = 0;
  const bool waits = std::none_of(groups_.begin(), groups_.end(), [](const Group& group) {
    return !group.once && group.missing == 0;
  });
  const bool each = list_device_.size() > 0 && !problem_->once(pieces_->operators[0]);
  seeks_ = micros_ >= kFewestMicros && waits && each && runs_in_turn();
  each_left_ = 0;
  for (int32_t list = 0; list < pieces_->lists(); ++list)
    each_left_ += !problem_->once(pieces_->operators[pieces_->list_first[list]]);
  for (const auto& group : groups_) each_left_ += !group.once;
  for (const auto& route : routes_) each_left_ += !route.last && !problem_->once(route.op);
}

/// True if every list runs its micro-batches in order.
bool OrderEngine::runs_in_turn() {
  auto& next = pieces_done_;  // reset at the start of a run
  next.assign(at(pieces_->lists()), 0);
  return std::all_of(pieces_->pieces.begin(), pieces_->pieces.end(), [&](const auto& piece) {
    return next[piece.list]++ == piece.micro_batch ||
           problem_->once(pieces_->operators[pieces_->list_first[piece.list]]);
  });
}

/// Adds table rows for all micro-batches up to `micro`; a run that stops at a mark needs few.
void OrderEngine::open_rows(int32_t micro) {
  for (; opened_ <= micro; ++opened_)
    cells_.insert(cells_.end(), first_cells_.begin(), first_cells_.end());
}

/// Compares the present state with stored ones, latest first, and stores it. If too many are
/// stored, every second one is dropped and the interval of marks doubles.
void OrderEngine::mark() {
  last_mark_ = pieces_done_[0];
  const int64_t now_ns = events_.back().time_ns;
  std::erase_if(flights_, [now_ns](const Flight& flight) { return flight.end_ns <= now_ns; });
  while (first_open_ < micros_ && left_[first_open_] == 0) ++first_open_;
  int32_t first = first_open_;
  for (const auto& flight : flights_) first = std::min(first, flight.micro);
  if (first < 1) return;  // the first is always unique
  note_state(now_ns, first);
  uint64_t hash = 0;
  for (const int64_t value : state_) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  for (size_t i = kept_; i-- > 0;) {
    if (marks_[i].hash != hash || marks_[i].state != state_) continue;
    if (const int32_t copies = copies_between(marks_[i]); copies > 0)
      return leave_out(marks_[i], copies);
  }
  if (last_mark_ % keeps_every_ == 0) keep(now_ns, hash);
}

/// Stores the present state.
void OrderEngine::keep(int64_t now_ns, uint64_t hash) {
  if (kept_ == marks_.size()) marks_.emplace_back();
  auto& mark = marks_[kept_++];
  mark.micro = last_mark_;
  mark.time_ns = now_ns;
  mark.hash = hash;
  mark.state = state_;
  mark.devices = devices_;
  if (kept_ * state_.size() < kMostKept) return;
  keeps_every_ *= 2;
  const auto end = marks_.begin() + static_cast<std::ptrdiff_t>(kept_);
  kept_ = at(std::partition(marks_.begin(), end, [this](const Mark& one) {
               return one.micro % keeps_every_ == 0;
             }) - marks_.begin());
}

/// Writes the full state; micro-batches from `first` on are open.
void OrderEngine::note_state(int64_t now_ns, int32_t first) {
  const int32_t micro = last_mark_;
  state_.clear();
  note(first - micro);
  note(newest_ - micro);
  for (size_t list = 0; list < pieces_done_.size(); ++list) {
    const bool once = problem_->once(pieces_->operators[pieces_->list_first[list]]);
    note(once ? pieces_done_[list] : pieces_done_[list] - micro);
  }
  for (size_t queue = 0; queue < free_ns_.size(); ++queue) {
    note(since(free_ns_[queue], now_ns));
    note(asked_ns_[queue] == now_ns ? asked_by_[queue] : -1);
  }
  note_devices(now_ns, micro);
  note_events(now_ns, micro);
  for (const auto& [end_ns, row, of] : flights_) {
    note(end_ns - now_ns);
    note(row);
    note(of - micro);
  }
}

void OrderEngine::note_devices(int64_t now_ns, int32_t micro) {
  for (size_t d = 0; d < devices_.size(); ++d) {
    const auto& device = devices_[d];
    const bool over = device.piece == pieces_->piece_first[d + 1];
    const auto piece = over ? OrderPieces::Piece{-1, micro} : pieces_->pieces[device.piece];
    for (const int64_t value : {int64_t{piece.list}, int64_t{piece.micro_batch - micro},
                                int64_t{device.segment}, int64_t{device.blocked},
                                since(device.free_ns, now_ns)})
      note(value);
    // Segments that instants from now on fall into.
    const auto& list = started_[d];
    size_t first = list.size();
    while (first > 0 && list[first - 1].time_ns > now_ns) --first;
    for (size_t i = first > 0 ? first - 1 : 0; i < list.size(); ++i) {
      note(list[i].time_ns - now_ns);
      note(list[i].segment);
    }
    note(static_cast<int64_t>(list.size() - first));
  }
}

void OrderEngine::note_events(int64_t now_ns, int32_t micro) {
  for (const auto& event : events_) {
    const uint64_t kind = kind_of(event);
    auto number = static_cast<int64_t>(event.key << 2 >> 2);
    if (kind == kTaskSends)
      number -= int64_t{micro} * static_cast<int64_t>(list_of_.size());
    else if (kind == kBooks)
      number -= int64_t{micro} * static_cast<int64_t>(groups_.size());
    else
      number -= static_cast<int64_t>(ticket_);
    for (const int64_t value : {event.time_ns - now_ns, static_cast<int64_t>(kind), number,
                                int64_t{what_of(event)}, int64_t{micro_of(event) - micro},
                                int64_t{last_of(event)}})
      note(value);
  }
  note(static_cast<int64_t>(events_.size()));
}

/// Position of the segment that a device begins next.
int32_t OrderEngine::position(size_t number, const Device& device) const {
  if (device.piece == pieces_->piece_first[number + 1]) return device.base;
  const int32_t list = pieces_->pieces[device.piece].list;
  const auto& segment = segments_[segment_first_[list] + device.segment];
  return device.base + segment.begin - pieces_->list_first[list];
}

/// True if the last micro-batch, with operators that run once, has already begun: it would be
/// another one if micro-batches were skipped.
bool OrderEngine::begins_last() const {
  return opened_ == micros_ || std::any_of(events_.begin(), events_.end(), [this](const Event& event) {
           return micro_of(event) == micros_ - 1;
         });
}

/// Number of times that the interval since the mark can be skipped in the remaining order; 0 if
/// that saves little.
int32_t OrderEngine::copies_between(const Mark& before) const {
  if (begins_last()) return 0;
  const int32_t micros = last_mark_ - before.micro;
  int32_t busiest = newest_ + 1;
  for (const int32_t done : pieces_done_) busiest = std::max(busiest, done);
  int32_t copies = (micros_ - busiest - 2) / micros;
  for (size_t d = 0; d < devices_.size(); ++d)
    copies = std::min(copies, copies_in_order(d, before.devices[d].piece,
                                              devices_[d].piece - before.devices[d].piece, micros));
  return 8 * copies * micros >= micros_ ? copies : 0;
}

/// Number of times that a device's order repeats its `pieces` pieces from `first` on.
int32_t OrderEngine::copies_in_order(size_t device, int32_t first, int32_t pieces,
                                     int32_t micros) const {
  return pieces == 0 ? micros_ : (equal_in_order(device, first, pieces, micros) - 1) / pieces;
}

/// Number of pieces from `first` on that recur `pieces` later, for micro-batches `micros` later.
int32_t OrderEngine::equal_in_order(size_t device, int32_t first, int32_t pieces,
                                    int32_t micros) const {
  int32_t equal = 0;
  for (int32_t i = first; i + pieces < pieces_->piece_first[device + 1]; ++i, ++equal) {
    const auto& here = pieces_->pieces[i];
    const auto& there = pieces_->pieces[i + pieces];
    if (here.list != there.list || here.micro_batch + micros != there.micro_batch) break;
  }
  return equal;
}

void OrderEngine::leave_out(const Mark& before, int32_t copies) {
  period_.copies = copies;
  period_.micros = last_mark_ - before.micro;
  period_.time_ns = events_.back().time_ns - before.time_ns;
  period_.step_before_ns = step_ns_;
  period_.between.clear();
  auto& rest = period_.rest;
  rest = {micros_ - copies * period_.micros, pieces_->operators, pieces_->list_first, {}, {}};
  for (size_t d = 0; d < devices_.size(); ++d) {
    const auto& then = before.devices[d];
    const int32_t done = devices_[d].piece, pieces = done - then.piece;
    rest.piece_first.push_back(static_cast<int32_t>(rest.pieces.size()));
    const auto begin = pieces_->pieces.begin();
    rest.pieces.insert(rest.pieces.end(), begin + pieces_->piece_first[d], begin + done);
    for (int32_t i = done + copies * pieces; i < pieces_->piece_first[d + 1]; ++i)
      rest.pieces.push_back({begin[i].list, begin[i].micro_batch - copies * period_.micros});
    period_.between.emplace_back(position(d, then), position(d, devices_[d]));
  }
  rest.piece_first.push_back(static_cast<int32_t>(rest.pieces.size()));
}

/// Continues after the copies.
void OrderEngine::pass_copies() {
  for (size_t d = 0; d < devices_.size(); ++d)
    devices_[d].piece += period_.rest.piece_first[d] - pieces_->piece_first[d];
  for (int32_t& micros : waiting_) micros -= left_out();
  pieces_ = &period_.rest;
  micros_ = pieces_->micro_batches;  // several, so the compiled order stays valid
  seeks_ = false;
}

/// Runs the remainder and adds what was skipped. Returns false if everything must be run.
bool OrderEngine::run_rest(int64_t limit_ns) {
  pass_copies();
  if (!order_lists() || !go_on(limit_ns)) return false;
  if (rejected_) return true;
  if (step_ns_ <= period_.step_before_ns) return false;
  if (problem_->rules().memory == MemoryModel::slots) {
    find_levels();
    if (!levels_repeat_) return false;
  }
  step_ns_ += period_.copies * period_.time_ns;
  rejected_ = step_ns_ > limit_ns;
  return true;
}

/// Change of a device's memory (delta_) between the marks.
int64_t OrderEngine::change(int32_t number) const {
  const auto [from, to] = period_.between[number];
  int64_t sum = 0, carried = 0;
  int32_t position = 0;
  for (int32_t p = pieces_->piece_first[number]; p < pieces_->piece_first[at(number) + 1]; ++p) {
    const int32_t list = pieces_->pieces[p].list;
    const int32_t begin = pieces_->list_first[list];
    const int32_t length = pieces_->list_first[at(list) + 1] - begin;
    const int64_t* fixed = list_delta_.data() + begin + list;
    const int32_t first = std::max(from - position, 0), end = std::min(to - position, length);
    for (int32_t i = first; i < end; ++i) sum += fixed[i] + delta_[position + i];
    if (first == 0 && end > 0) sum += carried;
    position += length;
    carried = fixed[length];
  }
  return sum;
}

}  // namespace trinity
