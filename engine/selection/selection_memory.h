#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "selection/selection_model.h"

namespace trinity {

/// Usages over time of a model's selections, at the time slots at which the limit can bind: a usage
/// has begun, none before it ends, and the largest usages would exceed the limit. Empty (slots() ==
/// 0) without a limit or if it can never bind. Immutable.
///
/// Usages are levels over slots, stored per node as changes at its breakpoints. A new state
/// therefore costs the number of breakpoints, and all levels one pass of running sums.
class SelectionMemory {
 public:
  SelectionMemory(const SelectionProblem& problem, const SelectionModel& model);
  /// Restricted to the states `kept` of every node (a non-empty ascending list) and without the
  /// nodes that have one. The slots stay the same; room() is reduced by usages that always occur.
  SelectionMemory(const SelectionMemory& whole, const std::vector<std::vector<int32_t>>& kept);

  int32_t slots() const { return static_cast<int32_t>(room_.size()); }
  /// [slot]: limit minus the usage common to all selections; negative if nothing fits.
  std::span<const int64_t> room() const { return room_; }

  /// Breakpoints of node v: ascending slots, at most slots().
  std::span<const int32_t> breakpoints(int32_t v) const {
    return span_of(breakpoints_, first_[v], first_[static_cast<size_t>(v) + 1]);
  }
  /// Change of node v's level in `state` at its breakpoints.
  std::span<const int64_t> changes(int32_t v, int32_t state) const {
    const auto width = static_cast<int64_t>(breakpoints(v).size());
    const int64_t first = first_change_[v] + state * width;
    return span_of(changes_, first, first + width);
  }
  /// True if the usages of node v depend on its state at some slot.
  bool matters(int32_t v) const { return !breakpoints(v).empty(); }
  /// The states among the first `states` of v that fit with the minimum of all others.
  std::vector<int32_t> fitting(int32_t v, int32_t states) const;

  /// Sums of changes by slot (slots() + 1 entries), over all nodes.
  std::vector<int64_t> sum_changes(std::span<const int32_t> states) const;
  /// Updates such sums when v changes its state.
  void move(std::span<int64_t> sums, int32_t v, int32_t from, int32_t to) const;

 private:
  std::vector<int64_t> keep_slots(const SelectionProblem& problem, const SelectionModel& model);
  void add_node(const SelectionProblem& problem, const SelectionModel::Node& node,
                const std::vector<int64_t>& times);
  void add_kept(const SelectionMemory& whole, int32_t v, const std::vector<int32_t>& kept,
                std::vector<int64_t>& least);
  template <class T>
  static std::span<const T> span_of(const std::vector<T>& all, int64_t first, int64_t end) {
    return std::span(all).subspan(static_cast<size_t>(first), static_cast<size_t>(end - first));
  }

  std::vector<int64_t> room_;
  std::vector<int64_t> first_, first_change_;
  std::vector<int32_t> breakpoints_;
  std::vector<int64_t> changes_;
};

}  // namespace trinity
