#include "simulator/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/index.h"
#include "base/stop.h"
#include "simulator/memory_bound.h"

namespace trinity {
namespace {

__extension__ typedef __int128 Wide;

int64_t ceil_divide(Wide value, Wide by) {
  TRINITY_CHECK_LT(Wide{0}, by);
  const Wide result = (value + by - 1) / by;
  if (result > std::numeric_limits<int64_t>::max())
    throw LimitError("a lower bound on the step exceeds the simulator's 64-bit clock; check the "
                     "units of bandwidths and times");
  return static_cast<int64_t>(result);
}

/// Equal devices, and the weight of their time. For any weights, a step T has a budget of T *
/// capacity.
struct DeviceClass {
  int32_t device = -1;  ///< one of them
  int64_t devices = 0;
  int64_t price = 1;
};

std::vector<DeviceClass> device_classes(const Problem& problem) {
  std::vector<DeviceClass> classes(problem.tables().first().size());
  for (int32_t d = problem.devices() - 1; d >= 0; --d) {
    auto& found = classes[problem.cost_class(d)];
    found.device = d;
    ++found.devices;
  }
  return classes;
}

Wide capacity(const std::vector<DeviceClass>& classes) {
  Wide sum = 0;
  for (const auto& c : classes) sum += Wide{c.devices} * c.price;
  return sum;
}

/// Cost of every colocation unit on every class, [unit * classes + class].
std::vector<int64_t> unit_costs(const Problem& problem, const std::vector<DeviceClass>& classes,
                                int32_t micro_batches, bool stream) {
  std::vector<int64_t> costs(at(problem.graph().unit_count()) * classes.size(), 0);
  const auto units = problem.graph().units();
  for (size_t k = 0; k < classes.size(); ++k) {
    poll_stop();
    const auto cost = problem.costs(classes[k].device);
    for (int32_t o = 0; o < problem.operators(); ++o) {
      auto& sum = costs[at(units[at(o)]) * classes.size() + k];
      int64_t all = 0;
      if (__builtin_mul_overflow(cost[o], !stream && problem.once(o) ? 1 : micro_batches, &all) ||
          __builtin_add_overflow(sum, all, &sum))
        throw LimitError("the work of a step exceeds the simulator's 64-bit clock; check the units "
                         "of bandwidths and times");
    }
  }
  return costs;
}

/// The bound at the classes' prices, exactly: every unit at its cheapest class.
int64_t price_of_work(const std::vector<int64_t>& costs, const std::vector<DeviceClass>& classes) {
  Wide sum = 0;
  for (size_t u = 0; u < costs.size(); u += classes.size()) {
    Wide least = Wide{classes[0].price} * costs[u];
    for (size_t k = 1; k < classes.size(); ++k)
      least = std::min(least, Wide{classes[k].price} * costs[u + k]);
    sum += least;
  }
  return ceil_divide(sum, capacity(classes));
}

/// The same in double precision for weights (weight times devices, summing to 1). `load` receives
/// the work per device of each class: the direction of steepest ascent of the bound.
double approximate_price(const std::vector<int64_t>& costs, const std::vector<DeviceClass>& classes,
                         const std::vector<double>& weight, std::vector<double>& load) {
  const size_t count = classes.size();
  std::vector<double> price(count);
  for (size_t k = 0; k < count; ++k) price[k] = weight[k] / static_cast<double>(classes[k].devices);
  std::fill(load.begin(), load.end(), 0);
  double sum = 0;
  for (size_t u = 0; u < costs.size(); u += count) {
    size_t cheapest = 0;
    double least = price[0] * static_cast<double>(costs[u]);
    for (size_t k = 1; k < count; ++k) {
      const double value = price[k] * static_cast<double>(costs[u + k]);
      if (value < least) {
        least = value;
        cheapest = k;
      }
    }
    sum += least;
    load[cheapest] += static_cast<double>(costs[u + cheapest]);
  }
  for (size_t k = 0; k < count; ++k) load[k] /= static_cast<double>(classes[k].devices);
  return sum;
}

void normalise(std::vector<double>& weight) {
  double sum = 0;
  for (const double w : weight) sum += w;
  for (double& w : weight) w /= sum;
}

/// Converts prices to integers, in units of 2^-40 of the largest.
void set_prices(const std::vector<double>& weight, std::vector<DeviceClass>& classes) {
  double largest = 0;
  for (size_t k = 0; k < classes.size(); ++k)
    largest = std::max(largest, weight[k] / static_cast<double>(classes[k].devices));
  for (size_t k = 0; k < classes.size(); ++k)
    classes[k].price =
        std::llround(0x1.0p40 * (weight[k] / static_cast<double>(classes[k].devices) / largest));
}

/// Sets the classes' prices to the best ones found and returns their bound. The initial prices,
/// inverse to mean costs, are exact for classes that differ only in speed; a multiplicative
/// subgradient ascent of fixed length improves them.
int64_t bound_work(const std::vector<int64_t>& costs, std::vector<DeviceClass>& classes) {
  constexpr int kSteps = 60;
  const size_t count = classes.size();
  if (count == 1) return price_of_work(costs, classes);
  std::vector<double> weight(count, 0), load(count);
  for (size_t i = 0; i < costs.size(); ++i) weight[i % count] += static_cast<double>(costs[i]);
  // a class does the work for free
  if (*std::min_element(weight.begin(), weight.end()) == 0) return 0;
  for (size_t k = 0; k < count; ++k)
    weight[k] = static_cast<double>(classes[k].devices) / weight[k];
  normalise(weight);
  const auto first = weight;
  auto best = weight;
  double best_value = -1, step = 1;
  for (int i = 0; i < kSteps; ++i, step *= 0.9) {
    poll_stop();
    const double value = approximate_price(costs, classes, weight, load);
    if (value > best_value) {
      best_value = value;
      best = weight;
    }
    const double largest = *std::max_element(load.begin(), load.end());
    if (largest == 0) break;
    for (size_t k = 0; k < count; ++k) weight[k] *= 1 + step * load[k] / largest;
    normalise(weight);
  }
  set_prices(first, classes);
  const int64_t first_bound = price_of_work(costs, classes);
  set_prices(best, classes);
  const int64_t best_bound = price_of_work(costs, classes);
  if (best_bound < first_bound) set_prices(first, classes);
  return std::max(first_bound, best_bound);
}

/// Longest path to the start of every operator in any micro-batch, at minimum costs, without
/// communication. Operators of every micro-batch cannot wait for operators that run in the last one
/// only.
std::vector<int64_t> earliest_starts(const Problem& problem, int32_t micro_batches) {
  std::vector<int64_t> earliest(at(problem.operators()), 0);
  for (int32_t o = 0; o < problem.operators(); ++o) {
    const int64_t end = earliest[o] + problem.least_cost_ns(o);
    for (const auto& reader : problem.readers(o)) {
      if (micro_batches > 1 && problem.once(o) && !problem.once(reader.op)) continue;
      auto& start = earliest[reader.op];
      start = std::max(start, end);
    }
  }
  return earliest;
}

/// At most `count` of the distinct values, ascending, equally spaced by rank, both ends included.
std::vector<int64_t> sample(std::vector<int64_t> values, size_t count) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.size() <= count) return values;
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < count; ++i)
    chosen.push_back(values[i * (values.size() - 1) / (count - 1)]);
  return chosen;
}

/// Fernandez and Bussell's bound over a grid of intervals [head, T - tail]. Every task starts at or
/// after its operator's earliest start e and ends before T minus its tail t. A task of cost c then
/// spends at least
///
///     min(c, e + c - head, t + c - tail, T - tail - head)
///
/// in the interval, whatever T: the overlap in its earliest or its latest position. The last term
/// matters only if the task covers both ends of the interval (otherwise a smaller T is below the
/// longest path); there the value at the T known so far replaces it. The remaining demand does not
/// depend on T, so one division gives the smallest sufficient T, without a bisection. On
/// heterogeneous devices demand is weighted as in Bounds::work_ns: a task counts for its cheapest
/// class.
class IntervalBound {
 public:
  IntervalBound(const Problem& problem, const std::vector<DeviceClass>& classes,
                int32_t micro_batches, int64_t known_ns)
      : problem_(problem), classes_(classes), micro_batches_(micro_batches), known_ns_(known_ns) {
    const size_t ends = problem.operators() <= 100000 ? 64 : 16;
    earliest_ = earliest_starts(problem, micro_batches);
    heads_ = sample(earliest_, ends);
    std::vector<int64_t> tails(at(problem.operators()));
    for (int32_t o = 0; o < problem.operators(); ++o) tails[o] = problem.tail_ns(o);
    tails_ = sample(std::move(tails), ends);
    for (auto* grid : {&inside_, &over_tail_, &over_head_, &over_both_})
      grid->assign(heads_.size() * tails_.size(), 0);
  }

  int64_t bound() {
    StopPoll stop;
    for (int32_t o = 0; o < problem_.operators(); ++o, stop.step())
      if (problem_.least_cost_ns(o) > 0) add(o, problem_.once(o) ? 1 : micro_batches_);
    accumulate();
    const Wide offered = capacity(classes_);
    int64_t best = known_ns_;
    for (size_t i = 0; i < heads_.size(); ++i)
      for (size_t j = 0; j < tails_.size(); ++j) {
        const Wide demand = inside_[cell(i, j)] + over_both_[cell(i, j)];
        if (demand > 0) best = std::max(best, heads_[i] + tails_[j] + ceil_divide(demand, offered));
      }
    return best;
  }

 private:
  size_t cell(size_t head, size_t tail) const { return head * tails_.size() + tail; }

  /// Weighted remainder of an operator after `cut` of its time, but of no more than `most`.
  Wide price(int32_t op, int64_t cut, int64_t most) const {
    Wide least = -1;
    for (const auto& c : classes_) {
      const int64_t inside = std::min(problem_.cost_ns(c.device, op) - cut, most);
      const Wide value = Wide{c.price} * inside;
      if (least < 0 || value < least) least = value;
    }
    return least;
  }

  /// Adds an operator's demand to every interval. If it crosses neither end of [i, j], it is also
  /// inside all wider intervals: accumulate() handles these.
  void add(int32_t op, int32_t tasks) {
    constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
    const int64_t start = earliest_[op], tail = problem_.tail_ns(op);
    const int64_t cost = problem_.least_cost_ns(op);
    const auto last_below = [](const std::vector<int64_t>& values, int64_t value) {
      return static_cast<size_t>(std::upper_bound(values.begin(), values.end(), value) -
                                 values.begin()) -
             1;
    };
    const size_t i = last_below(heads_, start), j = last_below(tails_, tail);
    inside_[cell(i, j)] += tasks * price(op, 0, kAll);
    for (size_t b = j + 1; b < tails_.size() && tails_[b] < tail + cost; ++b)
      over_tail_[cell(i, b)] += tasks * price(op, tails_[b] - tail, kAll);
    for (size_t a = i + 1; a < heads_.size() && heads_[a] < start + cost; ++a) {
      over_head_[cell(a, j)] += tasks * price(op, heads_[a] - start, kAll);
      for (size_t b = j + 1; b < tails_.size() && tails_[b] < tail + cost; ++b) {
        const int64_t cut = std::max(heads_[a] - start, tails_[b] - tail);
        const int64_t length = known_ns_ - heads_[a] - tails_[b];
        if (length > 0) over_both_[cell(a, b)] += tasks * price(op, cut, length);
      }
    }
  }

  void accumulate() {
    for (size_t i = heads_.size(); i-- > 0;)
      for (size_t j = tails_.size(); j-- > 0;) {
        const bool below = i + 1 < heads_.size(), right = j + 1 < tails_.size();
        if (below) over_tail_[cell(i, j)] += over_tail_[cell(i + 1, j)];
        if (right) over_head_[cell(i, j)] += over_head_[cell(i, j + 1)];
        if (below) inside_[cell(i, j)] += inside_[cell(i + 1, j)];
        if (right) inside_[cell(i, j)] += inside_[cell(i, j + 1)];
        if (below && right) inside_[cell(i, j)] -= inside_[cell(i + 1, j + 1)];
      }
    for (size_t k = 0; k < inside_.size(); ++k) over_both_[k] += over_tail_[k] + over_head_[k];
  }

  const Problem& problem_;
  const std::vector<DeviceClass>& classes_;
  int32_t micro_batches_;
  int64_t known_ns_;
  std::vector<int64_t> earliest_, heads_, tails_;
  std::vector<Wide> inside_, over_tail_, over_head_, over_both_;
};

int32_t fewest_devices(const Problem& problem) {
  int64_t fixed = 0;
  for (int32_t o = 0; o < problem.operators(); ++o) fixed += problem.fixed_bytes(o);
  std::vector<int64_t> capacities;
  capacities.reserve(at(problem.devices()));
  for (int32_t d = 0; d < problem.devices(); ++d)
    capacities.push_back(problem.cluster().capacity_bytes(d) - problem.framework_bytes(d));
  std::sort(capacities.rbegin(), capacities.rend());
  int32_t devices = 0;
  for (const int64_t bytes : capacities) {
    if (devices > 0 && fixed <= 0) break;
    fixed -= std::max<int64_t>(bytes, 0);
    ++devices;
  }
  return fixed > 0 ? devices + 1 : devices;
}

}  // namespace

Bounds lower_bounds(const Problem& problem, int32_t micro_batches, bool stream) {
  if (micro_batches < 1)
    throw ArgumentError("expected at least 1 micro-batch, got {}", micro_batches);
  Bounds bounds;
  for (int32_t o = 0; o < problem.operators() && !stream; ++o)
    bounds.critical_path_ns =
        std::max(bounds.critical_path_ns, problem.least_cost_ns(o) + problem.tail_ns(o));
  auto classes = device_classes(problem);
  bounds.work_ns = bound_work(unit_costs(problem, classes, micro_batches, stream), classes);
  const int64_t known = std::max(bounds.critical_path_ns, bounds.work_ns);
  if (!stream) bounds.interval_ns = IntervalBound(problem, classes, micro_batches, known).bound();
  bounds.step_time_ns = std::max(known, bounds.interval_ns);
  bounds.peak_memory_bytes = peak_memory_bound(problem, micro_batches, stream);
  bounds.least_devices = fewest_devices(problem);
  return bounds;
}

}  // namespace trinity
