#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "selection/selection_dual.h"
#include "selection/selection_net.h"

namespace trinity {

/// Selections from a dual, at prices that rise wherever the last one broke the limit.
class SelectionRounding {
 public:
  explicit SelectionRounding(const SelectionNet& net);

  /// One more selection; kept if it is better: less excess, then less cost. Whether it was.
  bool attempt(SelectionDual& dual);

  bool has_states() const { return !best_.empty(); }
  const std::vector<int32_t>& states() const { return best_; }
  double cost() const { return cost_; }
  /// The sum over slots of what usages exceed the room by.
  double excess() const { return excess_; }
  /// The last one without excess; empty before there is any.
  const std::vector<int32_t>& latest() const { return latest_; }

 private:
  static constexpr int kMostRises = 100;

  bool keep(double excess);
  void price();

  const SelectionNet& net_;
  std::vector<double> prices_, tail_;
  std::vector<float> costs_;
  std::vector<int32_t> states_, best_, latest_;
  double cost_ = std::numeric_limits<double>::infinity(), excess_ = cost_;
  bool fresh_ = true;
  int attempts_ = 0;
};

}  // namespace trinity
