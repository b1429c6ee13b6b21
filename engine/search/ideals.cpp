#include "search/ideals.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/hash.h"
#include "base/stop.h"
#include "search/max_load_split.h"

namespace trinity {
namespace {

size_t at(int32_t i) { return static_cast<size_t>(i); }

using Bits = std::vector<uint64_t>;

bool has(const Bits& bits, int32_t i) { return bits[at(i) / 64] >> (i % 64) & 1; }

struct BitsHash {
  size_t operator()(const Bits& bits) const {
    Hasher hasher;
    for (const uint64_t word : bits) hasher.add(word);
    return static_cast<size_t>(hasher.value());
  }
};

using Edges = std::set<std::pair<int32_t, int32_t>>;

/// Edges between units: of forward nodes, and, for units of backward nodes alone, of these nodes
/// the other way round.
Edges unit_edges(const LoadInstance& instance) {
  std::vector<bool> forward(instance.nodes.size(), false);
  for (const auto& node : instance.nodes)
    if (!node.backward) forward[at(node.unit)] = true;
  Edges edges;
  for (const auto& [from, to] : instance.edges) {
    const auto &a = instance.nodes[at(from)], &b = instance.nodes[at(to)];
    if (a.unit == b.unit) continue;
    if (!a.backward && !b.backward) edges.emplace(a.unit, b.unit);
    if (a.backward && b.backward && !(forward[at(a.unit)] && forward[at(b.unit)]))
      edges.emplace(b.unit, a.unit);
  }
  return edges;
}

/// Merges units until the rest is a partial order without idle leaves.
class Merger {
 public:
  Merger(const LoadInstance& instance, bool heavy_leaves)
      : instance_(instance), heavy_leaves_(heavy_leaves), group_(instance.nodes.size()) {
    std::iota(group_.begin(), group_.end(), 0);
    edges_ = unit_edges(instance);
    merge_cycles();
    while (merge_idle_leaves()) {
    }
  }

  int32_t group_of(int32_t node) const { return group_[at(instance_.nodes[at(node)].unit)]; }
  const Edges& edges() const { return edges_; }

 private:
  void rename(const std::vector<int32_t>& target) {
    for (auto& group : group_) group = target[at(group)];
    Edges renamed;
    for (const auto& [from, to] : edges_)
      if (target[at(from)] != target[at(to)]) renamed.emplace(target[at(from)], target[at(to)]);
    edges_ = std::move(renamed);
  }

  void merge_cycles() {
    using Boost = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
    Boost graph(edges_.begin(), edges_.end(), group_.size());
    std::vector<int32_t> component(group_.size());
    const int32_t count = boost::strong_components(
        graph,
        boost::make_iterator_property_map(component.begin(), get(boost::vertex_index, graph)));
    // A component is called by its lowest unit.
    std::vector<int32_t> name(at(count), -1), target(group_.size());
    for (size_t u = 0; u < component.size(); ++u) {
      auto& lowest = name[at(component[u])];
      if (lowest < 0) lowest = static_cast<int32_t>(u);
      target[u] = lowest;
    }
    rename(target);
  }

  /// Groups that take nothing and have one neighbour join it: no device's load grows.
  bool merge_idle_leaves() {
    std::vector<bool> idle(group_.size(), true);
    for (const auto& node : instance_.nodes)
      if (node.accelerator_s + node.cpu_s > 0 || (node.memory_bytes > 0 && !heavy_leaves_) ||
          !node.supported)
        idle[at(group_[at(node.unit)])] = false;
    std::vector<std::set<int32_t>> neighbours(group_.size());
    for (const auto& [from, to] : all_edges()) {
      neighbours[at(from)].insert(to);
      neighbours[at(to)].insert(from);
    }
    std::vector<int32_t> target(group_.size());
    std::iota(target.begin(), target.end(), 0);
    std::vector<bool> taken(group_.size(), false);
    bool merged = false;
    for (size_t g = 0; g < neighbours.size(); ++g) {
      if (!idle[g] || neighbours[g].size() != 1 || taken[g]) continue;
      const int32_t other = *neighbours[g].begin();
      if (target[at(other)] != other) continue;
      target[g] = other;
      taken[at(other)] = merged = true;
    }
    if (merged) rename(target);
    return merged;
  }

  /// Between groups, of all nodes.
  Edges all_edges() const {
    Edges all;
    for (const auto& [from, to] : instance_.edges)
      if (group_of(from) != group_of(to)) all.emplace(group_of(from), group_of(to));
    return all;
  }

  const LoadInstance& instance_;
  bool heavy_leaves_;
  std::vector<int32_t> group_;  // of every unit
  Edges edges_;
};

}  // namespace

std::optional<Ideals> Ideals::of_order(int32_t count,
                                       std::span<const std::pair<int32_t, int32_t>> edges,
                                       int32_t most) {
  std::vector<std::vector<int32_t>> inputs(at(count)), readers(at(count));
  for (const auto& [from, to] : edges) {
    inputs[at(to)].push_back(from);
    readers[at(from)].push_back(to);
  }
  const auto all_in = [](const std::vector<int32_t>& list, const Bits& bits) {
    return std::all_of(list.begin(), list.end(), [&](int32_t i) { return has(bits, i); });
  };
  Ideals ideals;
  ideals.words_ = at(count + 63) / 64;
  std::unordered_map<Bits, int32_t, BitsHash> number;
  std::vector<Bits> found{Bits(ideals.words_, 0)};
  number.emplace(found[0], 0);
  for (size_t next = 0; next < found.size(); ++next) {  // by size, as all grow by one element
    if (next % 256 == 0) poll_stop();
    for (int32_t i = 0; i < count; ++i) {
      if (has(found[next], i) || !all_in(inputs[at(i)], found[next])) continue;
      Bits larger = found[next];
      larger[at(i) / 64] |= uint64_t{1} << (i % 64);
      if (!number.emplace(larger, static_cast<int32_t>(found.size())).second) continue;
      if (static_cast<int32_t>(found.size()) == most) return std::nullopt;
      found.push_back(std::move(larger));
    }
  }
  for (auto& bits : found) {
    ideals.below_first_.push_back(static_cast<int32_t>(ideals.below_.size()));
    const Bits whole = bits;
    for (int32_t i = 0; i < count; ++i) {
      const auto inside = [&](int32_t reader) { return has(whole, reader); };
      if (!has(whole, i) || std::any_of(readers[at(i)].begin(), readers[at(i)].end(), inside))
        continue;
      Bits smaller = whole;
      smaller[at(i) / 64] &= ~(uint64_t{1} << (i % 64));
      ideals.below_.push_back({number.at(smaller), i});
    }
    ideals.bits_.insert(ideals.bits_.end(), whole.begin(), whole.end());
  }
  ideals.below_first_.push_back(static_cast<int32_t>(ideals.below_.size()));
  return ideals;
}

Ideals Ideals::of_chain(int32_t count) {
  Ideals ideals;
  ideals.below_first_.push_back(0);
  for (int32_t i = 0; i < count; ++i) {
    ideals.below_first_.push_back(i);
    ideals.below_.push_back({i, i});
  }
  ideals.below_first_.push_back(count);
  return ideals;
}

std::vector<int32_t> Ideals::difference(int32_t ideal, int32_t sub) const {
  std::vector<int32_t> elements;
  if (bits_.empty()) {  // a chain: ideal i holds the elements below i
    for (int32_t i = sub; i < ideal; ++i) elements.push_back(i);
    return elements;
  }
  for (int32_t i = 0; i < static_cast<int32_t>(words_ * 64); ++i) {
    const size_t word = at(i) / 64;
    if ((bits_[at(ideal) * words_ + word] & ~bits_[at(sub) * words_ + word]) >> (i % 64) & 1)
      elements.push_back(i);
  }
  return elements;
}

bool LoadOrder::is_chain() const {
  size_t consecutive = 0;
  for (const auto& [from, to] : edges) consecutive += from + 1 == to ? 1 : 0;
  return consecutive + 1 >= groups.size();
}

LoadOrder make_load_order(const LoadInstance& instance, bool heavy_leaves) {
  const Merger merger(instance, heavy_leaves);
  std::map<int32_t, std::vector<int32_t>> members;  // by the name of the group
  for (size_t n = 0; n < instance.nodes.size(); ++n)
    members[merger.group_of(static_cast<int32_t>(n))].push_back(static_cast<int32_t>(n));
  std::map<int32_t, int32_t> missing;
  std::map<int32_t, std::vector<int32_t>> readers;
  for (const auto& [from, to] : merger.edges()) {
    ++missing[to];
    readers[from].push_back(to);
  }
  // The ready group whose first node is lowest: the order of the file where it is topological.
  std::set<std::pair<int32_t, int32_t>> ready;
  for (const auto& [group, nodes] : members)
    if (missing[group] == 0) ready.emplace(nodes[0], group);
  LoadOrder order;
  std::map<int32_t, int32_t> number;
  while (!ready.empty()) {
    const int32_t group = ready.begin()->second;
    ready.erase(ready.begin());
    number[group] = static_cast<int32_t>(order.groups.size());
    order.groups.push_back(members[group]);
    for (const int32_t reader : readers[group])
      if (--missing[reader] == 0) ready.emplace(members[reader][0], reader);
  }
  for (const auto& [from, to] : merger.edges()) order.edges.emplace_back(number[from], number[to]);
  return order;
}

}  // namespace trinity
