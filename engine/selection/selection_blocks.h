#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/random.h"
#include "selection/selection_net.h"

namespace trinity {

/// Large neighbourhood search on a selection. A random set of nodes that induces a forest is
/// chosen, and dynamic programming finds the best states of all its nodes with the others fixed and
/// usages charged by Lagrange multipliers. If the result exceeds the limit, multipliers rise there
/// and the block is solved again, a few times. Improvements are accepted: less excess usage, then
/// less cost; also worse costs with probability exp(-(increase) / temperature).
///
/// Deterministic: equal seed, calls and arguments give equal selections. Not thread-safe.
class SelectionBlocks {
 public:
  SelectionBlocks(const SelectionNet& net, uint64_t seed, uint64_t index);

  /// Continues from a selection.
  void start(std::span<const int32_t> states);
  bool started() const { return !states_.empty(); }
  /// Prices by slot, and the resulting costs of usages by node and state. Both must outlive the
  /// search.
  void set_prices(std::span<const double> prices, std::span<const float> usage_costs);

  /// Tries blocks for about this many steps (additions and comparisons), or until `late` returns
  /// true.
  void run(double steps, double temperature, const std::function<bool()>& late = {});

  const std::vector<int32_t>& states() const { return states_; }
  double cost() const { return cost_; }
  /// Sum over slots of usage above the limit.
  double excess() const { return excess_; }

  /// Cost of the best selection without excess; infinite if there is none.
  double best_cost() const { return best_cost_; }
  const std::vector<int32_t>& best_states() const { return best_states_; }

 private:
  void try_block(int32_t size, float price_factor, double temperature);
  void grow(int32_t size);
  bool join(int32_t v);
  void leave();
  void prepare(float price_factor);
  void solve();
  bool changed() const;
  double cost_change() const;
  double change_at(size_t i, const SelectionNet::Link& link) const;
  void move(bool forward);
  double level_excess(int64_t& worst) const;
  void raise_prices(float price_factor, int64_t worst, bool first);
  bool accept(double change, double excess, double temperature);

  const SelectionNet& net_;
  RandomStream random_;
  double steps_ = 0;
  std::span<const double> prices_;
  std::span<const float> usage_costs_;
  double mean_price_ = 0;

  std::vector<int32_t> states_, best_states_;
  std::vector<int64_t> changes_;  // of usages, by slot
  double cost_ = 0, excess_ = 0, best_cost_;

  // The block: its nodes, parents before children.
  std::vector<int32_t> block_, parent_, parent_link_, place_;
  std::vector<int32_t> frontier_;
  std::vector<int64_t> first_;               // start of each node's states below
  // costs against fixed nodes; plus usages; plus children
  std::vector<float> fixed_, priced_, sum_;
  std::vector<float> message_;
  std::vector<int32_t> next_;  // states found
  std::vector<double> raised_, tail_;
};

}  // namespace trinity
