#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "selection/selection_net.h"

namespace trinity {

/// Lower bounds of a selection problem, and the prices and messages from which good selections are
/// rounded. Not thread-safe.
///
/// The limit is relaxed with one price per time slot (Lagrange multipliers). The rest is bounded by
/// sequential tree-reweighted message passing, TRW-S (Kolmogorov, IEEE PAMI 28(10), 2006), which is
/// exact on trees:
///
///     bound = min over selections of cost + sum_t m_t (usage_t - limit_t),  multipliers m_t >= 0
///
/// Multipliers ascend along (usage - limit) of soft choices, exp(-(reduced cost) / temperature)
/// each, with Polyak's step length (the distance to a target over the squared gradient). Without
/// progress for long, step and temperature shrink and the best prices are restored.
class SelectionDual {
 public:
  explicit SelectionDual(const SelectionNet& net);

  /// One forward and one backward sweep, then a step of the prices. Costs about work() steps.
  void iterate();
  double work() const { return work_; }
  /// True if further sweeps would gain almost nothing.
  bool converged() const { return converged_; }

  /// Starts from these prices, by slot, instead of zero.
  void start(std::span<const double> prices);
  /// Cost of a feasible selection: the target of the step length.
  void set_target(double cost) { target_ = cost; }

  /// Bound of the best sweep so far. Its backward half is repeated in doubles and holds for any
  /// messages of the forward half, so float rounding cannot invalidate it. An allowance for
  /// rounding, 1e-13 of the terms, is subtracted.
  double certified_bound();

  /// [node][state] (a vector of state_entries()): lower bound on feasible selections with that
  /// state. From the best messages, both halves repeated in doubles; as reliable as the bound.
  void state_bounds(std::vector<double>& bounds) const;

  /// The best messages so far, indexed as in SelectionNet::Link.
  const float* message(int64_t place) const { return best_messages_.data() + place; }
  /// The best prices so far, by slot.
  std::span<const double> prices() const { return best_prices_; }
  /// Costs of usages at the best prices, by node and state.
  std::span<const float> usage_costs() const { return best_costs_; }

  /// Chooses states one by one in node order, from the costs to earlier choices and the messages of
  /// later nodes; usages cost `usage_costs`, by node and state.
  void round(std::span<const float> usage_costs, std::span<int32_t> states);

 private:
  double sweep(bool forward, bool add_usage);
  double send(int32_t v, bool forward, float scale);
  void add_soft_usage(int32_t v, float least);
  /// A sum of bounds in doubles.
  struct Certificate {
    double value = 0, size = 0;
    void add(double term) {
      value += term;
      size += std::abs(term);
    }
    void add(const Certificate& other) {
      value += other.value;
      size += other.size;
    }
    /// Minus an allowance for rounding.
    double bound() const {
      constexpr double kRounding = 1e-13;
      return value - kRounding * size;
    }
  };
  Certificate priced_constant() const;
  std::vector<double> price_tails() const;
  void gather(int32_t v, const std::vector<double>& tail, const std::vector<double>& messages,
              std::vector<double>& cost) const;
  Certificate send_exactly(int32_t v, bool forward, const std::vector<double>& cost,
                           std::vector<double>& messages, std::vector<Certificate>* by_lower) const;
  void step_prices(double bound);
  void price_nodes();
  void keep(double bound);
  void retreat();

  const SelectionNet& net_;
  double work_ = 0, target_;
  double bound_, best_bound_, certified_;
  bool certify_ = false, converged_ = false;
  int stalled_ = 0, steps_ = 0;
  double step_ = 1;  // shrinks without progress
  double temperature_ = 0;
  std::vector<float> messages_, best_messages_;
  std::vector<float> costs_, best_costs_;  // of usages, by node and state
  std::vector<double> prices_, best_prices_;
  std::vector<double> usage_, gradient_;  // changes by slot; smoothed usage - limit
  std::vector<float> reduced_, outgoing_;
  std::vector<double> weight_;
};

}  // namespace trinity
