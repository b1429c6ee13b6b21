#include "search/pipeline/pipeline_cuts.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/deadline.h"
#include "base/error.h"
#include "base/index.h"
#include "base/random.h"
#include "search/partition/row_cut.h"
#include "search/pipeline/layer_row.h"
#include "search/pipeline/max_load_search.h"

namespace trinity {
namespace {

/// Start of the parts: parts - 1 positions, ascending.
using Cuts = std::vector<int32_t>;

std::vector<int32_t> devices_of(const LayerRow& row, const Cuts& cuts) {
  std::vector<int32_t> device;
  for (const int32_t layer : row.layer_of)
    device.push_back(
        static_cast<int32_t>(std::upper_bound(cuts.begin(), cuts.end(), layer) - cuts.begin()));
  return device;
}

Cuts cuts_of(const std::vector<int32_t>& part, int32_t parts) {
  Cuts cuts;
  for (int32_t p = 1; p < parts; ++p)
    cuts.push_back(
        static_cast<int32_t>(std::lower_bound(part.begin(), part.end(), p) - part.begin()));
  return cuts;
}

Cuts balanced(const std::vector<double>& work, int32_t parts) {
  return cuts_of(cut_row(work, parts), parts);
}

Cuts equal(int32_t elements, int32_t parts) {
  Cuts cuts;
  for (int32_t p = 1; p < parts; ++p)
    cuts.push_back(static_cast<int32_t>(int64_t{elements} * p / parts));
  return cuts;
}

Cuts random_cuts(int32_t elements, int32_t parts, RandomStream& random) {
  Cuts cuts;
  for (int32_t p = 1; p < parts; ++p)
    cuts.push_back(static_cast<int32_t>(random.below(at(elements) + 1)));
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

/// Smaller is better: infeasible, largest load, sum of squares.
using Value = std::tuple<bool, double, double>;

Value value_of(const LoadInstance& instance, const std::vector<int32_t>& device) {
  double largest = 0, squares = 0;
  for (const double load : max_load_loads_s(instance, device)) {
    largest = std::max(largest, load);
    squares += load * load;
  }
  return {!is_feasible(instance, device), largest, squares};
}

/// Moves cuts one at a time as long as that improves.
class Descent {
 public:
  Descent(const LoadInstance& instance, const LayerRow& row, int64_t& trials, const Deadline& end)
      : instance_(instance), row_(row), trials_(trials), end_(end) {}

  Value run(Cuts& cuts) const {
    auto best = price(cuts);
    for (bool better = true; better;) {
      better = false;
      for (size_t c = 0; c < cuts.size(); ++c)
        for (int32_t step = 1; step <= row_.count(); step *= 2)
          for (const int32_t by : {-step, step}) better = try_move(cuts, c, by, best) || better;
    }
    return best;
  }

 private:
  Value price(const Cuts& cuts) const {
    poll_stop();
    return value_of(instance_, devices_of(row_, cuts));
  }

  bool try_move(Cuts& cuts, size_t c, int32_t by, Value& best) const {
    const int32_t low = c > 0 ? cuts[c - 1] : 0;
    const int32_t high = c + 1 < cuts.size() ? cuts[c + 1] : row_.count();
    const int32_t moved = cuts[c] + by;
    if (moved < low || moved > high || trials_ <= 0 || end_.passed()) return false;
    --trials_;
    const int32_t before = std::exchange(cuts[c], moved);
    const auto value = price(cuts);
    if (value < best) {
      best = value;
      return true;
    }
    cuts[c] = before;
    return false;
  }

  const LoadInstance& instance_;
  const LayerRow& row_;
  int64_t& trials_;
  const Deadline& end_;
};

/// Blocks in progress: block i is elements ends_[i - 1] .. ends_[i] - 1.
class Blocks {
 public:
  Blocks(const std::vector<double>& work, int32_t parts) : sums_(work.size() + 1, 0) {
    const double largest = std::max(1e-300, *std::max_element(work.begin(), work.end()));
    for (size_t i = 0; i < work.size(); ++i) sums_[i + 1] = sums_[i] + work[i] / largest;
    for (int32_t p = 1; p <= parts; ++p)
      ends_.push_back(static_cast<int32_t>(work.size() * at(p) / at(parts)));
  }

  void balance() {
    // Rounding may undo a step; the theorem needs fewer steps than this.
    const int64_t elements = static_cast<int64_t>(sums_.size());
    int64_t left = 1000 + elements * elements * static_cast<int64_t>(ends_.size());
    for (;;) {
      const int32_t p = largest();
      const double most = size(p);
      for (int32_t next = -1; next != p;) {
        const int32_t q = smallest_near(p);
        if (most <= size(q) + 1 + 1e-12 || --left < 0) return;
        next = p < q ? q - 1 : q + 1;
        p < q ? --ends_[next] : ++ends_[q];
      }
    }
  }

  std::vector<int32_t> block_of() const {
    std::vector<int32_t> block;
    for (int32_t p = 0; p < static_cast<int32_t>(ends_.size()); ++p)
      while (static_cast<int32_t>(block.size()) < ends_[p]) block.push_back(p);
    return block;
  }

 private:
  double size(int32_t p) const { return sums_[ends_[p]] - (p > 0 ? sums_[ends_[p - 1]] : 0); }
  int32_t largest() const {
    int32_t chosen = 0;
    for (int32_t p = 1; p < static_cast<int32_t>(ends_.size()); ++p)
      if (size(p) > size(chosen)) chosen = p;
    return chosen;
  }
  int32_t smallest_near(int32_t p) const {
    int32_t chosen = p;
    for (int32_t q = 0; q < static_cast<int32_t>(ends_.size()); ++q)
      if (std::pair(size(q), std::abs(q - p)) < std::pair(size(chosen), std::abs(chosen - p)))
        chosen = q;
    return chosen;
  }

  std::vector<double> sums_;
  std::vector<int32_t> ends_;
};

}  // namespace

std::vector<int32_t> block_partition(const std::vector<double>& work, int32_t parts) {
  if (parts < 1 || work.empty())
    throw ArgumentError("internal error: block partition: {} elements do not fit {} blocks", work.size(), parts);
  for (const double w : work)
    if (!(w >= 0))
      throw ArgumentError("internal error: block partition: expected elements >= 0, got {}", w);
  Blocks blocks(work, parts);
  blocks.balance();
  return blocks.block_of();
}

std::vector<int32_t> cut_by_rule(const LoadInstance& instance, CutRule rule, uint64_t seed) {
  check_load_instance(instance);
  if (instance.accelerators == 0) return std::vector<int32_t>(instance.nodes.size(), 0);
  return cut_along(instance, make_load_order(instance, false), rule, seed);
}

std::vector<int32_t> cut_along(const LoadInstance& instance, const LoadOrder& order, CutRule rule,
                               uint64_t seed) {
  if (instance.accelerators == 0) return std::vector<int32_t>(instance.nodes.size(), 0);
  const auto row = layer_row_of(instance, order);
  const int32_t parts = row.device_count();
  const auto& work = row.kinds[0].forward_s;
  RandomStream random(seed, "random cuts");
  switch (rule) {
    case CutRule::balanced:
      return devices_of(row, balanced(work, parts));
    case CutRule::torchgpipe:
      return devices_of(row, cuts_of(block_partition(work, parts), parts));
    case CutRule::equal:
      return devices_of(row, equal(row.count(), parts));
    case CutRule::random:
      return devices_of(row, random_cuts(row.count(), parts, random));
    case CutRule::memory:
      return devices_of(row, balanced(row.fixed_bytes, parts));
  }
  return {};
}

std::vector<int32_t> search_cuts(const LoadInstance& instance, const CutSearchOptions& options) {
  check_load_instance(instance);
  if (instance.accelerators == 0) return std::vector<int32_t>(instance.nodes.size(), 0);
  const auto end = Deadline::in(options.seconds);
  const auto row = layer_row_of(instance, make_load_order(instance, false));
  RandomStream random(options.seed, "cut search");
  int64_t trials = options.trials;
  const Descent descent(instance, row, trials, end);
  Cuts best;
  Value least{true, std::numeric_limits<double>::infinity(), 0};
  for (int32_t start = 0; start < std::max(1, options.starts); ++start) {
    auto cuts = start == 0 ? balanced(row.kinds[0].forward_s, row.device_count())
                           : random_cuts(row.count(), row.device_count(), random);
    const auto value = descent.run(cuts);
    if (start == 0 || value < least) {
      least = value;
      best = cuts;
    }
    if (trials <= 0 || end.passed()) break;
  }
  return devices_of(row, best);
}

}  // namespace trinity
