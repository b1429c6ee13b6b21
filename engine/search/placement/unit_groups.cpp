#include "search/placement/unit_groups.h"

#include <algorithm>
#include <numeric>

#include "base/stop.h"

namespace trinity {
namespace {

constexpr double kFirstShare = 1.0 / 512, kLastShare = 1.0 / 4;
constexpr size_t kUnitsPerGroup = 8;  // average of the finest level

/// Groups as a graph.
struct Coarse {
  struct Edge {
    int32_t from, to;
    double bytes;
  };
  std::vector<double> work_ns;  // [group]
  std::vector<Edge> edges;      // in both directions, by (from, to)
  std::vector<int32_t> first;   // groups + 1 positions in `edges`

  size_t groups() const { return work_ns.size(); }
  void index() {
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
      return std::pair(a.from, a.to) < std::pair(b.from, b.to);
    });
    size_t kept = 0;
    for (size_t i = 0; i < edges.size(); ++i) {
      const bool same =
          kept > 0 && edges[kept - 1].from == edges[i].from && edges[kept - 1].to == edges[i].to;
      if (same) {
        edges[kept - 1].bytes += edges[i].bytes;
      } else {
        edges[kept++] = edges[i];
      }
    }
    edges.resize(kept);
    first.assign(groups() + 1, 0);
    for (const auto& edge : edges) ++first[static_cast<size_t>(edge.from) + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
  }
};

Coarse finest(const PlacementSpace& space) {
  Coarse graph;
  for (int32_t unit = 0; unit < space.units(); ++unit) {
    graph.work_ns.push_back(1 + static_cast<double>(space.cost_ns(unit, 0)));
    for (const auto& next : space.neighbours(unit))
      graph.edges.push_back({unit, next.unit, static_cast<double>(next.bytes)});
  }
  graph.index();
  return graph;
}

/// One round of joining.
class Round {
 public:
  Round(const Coarse& graph, double most_work_ns)
      : graph_(graph),
        most_work_ns_(most_work_ns),
        root_(graph.groups()),
        work_ns_(graph.work_ns),
        bytes_(graph.groups(), 0) {
    std::iota(root_.begin(), root_.end(), 0);
    std::vector<int32_t> order = root_;
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return graph.work_ns[a] < graph.work_ns[b]; });
    for (const int32_t group : order) join(group);
  }

  /// New indices of the old groups, in order of their first member, and their number.
  std::pair<std::vector<int32_t>, int32_t> numbers() {
    std::vector<int32_t> number(root_.size(), -1), result;
    int32_t count = 0;
    for (size_t group = 0; group < root_.size(); ++group) {
      auto& known = number[find(static_cast<int32_t>(group))];
      if (known < 0) known = count++;
      result.push_back(known);
    }
    return {std::move(result), count};
  }

 private:
  int32_t find(int32_t group) {
    auto at = static_cast<size_t>(group);
    while (static_cast<size_t>(root_[at]) != at) {
      root_[at] = root_[root_[at]];
      at = static_cast<size_t>(root_[at]);
    }
    return static_cast<int32_t>(at);
  }

  void join(int32_t group) {
    poll_.step();
    const int32_t own = find(group);
    const auto begin = graph_.edges.begin() + graph_.first[group];
    const auto end = graph_.edges.begin() + graph_.first[static_cast<size_t>(group) + 1];
    for (auto edge = begin; edge != end; ++edge) bytes_[find(edge->to)] += edge->bytes;
    int32_t best = -1;
    for (auto edge = begin; edge != end; ++edge) {
      const int32_t other = find(edge->to);
      if (other == own || work(own) + work(other) > most_work_ns_) continue;
      if (best < 0 || bytes_[other] > bytes_[best]) best = other;
    }
    for (auto edge = begin; edge != end; ++edge) bytes_[find(edge->to)] = 0;
    if (best < 0) return;
    work_ns_[best] += work(own);
    root_[own] = best;
  }

  double work(int32_t group) const { return work_ns_[group]; }

  const Coarse& graph_;
  double most_work_ns_;
  std::vector<int32_t> root_;
  std::vector<double> work_ns_, bytes_;  // bytes_: from the current group to every other
  StopPoll poll_;
};

Coarse contract(const Coarse& fine, const std::vector<int32_t>& number, int32_t count) {
  Coarse graph;
  graph.work_ns.assign(static_cast<size_t>(count), 0);
  for (size_t group = 0; group < number.size(); ++group)
    graph.work_ns[number[group]] += fine.work_ns[group];
  for (const auto& edge : fine.edges) {
    const int32_t from = number[edge.from];
    const int32_t to = number[edge.to];
    if (from != to) graph.edges.push_back({from, to, edge.bytes});
  }
  graph.index();
  return graph;
}

}  // namespace

UnitGroups::UnitGroups(const PlacementSpace& space) {
  auto graph = finest(space);
  const double total = std::accumulate(graph.work_ns.begin(), graph.work_ns.end(), 0.0);
  std::vector<int32_t> group(graph.groups());
  std::iota(group.begin(), group.end(), 0);
  for (double share = kFirstShare; share <= kLastShare; share *= 2) {
    const auto [number, count] = Round(graph, share * total).numbers();
    for (auto& of_unit : group) of_unit = number[of_unit];
    graph = contract(graph, number, count);
    if (count >= 2 && static_cast<size_t>(count) <= group.size() / kUnitsPerGroup)
      add_level(group, count);
  }
}

void UnitGroups::add_level(const std::vector<int32_t>& group, int32_t groups) {
  Level level{group, std::vector<int32_t>(static_cast<size_t>(groups) + 1, 0),
              std::vector<int32_t>(group.size())};
  for (const int32_t number : group) ++level.first[static_cast<size_t>(number) + 1];
  std::partial_sum(level.first.begin(), level.first.end(), level.first.begin());
  auto next = level.first;
  for (size_t unit = 0; unit < group.size(); ++unit) {
    auto& at = next[group[unit]];
    level.members[at++] = static_cast<int32_t>(unit);
  }
  levels_.push_back(std::move(level));
}

std::span<const int32_t> UnitGroups::around(int32_t level, int32_t unit) const {
  const auto& at = levels_[level];
  const auto group = static_cast<size_t>(at.group[unit]);
  const auto begin = static_cast<size_t>(at.first[group]);
  const auto end = static_cast<size_t>(at.first[group + 1]);
  return {at.members.data() + begin, end - begin};
}

}  // namespace trinity
