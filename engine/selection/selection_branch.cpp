#include "selection/selection_branch.h"

#include <algorithm>
#include <cmath>

#include "base/index.h"
#include "base/stop.h"
#include "selection/selection_dual.h"
#include "selection/selection_net.h"
#include "selection/selection_rounding.h"

namespace trinity {
namespace {

/// Order of the heap: ties in bounds go to the latest subproblem.
constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.bound != b.bound ? a.bound > b.bound : a.number < b.number;
};

/// Nodes with more than one state.
std::vector<int32_t> free_nodes(const std::vector<std::vector<int32_t>>& kept) {
  std::vector<int32_t> nodes;
  for (size_t v = 0; v < kept.size(); ++v)
    if (kept[v].size() > 1) nodes.push_back(static_cast<int32_t>(v));
  return nodes;
}

}  // namespace

/// The current subproblem. Its nodes are those with several remaining states.
struct SelectionBranch::Work {
  Work(Part from, Lists states, SelectionModel restricted, SelectionMemory left)
      : part(std::move(from)),
        kept(std::move(states)),
        nodes(free_nodes(kept)),
        model(std::move(restricted)),
        memory(std::move(left)),
        net(model, memory),
        dual(net),
        rounding(net) {}

  Part part;
  Lists kept;                  // by node of the problem
  std::vector<int32_t> nodes;  // indices in the problem
  SelectionModel model;
  SelectionMemory memory;
  SelectionNet net;
  SelectionDual dual;
  SelectionRounding rounding;
  std::vector<double> bounds;  // by state; infinite if dropped
  double scale = 0, heat = 0;  // heat: distance above the best of a likely state

  /// Likelihood of each state of v; 0 if dropped.
  std::vector<double> weights(int32_t v) const {
    const double* bound = bounds.data() + net.first(v);
    const double least = *std::min_element(bound, bound + net.states(v));
    std::vector<double> weight;
    for (int32_t s = 0; s < net.states(v); ++s)
      weight.push_back(bound[s] < kInfinity ? std::exp((least - bound[s]) / heat) : 0);
    return weight;
  }
};

SelectionBranch::SelectionBranch(const SelectionModel& model, const SelectionMemory& memory,
                                 double forbidden_from,
                                 std::function<bool(double bound, double cost)> closes)
    : model_(model),
      memory_(memory),
      forbidden_from_(forbidden_from),
      closes_(std::move(closes)),
      first_{0} {
  for (const auto& node : model.nodes) first_.push_back(first_.back() + at(node.states()));
}

void SelectionBranch::start(double bound, std::span<const double> prices, const Lists& states) {
  started_ = true;
  full_ = false;
  closed_ = kInfinity;
  open_.clear();
  now_.emplace();
  now_->bound = bound;
  mark(*now_, states);
  now_->prices = std::make_shared<const std::vector<double>>(prices.begin(), prices.end());
}

void SelectionBranch::mark(Part& part, const Lists& states) const {
  part.states.assign(first_.back(), false);
  for (size_t v = 0; v < states.size(); ++v)
    for (const int32_t s : states[v]) part.states[first_[v] + at(s)] = true;
}

double SelectionBranch::bound() const {
  double least = closed_;
  if (now_) least = std::min(least, now_->bound);
  if (!open_.empty()) least = std::min(least, open_.front().bound);
  return least;
}

double SelectionBranch::run(double steps, const std::function<bool()>& late) {
  for (steps_ = 0; steps_ < steps && !(late && late());) {
    poll_stop();
    if (!now_ && !next()) break;
    look(late);
  }
  return steps_;
}

/// Takes the subproblem with the lowest bound; false if there is none.
bool SelectionBranch::next() {
  constexpr size_t kMostBytes = size_t{1} << 29;
  const size_t bytes = first_.back() / 8 + 8 * at(memory_.slots());
  full_ = full_ || open_.size() * bytes > kMostBytes;
  if (open_.empty() || full_) return false;
  std::pop_heap(open_.begin(), open_.end(), kLater);
  now_ = std::move(open_.back());
  open_.pop_back();
  return true;
}

/// Closes or divides the present subproblem; keeps it if time runs out.
void SelectionBranch::look(const std::function<bool()>& late) {
  steps_ += static_cast<double>(first_.back());
  if (closes_(now_->bound, cost_)) {
    close(now_->bound);
    now_.reset();
    return;
  }
  std::optional<SelectionMemory> memory;
  Lists kept;
  if (!fit(*now_, kept, memory)) return now_.reset();
  auto model = restrict(kept);
  if (model.nodes.empty()) {
    offer(kept, {});
    return now_.reset();
  }
  Work work(*now_, std::move(kept), std::move(model), *std::move(memory));
  if (!raise(work, late)) return;
  now_.reset();
  if (closes_(work.part.bound, cost_)) return close(work.part.bound);
  if (!drop(work)) return;
  constexpr double kHeat = 0.02;
  work.scale = std::max(std::abs(std::isfinite(cost_) ? cost_ : work.part.bound), 1e-9);
  work.heat = kHeat * work.scale;
  auto division = divide(work);
  if (division.node < 0) division = divide_any(work);
  if (division.node >= 0) return branch(work, division);
  offer_last(work);  // one state per node is left
}

SelectionBranch::Lists SelectionBranch::lists(const Part& part) const {
  Lists kept(model_.nodes.size());
  for (size_t v = 0; v < kept.size(); ++v)
    for (size_t i = first_[v]; i < first_[v + 1]; ++i)
      if (part.states[i]) kept[v].push_back(static_cast<int32_t>(i - first_[v]));
  return kept;
}

/// Drops states that do not fit, until all do; false if the limit cannot be met.
bool SelectionBranch::fit(Part& part, Lists& kept, std::optional<SelectionMemory>& memory) const {
  kept = lists(part);
  for (bool changed = true; changed;) {
    changed = false;
    memory.emplace(memory_, kept);
    const auto room = memory->room();
    if (std::any_of(room.begin(), room.end(), [](int64_t left) { return left < 0; })) return false;
    const auto nodes = free_nodes(kept);
    for (size_t i = 0; i < nodes.size(); ++i) {
      auto& states = kept[at(nodes[i])];
      const auto fits =
          memory->fitting(static_cast<int32_t>(i), static_cast<int32_t>(states.size()));
      if (fits.size() == states.size()) continue;
      if (fits.empty()) return false;
      changed = true;
      for (size_t k = 0; k < fits.size(); ++k) states[k] = states[at(fits[k])];
      states.resize(fits.size());
    }
  }
  mark(part, kept);
  return true;
}

/// The model of nodes with several states; costs of the others are added to theirs.
SelectionModel SelectionBranch::restrict(const Lists& kept) const {
  SelectionModel model;
  model.constant = model_.constant;
  std::vector<int32_t> number(kept.size(), -1);
  for (size_t v = 0; v < kept.size(); ++v) {
    if (kept[v].size() == 1) {
      model.constant += model_.nodes[v].cost[at(kept[v][0])];
      continue;
    }
    number[v] = model.size();
    auto& cost = model.nodes.emplace_back().cost;
    for (const int32_t s : kept[v]) cost.push_back(model_.nodes[v].cost[at(s)]);
  }
  for (const auto& edge : model_.edges) {
    const auto &rows = kept[at(edge.u)], &columns = kept[at(edge.v)];
    const int32_t u = number[at(edge.u)], v = number[at(edge.v)];
    const size_t width = model_.nodes[at(edge.v)].cost.size();
    std::vector<double> table;
    table.reserve(rows.size() * columns.size());
    for (const int32_t s : rows)
      for (const int32_t t : columns) table.push_back(edge.table[at(s) * width + at(t)]);
    if (u >= 0 && v >= 0) {
      model.edges.push_back({u, v, std::move(table)});
    } else if (u < 0 && v < 0) {
      model.constant += table[0];
    } else {
      auto& cost = model.nodes[at(std::max(u, v))].cost;
      for (size_t s = 0; s < cost.size(); ++s) cost[s] += table[s];
    }
  }
  return model;
}

/// Raises the bound while progress is good; false if time runs out.
bool SelectionBranch::raise(Work& work, const std::function<bool()>& late) {
  constexpr int kMostSweeps = 200, kSweeps = 10;
  constexpr double kGain = 0.03;  // of the remaining gap, per this many sweeps
  auto& dual = work.dual;
  dual.start(*work.part.prices);
  double last = -kInfinity;
  for (int i = 0; i < kMostSweeps && !dual.converged(); ++i) {
    if (late && late()) return false;
    dual.set_target(cost_);
    dual.iterate();
    steps_ += dual.work();
    if (work.rounding.attempt(dual) && work.rounding.excess() == 0)
      offer(work.kept, work.rounding.states());
    if (i % kSweeps != kSweeps - 1) continue;
    const double bound = dual.certified_bound();
    steps_ += dual.work();
    if (closes_(bound, cost_)) break;
    const double missing = std::isfinite(cost_) ? cost_ - bound : 0.1 * std::abs(bound);
    if (i >= 2 * kSweeps && bound < last + kGain * missing) break;
    last = bound;
  }
  work.part.bound = std::max(work.part.bound, dual.certified_bound());
  return true;
}

/// Takes a selection, states of nodes that have several, if it fits and is the best so far.
void SelectionBranch::offer(const Lists& kept, std::span<const int32_t> states) {
  std::vector<int32_t> whole;
  size_t next = 0;  // of those with several states
  for (const auto& list : kept)
    whole.push_back(list.size() == 1 ? list[0] : list[at(states[next++])]);
  const double cost = model_.cost(whole);
  if (cost >= std::min(cost_, forbidden_from_)) return;
  const auto changes = memory_.sum_changes(whole);
  int64_t level = 0;
  for (size_t t = 0; t < memory_.room().size(); ++t) {
    level += changes[t];
    if (level > memory_.room()[t]) return;
  }
  cost_ = best_cost_ = cost;
  best_states_ = std::move(whole);
}

/// Offers the only remaining selection of a subproblem.
void SelectionBranch::offer_last(const Work& work) {
  std::vector<int32_t> states;
  for (int32_t v = 0; v < work.net.nodes(); ++v) {
    const double* bound = work.bounds.data() + work.net.first(v);
    states.push_back(
        static_cast<int32_t>(std::min_element(bound, bound + work.net.states(v)) - bound));
  }
  offer(work.kept, states);
}

/// Drops states that no better selection has; false if a node has none left.
bool SelectionBranch::drop(Work& work) {
  work.dual.state_bounds(work.bounds);
  steps_ += 4 * work.dual.work();
  for (size_t i = 0; i < work.nodes.size(); ++i) {
    const size_t v = at(work.nodes[i]);
    double* bounds = work.bounds.data() + work.net.first(static_cast<int32_t>(i));
    bool any = false;
    for (size_t k = 0; k < work.kept[v].size(); ++k) {
      bounds[k] = std::max(bounds[k], work.part.bound);
      if (closes_(bounds[k], cost_)) {
        close(bounds[k]);
        bounds[k] = kInfinity;
        work.part.states[first_[v] + at(work.kept[v][k])] = false;
      } else {
        any = true;
      }
    }
    if (!any) return false;
  }
  return true;
}

/// The division of the likely states of a node that separates most, over all nodes.
SelectionBranch::Division SelectionBranch::divide(const Work& work) {
  Division best;
  for (int32_t v = 0; v < work.net.nodes(); ++v) {
    const auto weight = work.weights(v);
    if (work.memory.matters(v))
      divide_by(work, v, weight, work.dual.usage_costs().data() + work.net.first(v), best);
    for (const auto& link : work.net.links(v))
      divide_by(work, v, weight, work.dual.message(link.message), best);
  }
  return best;
}

/// Divides the states of v at the mean of a part of their cost, if nothing divides more.
/// Differences above the minimum are capped at `scale`.
void SelectionBranch::divide_by(const Work& work, int32_t v, const std::vector<double>& weight,
                                const float* part, Division& best) {
  double least = kInfinity, total = 0, sum = 0, square = 0;
  for (size_t s = 0; s < weight.size(); ++s)
    if (weight[s] > 0) least = std::min<double>(least, part[s]);
  const auto above = [&](size_t s) { return std::min(part[s] - least, work.scale); };
  for (size_t s = 0; s < weight.size(); ++s) {
    if (!(weight[s] > 0)) continue;
    total += weight[s];
    sum += weight[s] * above(s);
    square += weight[s] * above(s) * above(s);
  }
  const double mean = sum / total;
  const double spread = std::sqrt(std::max(0.0, square / total - mean * mean));
  if (!(spread > 1e-6 * work.heat) || spread <= best.spread) return;
  best = {v, spread, {}};
  for (size_t s = 0; s < weight.size(); ++s) best.high.push_back(above(s) > mean);
}

/// Separates the best state from the others, at the node where most others are equally likely.
SelectionBranch::Division SelectionBranch::divide_any(const Work& work) {
  Division best;
  for (int32_t v = 0; v < work.net.nodes(); ++v) {
    const auto weight = work.weights(v);
    double total = 0;
    for (const double w : weight) total += w;
    if (total <= best.spread) continue;
    const auto first = std::max_element(weight.begin(), weight.end()) - weight.begin();
    bool others = false;
    for (size_t s = 0; s < weight.size(); ++s)
      others |=
          static_cast<ptrdiff_t>(s) != first && work.bounds[at(work.net.first(v)) + s] < kInfinity;
    if (!others) continue;
    best = {v, total, std::vector<bool>(weight.size(), true)};
    best.high[at(first)] = false;
  }
  return best;
}

void SelectionBranch::branch(Work& work, const Division& division) {
  const size_t v = at(work.nodes[at(division.node)]);
  const double* bound = work.bounds.data() + work.net.first(division.node);
  const auto prices = work.dual.prices();
  const auto shared = std::make_shared<const std::vector<double>>(prices.begin(), prices.end());
  Part halves[2] = {work.part, std::move(work.part)};
  for (int half = 0; half < 2; ++half) {
    auto& part = halves[half];
    part.prices = shared;
    part.number = ++parts_;
    double least = kInfinity;
    for (size_t k = 0; k < work.kept[v].size(); ++k) {
      if (division.high[k] == (half == 1))
        least = std::min(least, bound[k]);
      else
        part.states[first_[v] + at(work.kept[v][k])] = false;
    }
    part.bound = std::max(part.bound, least);
  }
  const int lower = halves[1].bound < halves[0].bound ? 1 : 0;
  keep(std::move(halves[1 - lower]));
  if (promises(halves[lower].bound))
    now_ = std::move(halves[lower]);
  else
    keep(std::move(halves[lower]));
}

void SelectionBranch::keep(Part part) {
  open_.push_back(std::move(part));
  std::push_heap(open_.begin(), open_.end(), kLater);
}

/// True if a subproblem is worth following to its end: its bound is near the overall bound.
bool SelectionBranch::promises(double bound) const {
  constexpr double kNear = 0.1;
  const double least = this->bound();
  return !std::isfinite(cost_) || bound <= least + kNear * (cost_ - least);
}

}  // namespace trinity
