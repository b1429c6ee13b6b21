#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "selection/selection_model.h"

namespace trinity {

/// Usages over time of a model's selections, at the times that can bind: those at which a usage has
/// begun and before which none ends, and only where the largest usages would pass the limit.
/// Empty (slots() == 0) where there is no limit or it can never bind.
///
/// Usages are levels over slots; a node's are kept as changes at its breakpoints, so that a new
/// state costs the number of these and all levels one pass of running sums.
class SelectionMemory {
 public:
  SelectionMemory(const SelectionProblem& problem, const SelectionModel& model);
  /// That of a model with only the states `kept` of every node, a list of some in rising order, and
  /// without the nodes that have one. The slots are the same, the room is less what is always used.
  SelectionMemory(const SelectionMemory& whole, const std::vector<std::vector<int32_t>>& kept);

  int32_t slots() const { return static_cast<int32_t>(room_.size()); }
  /// The limit less what every selection uses there, by slot; negative where nothing fits.
  std::span<const int64_t> room() const { return room_; }

  /// Breakpoints of node v: slots in rising order, at most slots().
  std::span<const int32_t> breakpoints(int32_t v) const {
    return span_of(breakpoints_, first_[v], first_[static_cast<size_t>(v) + 1]);
  }
  /// By how much the level of node v in `state` changes at its breakpoints.
  std::span<const int64_t> changes(int32_t v, int32_t state) const {
    const auto width = static_cast<int64_t>(breakpoints(v).size());
    const int64_t first = first_change_[v] + state * width;
    return span_of(changes_, first, first + width);
  }
  /// Whether the usages of node v depend on its state at any slot.
  bool matters(int32_t v) const { return !breakpoints(v).empty(); }
  /// Those of the first `states` states of v that fit beside the least of all others.
  std::vector<int32_t> fitting(int32_t v, int32_t states) const;

  /// Sums of changes by slot (slots() + 1 of them), for all nodes.
  std::vector<int64_t> sum_changes(std::span<const int32_t> states) const;
  /// Adds to such sums what changes when v goes from a state to another.
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
