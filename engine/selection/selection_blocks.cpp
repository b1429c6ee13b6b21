#include "selection/selection_blocks.h"

#include <algorithm>
#include <cmath>

#include "base/index.h"
#include "base/stop.h"

namespace trinity {

SelectionBlocks::SelectionBlocks(const SelectionNet& net, uint64_t seed, uint64_t index)
    : net_(net),
      random_(seed, "selection blocks", index),
      best_cost_(kInfinity),
      place_(at(net.nodes()), -1),
      tail_(at(net.memory().slots()) + 1, 0.0) {}

void SelectionBlocks::start(std::span<const int32_t> states) {
  states_.assign(states.begin(), states.end());
  changes_ = net_.memory().sum_changes(states_);
  cost_ = net_.model().cost(states_);
  int64_t worst = 0;
  excess_ = level_excess(worst);
  if (excess_ > 0 || cost_ >= best_cost_) return;
  best_cost_ = cost_;
  best_states_ = states_;
}

void SelectionBlocks::set_prices(std::span<const double> prices,
                                 std::span<const float> usage_costs) {
  prices_ = prices;
  usage_costs_ = usage_costs;
  mean_price_ = 0;
  for (const double price : prices) mean_price_ += price;
  mean_price_ /= std::max<double>(1.0, static_cast<double>(prices.size()));
}

void SelectionBlocks::run(double steps, double temperature, const std::function<bool()>& late) {
  const double largest = std::log2(std::max(4.0, static_cast<double>(net_.nodes())));
  for (steps_ = 0; steps_ < steps && !(late && late());) {
    poll_stop();
    const auto size = static_cast<int32_t>(std::exp2(1 + (largest - 1) * random_.uniform()));
    const auto factor = static_cast<float>(0.9 * std::exp2(2 * random_.uniform() - 1));
    try_block(size, factor, temperature);
    leave();
  }
}

void SelectionBlocks::try_block(int32_t size, float price_factor, double temperature) {
  constexpr int kRetries = 4;
  grow(size);
  if (block_.empty()) return;
  prepare(price_factor);
  int64_t worst = 0;
  if (excess_ > 0) {
    level_excess(worst);
    raise_prices(price_factor, worst, true);
  }
  for (int i = 0; i <= kRetries; ++i) {
    solve();
    if (!changed()) return;
    const double change = cost_change();
    if (change >= 0 && excess_ == 0 && temperature == 0) return;
    move(true);
    const double excess = level_excess(worst);
    steps_ += static_cast<double>(net_.memory().slots());
    if (accept(change, excess, temperature)) return;
    if (excess > 0 && i < kRetries) raise_prices(price_factor, worst, i == 0 && excess_ == 0);
    move(false);
    if (excess == 0) return;
  }
}

/// Accepts the selection found, whose usages are already in changes_, if it is good enough.
bool SelectionBlocks::accept(double change, double excess, double temperature) {
  const bool better = excess < excess_ || (excess == excess_ && change < 0);
  const bool worse_but_taken = excess == excess_ && temperature > 0 &&
                               random_.uniform() < std::exp(-std::max(0.0, change) / temperature);
  if (!better && !worse_but_taken) return false;
  for (size_t i = 0; i < block_.size(); ++i) states_[at(block_[i])] = next_[i];
  cost_ += change;
  excess_ = excess;
  if (excess_ > 0 || cost_ >= best_cost_) return true;
  best_cost_ = cost_ = net_.model().cost(states_);  // recomputed: sums of changes drift
  best_states_ = states_;
  return true;
}

/// Adds v to the block if the block stays a forest.
bool SelectionBlocks::join(int32_t v) {
  if (place_[at(v)] >= 0 || net_.states(v) < 2) return false;
  const auto links = net_.links(v);
  int32_t link = -1;
  steps_ += static_cast<double>(links.size());
  for (size_t i = 0; i < links.size(); ++i) {
    if (place_[at(links[i].other)] < 0) continue;
    if (link >= 0) return false;
    link = static_cast<int32_t>(i);
  }
  place_[at(v)] = static_cast<int32_t>(block_.size());
  parent_.push_back(link < 0 ? -1 : place_[at(links[at(link)].other)]);
  parent_link_.push_back(link);
  block_.push_back(v);
  for (const auto& other : links)
    if (place_[at(other.other)] < 0) frontier_.push_back(other.other);
  return true;
}

/// A random connected block of at most `size` nodes; several trees if one ends early.
void SelectionBlocks::grow(int32_t size) {
  const auto nodes = static_cast<uint64_t>(net_.nodes());
  int failures = 0;
  while (static_cast<int32_t>(block_.size()) < size && failures < 2 * size + 20) {
    int32_t v = 0;
    if (frontier_.empty()) {
      v = static_cast<int32_t>(random_.below(nodes));
    } else {
      const size_t i = random_.below(frontier_.size());
      v = frontier_[i];
      frontier_[i] = frontier_.back();
      frontier_.pop_back();
    }
    if (!join(v)) ++failures;
  }
  frontier_.clear();
  steps_ += failures;
}

void SelectionBlocks::leave() {
  for (const int32_t v : block_) place_[at(v)] = -1;
  block_.clear();
  parent_.clear();
  parent_link_.clear();
  steps_ += 1;
}

/// Costs of the block's nodes against the fixed rest.
void SelectionBlocks::prepare(float price_factor) {
  first_.clear();
  int64_t entries = 0;
  for (const int32_t v : block_) {
    first_.push_back(entries);
    entries += net_.width(v);
  }
  fixed_.resize(at(entries));
  priced_.assign(at(entries), 0.0f);
  for (size_t i = 0; i < block_.size(); ++i) {
    const int32_t v = block_[i], width = net_.width(v);
    float* fixed = fixed_.data() + first_[i];
    std::copy_n(net_.costs(v), width, fixed);
    for (const auto& link : net_.links(v)) {
      if (place_[at(link.other)] >= 0) continue;
      add(fixed, link.to_me + int64_t{states_[at(link.other)]} * width, width);
    }
    steps_ += static_cast<double>(net_.links(v).size()) * width;
    if (!net_.memory().matters(v)) continue;
    const float* costs = usage_costs_.data() + net_.first(v);
    for (int32_t s = 0; s < width; ++s) priced_[at(first_[i] + s)] = price_factor * costs[s];
  }
}

/// Dynamic programming from the leaves to the roots and back.
void SelectionBlocks::solve() {
  sum_.resize(fixed_.size());
  for (size_t i = 0; i < sum_.size(); ++i) sum_[i] = fixed_[i] + priced_[i];
  for (size_t i = block_.size(); i-- > 0;) {
    if (parent_[i] < 0) continue;
    const int32_t v = block_[i];
    const auto& link = net_.links(v)[at(parent_link_[i])];
    const int32_t width = net_.width(link.other);
    if (message_.size() < at(width)) message_.resize(at(width));
    min_plus(sum_.data() + first_[i], net_.states(v), link.to_other, width, message_.data());
    add(sum_.data() + first_[at(parent_[i])], message_.data(), width);
    steps_ += static_cast<double>(width) * net_.states(v);
  }
  next_.resize(block_.size());
  for (size_t i = 0; i < block_.size(); ++i) {
    const int32_t v = block_[i];
    float* sum = sum_.data() + first_[i];
    if (parent_[i] >= 0) {
      const auto& link = net_.links(v)[at(parent_link_[i])];
      add(sum, link.to_me + int64_t{next_[at(parent_[i])]} * net_.width(v), net_.width(v));
    }
    int32_t best = states_[at(v)];  // unchanged if nothing is better
    for (int32_t s = 0; s < net_.states(v); ++s)
      if (sum[s] < sum[best]) best = s;
    next_[i] = best;
  }
}

bool SelectionBlocks::changed() const {
  for (size_t i = 0; i < block_.size(); ++i)
    if (next_[i] != states_[at(block_[i])]) return true;
  return false;
}

/// Change of the cost from states_ to next_, in doubles.
double SelectionBlocks::cost_change() const {
  double change = 0;
  for (size_t i = 0; i < block_.size(); ++i) {
    const int32_t v = block_[i];
    const auto& cost = net_.model().nodes[at(v)].cost;
    if (next_[i] != states_[at(v)]) change += cost[at(next_[i])] - cost[at(states_[at(v)])];
    for (const auto& link : net_.links(v)) change += change_at(i, link);
  }
  return change;
}

/// The same for one edge, seen from the block's node i; an edge inside the block counts on one
/// side.
double SelectionBlocks::change_at(size_t i, const SelectionNet::Link& link) const {
  const int32_t v = block_[i], other = link.other, inside = place_[at(other)];
  if (inside >= 0 && other < v) return 0;
  const int32_t from = states_[at(v)], to = next_[i];
  const int32_t other_from = states_[at(other)];
  const int32_t other_to = inside >= 0 ? next_[at(inside)] : other_from;
  if (from == to && other_from == other_to) return 0;
  const auto& edge = net_.model().edges[at(link.edge)];
  const int64_t columns = net_.states(edge.v);
  const auto cost = [&](int64_t s, int64_t t) {
    return edge.table[at(edge.u == v ? s * columns + t : t * columns + s)];
  };
  return cost(to, other_to) - cost(from, other_from);
}

/// Moves the usages from states_ to next_, or back.
void SelectionBlocks::move(bool forward) {
  for (size_t i = 0; i < block_.size(); ++i) {
    const int32_t v = block_[i], now = states_[at(v)];
    if (now == next_[i]) continue;
    net_.memory().move(changes_, v, forward ? now : next_[i], forward ? next_[i] : now);
    steps_ += static_cast<double>(net_.memory().breakpoints(v).size());
  }
}

/// Sum of usages in changes_ above the limit; `worst` is the largest excess.
double SelectionBlocks::level_excess(int64_t& worst) const {
  const auto room = net_.memory().room();
  int64_t level = 0;
  double sum = 0;
  worst = 0;
  for (size_t t = 0; t < room.size(); ++t) {
    level += changes_[t];
    const int64_t excess = level - room[t];
    if (excess <= 0) continue;
    worst = std::max(worst, excess);
    sum += static_cast<double>(excess);
  }
  return sum;
}

/// Raises prices where the usages in changes_ exceed the limit, and applies them to the block.
/// `first` restarts from the given prices.
void SelectionBlocks::raise_prices(float price_factor, int64_t worst, bool first) {
  const auto room = net_.memory().room();
  // If all multipliers are zero: the usage of the worst excess, if it were everywhere, costs a
  // little.
  const double least =
      0.3 * mean_price_ + 1e-3 * (std::abs(cost_) + 1) /
                              (static_cast<double>(worst) * static_cast<double>(room.size()) + 1);
  if (first) {
    raised_.resize(prices_.size());
    for (size_t t = 0; t < prices_.size(); ++t) raised_[t] = price_factor * prices_[t];
  }
  int64_t level = 0;
  for (size_t t = 0; t < room.size(); ++t) {
    level += changes_[t];
    const int64_t excess = level - room[t];
    if (excess <= 0) continue;
    const double share = static_cast<double>(excess) / static_cast<double>(worst);
    raised_[t] = std::max(raised_[t], least) * (1.3 + share);
  }
  tail_.back() = 0;
  for (size_t t = room.size(); t-- > 0;) tail_[t] = tail_[t + 1] + raised_[t];
  for (size_t i = 0; i < block_.size(); ++i)
    if (net_.memory().matters(block_[i])) net_.price(block_[i], tail_, priced_.data() + first_[i]);
  steps_ += 3.0 * static_cast<double>(room.size()) + static_cast<double>(fixed_.size());
}

}  // namespace trinity
