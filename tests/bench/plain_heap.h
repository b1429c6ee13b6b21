// The sweep's rule written plainly: one 4-ary heap of (time, operator) over flat arrays of edges, nothing
// else thought of. Sender queues, first in first out; without memory, or with peaks by slots
// (simulator.h), which are as plain.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "bench/textbook.h"

namespace trinity::bench {

/// A graph in flat arrays, as TextbookGraph has it in nested ones.
struct FlatGraph {
  explicit FlatGraph(const TextbookGraph& graph)
      : inputs(graph.inputs), cost_ns(graph.cost_ns), wire_ns(graph.wire_ns), bytes(graph.bytes) {
    for (const auto& readers : graph.readers) {
      first.push_back(static_cast<int32_t>(reader.size()));
      reader.insert(reader.end(), readers.begin(), readers.end());
    }
    first.push_back(static_cast<int32_t>(reader.size()));
  }

  std::vector<int32_t> first, reader;  // of every operator, and one more; ascending
  std::vector<int> inputs;
  std::vector<int64_t> cost_ns, wire_ns, bytes;
};

/// Simulations of placements one after the other; arrays are kept between them.
template <bool kMemory>
class PlainHeapLoop {
 public:
  PlainHeapLoop(const FlatGraph& graph, int devices)
      : graph_(graph), devices_(static_cast<size_t>(devices)) {}

  /// The end of the last operator.
  int64_t run(const std::vector<int32_t>& placement) {
    const auto operators = static_cast<int32_t>(placement.size());
    missing_.assign(graph_.inputs.begin(), graph_.inputs.end());
    ready_ns_.assign(placement.size(), 0);
    free_ns_.assign(devices_, 0);
    send_free_ns_.assign(devices_, 0);
    arrival_ns_.resize(devices_);
    sent_by_.assign(devices_, -1);
    heap_.clear();
    if (kMemory) begin_memory(placement.size());
    for (int32_t op = 0; op < operators; ++op)
      if (missing_[op] == 0) push({0, op});
    int64_t step_ns = 0;
    while (!heap_.empty()) {
      const auto [ready, op] = pop();
      const int32_t from = placement[op];
      const int64_t start = std::max(ready, free_ns_[from]), end = start + graph_.cost_ns[op];
      free_ns_[from] = end;
      if (kMemory) {
        position_[op] = static_cast<int32_t>(starts_[from].size());
        starts_[from].push_back(start);
      }
      step_ns = std::max(step_ns, end);
      for (int32_t e = graph_.first[op]; e < graph_.first[op + 1]; ++e) {
        const int32_t reader = graph_.reader[e], to = placement[reader];
        int64_t there = end;
        if (to != from) {
          if (sent_by_[to] != op) {
            sent_by_[to] = op;
            send_free_ns_[from] = std::max(end, send_free_ns_[from]) + graph_.wire_ns[op];
            arrival_ns_[to] = send_free_ns_[from];
            if (kMemory) copies_.push_back({op, to, arrival_ns_[to] - graph_.wire_ns[op], arrival_ns_[to]});
          }
          there = arrival_ns_[to];
        }
        ready_ns_[reader] = std::max(ready_ns_[reader], there);
        if (--missing_[reader] == 0) push({ready_ns_[reader], reader});
      }
    }
    if (kMemory) account(placement);
    return step_ns;
  }

  const std::vector<int64_t>& peak_bytes() const { return peak_bytes_; }  ///< per device

 private:
  struct Copy {
    int32_t op, to;
    int64_t start_ns, end_ns;
    int32_t first = 0, last = 0;  // slots there
  };

  void begin_memory(size_t operators) {
    position_.resize(operators);
    last_.resize(operators);
    starts_.assign(devices_, {});
    copies_.clear();
  }

  int32_t slot(int32_t device, int64_t time_ns) const {
    const auto& starts = starts_[device];
    const auto behind = std::upper_bound(starts.begin(), starts.end(), time_ns);
    return std::max(0, static_cast<int32_t>(behind - starts.begin()) - 1);
  }

  /// What is held from which slot to which, then the largest sum of every device.
  void account(const std::vector<int32_t>& placement) {
    const auto operators = static_cast<int32_t>(placement.size());
    last_ = position_;
    first_copy_.assign(placement.size(), -1);
    for (size_t i = 0; i < copies_.size(); ++i) {
      auto& copy = copies_[i];
      if (first_copy_[copy.op] < 0) first_copy_[copy.op] = static_cast<int32_t>(i);
      copy.first = copy.last = slot(copy.to, copy.start_ns);
      last_[copy.op] = std::max(last_[copy.op], slot(placement[copy.op], copy.end_ns));
    }
    held_.resize(devices_);
    for (size_t d = 0; d < devices_; ++d) held_[d].assign(starts_[d].size() + 1, 0);
    for (int32_t op = 0; op < operators; ++op) {
      for (int32_t e = graph_.first[op]; e < graph_.first[op + 1]; ++e) {
        const int32_t reader = graph_.reader[e];
        int32_t* last = &last_[op];
        if (placement[reader] != placement[op]) {
          size_t i = static_cast<size_t>(first_copy_[op]);
          while (copies_[i].to != placement[reader]) ++i;
          last = &copies_[i].last;
        }
        *last = std::max(*last, position_[reader]);
      }
      hold(placement[op], position_[op], last_[op], graph_.bytes[op]);
    }
    for (const auto& copy : copies_) hold(copy.to, copy.first, copy.last, graph_.bytes[copy.op]);
    peak_bytes_.assign(devices_, 0);
    for (size_t d = 0; d < devices_; ++d) {
      int64_t level = 0;
      for (const int64_t change : held_[d]) peak_bytes_[d] = std::max(peak_bytes_[d], level += change);
    }
  }

  void hold(int32_t device, int32_t first, int32_t last, int64_t bytes) {
    held_[device][static_cast<size_t>(first)] += bytes;
    held_[device][static_cast<size_t>(last) + 1] -= bytes;
  }

  using Key = std::pair<int64_t, int32_t>;

  void push(Key key) {
    size_t at = heap_.size();
    heap_.push_back(key);
    for (; at > 0 && key < heap_[(at - 1) / 4]; at = (at - 1) / 4) heap_[at] = heap_[(at - 1) / 4];
    heap_[at] = key;
  }

  Key pop() {
    const Key top = heap_.front(), last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return top;
    size_t at = 0;
    for (size_t first = 1; first < heap_.size(); first = 4 * at + 1) {
      const size_t end = std::min(first + 4, heap_.size());
      size_t least = first;
      for (size_t child = first + 1; child < end; ++child)
        if (heap_[child] < heap_[least]) least = child;
      if (last < heap_[least]) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = last;
    return top;
  }

  const FlatGraph& graph_;
  const size_t devices_;
  std::vector<int> missing_;
  std::vector<int64_t> ready_ns_, free_ns_, send_free_ns_, arrival_ns_;
  std::vector<int32_t> sent_by_;  // per device: the operator whose tensor went there last
  std::vector<Key> heap_;

  std::vector<int32_t> position_, last_, first_copy_;        // per operator: slots, and a copy
  std::vector<std::vector<int64_t>> starts_, held_;          // per device and slot
  std::vector<Copy> copies_;
  std::vector<int64_t> peak_bytes_;
};

}  // namespace trinity::bench
