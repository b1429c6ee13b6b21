#include "selection/selection_rounding.h"

#include <algorithm>

#include "base/index.h"

namespace trinity {

SelectionRounding::SelectionRounding(const SelectionNet& net)
    : net_(net),
      prices_(at(net.memory().slots()), 0.0),
      tail_(prices_.size() + 1, 0.0),
      costs_(at(net.state_entries()), 0.0f),
      states_(at(net.nodes()), 0) {}

bool SelectionRounding::attempt(SelectionDual& dual) {
  if (fresh_) {
    prices_.assign(dual.prices().begin(), dual.prices().end());
    std::copy(dual.usage_costs().begin(), dual.usage_costs().end(), costs_.begin());
  }
  dual.round(costs_, states_);
  const auto changes = net_.memory().sum_changes(states_);
  const auto room = net_.memory().room();
  double excess = 0, mean = 0;
  int64_t level = 0;
  for (const double price : prices_) mean += price / static_cast<double>(prices_.size());
  for (size_t t = 0; t < room.size(); ++t) {
    level += changes[t];
    if (level <= room[t]) continue;
    excess += static_cast<double>(level - room[t]);
    prices_[t] = std::max(prices_[t], 0.3 * mean) * 1.1;
  }
  const bool better = keep(excess);
  if (excess == 0) latest_ = states_;
  fresh_ = excess == 0 || ++attempts_ % kMostRises == 0;
  if (!fresh_) price();
  return better;
}

bool SelectionRounding::keep(double excess) {
  if (excess > excess_) return false;
  const double cost = net_.model().cost(states_);
  if (excess == excess_ && cost >= cost_) return false;
  best_ = states_;
  cost_ = cost;
  excess_ = excess;
  return true;
}

void SelectionRounding::price() {
  for (size_t t = prices_.size(); t-- > 0;) tail_[t] = tail_[t + 1] + prices_[t];
  for (int32_t v = 0; v < net_.nodes(); ++v)
    if (net_.memory().matters(v)) net_.price(v, tail_, costs_.data() + net_.first(v));
}

}  // namespace trinity
