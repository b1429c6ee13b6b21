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

/// Branch and bound on a selection: what SelectionDual leaves open, because usages come in lumps
/// that no price divides and because its trees disagree on cycles.
///
/// A part of the problem is a set of states for every node. It is made smaller by the limit (states
/// that do not fit beside the least of the others), bounded by a dual of its own, which begins with
/// its parent's prices and is rounded on the way, and loses the states that no better selection can
/// have. Then the states of one node are divided in two: at the mean of what divides the likely
/// ones most, in cost: their usages, or the messages of one neighbour. The search follows the half
/// of lower bound to its end, then goes on with the part of lowest bound.
///
/// Deterministic: the same calls give the same selections and bounds. A model's forbidden pairs
/// must be finite.
class SelectionBranch {
 public:
  /// Selections that cost `forbidden_from` or more count as infeasible. `closes` says whether a
  /// bound proves that nothing beats a cost.
  SelectionBranch(const SelectionModel& model, const SelectionMemory& memory, double forbidden_from,
                  std::function<bool(double bound, double cost)> closes);

  /// Begins (again) with a bound, prices by slot and the states to search: a list of some for every
  /// node, in rising order. What was found is kept.
  void start(double bound, std::span<const double> prices,
             const std::vector<std::vector<int32_t>>& states);
  bool started() const { return started_; }
  /// Whether nothing is left to search, or too much to keep.
  bool ended() const { return started_ && !now_ && (open_.empty() || full_); }

  /// Tells it of a feasible selection's cost.
  void set_cost(double cost) { cost_ = std::min(cost_, cost); }
  /// Goes on for about so many steps (as SelectionDual::work() counts them), or until `late` says
  /// that time is over. Returns how many it took.
  double run(double steps, const std::function<bool()>& late = {});

  /// No selection that costs less than the least cost known costs less than this. Infinite where
  /// the search has ended and there is none at all.
  double bound() const;
  /// The best selection found here; infinite cost while there is none.
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
    std::vector<bool> high;  ///< by state of the part
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
  std::vector<size_t> first_;  // of each node's states
  bool started_ = false, full_ = false;
  double steps_ = 0;
  int64_t parts_ = 0;
  double cost_ = std::numeric_limits<double>::infinity(), best_cost_ = cost_;
  double closed_ = cost_;  // the least bound of what was given up as no better
  std::vector<int32_t> best_states_;
  std::optional<Part> now_;
  std::vector<Part> open_;  // a heap: the lowest bound first
};

}  // namespace trinity
