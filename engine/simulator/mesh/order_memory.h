#pragma once

#include <array>
#include <limits>

#include "simulator/mesh/order_program.h"
#include "simulator/simulator.h"

namespace trinity {

/// Memory of devices while an order runs (simulator.h, MEMORY). Most tensors are held between two positions of lists,
/// equally in every micro-batch; those that begin or end with a transfer or collective are placed individually, by the
/// arrival_ns_.
class OrderMemory : protected OrderProgram {
 protected:
  using OrderProgram::OrderProgram;

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

  /// Before a run: finds what is held.
  /// Last operators first, so that readers of a view are known before the viewed tensor.
  void find_holds() {
    holds_.clear();
    if (problem_->rules().memory != MemoryModel::slots) return;
    ends_.clear();
    view_use_.assign(list_of_.size(), {});
    list_delta_.assign(pieces_->operators.size() + at(pieces_->lists()), 0);
    find_awaited();
    for (int32_t op = problem_->operators() - 1; op >= 0; --op) {
      const int32_t first = problem_->first_output(op), outputs = problem_->first_output(op + 1) - first;
      for (int32_t output = 0; output < outputs; ++output) {
        Use own = use_of(op, output, placement_[op]);
        for (int32_t r = routes_of(op).begin; r < routes_of(op).end; ++r) {
          if (routes_[r].output != output) continue;
          hold({op, r, use_of(op, output, routes_[r].to), problem_->copied_bytes(op, output), false});
          join(own, End::sent, r);
        }
        bool sums = false;
        for (const auto& reader : problem_->readers(op))
          sums = sums || (reader.output == output && accumulates(op, reader.op));
        if (!sums && output == 0 && problem_->alias(op) >= 0) {
          if (member(op))
            join(own, End::starts, op);
          else
            join(own, list_of_[op], index_of_[op]);
          view_use_[op] = own;
        } else {
          hold({op, -1, own, problem_->held_bytes()[at(first + output)], sums});
        }
      }
      if (problem_->has_workspace() && !member(op))
        hold({op, -1, {}, problem_->graph().op(op).workspace_bytes, false});
    }
  }

  /// Finds collectives for which a device waits immediately: if an operator that reads the result
  /// follows one that the collective waits for, the collective begins and ends between the two.
  void find_awaited() {
    wait_positions_.assign(list_of_.size(), {});
    for (int32_t list = 0; list < pieces_->lists(); ++list)
      for (int32_t s = segment_first_[list] + 1; s < segment_first_[at(list) + 1]; ++s)
        for (const int32_t row : in(needs_, segments_[s].needs))
          if (row % 2 == 0 && row / 2 < collectives()) note_awaited(list, segments_[s], row / 2);
  }

  void note_awaited(int32_t list, const Segment& segment, int32_t collective) {
    const int32_t before = pieces_->operators[at(segment.operators.begin) - 1];
    const int32_t reader = pieces_->operators[at(segment.operators.begin)];
    const auto readers = problem_->readers(before);
    const bool waits = std::any_of(readers.begin(), readers.end(), [&](const Problem::Reader& one) {
      return collective_of(one.op) == collective && placement_[one.op] == placement_[before] &&
             !accumulates(before, one.op);
    });
    if (!waits) return;
    const bool at_once = segment.needs.end == segment.needs.begin + 1 && cost_ns(reader) > 0 &&
                         problem_->rules().device_dead_ns <= groups_[collective].duration_ns;
    const int32_t index = segment.operators.begin - pieces_->list_first[list];
    for (const int32_t op : collective_at(collective).members)
      if (placement_[op] == placement_[before])
        wait_positions_[at(op)] = {list, index - 1, at_once ? index : -1};
  }

  /// Readers of an output on a device, including readers of its local views.
  Use use_of(int32_t op, int32_t output, int32_t device) {
    Use use;
    for (const auto& reader : problem_->readers(op)) {
      if (reader.output != output || placement_[reader.op] != device) continue;
      if (member(reader.op))
        join(use, End::ends, reader.op);
      else
        join(use, list_of_[reader.op], index_of_[reader.op]);
      if (problem_->alias(reader.op) == problem_->first_output(op) + output)
        join(use, view_use_[reader.op]);
    }
    return use;
  }

  void join(Use& use, const Use& other) {
    if (other.list >= 0) join(use, other.list, other.index);
    for (int32_t end = other.more; end >= 0; end = ends_[end].next)
      join(use, ends_[end].kind, ends_[end].number);
  }

  void join(Use& use, int32_t list, int32_t index) {
    const bool known = use.list >= 0 && list != use.list;
    if (known && !always_before(list, use.list) && !always_before(use.list, list))
      return join(use, End::runs, pieces_->operators[pieces_->list_first[list] + index]);
    const bool later = use.list < 0 || (known ? always_before(use.list, list) : index > use.index);
    if (later) use.list = list, use.index = index;
  }

  void join(Use& use, End::Kind kind, int32_t number) {
    if (kind == End::starts || kind == End::ends) {
      const auto& [list, starts, ends] = wait_positions_[at(number)];
      const int32_t index = kind == End::starts ? starts : ends;
      if (index >= 0) return join(use, list, index);
    }
    ends_.push_back({kind, number, use.more});
    use.more = static_cast<int32_t>(ends_.size()) - 1;
  }

  void hold(const Hold& given) {
    if (given.bytes == 0) return;
    Use until = last_of(given.until);
    auto [list, index] = std::pair(list_of_[given.op], index_of_[given.op]);
    if (member(given.op)) {
      const auto& awaited = wait_positions_[at(given.op)];
      list = awaited.list, index = awaited.starts;
    }
    if (given.route >= 0) list = -1;
    if (list >= 0 && !given.accumulates) join(until, list, index);
    if (list < 0 || given.accumulates || until.more >= 0) {
      holds_.push_back(given);
      holds_.back().until = until;
      holds_.back().list = list, holds_.back().index = index;
      return;
    }
    list_delta_[pieces_->list_first[list] + list + index] += given.bytes;
    list_delta_[pieces_->list_first[until.list] + until.list + until.index + 1] -= given.bytes;
  }

  /// Reduces a use to events that can be the last: a collective has started and ended before an
  /// operator that reads its result, and the instant of its end falls into no later slot, because the
  /// operator takes time.
  Use last_of(const Use& use) {
    Use last{use.list, use.index, -1};
    // True if the list's reader runs with or after a reader of the collective.
    const auto waits_for = [&](int32_t op) {
      const auto readers = problem_->readers(op);
      return std::any_of(readers.begin(), readers.end(), [&](const Problem::Reader& reader) {
        const int32_t list = list_of_[reader.op];
        if (list < 0 || placement_[reader.op] != placement_[op] || accumulates(op, reader.op) ||
            problem_->once(reader.op) != problem_->once(op) || cost_ns(reader.op) == 0)
          return false;
        return list == use.list ? index_of_[reader.op] <= use.index : always_before(list, use.list);
      });
    };
    for (int32_t at = use.more; at >= 0; at = ends_[at].next) {
      const auto [kind, number, next] = ends_[at];
      const bool collective = kind == End::starts || kind == End::ends;
      if (!collective || use.list < 0 || !waits_for(number)) join(last, kind, number);
    }
    return last;
  }

  /// By device and ascending operator, which is about in order of time, for hints_. find_holds() has the last one first.
  void sort_holds() {
    auto& first = device_first_;
    first.assign(positions_.size() + 1, 0);
    for (const auto& hold : holds_) ++first[at(device_of(hold)) + 1];
    for (size_t d = 1; d < first.size(); ++d) first[d] += first[d - 1];
    holds_before_.swap(holds_);
    holds_.resize(holds_before_.size());
    for (size_t i = holds_.size(); i-- > 0;) holds_[first[at(device_of(holds_before_[i]))]++] = holds_before_[i];
  }

  /// Finds peaks, and whether levels repeat. Device by device, for locality.
  void find_levels() {
    for (auto& device : simulated_) device.peak_memory_bytes = -1;  // idle
    for (int32_t op = 0; op < problem_->operators(); ++op) {
      const int32_t device = placement_[op];
      int64_t& peak = simulated_[at(device)].peak_memory_bytes;
      if (peak < 0) peak = problem_->framework_bytes(cluster_device(device));
      peak += problem_->fixed_bytes(op);
    }
    for (auto& device : simulated_)
      device.peak_memory_bytes = std::max<int64_t>(device.peak_memory_bytes, 0);
    sort_holds();
    levels_repeat_ = true;
    find_bases();
    auto end = holds_.begin();
    for (int32_t d = 0; at(d) < positions_.size(); ++d) {
      const auto begin = end;
      while (end != holds_.end() && device_of(*end) == d) ++end;
      delta_.assign(at(std::max(positions_[d], 1)) + 1, 0);
      hints_.fill(0);
      const auto each = std::partition(begin, end, [this](const Hold& hold) { return sums_in_list(hold); });
      for (auto hold = begin; hold != each; ++hold) {
        const auto& [first, last] = bases_[at(hold->list)];
        int32_t until = last_position(*hold, micros_ - 1, last + hold->index);
        if (hold->until.list >= 0) until = std::max(until, bases_[at(hold->until.list)].second + hold->until.index);
        add(hold->bytes, first + hold->index, until);
      }
      for (int32_t k = 0; k < micros_; ++k)
        for (auto hold = each; hold != end; ++hold) settle(*hold, k);
      for (auto hold = each; hold != end; ++hold)
        if (hold->accumulates) add(hold->bytes, hold->first, hold->last);
      sum_levels(d);
      levels_repeat_ = levels_repeat_ && (period_.micros == 0 || change(d) == 0);
    }
  }

  /// The position that an instant falls into; the search starts from `hint`.
  int32_t position_at(int32_t device, int64_t time_ns, size_t& hint) const {
    constexpr int32_t kNear = 8;
    constexpr size_t kShort = 16;
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
    const auto offsets = in(offset_ns_, segments_[at(found.segment)].operators);
    const int64_t after_ns = time_ns - found.time_ns;
    if (after_ns >= offsets.back()) return found.position + static_cast<int32_t>(offsets.size()) - 1;
    if (offsets.size() > kShort) {
      const auto behind = std::upper_bound(offsets.begin() + 1, offsets.end(), after_ns);
      return found.position + static_cast<int32_t>(behind - offsets.begin()) - 1;
    }
    int32_t position = found.position;  // branch-free
    for (size_t i = 1; i < offsets.size(); ++i) position += offsets[i] <= after_ns;
    return position;
  }

  /// The position in which a row of a device starts or ends. A row that runs once has it in the last
  /// micro-batch.
  int32_t position_of(int32_t row, bool ends, int32_t micro, int32_t device) {
    const bool once = row_ns_[row] < 0;
    const int64_t duration_ns = ends ? 0 : once ? ~row_ns_[row] : row_ns_[row];
    const int64_t end_ns = arrival_ns_[cell_of(row, once ? micros_ - 1 : micro)];
    return position_at(device, end_ns - duration_ns, hints_[2 * (at(row) >= groups_.size()) + ends]);
  }

  int32_t last_position(const Hold& hold, int32_t micro, int32_t first) {
    const Use& use = hold.until;
    int32_t last = first;
    if (use.list >= 0) last = std::max(last, base_[list_cell(use.list, micro)] + use.index);
    for (int32_t i = use.more; i >= 0; i = ends_[i].next) {
      const auto& [kind, number, next] = ends_[i];
      const int32_t position =
          kind == End::runs   ? base_[list_cell(list_of_[number], micro)] + index_of_[number]
          : kind == End::sent ? position_of(collectives() + number, true, micro, device_of(hold))
                              : position_of(collective_of(number), kind == End::ends, micro, device_of(hold));
      last = std::max(last, position);
    }
    return last;
  }

  /// True if the first and the last position of a list decide between which positions a tensor
  /// accumulates: it does so in a list, and collectives that end its life run once.
  bool sums_in_list(const Hold& hold) const {
    bool sums = hold.accumulates && hold.list >= 0;
    for (int32_t i = hold.until.more; sums && i >= 0; i = ends_[i].next)
      sums = (ends_[i].kind == End::starts || ends_[i].kind == End::ends) && problem_->once(ends_[i].number);
    return sums;
  }

  /// Finds the first and last position of every list.
  void find_bases() {
    bases_.clear();
    for (int32_t list = 0; list < pieces_->lists(); ++list) {
      bases_.emplace_back(base_[list_cell(list, 0)], base_[list_cell(list, 0)]);
      for (int32_t k = 1; k < micros_; ++k) {
        const int32_t base = base_[list_cell(list, k)];
        bases_.back() = {std::min(bases_.back().first, base), std::max(bases_.back().second, base)};
      }
    }
  }

  /// Adds a hold in a micro-batch, or extends an accumulating one.
  void settle(Hold& hold, int32_t micro) {
    const bool copy = hold.route >= 0;
    const bool once = problem_->once(hold.op) || (copy && routes_[hold.route].last);
    if (once && micro + 1 < micros_) return;
    const int32_t row = copy ? collectives() + hold.route : collective_of(hold.op);
    const int32_t first = hold.list >= 0 ? base_[list_cell(hold.list, micro)] + hold.index
                                         : position_of(row, false, micro, device_of(hold));
    const int32_t last = last_position(hold, micro, first);
    if (hold.accumulates) {
      hold.first = hold.first < 0 ? first : std::min(hold.first, first);
      hold.last = std::max(hold.last, last);
    } else {
      add(hold.bytes, first, last);
    }
  }

  void add(int64_t bytes, int32_t first, int32_t last) {
    delta_[first] += bytes;
    delta_[last + 1] -= bytes;
  }

  int32_t device_of(const Hold& hold) const {
    return hold.route >= 0 ? routes_[static_cast<size_t>(hold.route)].to : placement_[hold.op];
  }

  void sum_levels(int32_t number) {
    auto& peak = simulated_[number].peak_memory_bytes;
    const int64_t* delta = delta_.data();
    int64_t level = peak;
    if (positions_[number] == 0) {
      peak = std::max(peak, level + *delta);
      return;
    }
    int64_t carried = 0;  // release at a list's end that applies to the next position
    for (const auto& [list, micro] : pieces_->of(at(number))) {
      const size_t length = pieces_->list(at(list)).size();
      const int64_t* fixed = list_delta_.data() + pieces_->list_first[list] + list;
      level += carried;
      for (size_t i = 0; i < length; ++i) {
        level += fixed[i] + *delta++;
        peak = std::max(peak, level);
      }
      carried = fixed[length];
    }
  }

  /// Change of a device's memory (delta_) between the marks.
  int64_t change(int32_t number) const {
    const auto [from, to] = period_.between[number];
    int64_t sum = 0, carried = 0;
    int32_t position = 0;
    for (const auto& [list, micro] : pieces_->of(at(number))) {
      const auto length = static_cast<int32_t>(pieces_->list(at(list)).size());
      const int64_t* fixed = list_delta_.data() + pieces_->list_first[list] + list;
      const int32_t first = std::max(from - position, 0), end = std::min(to - position, length);
      for (int32_t i = first; i < end; ++i) sum += fixed[i] + delta_[position + i];
      if (first == 0 && end > 0) sum += carried;
      position += length;
      carried = fixed[length];
    }
    return sum;
  }

  size_t cell_of(int32_t row, int32_t micro) const {
    return static_cast<size_t>(micro) * rows() + static_cast<size_t>(row_place_[row]);
  }

  // Cells, [micro][row_place_]: ~ready time as known so far, arrival once booked; inputs that have not arrived.
  std::vector<int64_t> arrival_ns_;
  std::vector<int32_t> missing_, first_missing_;        // first_missing_: [row_place_], at first
  std::vector<std::vector<Started>> started_;           // per device
  Period period_;
  std::array<size_t, 4> hints_{};  // of position_at(): collectives' starts and ends, transfers'
  std::vector<Use> view_use_;                           // per operator
  std::vector<WaitPositions> wait_positions_;           // per operator, of members
  std::vector<End> ends_;
  std::vector<Hold> holds_, holds_before_;              // holds_before_: scratch of sort_holds()
  std::vector<size_t> device_first_;                    // of sort_holds()
  std::vector<int64_t> list_delta_;                     // per operator of the lists, and list
  std::vector<std::pair<int32_t, int32_t>> bases_;  // per list: first and last position
  std::vector<int64_t> delta_;                          // per position of a device
  bool levels_repeat_ = true;  // levels repeat between the marks of period_
};

}  // namespace trinity
