#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "selection/selection_memory.h"
#include "selection/selection_model.h"

namespace trinity {

/// Branch and bound on a selection, for what SelectionDual leaves open: usages are indivisible, so
/// prices leave a gap, and its trees disagree on cycles.
///
/// A subproblem is a set of states per node. It is reduced by the limit (states that do not fit
/// with the minimum of all others are removed), bounded by a dual of its own, which starts from its
/// parent's prices and is rounded on the way, and loses states that no better selection can have.
/// Then the states of one node are split in two at the mean of the quantity that divides the likely
/// ones most, in cost: their usages, or the messages of one neighbour. The search follows the half
/// with the lower bound to its end, then continues with the subproblem of the lowest bound.
///
/// Deterministic: equal calls give equal selections and bounds. A model's forbidden pairs must be
/// finite. Not thread-safe.
class SelectionBranch {
 public:
  /// Selections that cost `forbidden_from` or more count as infeasible. closes(bound, cost): true
  /// if the bound proves that nothing beats the cost.
  SelectionBranch(const SelectionModel& model, const SelectionMemory& memory, double forbidden_from,
                  std::function<bool(double bound, double cost)> closes);

  /// Starts (again) with a bound, prices by slot and the states to search: a non-empty ascending
  /// list per node. Selections found before are kept.
  void start(double bound, std::span<const double> prices,
             const std::vector<std::vector<int32_t>>& states);
  bool started() const { return started_; }
  /// True if nothing is left to search, or too much to store.
  bool ended() const { return started_ && !now_ && (open_.empty() || full_); }

  /// Reports the cost of a feasible selection.
  void set_cost(double cost) { cost_ = std::min(cost_, cost); }
  /// Continues for about this many steps (as counted by SelectionDual::work()), or until `late`
  /// returns true. Returns the number of steps taken.
  double run(double steps, const std::function<bool()>& late = {});

  /// Lower bound on every selection that costs less than the smallest cost known. Infinite if the
  /// search has ended and no selection exists.
  double bound() const;
  /// Cost of the best selection found here; infinite if there is none.
  double best_cost() const { return best_cost_; }
  const std::vector<int32_t>& best_states() const { return best_states_; }

 private:
  using Lists = std::vector<std::vector<int32_t>>;
  struct Part {
    double bound = 0;
    int64_t number = 0;
    std::vector<bool> states;  ///< by first_ and state
    std::shared_ptr<const std::vector<double>> prices;
  };
  struct Work;
  struct Division {
    int32_t node = -1;
    double spread = 0;
    std::vector<bool> high;  ///< by state of the subproblem
  };

  void look(const std::function<bool()>& late);
  bool fit(Part& part, Lists& kept, std::optional<SelectionMemory>& memory) const;
  Lists lists(const Part& part) const;
  void mark(Part& part, const Lists& states) const;
  SelectionModel restrict(const Lists& kept) const;
  bool raise(Work& work, const std::function<bool()>& late);
  void offer(const Lists& kept, std::span<const int32_t> states);
  bool drop(Work& work);
  void offer_last(const Work& work);
  static Division divide(const Work& work);
  static void divide_by(const Work& work, int32_t v, const std::vector<double>& weight,
                        const float* part, Division& best);
  static Division divide_any(const Work& work);
  void branch(Work& work, const Division& division);
  void close(double bound) { closed_ = std::min(closed_, bound); }
  void keep(Part part);
  bool promises(double bound) const;
  bool next();

  const SelectionModel& model_;
  const SelectionMemory& memory_;
  double forbidden_from_;
  std::function<bool(double, double)> closes_;
  std::vector<size_t> first_;  // start of each node's states
  bool started_ = false, full_ = false;
  double steps_ = 0;
  int64_t parts_ = 0;
  double cost_ = std::numeric_limits<double>::infinity(), best_cost_ = cost_;
  double closed_ = cost_;  // minimum bound of discarded subproblems
  std::vector<int32_t> best_states_;
  std::optional<Part> now_;
  std::vector<Part> open_;  // a heap: lowest bound first
};

}  // namespace trinity
