#include "selection/selection_search.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/index.h"
#include "base/stop.h"
#include "selection/selection_blocks.h"
#include "selection/selection_branch.h"
#include "selection/selection_dual.h"
#include "selection/selection_rounding.h"
#include "selection/selection_window.h"

namespace trinity {
namespace {

/// Number of nodes from which blocks get the time before exact searches: on the contest's problem
/// K, windows in every other round cost 0.9 % in half a minute.
constexpr int32_t kLarge = 2000;

/// Gives forbidden pairs a finite cost that no selection without them reaches. Returns the minimum
/// cost plus half of it: only selections with a forbidden pair exceed that; infinity if nothing is
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

/// A job that improves selections: continues from its own, or from elsewhere when stuck.
class Climber {
 public:
  using Closes = std::function<bool(double bound, double cost)>;
  Climber(const SelectionNet& net, double forbidden_from, const Closes& closes, uint64_t seed,
          uint64_t index)
      : blocks_(net, seed, index),
        windows_(net, forbidden_from, closes, seed, index),
        large_(net.nodes() > kLarge) {}

  SelectionBlocks& blocks() { return blocks_; }
  const SelectionBlocks& blocks() const { return blocks_; }
  SelectionWindows& windows() { return windows_; }

  void start(const std::vector<int32_t>& states) {
    blocks_.start(states);
    note();
    stuck_ = 0;
  }

  /// A round of work. Without gain in the last rounds, every other one searches windows (unless the
  /// problem is large), and in between worse selections are accepted for a while, more so the
  /// longer there is no gain; then it continues from the best.
  void run(double steps, std::span<const double> prices, const std::function<bool()>& late) {
    if (!blocks_.started()) return;
    const bool stuck = stuck_ >= kPatience && blocks_.excess() == 0;
    if (stuck && !large_ && ++turns_ % 2 == 1) return windows_.run(steps, prices, late);
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
  SelectionWindows windows_;
  bool large_;
  int stuck_ = 0, kicks_ = 0, turns_ = 0;
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
        closes_([whole = options.whole](double bound, double cost) {
          return proves(bound, cost, whole);
        }),
        branch_(net.model(), net.memory(), forbidden_from, closes_),
        climbers_{{net, forbidden_from, closes_, options.seed, 0},
                  {net, forbidden_from, closes_, options.seed, 1}},
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
  static constexpr int kQuiet = 3;        // rounds, for a small problem
  static constexpr double kSlow = 0.002;  // of the bound, per round

  /// The first job raises the bound; once progress is slow, only in every other round. After prices
  /// have converged, branch and bound takes some rounds; on small problems all, and soon.
  void round() {
    const bool large = net_.nodes() > kLarge;
    const bool settled = dual_.converged() || (!large && quiet_ >= kQuiet);
    const bool branch = settled && !branch_.ended() && (!large || ++rounds_ % 2 == 0);
    const bool raise = !branch && !dual_.converged() && (!slow_ || ++rounds_ % 2 == 0);
    if (branch && !branch_.started()) branch_.start(found_.bound, prices_, all_states());
    pool_.parallel_for(2, [&](int item, int) {
      if (item == 0 && raise)
        raise_bound();
      else if (item == 0 && branch)
        branch_.run(steps_, late_);
      else
        climbers_[item].run(steps_, prices_, late_);
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

  bool go_on() const {
    if (found_.bound == kInfinity) return false;
    return !options_.go_on || options_.go_on(found_.cost, found_.bound);
  }

  /// Synchronisation of both jobs.
  void exchange() {
    const auto begin = std::chrono::steady_clock::now();
    const double bound = dual_.certified_bound();
    quiet_ = bound < found_.bound + kSlow * std::abs(found_.bound) ? quiet_ + 1 : 0;
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
    take_windows();
    take_branch();
    if (rounding_.latest().size() > 0 && found_.bound > started_at_ + restart_gain()) {
      started_at_ = found_.bound;
      climbers_[1].start(rounding_.latest());
    }
    dual_.set_target(found_.cost);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    exchange_s_ = std::max(exchange_s_, took.count());
  }
  std::vector<std::vector<int32_t>> all_states() const {
    std::vector<std::vector<int32_t>> states(at(net_.nodes()));
    for (int32_t v = 0; v < net_.nodes(); ++v)
      for (int32_t s = 0; s < net_.states(v); ++s) states[at(v)].push_back(s);
    return states;
  }
  /// Takes the result of the windows, and gives them the best selection.
  void take_windows() {
    for (auto& climber : climbers_)
      if (climber.windows().cost() < found_.cost)
        take(climber.windows().states(), climber.windows().cost());
    if (!found_.states.empty())
      for (auto& climber : climbers_) climber.windows().improve_on(found_.states, found_.cost);
  }
  void take_branch() {
    if (!branch_.started()) return;
    if (branch_.best_cost() < found_.cost) take(branch_.best_states(), branch_.best_cost());
    branch_.set_cost(found_.cost);
    found_.bound = std::max(found_.bound, std::min(branch_.bound(), found_.cost));
  }
  /// Adopts a better selection, also for the climbers.
  void take(const std::vector<int32_t>& states, double cost) {
    found_.cost = cost;
    found_.states = states;
    for (auto& climber : climbers_) climber.start(states);
  }
  /// Increase of the bound after which its selections are worth a restart.
  double restart_gain() const { return 0.005 * std::abs(found_.bound); }

  /// Adopts a rounded selection if it is better than the climber's.
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
  SelectionRounding rounding_;
  Climber::Closes closes_;
  SelectionBranch branch_;
  Climber climbers_[2];
  double exchange_s_ = 0;  // of the longest synchronisation
  std::function<bool()> late_;
  std::vector<double> prices_;
  std::vector<float> usage_costs_;
  double steps_ = 5e6, started_at_ = -kInfinity;
  bool slow_ = false;
  int64_t rounds_ = 0;
  int quiet_ = 0;
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
