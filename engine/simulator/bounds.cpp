#include "simulator/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/stop.h"

namespace trinity {
namespace {

__extension__ typedef __int128 Wide;

size_t at(int32_t i) { return static_cast<size_t>(i); }

int64_t ceil_divide(Wide value, Wide by) {
  TRINITY_CHECK_LT(Wide{0}, by);
  const Wide result = (value + by - 1) / by;
  if (result > std::numeric_limits<int64_t>::max())
    throw LimitError("a lower bound on the step exceeds the simulator's 64-bit clock");
  return static_cast<int64_t>(result);
}

/// Equal devices, and the price of a device's time in them. Whatever the prices, a step T has
/// T * capacity of them to spend.
struct DeviceClass {
  int32_t device = -1;  ///< one of them
  int64_t devices = 0;
  int64_t price = 1;
};

std::vector<DeviceClass> device_classes(const Problem& problem) {
  std::vector<DeviceClass> classes(at(problem.cost_classes()));
  for (int32_t d = problem.devices() - 1; d >= 0; --d) {
    auto& found = classes[at(problem.cost_class(d))];
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
      if (__builtin_mul_overflow(cost[at(o)], !stream && problem.once(o) ? 1 : micro_batches,
                                 &all) ||
          __builtin_add_overflow(sum, all, &sum))
        throw LimitError("the work of a step exceeds the simulator's 64-bit clock");
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

/// The same in double precision at weights (price times devices, summing to 1). `load` gets the
/// work of each class per device, the direction in which the bound grows fastest.
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

/// Prices as integers, in units of 2^-40 of the largest.
void set_prices(const std::vector<double>& weight, std::vector<DeviceClass>& classes) {
  double largest = 0;
  for (size_t k = 0; k < classes.size(); ++k)
    largest = std::max(largest, weight[k] / static_cast<double>(classes[k].devices));
  for (size_t k = 0; k < classes.size(); ++k)
    classes[k].price =
        std::llround(0x1.0p40 * (weight[k] / static_cast<double>(classes[k].devices) / largest));
}

/// Sets the classes' prices to the best found and returns their bound. The first prices, inverse to
/// mean costs, are exact for classes that differ by a speed; a multiplicative subgradient ascent
/// of fixed length improves them.
int64_t bound_work(const std::vector<int64_t>& costs, std::vector<DeviceClass>& classes) {
  constexpr int kSteps = 60;
  const size_t count = classes.size();
  if (count == 1) return price_of_work(costs, classes);
  std::vector<double> weight(count, 0), load(count);
  for (size_t i = 0; i < costs.size(); ++i) weight[i % count] += static_cast<double>(costs[i]);
  if (*std::min_element(weight.begin(), weight.end()) == 0) return 0;  // a class does it for free
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

/// Longest path to the start of every operator in any micro-batch, at least costs, wires free. What
/// runs every micro-batch cannot wait for what runs in the last one only.
std::vector<int64_t> earliest_starts(const Problem& problem, int32_t micro_batches) {
  std::vector<int64_t> earliest(at(problem.operators()), 0);
  for (int32_t o = 0; o < problem.operators(); ++o) {
    const int64_t end = earliest[at(o)] + problem.least_cost_ns(o);
    for (const auto& reader : problem.readers(o)) {
      if (micro_batches > 1 && problem.once(o) && !problem.once(reader.op)) continue;
      auto& start = earliest[at(reader.op)];
      start = std::max(start, end);
    }
  }
  return earliest;
}

/// At most `count` of the distinct values, ascending, evenly spaced by rank, both ends among them.
std::vector<int64_t> sample(std::vector<int64_t> values, size_t count) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.size() <= count) return values;
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < count; ++i)
    chosen.push_back(values[i * (values.size() - 1) / (count - 1)]);
  return chosen;
}

/// Fernandez and Bussell's bound over a grid of intervals [head, T - tail]. Every task starts at
/// its operator's earliest start e or later, and ends before T minus its tail t. A task of cost c
/// then spends at least
///     min(c, e + c - head, t + c - tail, T - tail - head)
/// in the interval, whatever T: the overlap in its earliest or in its latest position. The last
/// term matters only when the task reaches over both ends of the interval (in the other cases a T
/// below it is below the longest path), and is replaced there by its value at the T known so far.
/// What is left does not depend on T, so the least T that offers the demand is had by one division
/// instead of a bisection. On unequal devices demand is priced as in Bounds::work_ns: a task pays
/// for its cheapest class.
class IntervalBound {
 public:
  IntervalBound(const Problem& problem, const std::vector<DeviceClass>& classes,
                int32_t micro_batches, int64_t known_ns)
      : problem_(problem), classes_(classes), micro_batches_(micro_batches), known_ns_(known_ns) {
    const size_t ends = problem.operators() <= 100000 ? 64 : 16;
    earliest_ = earliest_starts(problem, micro_batches);
    heads_ = sample(earliest_, ends);
    std::vector<int64_t> tails(at(problem.operators()));
    for (int32_t o = 0; o < problem.operators(); ++o) tails[at(o)] = problem.tail_ns(o);
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

  /// Price of what is left of an operator after `cut` of its time, but of no more than `most`.
  Wide price(int32_t op, int64_t cut, int64_t most) const {
    Wide least = -1;
    for (const auto& c : classes_) {
      const int64_t inside = std::min(problem_.cost_ns(c.device, op) - cut, most);
      const Wide value = Wide{c.price} * inside;
      if (least < 0 || value < least) least = value;
    }
    return least;
  }

  /// Adds an operator's demand to every interval. One that reaches over neither end of [i, j] lies
  /// inside all wider intervals too: accumulate() spreads these.
  void add(int32_t op, int32_t tasks) {
    constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
    const int64_t start = earliest_[at(op)], tail = problem_.tail_ns(op);
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

/// Bytes that a tensor takes on the device of an operator that reads it, at least: its own, or,
/// where it is a view, those of what it views. `storage` gets the tensor viewed in the end.
int64_t least_bytes(const Problem& problem, const std::vector<int32_t>& producers, int32_t output,
                    int32_t& storage) {
  int64_t bytes = problem.held_bytes()[at(output)];
  storage = output;
  for (;;) {
    const int32_t op = producers[at(storage)];
    if (problem.first_output(op) != storage || problem.alias(op) < 0) return bytes;
    storage = problem.alias(op);
    bytes = std::min(bytes, problem.held_bytes()[at(storage)]);
  }
}

/// What an operator holds while it runs, wherever it and its inputs are: workspace, inputs (views
/// of one tensor once), outputs (a view of an input takes nothing).
class OperatorMemory {
 public:
  explicit OperatorMemory(const Problem& problem) : problem_(problem) {
    producers_.resize(at(problem.outputs()));
    for (int32_t o = 0; o < problem.operators(); ++o)
      for (int32_t i = problem.first_output(o); i < problem.first_output(o + 1); ++i)
        producers_[at(i)] = o;
  }

  int64_t bytes(int32_t op) {
    const auto& graph = problem_.graph();
    int64_t sum = graph.op(op).collective < 0 ? problem_.workspace_bytes(op) : 0;
    for (int32_t i = problem_.first_output(op); i < problem_.first_output(op + 1); ++i)
      if (i != problem_.first_output(op) || problem_.alias(op) < 0)
        sum += problem_.held_bytes()[at(i)];
    if (problem_.rules().broadcast) return sum;  // only the first receiver holds the copy
    inputs_.clear();
    for (const int32_t tensor : graph.op(op).inputs) {
      const int32_t producer = graph.tensor(tensor).producer;
      const int32_t number = tensor - graph.op(producer).outputs.front();
      Input input;
      input.bytes = least_bytes(problem_, producers_, problem_.first_output(producer) + number,
                                input.storage);
      inputs_.push_back(input);
    }
    std::sort(inputs_.begin(), inputs_.end(), [](const Input& a, const Input& b) {
      return a.storage != b.storage ? a.storage < b.storage : a.bytes > b.bytes;
    });
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (i == 0 || inputs_[i].storage != inputs_[i - 1].storage) sum += inputs_[i].bytes;
    return sum;
  }

 private:
  struct Input {
    int32_t storage = -1;
    int64_t bytes = 0;
  };
  const Problem& problem_;
  std::vector<int32_t> producers_;  // of every output
  std::vector<Input> inputs_;
};

int64_t bound_slots(const Problem& problem) {
  std::vector<int64_t> unit_fixed(at(problem.graph().unit_count()), 0);
  const auto units = problem.graph().units();
  int64_t fixed = 0;
  for (int32_t o = 0; o < problem.operators(); ++o) {
    fixed += problem.fixed_bytes(o);
    unit_fixed[at(units[at(o)])] += problem.fixed_bytes(o);
  }
  int64_t most = (fixed + problem.devices() - 1) / problem.devices();
  OperatorMemory memory(problem);
  for (int32_t o = 0; o < problem.operators(); ++o)
    most = std::max(most, unit_fixed[at(units[at(o)])] + memory.bytes(o));
  return most;
}

/// The published rules release a tensor 1 us before its last reader ends, even where that is before
/// it was allocated. Such a release cannot hide the outputs of an operator of 1 us or more, because
/// it comes after that operator's start; where no operator can release so early all count.
int64_t bound_outputs(const Problem& problem) {
  constexpr int64_t kEarlyNs = 1000;
  bool early = false;
  int64_t all = 0, of_long_ones = 0;
  for (int32_t o = 0; o < problem.operators(); ++o) {
    int64_t bytes = 0, reader_ns = 0;
    for (int32_t i = problem.first_output(o); i < problem.first_output(o + 1); ++i)
      bytes += problem.all_output_bytes()[at(i)];
    for (const auto& reader : problem.readers(o))
      reader_ns = std::max(reader_ns, problem.least_cost_ns(reader.op));
    const int64_t cost = problem.least_cost_ns(o);
    early = early || (!problem.readers(o).empty() && bytes > 0 && cost + reader_ns < kEarlyNs);
    all = std::max(all, bytes);
    if (cost >= kEarlyNs) of_long_ones = std::max(of_long_ones, bytes);
  }
  return early ? of_long_ones : all;
}

int32_t fewest_devices(const Problem& problem) {
  int64_t fixed = 0;
  for (int32_t o = 0; o < problem.operators(); ++o) fixed += problem.fixed_bytes(o);
  std::vector<int64_t> capacities;
  capacities.reserve(at(problem.devices()));
  for (int32_t d = 0; d < problem.devices(); ++d)
    capacities.push_back(problem.cluster().capacity_bytes(d));
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
    throw ArgumentError(fmt::format("expected at least 1 micro-batch, got {}", micro_batches));
  Bounds bounds;
  for (int32_t o = 0; o < problem.operators() && !stream; ++o)
    bounds.critical_path_ns =
        std::max(bounds.critical_path_ns, problem.least_cost_ns(o) + problem.tail_ns(o));
  auto classes = device_classes(problem);
  bounds.work_ns = bound_work(unit_costs(problem, classes, micro_batches, stream), classes);
  const int64_t known = std::max(bounds.critical_path_ns, bounds.work_ns);
  if (!stream) bounds.interval_ns = IntervalBound(problem, classes, micro_batches, known).bound();
  bounds.step_time_ns = std::max(known, bounds.interval_ns);
  switch (problem.rules().memory) {
    case MemoryModel::slots:
      bounds.peak_memory_bytes = bound_slots(problem);
      break;
    case MemoryModel::outputs_only:
      bounds.peak_memory_bytes = bound_outputs(problem);
      break;
    case MemoryModel::none:
      break;
  }
  bounds.least_devices = fewest_devices(problem);
  return bounds;
}

}  // namespace trinity
