#include "graph/deadlock.h"

#include "base/error.h"
#include "graph/order.h"

namespace trinity {
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
