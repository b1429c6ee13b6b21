#pragma once

#include <compare>
#include <limits>
#include <string>
#include <unordered_set>

#include "search/placement/placement_space.h"

namespace trinity {

/// What a placement is worth: the smaller the better. One that fits comes before one that does not,
/// a smaller excess before a larger one, then the smaller value (the step time, or minus a reward).
struct Score {
  int64_t excess_memory_bytes = 0;  ///< 0 when it fits
  double value = 0;

  bool fits() const { return excess_memory_bytes <= 0; }
  auto operator<=>(const Score&) const = default;
};

/// A search that is asked for placements and told their scores, so that the loop, the budget and
/// the reward may live elsewhere (in Lua too):
///
///     while (budget left) {
///       auto trials = search.ask(what the budget allows);
///       if (there are none) break;
///       search.tell(scores of trials.placements);
///     }
///     search.best_placement(), search.best()
///
/// Equal budgets count evaluations(): every placement handed out counts one, however fast its
/// simulation was cut short, and so does every look, a simulation that the search runs itself to
/// see why its present placement takes long. A placement handed out before is not asked for again
/// by the methods that say so; then it costs nothing.
///
/// Deterministic: the same problem, options, scores and `most` give the same placements.
class Searcher {
 public:
  /// Keeps a reference to `space`, whose problem must outlive this.
  explicit Searcher(const PlacementSpace& space) : space_(space) {}
  /// Asks for `starts` first; where there are none, for everything on device 1. Throws
  /// ArgumentError for one that does not fit the space.
  Searcher(const PlacementSpace& space, std::vector<Assignment> starts);
  virtual ~Searcher() = default;
  Searcher(const Searcher&) = delete;
  Searcher& operator=(const Searcher&) = delete;

  struct Trials {
    std::vector<std::vector<int32_t>> placements;  ///< device of every operator; at least one
    /// Of a placement whose value is larger than this, only that it is larger will matter: its
    /// simulation may be rejected there. In the unit of the scores told.
    double limit = std::numeric_limits<double>::infinity();
  };

  /// At most `most` placements (at least 1) to be scored; fewer where the method works in smaller
  /// batches, none when nothing is left to try. Throws ArgumentError when the last ones were not
  /// told.
  Trials ask(int32_t most);

  /// The scores of the placements last asked for, in their order. A rejected placement may have any
  /// value above the limit. Throws ArgumentError for another number of scores or one that is no
  /// finite number.
  void tell(std::span<const Score> scores);

  /// How much of a wall-clock budget is used, 0 to 1, before ask(): where evaluations have no end,
  /// searches that cool down go by this. Others ignore it.
  virtual void set_progress(double) {}

  const PlacementSpace& space() const { return space_; }
  int64_t evaluations() const { return evaluations_; }
  /// Whether ask() has starts left to ask for.
  bool at_starts() const { return started_ < starts_.size(); }

  /// The best of all told; null before the first.
  const Score* best() const { return best_assignment_.empty() ? nullptr : &best_; }
  std::vector<int32_t> best_placement() const { return space_.placement(best_assignment_); }
  const Assignment& best_assignment() const { return best_assignment_; }

 protected:
  /// Fills `trials` with at most `most` assignments after the starts; leaves it empty at the end.
  virtual void propose(int32_t most, std::vector<Assignment>& trials) = 0;
  /// Takes the scores of the starts or trials last asked for.
  virtual void learn(std::span<const Assignment> trials, std::span<const Score> scores) = 0;
  /// See Trials::limit; asked after propose(), not for starts.
  virtual double limit() const { return std::numeric_limits<double>::infinity(); }

  void count_evaluation() { ++evaluations_; }
  /// Keeps the assignment where it is the best so far.
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
