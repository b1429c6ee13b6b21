#include "selection/selection_window.h"

#include <algorithm>
#include <limits>

#include "base/index.h"
#include "base/stop.h"

namespace trinity {

SelectionWindows::SelectionWindows(const SelectionNet& net, double forbidden_from,
                                   std::function<bool(double bound, double cost)> closes,
                                   uint64_t seed, uint64_t index)
    : net_(net),
      branch_(net.model(), net.memory(), forbidden_from, std::move(closes)),
      random_(seed, "selection windows", index),
      users_(at(net.memory().slots())),
      cost_(std::numeric_limits<double>::infinity()),
      inside_(at(net.nodes()), 0) {
  for (int32_t v = 0; v < net.nodes(); ++v) {
    if (net.states(v) < 2) continue;
    able_.push_back(v);
    for (const int32_t t : net.memory().breakpoints(v))
      if (t < net.memory().slots()) users_[at(t)].push_back(v);
  }
}

void SelectionWindows::improve_on(std::span<const int32_t> states, double cost) {
  if (cost >= cost_) return;
  cost_ = cost;
  states_.assign(states.begin(), states.end());
  open_ = false;
}

void SelectionWindows::run(double steps, std::span<const double> prices,
                           const std::function<bool()>& late) {
  if (states_.empty() || able_.empty()) return;
  const double whole = static_cast<double>(net_.state_entries());
  while (steps > 0 && !(late && late())) {
    poll_stop();
    if (!open_) open(prices);
    const double now = std::min(steps, left_);
    const double used = std::max(branch_.run(now, late), whole);
    steps -= used;
    left_ -= used;
    if (branch_.ended() || left_ <= 0) close();
  }
}

/// Starts the search of a window.
void SelectionWindows::open(std::span<const double> prices) {
  constexpr double kBudget = 1e8;  // steps: a fraction of a second
  choose();
  std::vector<std::vector<int32_t>> states(at(net_.nodes()));
  for (size_t v = 0; v < states.size(); ++v) {
    if (!inside_[v]) states[v] = {states_[v]};
    for (int32_t s = 0; inside_[v] && s < net_.states(static_cast<int32_t>(v)); ++s)
      states[v].push_back(s);
  }
  branch_.set_cost(cost_);
  branch_.start(-std::numeric_limits<double>::infinity(), prices, states);
  left_ = kBudget;
  open_ = true;
}

void SelectionWindows::choose() {
  for (const int32_t v : window_) inside_[at(v)] = 0;
  window_.clear();
  const size_t size = std::min(able_.size(), static_cast<size_t>(size_));
  const auto any = [&](const std::vector<int32_t>& nodes) {
    return nodes[random_.below(nodes.size())];
  };
  const uint64_t kind = random_.below(3);
  if (kind == 0 || users_.empty()) return add_ball(any(able_), size);
  // Several balls, of nodes that begin to use memory at about the same time.
  const size_t balls = kind == 1 ? 2 : std::max<size_t>(2, size / 4);
  const auto slot = random_.below(users_.size());
  for (size_t ball = 1; ball <= balls; ++ball) {
    const auto& users = users_[std::min(users_.size() - 1, slot + random_.below(8))];
    add_ball(any(users.empty() ? able_ : users), std::max<size_t>(1, size * ball / balls));
  }
}

bool SelectionWindows::add(int32_t v) {
  if (inside_[at(v)] || net_.states(v) < 2) return false;
  inside_[at(v)] = 1;
  window_.push_back(v);
  return true;
}

/// Adds a node and random neighbours, until the window has `size` nodes.
void SelectionWindows::add_ball(int32_t center, size_t size) {
  const size_t begin = window_.size();
  if (window_.size() >= size || !add(center)) return;
  for (size_t failures = 0; window_.size() < size && failures < 4 * size;) {
    const int32_t v = window_[begin + random_.below(window_.size() - begin)];
    const auto links = net_.links(v);
    if (links.empty() || !add(links[random_.below(links.size())].other)) ++failures;
  }
}

/// Takes the result of a window's search.
void SelectionWindows::close() {
  const bool ended = branch_.ended();
  open_ = false;
  if (branch_.best_cost() < cost_) {
    cost_ = branch_.best_cost();
    states_ = branch_.best_states();
  }
  const auto most = static_cast<double>(able_.size());
  size_ = ended ? std::min(1.1 * size_, most) : std::max(4.0, 0.7 * size_);
}

}  // namespace trinity
