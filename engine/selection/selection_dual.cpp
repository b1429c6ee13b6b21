#include "selection/selection_dual.h"

#include <algorithm>
#include <cmath>

#include "base/index.h"
#include "base/stop.h"

namespace trinity {

SelectionDual::SelectionDual(const SelectionNet& net)
    : net_(net),
      target_(kInfinity),
      bound_(-kInfinity),
      best_bound_(-kInfinity),
      certified_(-kInfinity),
      messages_(at(net.message_entries()), 0.0f),
      costs_(at(net.state_entries()), 0.0f),
      best_costs_(costs_),
      prices_(at(net.memory().slots()), 0.0),
      best_prices_(prices_),
      usage_(at(net.memory().slots()) + 1, 0.0),
      gradient_(prices_) {
  int32_t widest = 4;
  for (int32_t v = 0; v < net.nodes(); ++v) {
    widest = std::max(widest, net.width(v));
    work_ += static_cast<double>(net.memory().breakpoints(v).size()) * net.states(v) * 2;
    for (const auto& link : net.links(v))
      work_ += static_cast<double>(net.states(v)) * net.width(link.other) + 3 * net.width(v);
  }
  work_ += 8.0 * net.memory().slots();
  reduced_.resize(at(widest));
  outgoing_.resize(at(widest));
  weight_.resize(at(widest));
}

void SelectionDual::iterate() {
  sweep(true, false);
  double bound = net_.model().constant + sweep(false, net_.memory().slots() > 0);
  const auto room = net_.memory().room();
  for (size_t t = 0; t < prices_.size(); ++t) bound -= prices_[t] * static_cast<double>(room[t]);
  keep(bound);
  if (prices_.empty() || converged_) return;
  step_prices(bound);
  price_nodes();
}

/// Passes messages from every node to its later ones, in ascending or descending order. Returns the
/// bound at the present prices, minus their cost of the limit.
double SelectionDual::sweep(bool forward, bool add_usage) {
  if (add_usage) std::fill(usage_.begin(), usage_.end(), 0.0);
  double bound = 0;
  const int32_t nodes = net_.nodes();
  for (int32_t i = 0; i < nodes; ++i) {
    if ((i & 1023) == 0) poll_stop();
    const int32_t v = forward ? i : nodes - 1 - i;
    const int32_t width = net_.width(v);
    float* reduced = reduced_.data();
    std::copy_n(net_.costs(v), width, reduced);
    add(reduced, costs_.data() + net_.first(v), width);
    int ahead = 0, behind = 0;
    for (const auto& link : net_.links(v)) {
      add(reduced, messages_.data() + link.message, width);
      ++(forward == (link.other > v) ? ahead : behind);
    }
    const float least = *std::min_element(reduced, reduced + net_.states(v));
    bound += least;
    for (int32_t s = 0; s < width; ++s) reduced[s] -= least;
    if (add_usage && net_.memory().matters(v)) add_soft_usage(v, 0.0f);
    if (ahead > 0) bound += send(v, forward, 1.0f / static_cast<float>(std::max(ahead, behind)));
  }
  return bound;
}

/// Sends `scale` times the reduced costs of v; returns the decrease of the messages.
double SelectionDual::send(int32_t v, bool forward, float scale) {
  const int32_t width = net_.width(v);
  double lowered = 0;
  for (const auto& link : net_.links(v)) {
    if (forward != (link.other > v)) continue;
    const float* message = messages_.data() + link.message;
    for (int32_t s = 0; s < width; ++s) outgoing_[at(s)] = reduced_[at(s)] * scale - message[s];
    float* reply = messages_.data() + link.reply;
    const int32_t other_width = net_.width(link.other);
    min_plus(outgoing_.data(), net_.states(v), link.to_other, other_width, reply);
    const float least = *std::min_element(reply, reply + net_.states(link.other));
    for (int32_t s = 0; s < other_width; ++s) reply[s] -= least;
    lowered += least;
  }
  return lowered;
}

/// Adds the usage of v's states, weighted by their likelihoods.
void SelectionDual::add_soft_usage(int32_t v, float least) {
  const int32_t states = net_.states(v);
  double total = 0;
  for (int32_t s = 0; s < states; ++s) {
    const double above = reduced_[at(s)] - least;
    weight_[at(s)] = temperature_ > 0 ? std::exp(-above / temperature_) : (above <= 0 ? 1.0 : 0.0);
    total += weight_[at(s)];
  }
  const auto points = net_.memory().breakpoints(v);
  for (int32_t s = 0; s < states; ++s) {
    const double share = weight_[at(s)] / total;
    if (share < 1e-4) continue;
    const auto changes = net_.memory().changes(v, s);
    for (size_t i = 0; i < points.size(); ++i)
      usage_[at(points[i])] += share * static_cast<double>(changes[i]);
  }
}

void SelectionDual::keep(double bound) {
  constexpr double kGain = 1e-5;  // of the bound: less counts as stalled
  bound_ = bound;
  const bool first = best_bound_ == -kInfinity;
  stalled_ = !first && bound <= best_bound_ + kGain * std::abs(best_bound_) ? stalled_ + 1 : 0;
  if (bound > best_bound_) {
    best_bound_ = bound;
    best_messages_ = messages_;
    best_prices_ = prices_;
    best_costs_ = costs_;
    certify_ = true;
  }
  constexpr int kPatience = 40;
  if (stalled_ > kPatience) retreat();
}

void SelectionDual::retreat() {
  constexpr double kLeastStep = 1e-3;
  stalled_ = 0;
  step_ *= 0.7;
  if (prices_.empty() || step_ < kLeastStep) converged_ = true;
  prices_ = best_prices_;
  costs_ = best_costs_;
  messages_ = best_messages_;
  bound_ = best_bound_;
}

void SelectionDual::step_prices(double bound) {
  constexpr double kHeat = 0.1;  // temperature, in costs of an average node
  const double scale = std::max(std::abs(bound), 1e-9);
  temperature_ = kHeat * step_ * scale / net_.nodes();
  const auto room = net_.memory().room();
  double level = 0, square = 0;
  for (size_t t = 0; t < prices_.size(); ++t) {
    level += usage_[t];
    const double excess = level - static_cast<double>(room[t]);
    gradient_[t] = steps_ == 0 ? excess : 0.5 * gradient_[t] + 0.5 * excess;
    if (prices_[t] > 0 || gradient_[t] > 0) square += gradient_[t] * gradient_[t];
  }
  ++steps_;
  if (square == 0) return;
  const double gap = std::clamp(target_ - bound, 0.001 * scale, 0.05 * scale);
  const double length = step_ * gap / square;
  for (size_t t = 0; t < prices_.size(); ++t)
    prices_[t] = std::max(0.0, prices_[t] + length * gradient_[t]);
}

void SelectionDual::price_nodes() {
  std::vector<double> tail(prices_.size() + 1, 0.0);
  for (size_t t = prices_.size(); t-- > 0;) tail[t] = tail[t + 1] + prices_[t];
  for (int32_t v = 0; v < net_.nodes(); ++v)
    if (net_.memory().matters(v)) net_.price(v, tail, costs_.data() + net_.first(v));
}

void SelectionDual::start(std::span<const double> prices) {
  prices_.assign(prices.begin(), prices.end());
  price_nodes();
  best_prices_ = prices_;
  best_costs_ = costs_;
}

std::vector<double> SelectionDual::price_tails() const {
  std::vector<double> tail(best_prices_.size() + 1, 0.0);
  for (size_t t = best_prices_.size(); t-- > 0;) tail[t] = tail[t + 1] + best_prices_[t];
  return tail;
}

/// Cost common to all selections at the best prices.
SelectionDual::Certificate SelectionDual::priced_constant() const {
  Certificate sum;
  sum.add(net_.model().constant);
  for (size_t t = 0; t < best_prices_.size(); ++t)
    sum.add(-best_prices_[t] * static_cast<double>(net_.memory().room()[t]));
  return sum;
}

/// Costs of v's states including charged usages and all messages to v.
void SelectionDual::gather(int32_t v, const std::vector<double>& tail,
                           const std::vector<double>& messages, std::vector<double>& cost) const {
  cost = net_.model().nodes[at(v)].cost;
  const auto points = net_.memory().breakpoints(v);
  for (int32_t s = 0; s < net_.states(v); ++s) {
    const auto changes = net_.memory().changes(v, s);
    for (size_t i = 0; i < points.size(); ++i)
      cost[at(s)] += static_cast<double>(changes[i]) * tail[at(points[i])];
    for (const auto& link : net_.links(v)) cost[at(s)] += messages[at(link.message + s)];
  }
}

/// Sends `cost` minus its minimum to later nodes, or to lower ones. Returns the total decrease of
/// the messages, and adds it to `by_lower` at the lower end of each edge.
SelectionDual::Certificate SelectionDual::send_exactly(int32_t v, bool forward,
                                                       const std::vector<double>& cost,
                                                       std::vector<double>& messages,
                                                       std::vector<Certificate>* by_lower) const {
  const double least = *std::min_element(cost.begin(), cost.end());
  int later = 0, lower = 0;
  for (const auto& link : net_.links(v)) ++(link.other > v ? later : lower);
  const double scale = 1.0 / std::max({later, lower, 1});
  std::vector<double> own(cost.size());
  Certificate lowered;
  for (const auto& link : net_.links(v)) {
    if (forward != (link.other > v)) continue;
    for (size_t s = 0; s < cost.size(); ++s)
      own[s] = scale * (cost[s] - least) - messages[at(link.message) + s];
    const double* table = net_.model().edges[at(link.edge)].table.data();
    const size_t others = at(net_.states(link.other));
    const std::span reply(messages.data() + link.reply, others);
    std::fill(reply.begin(), reply.end(), kInfinity);
    if (forward) {
      for (size_t s = 0; s < own.size(); ++s, table += others)
        for (size_t t = 0; t < others; ++t) reply[t] = std::min(reply[t], own[s] + table[t]);
    } else {
      for (size_t t = 0; t < others; ++t, table += own.size())
        for (size_t s = 0; s < own.size(); ++s) reply[t] = std::min(reply[t], own[s] + table[s]);
    }
    const double lowest = *std::min_element(reply.begin(), reply.end());
    for (double& message : reply) message -= lowest;
    lowered.add(lowest);
    if (by_lower) (*by_lower)[at(std::min(v, link.other))].add(lowest);
  }
  return lowered;
}

double SelectionDual::certified_bound() {
  if (!certify_) return certified_;
  certify_ = false;
  const auto tail = price_tails();
  auto sum = priced_constant();
  std::vector<double> messages(best_messages_.begin(), best_messages_.end()), cost;
  for (int32_t v = net_.nodes(); v-- > 0;) {
    gather(v, tail, messages, cost);
    sum.add(*std::min_element(cost.begin(), cost.end()));
    sum.add(send_exactly(v, false, cost, messages, nullptr));
  }
  certified_ = std::max(certified_, sum.bound());
  return certified_;
}

/// Let F be the messages of a forward sweep and B the messages of a backward sweep after it. With
/// nodes before v bounded by the first and nodes after v by the second, the remainder is the cost
/// of v plus F from before and B from after it. An edge counts where its lower end was bounded.
void SelectionDual::state_bounds(std::vector<double>& bounds) const {
  const auto tail = price_tails();
  std::vector<double> messages(best_messages_.begin(), best_messages_.end()), cost;
  std::vector<Certificate> before(at(net_.nodes()) + 1), edges(at(net_.nodes()));
  before[0] = priced_constant();
  for (int32_t v = 0; v < net_.nodes(); ++v) {
    gather(v, tail, messages, cost);
    before[at(v) + 1] = before[at(v)];
    before[at(v) + 1].add(*std::min_element(cost.begin(), cost.end()));
    before[at(v) + 1].add(send_exactly(v, true, cost, messages, nullptr));
  }
  Certificate after;
  bounds.assign(at(net_.state_entries()), kInfinity);
  for (int32_t v = net_.nodes(); v-- > 0;) {
    gather(v, tail, messages, cost);
    after.add(edges[at(v)]);
    auto rest = before[at(v)];
    rest.add(after);
    for (int32_t s = 0; s < net_.states(v); ++s) {
      auto sum = rest;
      sum.add(cost[at(s)]);
      bounds[at(net_.first(v) + s)] = sum.bound();
    }
    after.add(*std::min_element(cost.begin(), cost.end()));
    send_exactly(v, false, cost, messages, &edges);
  }
}

void SelectionDual::round(std::span<const float> usage_costs, std::span<int32_t> states) {
  for (int32_t v = 0; v < net_.nodes(); ++v) {
    const int32_t width = net_.width(v);
    float* cost = reduced_.data();
    std::copy_n(net_.costs(v), width, cost);
    add(cost, usage_costs.data() + net_.first(v), width);
    for (const auto& link : net_.links(v))
      add(cost,
          link.other > v ? messages_.data() + link.message
                         : link.to_me + int64_t{states[at(link.other)]} * width,
          width);
    states[at(v)] = static_cast<int32_t>(std::min_element(cost, cost + net_.states(v)) - cost);
  }
}

}  // namespace trinity
