#include "graph/order.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/index.h"
#include "base/stop.h"

namespace trinity {
namespace {

/// Arrow indices grouped by one of their ends, in list order.
class ArrowRows {
 public:
  template <class End>
  ArrowRows(int32_t count, std::span<const Arrow> arrows, End end)
      : first_(at(count) + 1, 0), number_(arrows.size()) {
    for (const auto& arrow : arrows) ++first_[at(end(arrow)) + 1];
    for (size_t v = 1; v < first_.size(); ++v) first_[v] += first_[v - 1];
    auto next = first_;
    for (size_t a = 0; a < arrows.size(); ++a) number_[next[end(arrows[a])]++] = a;
  }
  std::span<const size_t> row(int32_t v) const {
    return std::span(number_).subspan(first_[v], first_[at(v) + 1] - first_[v]);
  }

 private:
  std::vector<size_t> first_, number_;
};

}  // namespace

std::vector<int32_t> stable_order(int32_t count, std::span<const Arrow> arrows) {
  const ArrowRows leaving(count, arrows, [](const Arrow& arrow) { return arrow.first; });
  std::vector<int32_t> missing(at(count), 0), order, heap;
  for (const auto& arrow : arrows) ++missing[arrow.second];
  for (int32_t v = 0; v < count; ++v)
    if (missing[v] == 0) heap.push_back(v);  // ascending, so a heap already
  for (StopPoll stop; !heap.empty(); stop.step()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    order.push_back(heap.back());
    heap.pop_back();
    for (const size_t a : leaving.row(order.back()))
      if (--missing[arrows[a].second] == 0) {
        heap.push_back(arrows[a].second);
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
      }
  }
  return order;
}

namespace {

/// [node]: true if it is in a cycle or after one.
std::vector<char> behind_cycles(int32_t count, std::span<const Arrow> arrows) {
  const ArrowRows leaving(count, arrows, [](const Arrow& arrow) { return arrow.first; });
  std::vector<char> blocked(at(count), 1);
  std::vector<int32_t> missing(at(count), 0), free;
  for (const auto& arrow : arrows) ++missing[arrow.second];
  for (int32_t v = 0; v < count; ++v)
    if (missing[v] == 0) free.push_back(v);
  for (StopPoll stop; !free.empty(); stop.step()) {
    const int32_t v = free.back();
    free.pop_back();
    blocked[v] = 0;
    for (const size_t a : leaving.row(v))
      if (--missing[arrows[a].second] == 0) free.push_back(arrows[a].second);
  }
  return blocked;
}

}  // namespace

std::vector<size_t> find_cycle(int32_t count, std::span<const Arrow> arrows) {
  const auto blocked = behind_cycles(count, arrows);
  const auto start = std::find(blocked.begin(), blocked.end(), 1);
  if (start == blocked.end()) return {};
  // Walks back from a blocked node along its first blocked input, until the path closes.
  const ArrowRows entering(count, arrows, [](const Arrow& arrow) { return arrow.second; });
  std::vector<size_t> path, place(at(count), arrows.size());
  auto v = static_cast<int32_t>(start - blocked.begin());
  while (place[v] == arrows.size()) {
    place[v] = path.size();
    const auto inputs = entering.row(v);
    path.push_back(*std::find_if(inputs.begin(), inputs.end(),
                                 [&](size_t a) { return blocked[arrows[a].first] != 0; }));
    v = arrows[path.back()].first;
  }
  path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(place[v]));
  std::reverse(path.begin(), path.end());
  return path;
}

std::string cycle_text(std::span<const Arrow> arrows, std::span<const size_t> cycle,
                       const std::function<std::string(int32_t)>& name) {
  constexpr size_t kShown = 8;
  std::string text = name(arrows[cycle.front()].first);
  for (size_t i = 0; i < std::min(cycle.size(), kShown); ++i)
    text += " -> " + name(arrows[cycle[i]].second);
  return cycle.size() > kShown ? text + " -> ..." : text;
}

void check_deadlock(const std::string& graph, const std::vector<Operator>& operators,
                    const std::vector<Tensor>& tensors,
                    const std::vector<Collective>& collectives) {
  if (collectives.empty()) return;
  // The graph in which each collective is one node: operators, then collectives.
  const auto count = static_cast<int32_t>(operators.size());
  const auto node = [&](int32_t op) {
    const int32_t collective = operators[op].collective;
    return collective < 0 ? op : count + collective;
  };
  std::vector<Arrow> reads, arrows;  // between operators, and between their nodes
  reads.reserve(tensors.size());
  arrows.reserve(tensors.size());
  for (int32_t op = 0; op < count; ++op)
    for (const int32_t tensor : operators[op].inputs) {
      reads.emplace_back(tensors[tensor].producer, op);
      arrows.emplace_back(node(reads.back().first), node(op));
    }
  const auto cycle = find_cycle(count + static_cast<int32_t>(collectives.size()), arrows);
  // Operators alone have no cycle, so the cycle enters some collective by one member and leaves it
  // by another.
  for (size_t i = 0; i < cycle.size(); ++i) {
    const int32_t entering = reads[cycle[i]].second;
    const int32_t leaving = reads[cycle[(i + 1) % cycle.size()]].first;
    if (entering == leaving) continue;
    throw ArgumentError("graph '{}': collective '{}' waits for itself: its member '{}' needs the output of its member "
                        "'{}'", graph, collectives[operators[leaving].collective].name, operators[entering].name,
                        operators[leaving].name);
  }
}

}  // namespace trinity
