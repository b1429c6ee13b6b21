#include "strategy/layer_parts.h"

#include <algorithm>

#include "base/index.h"

namespace trinity {
namespace {

/// Whether an operator multiplies activations.
bool multiplies(const Graph& graph, int32_t op) {
  const auto& about = graph.op(op);
  if (about.type != "MatMul" || !about.parameters.empty()) return false;
  return std::none_of(about.inputs.begin(), about.inputs.end(), [&](int32_t input) {
    return graph.op(graph.tensor(input).producer).inputs.empty();
  });
}

}  // namespace

std::vector<bool> attention_core(const Graph& graph, const Layers& layers) {
  const auto count = at(graph.operator_count());
  std::vector<bool> after(count, false), before(count, false);
  const auto same_layer = [&](int32_t a, int32_t b) { return layers.of[a] == layers.of[b]; };
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    if (graph.op(op).phase != Phase::forward) continue;
    after[op] = multiplies(graph, op);
    for (const int32_t input : graph.op(op).inputs) {
      const int32_t from = graph.tensor(input).producer;
      if (after[from] && same_layer(from, op)) after[op] = true;
    }
  }
  for (int32_t op = graph.operator_count() - 1; op >= 0; --op) {
    if (graph.op(op).phase != Phase::forward) continue;
    if (multiplies(graph, op)) before[op] = true;
    if (!before[op]) continue;
    for (const int32_t input : graph.op(op).inputs) {
      const int32_t from = graph.tensor(input).producer;
      if (same_layer(from, op)) before[from] = true;
    }
  }
  for (int32_t op = 0; op < graph.operator_count(); ++op) {
    const auto& about = graph.op(op);
    const bool all_of_it = about.type == "Attention" && about.phase == Phase::forward;
    after[op] = (after[op] && before[op]) || all_of_it;
  }
  return after;
}

bool chooses_experts(const Graph& graph, int32_t op) {
  const auto [first, last] = boost::out_edges(op, graph.csr());
  return std::any_of(first, last, [&](const auto& edge) {
    const auto reader = static_cast<int32_t>(boost::target(edge, graph.csr()));
    const auto& type = graph.op(reader).type;
    const bool scores = type == "Softmax" || type == "Sigmoid";
    return type == "TopK" || (scores && chooses_experts(graph, reader));
  });
}

}  // namespace trinity
