#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "selection/selection_dual.h"
#include "selection/selection_net.h"

namespace trinity {

/// Rounds selections from a dual, with prices that rise wherever the last selection exceeded the
/// limit. Not thread-safe.
class SelectionRounding {
 public:
  explicit SelectionRounding(const SelectionNet& net);

  /// Rounds one more selection and keeps it if it is better: less excess, then less cost. Returns
  /// true if it was.
  bool attempt(SelectionDual& dual);

  bool has_states() const { return !best_.empty(); }
  const std::vector<int32_t>& states() const { return best_; }
  double cost() const { return cost_; }
  /// Sum over slots of usage above the limit.
  double excess() const { return excess_; }
  /// The last selection without excess; empty if there is none.
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
