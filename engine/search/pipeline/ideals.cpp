#include "search/pipeline/ideals.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <map>
#include <numeric>
#include <set>

#include "base/hash.h"
#include "base/index.h"
#include "base/random.h"
#include "graph/order.h"
#include "search/pipeline/max_load_cut.h"

namespace trinity {
namespace {

/// Set of distinct bit rows, stored contiguously and indexed by open addressing.
class RowTable {
 public:
  explicit RowTable(size_t words) : words_(words), slots_(1024, -1) {}

  int32_t count() const { return count_; }
  std::vector<uint64_t>& bits() { return bits_; }
  const uint64_t* row(int32_t i) const { return bits_.data() + at(i) * words_; }

  /// Adds `row` unless it exists.
  void add(const std::vector<uint64_t>& row) {
    if (at(count_) * 2 >= slots_.size()) grow();
    int32_t& slot = slots_[place(row.data())];
    if (slot >= 0) return;
    slot = count_++;
    bits_.insert(bits_.end(), row.begin(), row.end());
  }

 private:
  size_t place(const uint64_t* row) const {
    Hasher hasher;
    for (size_t w = 0; w < words_; ++w) hasher.add(row[w]);
    size_t slot = hasher.value() & (slots_.size() - 1);
    while (slots_[slot] >= 0 && !std::equal(row, row + words_, this->row(slots_[slot])))
      slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }
  void grow() {
    slots_.assign(slots_.size() * 2, -1);
    for (int32_t i = 0; i < count_; ++i) slots_[place(row(i))] = i;
  }

  size_t words_;
  int32_t count_ = 0;
  std::vector<uint64_t> bits_;
  std::vector<int32_t> slots_;
};

using Edges = std::set<std::pair<int32_t, int32_t>>;

/// Edges between units: of forward nodes and, for units with only backward nodes, of these nodes
/// reversed.
Edges unit_edges(const LoadInstance& instance) {
  std::vector<bool> forward(instance.nodes.size(), false);
  for (const auto& node : instance.nodes)
    if (!node.backward) forward[node.unit] = true;
  Edges edges;
  for (const auto& [from, to] : instance.edges) {
    const auto &a = instance.nodes[from], &b = instance.nodes[to];
    if (a.unit == b.unit) continue;
    if (!a.backward && !b.backward) edges.emplace(a.unit, b.unit);
    if (a.backward && b.backward && !(forward[a.unit] && forward[b.unit]))
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

  int32_t group_of(int32_t node) const { return group_[instance_.nodes[node].unit]; }
  const Edges& edges() const { return edges_; }

 private:
  void rename(const std::vector<int32_t>& target) {
    for (auto& group : group_) group = target[group];
    Edges renamed;
    for (const auto& [from, to] : edges_)
      if (target[from] != target[to]) renamed.emplace(target[from], target[to]);
    edges_ = std::move(renamed);
  }

  void merge_cycles() {
    using Boost = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
    Boost graph(edges_.begin(), edges_.end(), group_.size());
    std::vector<int32_t> component(group_.size());
    const int32_t count = boost::strong_components(
        graph,
        boost::make_iterator_property_map(component.begin(), get(boost::vertex_index, graph)));
    // A component is named by its lowest unit.
    std::vector<int32_t> name(at(count), -1), target(group_.size());
    for (size_t u = 0; u < component.size(); ++u) {
      auto& lowest = name[component[u]];
      if (lowest < 0) lowest = static_cast<int32_t>(u);
      target[u] = lowest;
    }
    rename(target);
  }

  /// Groups without cost and with one neighbour join it; no device's load grows.
  bool merge_idle_leaves() {
    std::vector<bool> idle(group_.size(), true);
    for (const auto& node : instance_.nodes)
      if (node.accelerator_s + node.cpu_s > 0 || (node.memory_bytes > 0 && !heavy_leaves_) ||
          !node.supported)
        idle[group_[node.unit]] = false;
    std::vector<std::set<int32_t>> neighbours(group_.size());
    for (const auto& [from, to] : all_edges()) {
      neighbours[from].insert(to);
      neighbours[to].insert(from);
    }
    std::vector<int32_t> target(group_.size());
    std::iota(target.begin(), target.end(), 0);
    std::vector<bool> taken(group_.size(), false);
    bool merged = false;
    for (size_t g = 0; g < neighbours.size(); ++g) {
      if (!idle[g] || neighbours[g].size() != 1 || taken[g]) continue;
      const int32_t other = *neighbours[g].begin();
      if (target[other] != other) continue;
      target[g] = other;
      taken[other] = merged = true;
    }
    if (merged) rename(target);
    return merged;
  }

  /// Between groups, over all nodes.
  Edges all_edges() const {
    Edges all;
    for (const auto& [from, to] : instance_.edges)
      if (group_of(from) != group_of(to)) all.emplace(group_of(from), group_of(to));
    return all;
  }

  const LoadInstance& instance_;
  bool heavy_leaves_;
  std::vector<int32_t> group_;  // [unit]
  Edges edges_;
};

}  // namespace

std::optional<Ideals> Ideals::of_order(int32_t count,
                                       std::span<const std::pair<int32_t, int32_t>> edges,
                                       int32_t most, const Deadline& deadline) {
  const size_t words = std::max<size_t>(1, at(count + 63) / 64);
  std::vector<uint64_t> inputs(at(count) * words, 0);  // a row of bits per element
  for (const auto& [from, to] : edges)
    inputs[at(to) * words + at(from) / 64] |= uint64_t{1} << (from % 64);
  RowTable found(words);
  found.add(std::vector<uint64_t>(words, 0));
  std::vector<uint64_t> larger(words);
  DeadlinePoll poll(deadline);
  // by size, because each step adds one element
  for (int32_t next = 0; next < found.count(); ++next) {
    poll.step(count);
    for (int32_t i = 0; i < count; ++i) {
      const uint64_t* whole = found.row(next);
      const uint64_t* needed = inputs.data() + at(i) * words;
      bool grows = !(whole[at(i) / 64] >> (i % 64) & 1);
      for (size_t w = 0; grows && w < words; ++w) grows = (needed[w] & ~whole[w]) == 0;
      if (!grows) continue;
      larger.assign(whole, whole + words);
      larger[at(i) / 64] |= uint64_t{1} << (i % 64);
      found.add(larger);
      if (found.count() > most) return std::nullopt;
    }
  }
  Ideals ideals;
  ideals.words_ = words;
  ideals.count_ = found.count();
  ideals.bits_ = std::move(found.bits());
  return ideals;
}

std::vector<int32_t> Ideals::difference(int32_t ideal, int32_t sub) const {
  std::vector<int32_t> elements;
  for_difference(ideal, sub, [&](int32_t element) { elements.push_back(element); });
  return elements;
}

bool LoadOrder::is_chain() const {
  size_t consecutive = 0;
  for (const auto& [from, to] : edges) consecutive += from + 1 == to ? 1 : 0;
  return consecutive + 1 >= groups.size();
}

LoadOrder make_load_order(const LoadInstance& instance, bool heavy_leaves) {
  const Merger merger(instance, heavy_leaves);
  // Groups by their first nodes: file order, if it is topological.
  std::map<int32_t, int32_t> rank;
  std::vector<std::vector<int32_t>> members;
  for (int32_t n = 0; n < static_cast<int32_t>(instance.nodes.size()); ++n) {
    const auto [group, fresh] =
        rank.emplace(merger.group_of(n), static_cast<int32_t>(members.size()));
    if (fresh) members.emplace_back();
    members[group->second].push_back(n);
  }
  std::vector<Arrow> arrows;
  for (const auto& [from, to] : merger.edges()) arrows.emplace_back(rank.at(from), rank.at(to));
  LoadOrder order;
  std::vector<int32_t> number(members.size(), -1);
  for (const int32_t group : stable_order(static_cast<int32_t>(members.size()), arrows)) {
    number[group] = static_cast<int32_t>(order.groups.size());
    order.groups.push_back(members[group]);
  }
  for (const auto& [from, to] : arrows) order.edges.emplace_back(number[from], number[to]);
  return order;
}

LoadOrder reordered(const LoadOrder& order, uint64_t variant) {
  const size_t count = order.groups.size();
  RandomStream random(variant, "topological order");
  std::vector<int32_t> missing(count, 0), number(count, -1), ready;
  std::vector<std::vector<int32_t>> readers(count);
  for (const auto& [from, to] : order.edges) {
    ++missing[to];
    readers[from].push_back(to);
  }
  for (size_t g = count; g-- > 0;)
    if (missing[g] == 0) ready.push_back(static_cast<int32_t>(g));
  LoadOrder made;
  while (!ready.empty()) {
    const size_t chosen = variant == 0   ? ready.size() - 1
                          : variant == 1 ? 0
                                         : random.below(ready.size());
    const int32_t group = ready[chosen];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(chosen));
    number[group] = static_cast<int32_t>(made.groups.size());
    made.groups.push_back(order.groups[group]);
    for (auto reader = readers[group].rbegin(); reader != readers[group].rend(); ++reader)
      if (--missing[*reader] == 0) ready.push_back(*reader);
  }
  for (const auto& [from, to] : order.edges) made.edges.emplace_back(number[from], number[to]);
  std::sort(made.edges.begin(), made.edges.end());
  return made;
}

}  // namespace trinity
