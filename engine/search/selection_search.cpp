#include "search/selection_search.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/stop.h"
#include "search/selection_blocks.h"
#include "search/selection_dual.h"

namespace trinity {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

size_t at(int64_t i) { return static_cast<size_t>(i); }

/// Gives forbidden pairs a cost that no selection without them reaches. Returns half of it above
/// the least cost: what selections with a forbidden pair, and only these, pass; infinity if none is
/// forbidden.
double soften(SelectionModel& model) {
  double least = model.constant, most = model.constant;
  bool any = false;
  const auto add_range = [&](const std::vector<double>& costs) {
    double low = kInfinity, high = -kInfinity;
    for (const double cost : costs) {
      low = std::min(low, cost);
      if (cost < kInfinity) high = std::max(high, cost);
      any |= cost == kInfinity;
    }
    if (low == kInfinity) return;  // all are forbidden
    least += low;
    most += high;
  };
  for (const auto& node : model.nodes) add_range(node.cost);
  for (const auto& edge : model.edges) add_range(edge.table);
  if (!any) return kInfinity;
  const double penalty = 4 * (most - least) + 1;
  for (auto& edge : model.edges)
    for (double& cost : edge.table)
      if (cost == kInfinity) cost = penalty;
  return least + penalty / 2;
}

/// Selections from a dual, at prices that rise wherever the last one broke the limit.
class Rounding {
 public:
  explicit Rounding(const SelectionNet& net)
      : net_(net),
        prices_(at(net.memory().slots()), 0.0),
        tail_(prices_.size() + 1, 0.0),
        costs_(at(net.state_entries()), 0.0f),
        states_(at(net.nodes()), 0) {}

  /// One more selection; kept if it is better: less excess, then less cost.
  void attempt(SelectionDual& dual) {
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
    keep(excess);
    if (excess == 0) latest_ = states_;
    fresh_ = excess == 0 || ++attempts_ % kMostRises == 0;
    if (!fresh_) price();
  }

  bool has_states() const { return !best_.empty(); }
  const std::vector<int32_t>& states() const { return best_; }
  double cost() const { return cost_; }
  double excess() const { return excess_; }
  /// The last one without excess; empty before there is any.
  const std::vector<int32_t>& latest() const { return latest_; }

 private:
  static constexpr int kMostRises = 100;

  void keep(double excess) {
    if (excess > excess_) return;
    const double cost = net_.model().cost(states_);
    if (excess == excess_ && cost >= cost_) return;
    best_ = states_;
    cost_ = cost;
    excess_ = excess;
  }
  void price() {
    for (size_t t = prices_.size(); t-- > 0;) tail_[t] = tail_[t + 1] + prices_[t];
    for (int32_t v = 0; v < net_.nodes(); ++v)
      if (net_.memory().matters(v)) net_.price(v, tail_, costs_.data() + net_.first(v));
  }

  const SelectionNet& net_;
  std::vector<double> prices_, tail_;
  std::vector<float> costs_;
  std::vector<int32_t> states_, best_, latest_;
  double cost_ = kInfinity, excess_ = kInfinity;
  bool fresh_ = true;
  int attempts_ = 0;
};

/// One of the jobs that improve selections: goes on from its own, and from elsewhere when stuck.
class Climber {
 public:
  Climber(const SelectionNet& net, uint64_t seed, uint64_t index) : blocks_(net, seed, index) {}

  SelectionBlocks& blocks() { return blocks_; }
  const SelectionBlocks& blocks() const { return blocks_; }

  void start(const std::vector<int32_t>& states) {
    blocks_.start(states);
    note();
    stuck_ = 0;
  }

  /// A round of work. Where the last ones gained nothing, worse selections are taken for a round,
  /// the more the longer nothing is gained, and from the best it goes on.
  void run(double steps, const std::function<bool()>& late) {
    if (!blocks_.started()) return;
    const bool stuck = stuck_ >= kPatience && blocks_.excess() == 0;
    if (stuck) {
      if (blocks_.cost() > blocks_.best_cost()) blocks_.start(blocks_.best_states());
      const double heat = std::exp2(-static_cast<double>(kicks_++ % kHeats));
      blocks_.run(0.1 * steps, heat * kHeat * std::abs(blocks_.cost()), late);
      note();
    }
    blocks_.run(stuck ? 0.9 * steps : steps, 0, late);
    const bool gained = blocks_.excess() < excess_ || blocks_.cost() < cost_ * (1 - kGain);
    stuck_ = gained ? 0 : stuck_ + 1;
    note();
  }

 private:
  static constexpr int kPatience = 2, kHeats = 8;
  static constexpr double kHeat = 1e-3;  // of the cost
  static constexpr double kGain = 1e-6;

  void note() {
    excess_ = blocks_.excess();
    cost_ = blocks_.cost();
  }

  SelectionBlocks blocks_;
  int stuck_ = 0, kicks_ = 0;
  double excess_ = 0, cost_ = 0;
};

class Search {
 public:
  Search(const SelectionNet& net, double forbidden_from, const SelectionSearchOptions& options,
         ThreadPool& pool)
      : net_(net),
        forbidden_from_(forbidden_from),
        options_(options),
        pool_(pool),
        dual_(net),
        rounding_(net),
        climbers_{{net, options.seed, 0}, {net, options.seed, 1}},
        late_([this] { return options_.seconds_left && options_.seconds_left() < exchange_s_; }) {}

  SelectionFound run() {
    try {
      dual_.iterate();
      rounding_.attempt(dual_);
      exchange();
      for (int64_t i = 0; i < options_.rounds && go_on(); ++i) {
        round();
        exchange();
      }
    } catch (const Interrupted&) {
      found_.stopped = true;
      exchange();
    }
    if (found_.states.empty()) found_.states = climbers_[0].blocks().states();
    if (found_.states.empty()) found_.states.assign(at(net_.nodes()), 0);
    return found_;
  }

 private:
  static constexpr double kMostSteps = 1e8;
  static constexpr double kSlow = 0.002;  // of the bound, a round

  /// The first job raises the bound; once that goes slowly, every other round only.
  void round() {
    const bool raise = !dual_.converged() && (!slow_ || ++rounds_ % 2 == 0);
    pool_.parallel_for(2, [&](int item, int) {
      if (item == 0 && raise)
        raise_bound();
      else
        climbers_[item].run(steps_, late_);
    });
    steps_ = std::min(kMostSteps, steps_ * 1.5);
  }

  void raise_bound() {
    for (double done = 0; done < steps_ && !dual_.converged(); done += dual_.work()) {
      if (late_()) return;
      dual_.iterate();
      rounding_.attempt(dual_);
    }
  }

  bool go_on() const { return !options_.go_on || options_.go_on(found_.cost, found_.bound); }

  /// Where both jobs meet.
  void exchange() {
    const auto begin = std::chrono::steady_clock::now();
    const double bound = dual_.certified_bound();
    if (bound > found_.bound) slow_ = bound < found_.bound + kSlow * std::abs(found_.bound);
    found_.bound = std::max(found_.bound, bound);
    prices_.assign(dual_.prices().begin(), dual_.prices().end());
    usage_costs_.assign(dual_.usage_costs().begin(), dual_.usage_costs().end());
    for (auto& climber : climbers_) {
      auto& blocks = climber.blocks();
      blocks.set_prices(prices_, usage_costs_);
      take_rounded(climber);
      if (blocks.best_cost() < found_.cost && blocks.best_cost() < forbidden_from_) {
        found_.cost = blocks.best_cost();
        found_.states = blocks.best_states();
      }
    }
    if (rounding_.latest().size() > 0 && found_.bound > started_at_ + restart_gain()) {
      started_at_ = found_.bound;
      climbers_[1].start(rounding_.latest());
    }
    dual_.set_target(found_.cost);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    exchange_s_ = std::max(exchange_s_, took.count());
  }
  /// How far the bound must have risen for its selections to be worth a new start.
  double restart_gain() const { return 0.005 * std::abs(found_.bound); }

  /// Takes a rounded selection over where it is better than what the climber has.
  void take_rounded(Climber& climber) {
    if (!rounding_.has_states()) return;
    const auto& blocks = climber.blocks();
    const bool better = !blocks.started() || rounding_.excess() < blocks.excess() ||
                        (rounding_.excess() == 0 && rounding_.cost() < blocks.best_cost());
    if (better) climber.start(rounding_.states());
  }

  const SelectionNet& net_;
  double forbidden_from_;
  const SelectionSearchOptions& options_;
  ThreadPool& pool_;
  SelectionDual dual_;
  Rounding rounding_;
  Climber climbers_[2];
  double exchange_s_ = 0;  // of the longest meeting
  std::function<bool()> late_;
  std::vector<double> prices_;
  std::vector<float> usage_costs_;
  double steps_ = 5e6, started_at_ = -kInfinity;
  bool slow_ = false;
  int64_t rounds_ = 0;
  SelectionFound found_;
};

}  // namespace

bool proves(double bound, double cost, bool whole) {
  if (!(cost < kInfinity)) return false;
  const double rounding = 1e-12 * std::abs(cost);
  return whole ? bound > cost - 1 + rounding + 1e-6 : bound >= cost - rounding;
}

SelectionFound search_selection(SelectionModel& model, const SelectionMemory& memory,
                                const SelectionSearchOptions& options, ThreadPool& pool) {
  const double forbidden_from = soften(model);
  const SelectionNet net(model, memory);
  return Search(net, forbidden_from, options, pool).run();
}

}  // namespace trinity
