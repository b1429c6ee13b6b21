#pragma once

#include <compare>
#include <limits>
#include <string>
#include <unordered_set>

#include "search/placement/placement_space.h"

namespace trinity {

/// Value of a placement; smaller is better. Ordered by memory excess first (0 if it fits), then by
/// value (the step time, or minus a reward).
struct Score {
  int64_t excess_memory_bytes = 0;  ///< 0 if it fits
  double value = 0;

  bool fits() const { return excess_memory_bytes <= 0; }
  auto operator<=>(const Score&) const = default;
};

/// An ask/tell search for placements: the loop, the budget and the reward may be elsewhere, also in
/// Lua:
///     while (budget left) {
///       auto trials = search.ask(what the budget allows);
///       if (there are none) break;
///       search.tell(scores of trials.placements);
///     }
///     search.best_placement(), search.best()
///
/// Budgets are counted by evaluations(): every placement returned counts one, even if its
/// simulation is cut short, and so does every critical-path analysis, a simulation that the search
/// runs itself. Some methods never ask for a placement twice; a repetition then costs nothing.
///
/// Deterministic: equal problem, options, scores and `most` give equal placements. Not thread-safe.
class Searcher {
 public:
  /// Keeps a reference to `space`, whose problem must outlive this object.
  explicit Searcher(const PlacementSpace& space) : space_(space) {}
  /// Asks for `starts` first, by default for all units on the first device. Throws ArgumentError
  /// for a start that does not fit the space.
  Searcher(const PlacementSpace& space, std::vector<Assignment> starts);
  virtual ~Searcher() = default;
  Searcher(const Searcher&) = delete;
  Searcher& operator=(const Searcher&) = delete;

  struct Trials {
    std::vector<std::vector<int32_t>> placements;  ///< [operator] device; at least one placement
    /// For values above this only the fact matters: the simulation may be rejected there. In the
    /// unit of the scores.
    double limit = std::numeric_limits<double>::infinity();
  };

  /// Returns at most `most` placements (at least 1) to be scored; fewer if the method works in
  /// smaller batches, none at the end of the search. Throws ArgumentError if the last ones were not
  /// scored.
  Trials ask(int32_t most);

  /// Reports the scores of the placements of the last ask(), in order. A rejected placement may
  /// have any value above the limit. Throws ArgumentError for a wrong number of scores or a score
  /// that is not finite.
  void tell(std::span<const Score> scores);

  /// Fraction of the time limit used, 0 to 1; to be set before ask() if evaluations are unlimited.
  /// Searches with a cooling schedule follow it, others ignore it.
  virtual void set_progress(double) {}

  const PlacementSpace& space() const { return space_; }
  int64_t evaluations() const { return evaluations_; }
  /// True if ask() has starts left.
  bool at_starts() const { return started_ < starts_.size(); }

  /// The best score reported; null before the first.
  const Score* best() const { return best_assignment_.empty() ? nullptr : &best_; }
  std::vector<int32_t> best_placement() const { return space_.placement(best_assignment_); }
  const Assignment& best_assignment() const { return best_assignment_; }

 protected:
  /// Fills `trials` with at most `most` assignments after the starts; leaves it empty at the end.
  virtual void propose(int32_t most, std::vector<Assignment>& trials) = 0;
  /// Processes the scores of the starts or trials of the last ask().
  virtual void learn(std::span<const Assignment> trials, std::span<const Score> scores) = 0;
  /// See Trials::limit; called after propose(), not for starts.
  virtual double limit() const { return std::numeric_limits<double>::infinity(); }

  void count_evaluation() { ++evaluations_; }
  /// Keeps the assignment if it is the best so far.
  void note(const Assignment& assignment, const Score& score);

 private:
  const PlacementSpace& space_;
  std::vector<Assignment> starts_, trials_;
  size_t started_ = 0;
  Assignment best_assignment_;
  Score best_;
  int64_t evaluations_ = 0;
};

}  // namespace trinity
