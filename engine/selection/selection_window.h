#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/random.h"
#include "selection/selection_branch.h"
#include "selection/selection_net.h"

namespace trinity {

/// Improves a selection by exact search of windows: some nodes are free, all others keep their
/// states, and SelectionBranch finds the best within the limit. Thus several nodes can change
/// together when none could change alone. A window is a ball in the graph, or several whose centers
/// begin to use memory at about the same time; it grows while searches complete.
///
/// Deterministic: equal seed, calls and arguments give equal selections. Not thread-safe.
class SelectionWindows {
 public:
  SelectionWindows(const SelectionNet& net, double forbidden_from,
                   std::function<bool(double bound, double cost)> closes, uint64_t seed,
                   uint64_t index);

  /// Continues from a feasible selection if it is better than the present one.
  void improve_on(std::span<const int32_t> states, double cost);
  /// Tries windows for about this many steps, or until `late` returns true. `prices` are by slot.
  void run(double steps, std::span<const double> prices, const std::function<bool()>& late = {});

  double cost() const { return cost_; }
  const std::vector<int32_t>& states() const { return states_; }

 private:
  void open(std::span<const double> prices);
  void choose();
  void add_ball(int32_t center, size_t size);
  bool add(int32_t v);
  void close();

  const SelectionNet& net_;
  SelectionBranch branch_;
  RandomStream random_;
  std::vector<int32_t> able_;                // nodes with more than one state
  std::vector<std::vector<int32_t>> users_;  // by slot: nodes of able_ that begin to use it
  std::vector<int32_t> states_;
  double cost_;
  std::vector<int32_t> window_;
  std::vector<char> inside_;
  double size_ = 8, left_ = 0;
  bool open_ = false;
};

}  // namespace trinity
