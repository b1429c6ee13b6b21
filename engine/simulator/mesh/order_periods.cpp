// What repeats itself in a run of many micro-batches, and is run once for all times.
//
// A mark is the state of a run right before an event at time t: all that decides what follows, with
// times from t on and micro-batches counted from those that the first list has run. (What is past,
// a free queue or a tensor that is there, counts as being so at t, since nothing is booked or begun
// earlier any more.) Two marks of equal state, d ns and m micro-batches apart, are followed by the
// same as long as the devices' orders are: so everything between them runs once more after the
// second, d ns later, if the order there is the order between them with m added; and again. That
// holds until something is told from what runs in every micro-batch: the last one, on which sums
// and updates wait. It is kept out of what is left out.
//
// So a run with `copies` of the stretch between the marks taken out of its order goes through the
// same states otherwise: what it counts lacks `copies` times what the stretch counted, and its step
// that many times d. What a device holds changes equally at equal positions of every copy, for
// whoever holds it is of one micro-batch, or a sum held from the first to the last one; where the
// changes of a stretch add up to nothing, every copy has the levels of the first.
#include <algorithm>

#include "base/hash.h"
#include "base/index.h"
#include "simulator/order_engine.h"

namespace trinity {
namespace {

/// Below this a run is hardly longer than what has to be run of it.
constexpr int32_t kFewestMicros = 24;
constexpr std::ptrdiff_t kShortCycle = 4;  // marks

int64_t since(int64_t time_ns, int64_t now_ns) { return std::max<int64_t>(time_ns - now_ns, 0); }

}  // namespace

/// Before a run: whether it is worth looking, and what a micro-batch consists of.
void OrderEngine::seek_period() {
  period_.copies = 0;
  const bool waits = std::none_of(groups_.begin(), groups_.end(), [](const Group& group) {
    return !group.once && group.missing == 0;
  });
  const bool each = list_device_.size() > 0 && !graph_->once(pieces_->operators[0]);
  seeks_ = micros_ >= kFewestMicros && waits && each;
  order_period_ = seeks_ ? order_period() : 1;
  each_left_ = 0;
  for (int32_t list = 0; list < pieces_->lists(); ++list)
    each_left_ += !graph_->once(pieces_->operators[pieces_->list_first[list]]);
  for (const auto& group : groups_) each_left_ += !group.once;
  for (const auto& route : routes_) each_left_ += !route.last && !graph_->once(route.op);
}

/// After how many micro-batches the first device's order repeats itself for the longest time from
/// its middle on: as many as take turns with others between virtual stages.
int32_t OrderEngine::order_period() const {
  const int32_t end = pieces_->piece_first[1];
  const int32_t middle = (pieces_->piece_first[0] + end) / 2;
  const auto& from = pieces_->pieces[middle];
  int32_t period = 1, longest = 0;
  for (int32_t i = middle + 1; i < end; ++i) {
    const auto& piece = pieces_->pieces[i];
    const int32_t micros = piece.micro_batch - from.micro_batch;
    if (piece.list != from.list || micros <= 0) continue;
    const int32_t equal = equal_in_order(0, middle, i - middle, micros);
    if (equal > i - middle && i + equal > longest) longest = i + equal, period = micros;
  }
  return period;
}

/// Gives all micro-batches up to one rows in the tables, which a run that is left at a mark hardly
/// needs.
void OrderEngine::open_rows(int32_t micro) {
  for (; opened_ <= micro; ++opened_)
    cells_.insert(cells_.end(), first_cells_.begin(), first_cells_.end());
}

/// Brent's way to find a cycle: the present state against one that was kept, which is renewed at
/// marks twice as far apart each time. Only as far apart as the order's own period. A state is kept
/// as well where its outline is as it was a few marks before, but not as it was when one was kept:
/// then a short cycle has begun behind that.
void OrderEngine::mark() {
  last_mark_ = pieces_done_[0];
  const bool short_cycle = notes_outline();
  if (kept_.micro > 0 && (last_mark_ - kept_.micro) % order_period_ != 0) return;
  if (open_micros(events_.front().time_ns).first < 1) return;  // the first one is like no other
  if (kept_.micro > 0) {
    size_t next = 0;
    const bool same = visit_state([&](int64_t value) {
      return next < kept_.state.size() && kept_.state[next++] == value;
    });
    const int32_t copies = same && next == kept_.state.size() ? copies_between(kept_) : 0;
    if (copies > 0) return leave_out(kept_, copies);
  }
  const bool is_far = ++marks_ > next_kept_;
  if (is_far) next_kept_ = 2 * marks_;
  if (is_far || (short_cycle && marks_ > kShortCycle && kept_.outline != outlines_.back())) keep();
}

/// Keeps the present state.
void OrderEngine::keep() {
  marks_ = 0;
  kept_.micro = last_mark_;
  kept_.time_ns = events_.front().time_ns;
  kept_.step_ns = step_ns_;
  kept_.devices = devices_;
  kept_.outline = outlines_.back();
  kept_.state.clear();
  visit_state([&](int64_t value) {
    kept_.state.push_back(value);
    return true;
  });
}

/// Notes a number of what lists, queues and devices have come to. Whether one of the last few
/// marks, as far apart as the order's own period, had the same.
bool OrderEngine::notes_outline() {
  uint64_t outline = 0;
  visit_outline([&](int64_t value) {
    outline = mix64(outline ^ static_cast<uint64_t>(value));
    return true;
  });
  const auto recent = std::min<std::ptrdiff_t>(kShortCycle, std::ssize(outlines_));
  bool again = false;
  for (std::ptrdiff_t back = order_period_; back <= recent; back += order_period_)
    again = again || *(outlines_.end() - back) == outline;
  outlines_.push_back(outline);
  return again;
}

/// Calls take(number) for all of the state, as long as it returns true.
template <class Take>
bool OrderEngine::visit_state(const Take& take) const {
  const int64_t now_ns = events_.front().time_ns;
  const int32_t micro = pieces_done_[0];
  return visit_outline(take) && visit_events(now_ns, micro, take) &&
         visit_micros(now_ns, micro, take);
}

template <class Take>
bool OrderEngine::visit_outline(const Take& take) const {
  const int64_t now_ns = events_.front().time_ns;
  const int32_t micro = pieces_done_[0];
  for (size_t list = 0; list < pieces_done_.size(); ++list) {
    const bool once = graph_->once(pieces_->operators[pieces_->list_first[list]]);
    if (!take(once ? pieces_done_[list] : pieces_done_[list] - micro)) return false;
  }
  for (size_t queue = 0; queue < free_ns_.size(); ++queue)
    if (!take(since(free_ns_[queue], now_ns)) ||
        !take(asked_ns_[queue] == now_ns ? asked_by_[queue] : -1))
      return false;
  return visit_devices(now_ns, micro, take);
}

template <class Take>
bool OrderEngine::visit_devices(int64_t now_ns, int32_t micro, const Take& take) const {
  const auto turns = static_cast<int64_t>(groups_.size());
  for (size_t d = 0; d < devices_.size(); ++d) {
    const auto& device = devices_[d];
    const bool over = device.piece == pieces_->piece_first[d + 1];
    const auto piece = over ? OrderPieces::Piece{-1, micro} : pieces_->pieces[device.piece];
    const auto& [booked_ns, turn] = booked_last_[d];
    const bool booked = booked_ns >= now_ns;
    if (!take(piece.list) || !take(piece.micro_batch - micro) || !take(device.segment) ||
        !take(device.blocked) || !take(since(device.free_ns, now_ns)) ||
        !take(booked ? booked_ns - now_ns : -1) || !take(booked ? turn - turns * micro : -1))
      return false;
    // What instants from now on fall into.
    const auto& list = started_[d];
    size_t first = list.size();
    while (first > 0 && list[first - 1].time_ns > now_ns) --first;
    for (size_t i = first > 0 ? first - 1 : 0; i < list.size(); ++i)
      if (!take(list[i].time_ns - now_ns) || !take(list[i].segment)) return false;
    if (!take(static_cast<int64_t>(list.size() - first))) return false;
  }
  return true;
}

template <class Take>
bool OrderEngine::visit_events(int64_t now_ns, int32_t micro, const Take& take) const {
  auto events = events_;
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return b > a; });
  for (const auto& event : events) {
    const uint64_t kind = event.key >> 62;
    auto number = static_cast<int64_t>(event.key << 2 >> 2);
    if (kind == kTaskSends)
      number -= int64_t{micro} * static_cast<int64_t>(list_of_.size());
    else if (kind == kBooks)
      number -= int64_t{micro} * static_cast<int64_t>(groups_.size());
    else
      number -= static_cast<int64_t>(ticket_);
    if (!take(event.time_ns - now_ns) || !take(static_cast<int64_t>(kind)) || !take(number) ||
        !take(event.what) || !take(event.micro - micro) || !take(event.last))
      return false;
  }
  return take(static_cast<int64_t>(events.size()));
}

/// The micro-batches of which something is to come, and those before of which something arrives
/// later: the first, and one behind the last that has begun.
std::pair<int32_t, int32_t> OrderEngine::open_micros(int64_t now_ns) const {
  int32_t first = 0;
  while (first < micros_ && left_[first] == 0) ++first;
  const auto arrives = [&](int32_t micro) {
    const auto cells = std::span(cells_).subspan(cell(rows(), 0, micro), rows());
    return std::any_of(cells.begin(), cells.end(), [&](const Cell& one) {
      return one.booked() && one.time_ns > now_ns;
    });
  };
  while (first > 0 && arrives(first - 1)) --first;
  return {first, newest_ + 1};
}

template <class Take>
bool OrderEngine::visit_micros(int64_t now_ns, int32_t micro, const Take& take) const {
  const auto [first, end] = open_micros(now_ns);
  const auto one = [&](int32_t k) {
    for (const auto& [time_ns, missing] : std::span(cells_).subspan(cell(rows(), 0, k), rows()))
      if (!take(missing) || !take(since(time_ns, now_ns))) return false;
    return take(left_[k]);
  };
  if (!take(first - micro) || !take(end - micro)) return false;
  for (int32_t k = first; k < end; ++k)
    if (!one(k)) return false;
  for (size_t c = 0; c < groups_.size(); ++c)
    if (!take(all_arrived_[c] < 0 ? -1 : since(all_arrived_[c], now_ns)) ||
        !take(groups_[c].once ? waiting_[c] : waiting_[c] + micro))
      return false;
  return true;
}

/// Where the segment that a device begins next has its place.
int32_t OrderEngine::position(size_t number, const Device& device) const {
  if (device.piece == pieces_->piece_first[number + 1]) return device.base;
  const int32_t list = pieces_->pieces[device.piece].list;
  const auto& segment = segments_[segment_first_[list] + device.segment];
  return device.base + segment.begin - pieces_->list_first[list];
}

/// Whether something of the last micro-batch, with which things run that run once, is there
/// already: it would be that of another one where micro-batches are left out.
bool OrderEngine::begins_last() const {
  const auto is_last = [&](const auto& of) { return of.micro == micros_ - 1; };
  return opened_ == micros_ || std::any_of(events_.begin(), events_.end(), is_last);
}

/// How often what ran since the mark can be left out of what is to come; 0 where that saves little.
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

/// How often a device's order repeats its `pieces` pieces from `first` on behind them.
int32_t OrderEngine::copies_in_order(size_t device, int32_t first, int32_t pieces,
                                     int32_t micros) const {
  return pieces == 0 ? micros_ : (equal_in_order(device, first, pieces, micros) - 1) / pieces;
}

/// How many pieces from `first` on come again `pieces` later, of so many micro-batches later.
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
  period_.time_ns = events_.front().time_ns - before.time_ns;
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

/// Goes on behind the copies.
void OrderEngine::pass_copies() {
  for (size_t d = 0; d < devices_.size(); ++d)
    devices_[d].piece += period_.rest.piece_first[d] - pieces_->piece_first[d];
  for (int32_t& micros : waiting_) micros -= left_out();
  pieces_ = &period_.rest;
  micros_ = pieces_->micro_batches;  // several, so that all else stays as it was compiled
  seeks_ = false;
}

/// Runs what is left and adds what was left out. False: all of it is to be run.
bool OrderEngine::run_rest(int64_t limit_ns) {
  pass_copies();
  if (!order_lists() || !go_on(limit_ns) || tied_) return false;
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

/// By how much what a device holds, of which delta_ is, changes between the marks.
int64_t OrderEngine::change(int32_t number) const {
  const auto [from, to] = period_.between[number];
  int64_t sum = 0, carried = 0;
  int32_t position = 0;
  for (int32_t p = pieces_->piece_first[number]; p < pieces_->piece_first[at(number) + 1]; ++p) {
    const int32_t list = pieces_->pieces[p].list;
    const int32_t begin = pieces_->list_first[list];
    const int32_t length = pieces_->list_first[at(list) + 1] - begin;
    const int64_t* fixed = list_delta_.data() + begin + list;
    for (int32_t i = 0; i < length; ++i, ++position)
      if (position >= from && position < to)
        sum += fixed[i] + delta_[position] + (i == 0 ? carried : 0);
    carried = fixed[length];
  }
  return sum;
}

}  // namespace trinity
