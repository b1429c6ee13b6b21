#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "selection/selection_net.h"

namespace trinity {

/// Lower bounds of a selection problem, with the prices and messages that make good selections.
///
/// The limit is relaxed with a price per slot of time (Lagrange), the rest is bounded by sequential
/// tree-reweighted message passing, TRW-S (Kolmogorov, IEEE PAMI 28(10), 2006), which solves it on
/// trees:
///
///     bound = min over selections of cost + sum_t price_t (usage_t - room_t),  price >= 0
///
/// Prices climb along usage - room of soft choices, exp(-(reduced cost) / temperature) each, with
/// Polyak's step length (the distance to a target over the squared gradient); where nothing is
/// gained for long, step and temperature shrink and the best prices come back.
class SelectionDual {
 public:
  explicit SelectionDual(const SelectionNet& net);

  /// One sweep forwards and one backwards, then a step of the prices. Costs about work() steps.
  void iterate();
  double work() const { return work_; }
  /// Whether more sweeps would gain next to nothing.
  bool converged() const { return converged_; }

  /// Starts from such prices, by slot, not from none.
  void start(std::span<const double> prices);
  /// The cost of a feasible selection: what prices climb towards.
  void set_target(double cost) { target_ = cost; }

  /// The bound of the best sweep so far, whose backward half is repeated in doubles: it holds
  /// whatever messages the forward half left, so floats cannot spoil it. Less an allowance for
  /// rounding, 1e-13 of the terms.
  double certified_bound();

  /// By node and state (in a vector of state_entries()): no feasible selection with that state
  /// costs less. From the best messages, both halves repeated in doubles; as certain as the bound.
  void state_bounds(std::vector<double>& bounds) const;

  /// The best messages so far; SelectionNet::Link has places.
  const float* message(int64_t place) const { return best_messages_.data() + place; }
  /// The best prices so far, by slot.
  std::span<const double> prices() const { return best_prices_; }
  /// What usages cost at the best prices, by node and state.
  std::span<const float> usage_costs() const { return best_costs_; }

  /// Chooses states one by one in the order of nodes, by what earlier choices cost and messages say
  /// of later nodes; usages at `usage_costs`, by node and state.
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
    /// Less an allowance for rounding.
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
  double step_ = 1;  // shrinks where nothing is gained
  double temperature_ = 0;
  std::vector<float> messages_, best_messages_;
  std::vector<float> costs_, best_costs_;  // of usages, by node and state
  std::vector<double> prices_, best_prices_;
  std::vector<double> usage_, gradient_;  // changes by slot; smoothed usage - room
  std::vector<float> reduced_, outgoing_;
  std::vector<double> weight_;
};

}  // namespace trinity
