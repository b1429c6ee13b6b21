#include "search/partition/partition_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/stop.h"

namespace trinity {
namespace {

constexpr double kTotal = 1e8;

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

void normalise(std::vector<double>& shares) {
  const double total = sum(shares);
  for (double& share : shares)
    share = total > 0 ? share / total : 1 / static_cast<double>(shares.size());
}

/// [unit]: time averaged over devices.
std::vector<double> mean_work_ns(const PlacementSpace& space) {
  std::vector<double> work(static_cast<size_t>(space.units()), 0);
  for (int32_t unit = 0; unit < space.units(); ++unit)
    for (int32_t device = 0; device < space.devices(); ++device)
      work[unit] += static_cast<double>(space.cost_ns(unit, device)) / space.devices();
  return work;
}

std::vector<double> speed_shares(const PlacementSpace& space) {
  std::vector<double> shares;
  for (int32_t device = 0; device < space.devices(); ++device) {
    double time_ns = 1;  // if no operator takes time, devices are equal
    for (int32_t unit = 0; unit < space.units(); ++unit)
      time_ns += static_cast<double>(space.cost_ns(unit, device));
    shares.push_back(1 / time_ns);
  }
  normalise(shares);
  return shares;
}

std::vector<double> memory_bytes(const PlacementSpace& space) {
  const auto& problem = space.problem();
  std::vector<double> memory(static_cast<size_t>(space.units()), 0);
  for (int32_t op = 0; op < problem.operators(); ++op) {
    auto& bytes = memory[problem.graph().units()[op]];
    bytes += static_cast<double>(problem.fixed_bytes(op));
    if (problem.graph().op(op).phase != Phase::forward || problem.alias(op) >= 0) continue;
    for (int32_t out = problem.first_output(op); out < problem.first_output(op + 1); ++out)
      bytes += static_cast<double>(problem.held_bytes()[out]);
  }
  return memory;
}

}  // namespace

std::vector<int32_t> scaled_weights(const std::vector<double>& values, double total) {
  const double all = sum(values);
  std::vector<int32_t> weights;
  for (const double value : values)
    weights.push_back(all > 0 ? std::max(1, static_cast<int32_t>(std::lround(value / all * total)))
                              : 1);
  return weights;
}

PartitionGraph PartitionGraph::restricted(std::span<const int32_t> units) const {
  std::vector<int32_t> number(work.size(), -1);
  for (size_t i = 0; i < units.size(); ++i) number[units[i]] = static_cast<int32_t>(i);
  PartitionGraph part;
  part.first.push_back(0);
  for (const int32_t unit : units) {
    const auto u = static_cast<size_t>(unit);
    part.work.push_back(work[u]);
    part.memory.push_back(memory[u]);
    part.combined.push_back(combined[u]);
    for (auto e = static_cast<size_t>(first[u]); e < static_cast<size_t>(first[u + 1]); ++e) {
      const int32_t other = number[neighbour[e]];
      if (other < 0) continue;
      part.neighbour.push_back(other);
      part.bytes.push_back(bytes[e]);
    }
    part.first.push_back(static_cast<int32_t>(part.neighbour.size()));
  }
  return part;
}

PartitionWeights::PartitionWeights(const PlacementSpace& space) {
  const auto held_bytes = memory_bytes(space);
  graph.work = scaled_weights(mean_work_ns(space), kTotal);
  graph.memory = scaled_weights(held_bytes, kTotal);
  const auto speed = speed_shares(space);
  std::vector<double> capacity;
  for (int32_t device = 0; device < space.devices(); ++device)
    capacity.push_back(static_cast<double>(space.problem().cluster().room_bytes(device)));
  const bool accounted = space.problem().rules().memory != MemoryModel::none;
  pressure = accounted ? std::min(1.0, sum(held_bytes) / sum(capacity)) : 0;
  normalise(capacity);
  for (size_t d = 0; d < speed.size(); ++d)
    shares.push_back({speed[d], capacity[d], (speed[d] + pressure * capacity[d]) / (1 + pressure)});
  for (size_t unit = 0; unit < graph.work.size(); ++unit)
    graph.combined.push_back(static_cast<int32_t>(
        std::ceil((graph.work[unit] + pressure * graph.memory[unit]) / (1 + pressure))));
  std::vector<double> between;
  graph.first.push_back(0);
  for (int32_t unit = 0; unit < space.units(); ++unit) {
    for (const auto& next : space.neighbours(unit)) {
      graph.neighbour.push_back(next.unit);
      between.push_back(static_cast<double>(next.bytes));
    }
    graph.first.push_back(static_cast<int32_t>(graph.neighbour.size()));
  }
  graph.bytes = scaled_weights(between, kTotal);
}

namespace {

class Recursion {
 public:
  Recursion(const PartitionWeights& weights, const Bisection& bisection)
      : weights_(weights),
        bisection_(bisection),
        assignment_(static_cast<size_t>(weights.graph.units()), 0) {}

  Assignment run() {
    std::vector<int32_t> all(assignment_.size());
    std::iota(all.begin(), all.end(), 0);
    divide(all, 0, weights_.devices());
    return std::move(assignment_);
  }

 private:
  void divide(const std::vector<int32_t>& units, int32_t from, int32_t to) {
    poll_stop();
    if (units.empty()) return;
    if (to - from == 1) {
      for (const int32_t unit : units) assignment_[unit] = from;
      return;
    }
    if (static_cast<int32_t>(units.size()) <= to - from) return one_each(units, from, to);
    const int32_t middle = from + (to - from) / 2;
    const auto part = total(from, middle), all = total(from, to);
    const auto second = bisection_(
        units, {part.work / all.work, part.memory / all.memory, part.combined / all.combined});
    std::vector<int32_t> sides[2];
    for (size_t i = 0; i < units.size(); ++i) sides[second[i]].push_back(units[i]);
    divide(sides[0], from, middle);
    divide(sides[1], middle, to);
  }

  PartitionShare total(int32_t from, int32_t to) const {
    PartitionShare sum;
    for (int32_t d = from; d < to; ++d) {
      const auto& share = weights_.shares[d];
      sum.work += share.work;
      sum.memory += share.memory;
      sum.combined += share.combined;
    }
    return sum;
  }

  void one_each(std::vector<int32_t> units, int32_t from, int32_t to) {
    const auto& weight = weights_.graph.combined;
    std::stable_sort(units.begin(), units.end(),
                     [&](int32_t a, int32_t b) { return weight[a] > weight[b]; });
    std::vector<int32_t> devices(static_cast<size_t>(to - from));
    std::iota(devices.begin(), devices.end(), from);
    std::stable_sort(devices.begin(), devices.end(), [&](int32_t a, int32_t b) {
      return weights_.shares[a].combined > weights_.shares[b].combined;
    });
    for (size_t i = 0; i < units.size(); ++i) assignment_[units[i]] = devices[i];
  }

  const PartitionWeights& weights_;
  const Bisection& bisection_;
  Assignment assignment_;
};

}  // namespace

Assignment bisect_recursively(const PartitionWeights& weights, const Bisection& bisection) {
  return Recursion(weights, bisection).run();
}

}  // namespace trinity
