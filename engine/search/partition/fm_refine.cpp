#include "search/partition/fm_refine.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace trinity {

Hypergraph::Hypergraph(const PlacementSpace& space) : units(space.units()) {
  const auto& problem = space.problem();
  const auto unit_of = problem.graph().units();
  std::map<std::vector<int32_t>, int64_t> nets;
  std::vector<std::vector<int32_t>> readers;
  for (int32_t op = 0; op < problem.operators(); ++op) {
    const int32_t home = unit_of[op];
    const auto outputs =
        static_cast<size_t>(problem.first_output(op + 1) - problem.first_output(op));
    readers.assign(outputs, {home});
    for (const auto& reader : problem.readers(op))
      readers[reader.output].push_back(unit_of[reader.op]);
    for (size_t output = 0; output < outputs; ++output) {
      auto& list = readers[output];
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      if (list.size() < 2) continue;
      nets[list] += std::max<int64_t>(1, problem.output_bytes(op, static_cast<int32_t>(output)));
    }
  }
  first_pin.push_back(0);
  for (const auto& [list, sum] : nets) {
    pins.insert(pins.end(), list.begin(), list.end());
    first_pin.push_back(static_cast<int32_t>(pins.size()));
    bytes.push_back(sum);
  }
}

int64_t Hypergraph::sent_bytes(const Assignment& assignment) const {
  int64_t sum = 0;
  std::vector<int32_t> devices;
  for (int32_t number = 0; number < nets(); ++number) {
    devices.clear();
    for (const int32_t unit : net(number)) devices.push_back(assignment[unit]);
    std::sort(devices.begin(), devices.end());
    const auto distinct = std::unique(devices.begin(), devices.end()) - devices.begin();
    sum += bytes[number] * (distinct - 1);
  }
  return sum;
}

namespace {

constexpr int64_t kBuckets = 4096;
constexpr int kLooks = 32;  // cells of a side examined for an allowed move

}  // namespace

/// Free cells of both sides by gain: an array of doubly linked lists.
struct FmSides::Buckets {
  std::vector<int64_t> gain;
  std::vector<int32_t> next, previous, head[2];
  std::vector<bool> free;
  int32_t top[2] = {-1, -1};
  int64_t quantum = 1;

  Buckets(size_t cells, int64_t largest_gain)
      : gain(cells, 0),
        next(cells, -1),
        previous(cells, -1),
        free(cells, true),
        quantum(2 * largest_gain / kBuckets + 1) {
    const auto count = static_cast<size_t>(2 * (largest_gain / quantum) + 3);
    for (auto& heads : head) heads.assign(count, -1);
  }

  int32_t bucket(int32_t cell) const {
    const auto middle = static_cast<int64_t>(head[0].size() / 2);
    return static_cast<int32_t>(gain[cell] / quantum + middle);
  }
  void insert(int32_t cell, int side) {
    const int32_t at = bucket(cell);
    auto& first = head[side][at];
    next[cell] = first;
    previous[cell] = -1;
    if (first >= 0) previous[first] = cell;
    first = cell;
    top[side] = std::max(top[side], at);
  }
  void remove(int32_t cell, int side) {
    const int32_t after = next[cell];
    const int32_t before = previous[cell];
    if (after >= 0) previous[after] = before;
    if (before >= 0) {
      next[before] = after;
    } else {
      head[side][bucket(cell)] = after;
    }
  }
  void change(int32_t cell, int side, int64_t by) {
    if (!free[cell]) return;
    remove(cell, side);
    gain[cell] += by;
    insert(cell, side);
  }
};

FmSides::FmSides(const Hypergraph& hypergraph, std::span<const int32_t> weight,
                 std::span<const int32_t> units, double share, double imbalance)
    : share_(share) {
  std::vector<int32_t> cell(static_cast<size_t>(hypergraph.units), -1);
  for (size_t i = 0; i < units.size(); ++i) {
    cell[units[i]] = static_cast<int32_t>(i);
    weight_.push_back(weight[units[i]]);
  }
  first_pin_.push_back(0);
  std::vector<std::vector<int32_t>> lists(units.size());
  for (int32_t net = 0; net < hypergraph.nets(); ++net) {
    const auto begin = pins_.size();
    for (const int32_t unit : hypergraph.net(net))
      if (cell[unit] >= 0) pins_.push_back(cell[unit]);
    if (pins_.size() - begin < 2) {
      pins_.resize(begin);
      continue;
    }
    for (size_t pin = begin; pin < pins_.size(); ++pin)
      lists[pins_[pin]].push_back(static_cast<int32_t>(bytes_.size()));
    bytes_.push_back(hypergraph.bytes[net]);
    first_pin_.push_back(static_cast<int32_t>(pins_.size()));
  }
  first_net_.push_back(0);
  for (const auto& list : lists) {
    int64_t sum = 0;
    for (const int32_t net : list) sum += bytes_[net];
    largest_gain_ = std::max(largest_gain_, sum);
    nets_.insert(nets_.end(), list.begin(), list.end());
    first_net_.push_back(static_cast<int32_t>(nets_.size()));
  }
  total_ = std::accumulate(weight_.begin(), weight_.end(), int64_t{0});
  const double smaller = std::min(share, 1 - share) * static_cast<double>(total_);
  const auto heaviest = static_cast<double>(*std::max_element(weight_.begin(), weight_.end()));
  const double slack = std::max(imbalance * smaller, std::min(heaviest, smaller / 2));
  low_ = static_cast<int64_t>(share * static_cast<double>(total_) - slack);
  high_ = static_cast<int64_t>(share * static_cast<double>(total_) + slack);
}

std::span<const int32_t> FmSides::pins(int32_t net) const {
  const auto n = static_cast<size_t>(net);
  return {pins_.data() + first_pin_[n], static_cast<size_t>(first_pin_[n + 1] - first_pin_[n])};
}

std::span<const int32_t> FmSides::nets(int32_t cell) const {
  const auto c = static_cast<size_t>(cell);
  return {nets_.data() + first_net_[c], static_cast<size_t>(first_net_[c + 1] - first_net_[c])};
}

int64_t FmSides::violation(int64_t first_weight) const {
  return std::max({int64_t{0}, low_ - first_weight, first_weight - high_});
}

int64_t FmSides::first_weight(const std::vector<bool>& side) const {
  int64_t sum = 0;
  for (size_t cell = 0; cell < side.size(); ++cell)
    if (!side[cell]) sum += weight_[cell];
  return sum;
}

int64_t FmSides::cut_bytes(const std::vector<bool>& side) const {
  int64_t sum = 0;
  for (size_t net = 0; net < bytes_.size(); ++net) {
    const auto list = pins(static_cast<int32_t>(net));
    const bool first = side[list[0]];
    const bool cut =
        std::any_of(list.begin(), list.end(), [&](int32_t cell) { return side[cell] != first; });
    if (cut) sum += bytes_[net];
  }
  return sum;
}

std::vector<bool> FmSides::first_cells() const {
  std::vector<bool> side(weight_.size(), true);
  const auto wanted = share_ * static_cast<double>(total_);
  double sum = 0;
  for (size_t cell = 0; cell < side.size(); ++cell) {
    const auto weight = static_cast<double>(weight_[cell]);
    if (sum + weight / 2 > wanted) break;
    sum += weight;
    side[cell] = false;
  }
  return side;
}

/// Breadth-first from a random cell, and from another one when a component is exhausted.
std::vector<bool> FmSides::grown(RandomStream& random) const {
  std::vector<bool> side(weight_.size(), true);
  const auto wanted = share_ * static_cast<double>(total_);
  std::vector<int32_t> queue;
  double sum = 0;
  size_t next = 0, left = side.size();
  const auto add = [&](int32_t cell) {
    if (!side[cell]) return;
    const auto weight = static_cast<double>(weight_[cell]);
    if (sum + weight / 2 > wanted) return;
    side[cell] = false;
    sum += weight;
    --left;
    queue.push_back(cell);
  };
  for (size_t tries = 0; sum < wanted && left > 0 && tries < side.size(); ++tries) {
    add(static_cast<int32_t>(random.below(side.size())));
    for (; next < queue.size(); ++next)
      for (const int32_t net : nets(queue[next]))
        for (const int32_t cell : pins(net)) add(cell);
  }
  return side;
}

void FmSides::count(const std::vector<bool>& side) {
  for (auto& counts : on_side_) counts.assign(bytes_.size(), 0);
  for (size_t net = 0; net < bytes_.size(); ++net)
    for (const int32_t cell : pins(static_cast<int32_t>(net))) ++on_side_[side[cell]][net];
}

/// The free cell of the largest gain whose move keeps or improves the balance; -1: none.
int32_t FmSides::choose(Buckets& buckets, int64_t first_weight) const {
  int32_t chosen = -1;
  const int64_t now = violation(first_weight);
  for (int from = 0; from < 2; ++from) {
    auto& top = buckets.top[from];
    while (top >= 0 && buckets.head[from][top] < 0) --top;
    int looks = kLooks;
    for (int32_t at = top; at >= 0 && looks > 0; --at) {
      for (int32_t cell = buckets.head[from][at]; cell >= 0 && looks > 0;
           cell = buckets.next[cell], --looks) {
        const int64_t weight = weight_[cell];
        const int64_t after = violation(first_weight + (from ? weight : -weight));
        if (after > 0 && after >= now) continue;
        if (chosen < 0 || buckets.gain[cell] > buckets.gain[chosen]) chosen = cell;
        looks = 0;
        break;
      }
    }
  }
  return chosen;
}

/// Moves a cell, locks it and updates the gains of cells on its nets.
void FmSides::move(int32_t cell, std::vector<bool>& side, Buckets& buckets) {
  const int from = side[cell], to = 1 - from;
  buckets.remove(cell, from);
  buckets.free[cell] = false;
  const auto change_on = [&](int32_t net, int on, int64_t by) {
    for (const int32_t other : pins(net))
      if (other != cell && (on < 0 || side[other] == (on == 1)))
        buckets.change(other, side[other], by);
  };
  for (const int32_t net : nets(cell)) {
    const int64_t bytes = bytes_[net];
    auto& left = on_side_[from][net];
    auto& there = on_side_[to][net];
    if (there == 0) change_on(net, -1, bytes);
    if (there == 1) change_on(net, to, -bytes);
    --left;
    ++there;
    if (left == 0) change_on(net, -1, -bytes);
    if (left == 1) change_on(net, from, bytes);
  }
  side[cell] = to == 1;
}

bool FmSides::pass(std::vector<bool>& side) {
  count(side);
  Buckets buckets(weight_.size(), largest_gain_);
  for (size_t c = 0; c < weight_.size(); ++c) {
    const auto cell = static_cast<int32_t>(c);
    const int from = side[c];
    for (const int32_t net : nets(cell)) {
      if (on_side_[from][net] == 1) buckets.gain[c] += bytes_[net];
      if (on_side_[1 - from][net] == 0) buckets.gain[c] -= bytes_[net];
    }
    buckets.insert(cell, from);
  }
  struct Moment {
    int64_t violation, cut;
    auto operator<=>(const Moment&) const = default;
  };
  int64_t weight = first_weight(side), cut = 0;
  const Moment begin{violation(weight), 0};
  Moment best = begin;
  std::vector<int32_t> moved;
  size_t kept = 0;
  for (int32_t cell; (cell = choose(buckets, weight)) >= 0;) {
    cut -= buckets.gain[cell];
    const int64_t by = weight_[cell];
    weight += side[cell] ? by : -by;
    move(cell, side, buckets);
    moved.push_back(cell);
    const Moment now{violation(weight), cut};
    if (now >= best) continue;
    best = now;
    kept = moved.size();
  }
  for (size_t i = kept; i < moved.size(); ++i) side[moved[i]] = !side[moved[i]];
  return best < begin;
}

void FmSides::refine(std::vector<bool>& side, int32_t passes) {
  for (int32_t i = 0; i < passes && pass(side); ++i) {
  }
}

}  // namespace trinity
