// The sweep's rule written plainly: one 4-ary heap of (time, operator) over flat arrays of edges, nothing
// else thought of. Sender queues, first in first out; no memory.
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
      : inputs(graph.inputs), cost_ns(graph.cost_ns), wire_ns(graph.wire_ns) {
    for (const auto& readers : graph.readers) {
      first.push_back(static_cast<int32_t>(reader.size()));
      reader.insert(reader.end(), readers.begin(), readers.end());
    }
    first.push_back(static_cast<int32_t>(reader.size()));
  }

  std::vector<int32_t> first, reader;  // of every operator, and one more; ascending
  std::vector<int> inputs;
  std::vector<int64_t> cost_ns, wire_ns;
};

/// Simulations of placements one after the other; arrays are kept between them.
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
    for (int32_t op = 0; op < operators; ++op)
      if (missing_[op] == 0) push({0, op});
    int64_t step_ns = 0;
    while (!heap_.empty()) {
      const auto [ready, op] = pop();
      const int32_t from = placement[op];
      const int64_t end = std::max(ready, free_ns_[from]) + graph_.cost_ns[op];
      free_ns_[from] = end;
      step_ns = std::max(step_ns, end);
      for (int32_t e = graph_.first[op]; e < graph_.first[op + 1]; ++e) {
        const int32_t reader = graph_.reader[e], to = placement[reader];
        int64_t there = end;
        if (to != from) {
          if (sent_by_[to] != op) {
            sent_by_[to] = op;
            send_free_ns_[from] = std::max(end, send_free_ns_[from]) + graph_.wire_ns[op];
            arrival_ns_[to] = send_free_ns_[from];
          }
          there = arrival_ns_[to];
        }
        ready_ns_[reader] = std::max(ready_ns_[reader], there);
        if (--missing_[reader] == 0) push({ready_ns_[reader], reader});
      }
    }
    return step_ns;
  }

 private:
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
};

}  // namespace trinity::bench
