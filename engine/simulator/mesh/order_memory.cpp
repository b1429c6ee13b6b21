// What devices hold while an order runs (simulator.h, MEMORY), and the metrics of the run. Most is
// held between two positions of lists and is the same in every micro-batch; what begins or ends
// with a transfer or collective is placed one by one.
#include <algorithm>
#include <limits>

#include "base/index.h"
#include "simulator/order_engine.h"

namespace trinity {

/// Last operators first, so that what reads a view is known before what it views.
void OrderEngine::find_holds() {
  holds_.clear();
  ends_.clear();
  view_use_.assign(list_of_.size(), {});
  list_delta_.assign(pieces_->operators.size() + at(pieces_->lists()), 0);
  for (int32_t op = graph_->operators() - 1; op >= 0; --op) {
    for (int32_t output = 0; output < graph_->outputs(op); ++output) {
      Use own = use_of(op, output, placement_[op]);
      for (int32_t r = route_first_[op]; r < route_first_[at(op) + 1]; ++r) {
        if (routes_[r].output != output) continue;
        hold({op, r, use_of(op, output, routes_[r].to), routes_[r].bytes, false});
        join(own, End::sent, r);
      }
      bool sums = false;
      for (const auto& reader : graph_->readers(op))
        sums = sums || (reader.output == output && accumulates(op, reader.op));
      if (!sums && output == 0 && graph_->views(op)) {
        if (member(op))
          join(own, End::starts, member_number_[op]);
        else
          join(own, list_of_[op], index_of_[op]);
        view_use_[op] = own;
      } else {
        hold({op, -1, own, graph_->held_bytes(op, output), sums});
      }
    }
    if (problem_->has_workspace() && !member(op))
      hold({op, -1, {}, graph_->workspace_bytes(op), false});
  }
}

/// Who reads an output on a device, and reads what only views it there.
OrderEngine::Use OrderEngine::use_of(int32_t op, int32_t output, int32_t device) {
  Use use;
  for (const auto& reader : graph_->readers(op)) {
    if (reader.output != output || placement_[reader.op] != device) continue;
    if (member(reader.op))
      join(use, End::ends, member_number_[reader.op]);
    else
      join(use, list_of_[reader.op], index_of_[reader.op]);
    if (graph_->views(reader.op, op, output))
      join(use, view_use_[reader.op]);
  }
  return use;
}

void OrderEngine::join(Use& use, int32_t list, int32_t index) {
  const bool known = use.list >= 0 && list != use.list;
  if (known && !always_before(list, use.list) && !always_before(use.list, list))
    return join(use, End::runs, pieces_->operators[pieces_->list_first[list] + index]);
  const bool later = use.list < 0 || (known ? always_before(use.list, list) : index > use.index);
  if (later) use.list = list, use.index = index;
}

void OrderEngine::join(Use& use, End::Kind kind, int32_t number) {
  ends_.push_back({kind, number, use.more});
  use.more = static_cast<int32_t>(ends_.size()) - 1;
}

void OrderEngine::join(Use& use, const Use& other) {
  if (other.list >= 0) join(use, other.list, other.index);
  for (int32_t end = other.more; end >= 0; end = ends_[end].next)
    join(use, ends_[end].kind, ends_[end].number);
}

/// What of a use can be the last of it: a collective has begun and ended when an operator runs that
/// reads its result, and the instant of its end falls into no later one, as that takes time.
OrderEngine::Use OrderEngine::last_of(const Use& use) {
  Use last{use.list, use.index, -1};
  // Whether the list's reader runs with or behind one that does.
  const auto waits_for = [&](int32_t op) {
    const auto readers = graph_->readers(op);
    return std::any_of(readers.begin(), readers.end(), [&](const Problem::Reader& reader) {
      const int32_t list = list_of_[reader.op];
      if (list < 0 || placement_[reader.op] != placement_[op] || accumulates(op, reader.op) ||
          graph_->once(reader.op) != graph_->once(op) || cost_ns(reader.op) == 0)
        return false;
      return list == use.list ? index_of_[reader.op] <= use.index : always_before(list, use.list);
    });
  };
  for (int32_t at = use.more; at >= 0; at = ends_[at].next) {
    const auto [kind, number, next] = ends_[at];
    const bool collective = kind == End::starts || kind == End::ends;
    if (!collective || use.list < 0 || !waits_for(members_[number])) join(last, kind, number);
  }
  return last;
}

void OrderEngine::hold(const Hold& given) {
  if (given.bytes == 0) return;
  Use until = last_of(given.until);
  if (given.route >= 0 || given.accumulates || until.more >= 0 || member(given.op)) {
    holds_.push_back(given);
    holds_.back().until = until;
    return;
  }
  const int32_t list = list_of_[given.op];
  join(until, list, index_of_[given.op]);
  list_delta_[pieces_->list_first[list] + list + index_of_[given.op]] += given.bytes;
  list_delta_[pieces_->list_first[until.list] + until.list + until.index + 1] -= given.bytes;
}

/// The position that an instant falls into; the search goes on where it last ended.
int32_t OrderEngine::position_at(int32_t device, int64_t time_ns, size_t& hint) const {
  constexpr int32_t kNear = 8;
  const auto& list = started_[device];
  if (list.empty()) return 0;
  const auto begun = [&](size_t i) { return list[i].time_ns <= time_ns; };
  int32_t steps = 0;
  for (; steps < kNear && hint > 0 && !begun(hint); ++steps) --hint;
  for (; steps < kNear && hint + 1 < list.size() && begun(hint + 1); ++steps) ++hint;
  if (steps == kNear) {
    const auto later = [](int64_t time, const Started& one) { return time < one.time_ns; };
    const auto behind = std::upper_bound(list.begin(), list.end(), time_ns, later);
    hint = at(std::max<std::ptrdiff_t>(behind - list.begin() - 1, 0));
  }
  const auto& found = list[hint];
  const auto& segment = segments_[at(found.segment)];
  if (time_ns - found.time_ns >= offset_ns_[at(segment.end) - 1])  // the last of its segment
    return found.position + segment.end - segment.begin - 1;
  const auto offsets =
      std::span(offset_ns_).subspan(at(segment.begin), at(segment.end - segment.begin));
  const auto behind =
      std::upper_bound(offsets.begin() + 1, offsets.end(), time_ns - found.time_ns);
  return found.position + static_cast<int32_t>(behind - offsets.begin()) - 1;
}

/// Notes of every slot whether holds go by when it begins, and by when it ends; of every row, whether
/// by a slot of it.
void OrderEngine::find_asked() {
  const size_t slots = members_.size() + routes_.size();
  begin_asked_.assign(slots, false);
  end_asked_.assign(slots, false);
  row_asked_.assign(groups_.size() + routes_.size(), false);
  const auto ask = [&](std::vector<bool>& asked, size_t slot) {
    asked[slot] = true;
    row_asked_[slot < members_.size() ? at(graph_->collective(members_[slot]))
                                      : groups_.size() + slot - members_.size()] = true;
  };
  for (const auto& hold : holds_) {
    if (const int32_t slot = slot_of(hold); slot >= 0) ask(begin_asked_, at(slot));
    for (int32_t i = hold.until.more; i >= 0; i = ends_[at(i)].next) {
      const auto& [kind, number, next] = ends_[at(i)];
      if (kind == End::starts) ask(begin_asked_, at(number));
      if (kind == End::ends) ask(end_asked_, at(number));
      if (kind == End::sent) ask(end_asked_, members_.size() + at(number));
    }
  }
}

/// Positions of all starts and ends of collectives and transfers that are asked for, in order of
/// booking.
void OrderEngine::place_times() {
  find_asked();
  const auto groups = static_cast<int32_t>(groups_.size());
  const size_t cells = (members_.size() + routes_.size()) * at(micros_);
  first_slot_.resize(cells);
  last_slot_.resize(cells);
  hints_.assign(devices_.size(), {});
  const auto write = [this](int32_t row, const Booking& booking, bool once, int32_t first,
                            int32_t last) {
    const int32_t from = once ? 0 : booking.micro, end = once ? micros_ : booking.micro + 1;
    for (int32_t k = from; k < end; ++k) {
      first_slot_[slot_cell(row, k)] = first;
      last_slot_[slot_cell(row, k)] = last;
    }
  };
  for (const auto& booking : bookings_) {
    if (!row_asked_[at(booking.row)]) continue;
    const int64_t start_ns = booking.start_ns;
    if (booking.row < groups) {
      const int64_t end_ns = start_ns + groups_[booking.row].duration_ns;
      for (const int32_t op : graph_->members(booking.row)) {
        const int32_t device = placement_[op], slot = member_number_[op];
        const bool begins = begin_asked_[at(slot)], ends = end_asked_[at(slot)];
        if (!begins && !ends) continue;
        write(slot, booking, groups_[booking.row].once,
              begins ? position_at(device, start_ns, hints_[device].starts) : 0,
              ends ? position_at(device, end_ns, hints_[device].ends) : 0);
      }
    } else {
      const int32_t r = booking.row - groups;
      const auto& route = routes_[r];
      write(static_cast<int32_t>(members_.size()) + r, booking,
            route.last || graph_->once(route.op),
            position_at(route.to, start_ns, hints_[route.to].came),
            position_at(route.from, start_ns + route.wire_ns, hints_[route.from].sent));
    }
  }
}

int32_t OrderEngine::last_position(const Use& use, int32_t micro, int32_t first) const {
  const auto members = static_cast<int32_t>(members_.size());
  int32_t last = first;
  if (use.list >= 0) last = std::max(last, base_[list_cell(use.list, micro)] + use.index);
  for (int32_t at = use.more; at >= 0; at = ends_[at].next) {
    const auto& end = ends_[at];
    if (end.kind == End::runs) {
      last = std::max(last, base_[list_cell(list_of_[end.number], micro)] + index_of_[end.number]);
      continue;
    }
    const int32_t row = end.kind == End::sent ? members + end.number : end.number;
    const auto& slots = end.kind == End::starts ? first_slot_ : last_slot_;
    last = std::max(last, slots[slot_cell(row, micro)]);
  }
  return last;
}

/// Of what accumulates from an operator's run on, until no transfer's end or other micro-batch's
/// collective, the positions in all micro-batches at once.
bool OrderEngine::settle_sum(Hold& hold) const {
  if (!hold.accumulates || slot_of(hold) >= 0) return false;
  const auto lasts = [&](int32_t end) {
    const auto& [kind, number, next] = ends_[at(end)];
    return (kind == End::starts || kind == End::ends) && graph_->once(members_[at(number)]);
  };
  for (int32_t end = hold.until.more; end >= 0; end = ends_[at(end)].next)
    if (!lasts(end)) return false;
  const int32_t list = list_of_[hold.op], index = index_of_[hold.op];
  hold.first = bases_[at(list)].first + index;
  const int32_t own = bases_[at(list)].second + index;
  const Use ends{-1, -1, hold.until.more};
  hold.last = last_position(ends, micros_ - 1, own);
  if (hold.until.list >= 0)
    hold.last = std::max(hold.last, bases_[at(hold.until.list)].second + hold.until.index);
  return true;
}

/// Finds the least and the last position of every list.
void OrderEngine::find_bases() {
  bases_.clear();
  for (int32_t list = 0; list < pieces_->lists(); ++list) {
    bases_.emplace_back(base_[list_cell(list, 0)], base_[list_cell(list, 0)]);
    for (int32_t k = 1; k < micros_; ++k) {
      const int32_t base = base_[list_cell(list, k)];
      bases_.back() = {std::min(bases_.back().first, base), std::max(bases_.back().second, base)};
    }
  }
}

/// Adds what is held in a micro-batch, or widens the time of what accumulates.
void OrderEngine::settle(Hold& hold, int32_t micro) {
  const bool copy = hold.route >= 0;
  const bool once = graph_->once(hold.op) || (copy && routes_[hold.route].last);
  if (once && micro + 1 < micros_) return;
  const int32_t row = slot_of(hold);
  const int32_t first = row >= 0
                            ? first_slot_[slot_cell(row, micro)]
                            : base_[list_cell(list_of_[hold.op], micro)] + index_of_[hold.op];
  const int32_t last = last_position(hold.until, micro, first);
  if (hold.accumulates) {
    hold.first = hold.first < 0 ? first : std::min(hold.first, first);
    hold.last = std::max(hold.last, last);
  } else {
    add(hold, first, last);
  }
}

void OrderEngine::add(const Hold& hold, int32_t first, int32_t last) {
  delta_[first] += hold.bytes;
  delta_[last + 1] -= hold.bytes;
}

/// Peaks, and whether levels repeat. Device by device, so that what changes of one stays at hand.
void OrderEngine::find_levels() {
  find_holds();
  place_times();
  for (auto& device : simulated_) device.peak_memory_bytes = 0;
  for (int32_t op = 0; op < graph_->operators(); ++op)
    simulated_[placement_[op]].peak_memory_bytes += graph_->fixed_bytes(op);
  std::sort(holds_.begin(), holds_.end(), [this](const Hold& a, const Hold& b) {
    return device_of(a) < device_of(b);
  });
  levels_repeat_ = true;
  find_bases();
  auto end = holds_.begin();
  for (int32_t d = 0; at(d) < devices_.size(); ++d) {
    const auto begin = end;
    while (end != holds_.end() && device_of(*end) == d) ++end;
    delta_.assign(at(std::max(devices_[d].positions, 1)) + 1, 0);
    const auto each = std::partition(begin, end, [&](Hold& hold) { return settle_sum(hold); });
    for (int32_t k = 0; k < micros_; ++k)
      for (auto hold = each; hold != end; ++hold) settle(*hold, k);
    for (auto hold = begin; hold != end; ++hold)
      if (hold->accumulates) add(*hold, hold->first, hold->last);
    sum_levels(d);
    levels_repeat_ = levels_repeat_ && (period_.copies == 0 || change(d) == 0);
  }
}

void OrderEngine::account(Metrics& metrics) {
  if (problem_->rules().memory == MemoryModel::slots && period_.copies == 0)  // else run_rest() did
    find_levels();
  finish(metrics);
}

void OrderEngine::sum_levels(int32_t number) {
  const auto& device = devices_[number];
  auto& peak = simulated_[number].peak_memory_bytes;
  const int64_t* delta = delta_.data();
  int64_t level = peak;
  if (device.positions == 0) {
    peak = std::max(peak, level + *delta);
    return;
  }
  int64_t carried = 0;  // what the end of a list takes away at what follows it
  for (int32_t p = pieces_->piece_first[number]; p < pieces_->piece_first[at(number) + 1]; ++p) {
    const int32_t list = pieces_->pieces[p].list;
    const int32_t begin = pieces_->list_first[list];
    const int32_t length = pieces_->list_first[at(list) + 1] - begin;
    const int64_t* fixed = list_delta_.data() + begin + list;
    level += carried;
    for (int32_t i = 0; i < length; ++i) {
      level += fixed[i] + *delta++;
      peak = std::max(peak, level);
    }
    carried = fixed[length];
  }
}

void OrderEngine::finish(Metrics& metrics) const {
  metrics.step_time_ns = step_ns_;
  metrics.transfers = transfers_;
  metrics.rejected = metrics.unscheduled = false;
  metrics.peak_communication_bytes = metrics.total_communication_bytes = 0;
  metrics.peak_memory_bytes = 0;
  metrics.excess_memory_bytes = std::numeric_limits<int64_t>::min();
  metrics.devices.resize(at(problem_->devices()));
  for (size_t d = 0; d < metrics.devices.size(); ++d) {
    const int32_t from = quotient_ ? quotient_->of[d] : static_cast<int32_t>(d);
    auto& to = metrics.devices[d];
    to = from >= 0 ? simulated_[from] : DeviceMetrics{};
    metrics.total_communication_bytes += to.bytes_sent;
    metrics.peak_communication_bytes =
        std::max(metrics.peak_communication_bytes, to.bytes_sent + to.bytes_received);
    metrics.peak_memory_bytes = std::max(metrics.peak_memory_bytes, to.peak_memory_bytes);
    const int64_t capacity = problem_->cluster().capacity_bytes(static_cast<int32_t>(d));
    metrics.excess_memory_bytes =
        std::max(metrics.excess_memory_bytes, to.peak_memory_bytes - capacity);
  }
}

}  // namespace trinity
