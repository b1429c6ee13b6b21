#include "selection/selection.h"

#include <algorithm>

#include "base/error.h"
#include "base/index.h"

namespace trinity {
namespace {

constexpr size_t kMostStrategies = 1'000'000;

/// Checks rows of a problem; messages count from `first`.
struct Checker {
  const SelectionProblem& problem;
  int first = 0;

  void costs(const char* field, size_t row, std::span<const double> costs) const {
    for (size_t i = 0; i < costs.size(); ++i)
      if (!(costs[i] >= SelectionProblem::kLowestCost))
        throw ArgumentError("{}[{}]: entry {}: expected a number of at least {}, got {}", field, row + at(first),
                            i + at(first), SelectionProblem::kLowestCost, costs[i]);
  }

  void node(size_t v, std::span<const double> costs_of, std::span<const int64_t> usage,
            SelectionProblem::Interval live) const {
    const size_t shown = v + at(first);
    if (costs_of.empty() || costs_of.size() > kMostStrategies)
      throw ArgumentError("nodes.costs[{}]: expected from 1 to {} strategies, got {}", shown, kMostStrategies,
                          costs_of.size());
    if (usage.size() != costs_of.size())
      throw ArgumentError("nodes.usages[{}]: expected {} entries (one per strategy), got {}", shown, costs_of.size(),
                          usage.size());
    costs("nodes.costs", v, costs_of);
    for (size_t i = 0; i < usage.size(); ++i)
      if (usage[i] < 0)
        throw ArgumentError("nodes.usages[{}]: entry {}: expected a whole number from 0, got {}", shown, i + at(first),
                            usage[i]);
    if (live.end < live.start)
      throw ArgumentError("nodes.intervals[{}]: [{}, {}) ends before it starts", shown, live.start, live.end);
  }

  void edge(size_t e, SelectionProblem::Edge edge, std::span<const double> table) const {
    const size_t shown = e + at(first);
    for (const int32_t v : {edge.from, edge.to})
      if (v < 0 || v >= problem.nodes())
        throw ArgumentError("edges.nodes[{}]: node {} does not exist (there are {}, counted from {})", shown, v + first,
                            problem.nodes(), first);
    const int64_t rows = problem.strategies(edge.from), columns = problem.strategies(edge.to);
    if (static_cast<int64_t>(table.size()) != rows * columns)
      throw ArgumentError("edges.costs[{}]: expected {} entries ({} strategies of node {} times {} of node {}), got {}",
                          shown, rows * columns, rows, edge.from + first, columns, edge.to + first, table.size());
    costs("edges.costs", e, table);
  }
};

/// Maximum over time of the sum of usages.
int64_t peak_usage(const SelectionProblem& problem, std::span<const int32_t> choice) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (int32_t v = 0; v < problem.nodes(); ++v) {
    const auto live = problem.live[at(v)];
    const int64_t usage = problem.usage(v)[at(choice[at(v)])];
    if (live.start == live.end || usage == 0) continue;
    changes.emplace_back(live.start, usage);
    changes.emplace_back(live.end, -usage);
  }
  std::sort(changes.begin(), changes.end());  // at one time, ends come first
  int64_t level = 0, peak = 0;
  for (const auto& [time, change] : changes) peak = std::max(peak, level += change);
  return peak;
}

}  // namespace

int32_t SelectionProblem::add_node(std::span<const double> costs, std::span<const int64_t> usage,
                                   Interval interval) {
  const std::vector<int64_t> none(usage.empty() ? costs.size() : 0, 0);
  const auto used = usage.empty() ? std::span<const int64_t>(none) : usage;
  Checker{*this}.node(at(nodes()), costs, used, interval);
  node_costs.insert(node_costs.end(), costs.begin(), costs.end());
  usages.insert(usages.end(), used.begin(), used.end());
  live.push_back(interval);
  node_offset.push_back(static_cast<int64_t>(node_costs.size()));
  return nodes() - 1;
}

void SelectionProblem::add_edge(int32_t from, int32_t to, std::span<const double> table) {
  Checker{*this}.edge(edges.size(), {from, to}, table);
  edges.push_back({from, to});
  edge_costs.insert(edge_costs.end(), table.begin(), table.end());
  edge_offset.push_back(static_cast<int64_t>(edge_costs.size()));
}

void SelectionProblem::check(int first) const {
  const Checker checker{*this, first};
  if (node_offset.size() > at(kMostNodes))
    throw ArgumentError("{} nodes, more than the maximum of {}", nodes(), kMostNodes);
  int64_t total = 0;
  for (int32_t v = 0; v < nodes(); ++v) {
    const auto used = usage(v);
    checker.node(at(v), costs(v), used, live[at(v)]);
    const int64_t most = *std::max_element(used.begin(), used.end());
    if (most > kMostUsage - total)
      throw ArgumentError("nodes.usages[{}]: the usages of the nodes sum to more than {}", v + first, kMostUsage);
    total += most;
  }
  for (size_t e = 0; e < edges.size(); ++e) checker.edge(e, edges[e], edge_table(e));
  if (usage_limit && *usage_limit < 0)
    throw ArgumentError("usage_limit: expected a whole number from 0, got {}", *usage_limit);
}

SelectionScore score_selection(const SelectionProblem& problem, std::span<const int32_t> choice) {
  if (choice.size() != at(problem.nodes()))
    throw ArgumentError("expected {} strategies (one per node), got {}", problem.nodes(), choice.size());
  SelectionScore score;
  const auto add = [&score](double cost) {
    score.cost += cost;
    score.forbidden |= cost >= SelectionProblem::kForbidden;
  };
  for (int32_t v = 0; v < problem.nodes(); ++v) {
    const int32_t s = choice[at(v)];
    if (s < 0 || s >= problem.strategies(v))
      throw ArgumentError("node {}: strategy {} does not exist (there are {})", v, s, problem.strategies(v));
    add(problem.costs(v)[at(s)]);
  }
  for (size_t e = 0; e < problem.edges.size(); ++e) {
    const auto [from, to] = problem.edges[e];
    const int64_t row = choice[at(from)], column = choice[at(to)];
    add(problem.edge_table(e)[at(row * problem.strategies(to) + column)]);
  }
  score.peak_usage = peak_usage(problem, choice);
  score.fits = !problem.usage_limit || score.peak_usage <= *problem.usage_limit;
  return score;
}

}  // namespace trinity
