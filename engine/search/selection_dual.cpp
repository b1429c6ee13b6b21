#include "search/selection_dual.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/stop.h"

namespace trinity {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

size_t at(int64_t i) { return static_cast<size_t>(i); }

void add(float* __restrict sum, const float* __restrict values, int32_t width) {
  for (int32_t s = 0; s < width; ++s) sum[s] += values[s];
}

}  // namespace

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

/// Passes messages from every node to its later ones, in rising order or falling. Returns the bound
/// at the present prices, less their cost of the room.
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

/// Sends `scale` times the reduced costs of v on; returns what messages were lowered by.
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

/// Adds the usage of v's states, each as likely as its reduced cost says.
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
  constexpr double kLeastStep = 1e-5;
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

double SelectionDual::certified_bound() {
  if (!certify_) return certified_;
  certify_ = false;
  const auto& memory = net_.memory();
  std::vector<double> tail(best_prices_.size() + 1, 0.0);
  for (size_t t = best_prices_.size(); t-- > 0;) tail[t] = tail[t + 1] + best_prices_[t];
  Certificate sum{net_.model().constant, std::abs(net_.model().constant)};
  for (size_t t = 0; t < best_prices_.size(); ++t)
    sum.add(-best_prices_[t] * static_cast<double>(memory.room()[t]));
  std::vector<double> messages(at(net_.message_entries()), 0.0), cost;
  for (int32_t v = net_.nodes(); v-- > 0;) {
    cost = net_.model().nodes[at(v)].cost;
    const auto points = memory.breakpoints(v);
    for (int32_t s = 0; s < net_.states(v); ++s) {
      const auto changes = memory.changes(v, s);
      for (size_t i = 0; i < points.size(); ++i)
        cost[at(s)] += static_cast<double>(changes[i]) * tail[at(points[i])];
      for (const auto& link : net_.links(v))
        cost[at(s)] +=
            link.other > v ? messages[at(link.message + s)] : best_messages_[at(link.message + s)];
    }
    certify_node(v, cost, messages, sum);
  }
  constexpr double kRounding = 1e-13;
  certified_ = std::max(certified_, sum.value - kRounding * sum.size);
  return certified_;
}

/// Takes the least of `cost` into the sum and sends what is left of it to lower nodes.
void SelectionDual::certify_node(int32_t v, std::vector<double>& cost,
                                 std::vector<double>& messages, Certificate& sum) const {
  const double least = *std::min_element(cost.begin(), cost.end());
  sum.add(least);
  int ahead = 0, behind = 0;
  for (const auto& link : net_.links(v)) ++(link.other < v ? ahead : behind);
  const double scale = 1.0 / std::max({ahead, behind, 1});
  for (const auto& link : net_.links(v)) {
    if (link.other > v) continue;
    const float* from_lower = best_messages_.data() + link.message;
    const double* table = net_.model().edges[at(link.edge)].table.data();
    double* reply = messages.data() + link.reply;
    double lowest = kInfinity;
    for (int32_t t = 0; t < net_.states(link.other); ++t) {
      double message = kInfinity;
      for (size_t s = 0; s < cost.size(); ++s)
        message = std::min(message, scale * (cost[s] - least) - from_lower[s] + *table++);
      reply[t] = message;
      lowest = std::min(lowest, message);
    }
    for (int32_t t = 0; t < net_.states(link.other); ++t) reply[t] -= lowest;
    sum.add(lowest);
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
