#include "search/pase/pase_splits.h"

#include <algorithm>

#include "base/error.h"

namespace trinity {
namespace {

int32_t product(std::span<const int32_t> factors) {
  int32_t parts = 1;
  for (const int32_t factor : factors) parts *= factor;
  return parts;
}

/// Factors of an operator's own dimensions, from the factors of the layer that its output carries.
std::vector<int32_t> followed(const IterationSpace& space, const TensorAxes& written,
                              const Configuration& factors) {
  std::vector<int32_t> own(space.dimensions.size(), 1);
  if (space.outputs.empty()) return own;
  const auto& axes = space.outputs[0];
  for (size_t i = 0; i < axes.size() && i < written.size(); ++i) {
    int32_t cut = 1;
    for (const int32_t d : written[i]) cut *= factors[d];
    if (axes[i].size() != 1) continue;
    const auto& dimension = space.dimensions[axes[i][0]];
    if (dimension.splits && cut <= dimension.size) own[axes[i][0]] = cut;
  }
  return own;
}

/// An LSTM layer of a stack: its dimensions are the stack's without l, its devices a part of the
/// stack's.
OperatorSplit stacked(const PaseLayer& layer, const Configuration& factors, int32_t number,
                      std::span<const int32_t> devices) {
  OperatorSplit split;
  split.factors.assign(factors.begin() + 1, factors.end());
  const auto parts = static_cast<size_t>(product(split.factors));
  const auto count = static_cast<int32_t>(layer.dimensions[0].size);
  const auto group = static_cast<size_t>(number * factors[0] / count);
  split.devices.assign(devices.begin() + static_cast<std::ptrdiff_t>(group * parts),
                       devices.begin() + static_cast<std::ptrdiff_t>((group + 1) * parts));
  return split;
}

}  // namespace

Splits pase_splits(const Graph& graph, const PaseProblem& problem,
                   std::span<const Configuration> strategy, std::span<const int32_t> devices) {
  price_strategy(problem, strategy);  // checks it
  if (graph.fingerprint() != problem.graph.fingerprint)
    throw ArgumentError("pase: expected the layers of graph '{}', got another graph's", graph.name());
  if (devices.size() < static_cast<size_t>(problem.options.devices))
    throw ArgumentError("pase: expected {} devices, got {}", problem.options.devices, devices.size());
  Splits splits(static_cast<size_t>(graph.operator_count()));
  for (size_t i = 0; i < problem.graph.layers.size(); ++i) {
    const auto& layer = problem.graph.layers[i];
    const auto& factors = strategy[i];
    int32_t number = 0;  // index of an LSTM in its stack
    for (size_t k = 0; k < layer.operators.size(); ++k) {
      auto& split = splits[layer.operators[k]];
      const bool lstm = layer.kind == LayerKind::lstm;
      if (lstm && graph.op(layer.operators[k]).type == "LSTM") {
        split = stacked(layer, factors, number++, devices);
        continue;
      }
      const IterationSpace space = iteration_space(graph, layer.operators[k]);
      const bool first = k == 0 && !layer.contiguous;
      split.factors = first ? factors : followed(space, layer.written[k], factors);
      const int32_t whole =
          lstm ? product(splits[layer.operators[k - 1]].factors) : product(factors);
      split.copies = std::max(1, whole / product(split.factors));
      split.devices.assign(devices.begin(), devices.end());
      if (lstm) split.devices = splits[layer.operators[k - 1]].devices;
    }
  }
  return splits;
}

}  // namespace trinity
