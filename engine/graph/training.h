#pragma once

#include <optional>
#include <string>

#include "graph/graph.h"

namespace trinity {

/// How a forward graph becomes the graph of one training step.
struct TrainingOptions {
  /// Which operators share a device. `forward`: backward and update follow their forward operator
  /// (TensorFlow's colocate_gradients_with_ops). `parameters`: only where the forward operator owns
  /// weights, so that other backward operators may be placed freely.
  enum class Colocate { forward, parameters } colocate = Colocate::forward;
  /// State kept per weight: sgd 0, momentum 1, adam 2 times the weight's bytes.
  enum class Optimiser { sgd, momentum, adam } optimiser = Optimiser::momentum;
  /// Of the gradients of weights; none: that of the weights. (Megatron-LM adds those of bfloat16
  /// weights up in float32.)
  std::optional<DType> gradient = std::nullopt;
};

/// Both throw ArgumentError naming the accepted words.
TrainingOptions::Colocate parse_colocate(std::string_view name);
TrainingOptions::Optimiser parse_optimiser(std::string_view name);

/// Adds to a forward graph, for every operator on the way to a sink: a backward operator
/// `<name>/grad` that reads the gradients of its outputs and the forward tensors its type needs,
/// and writes the gradient of every input that wants one; `<name>/grad_sum` where a tensor's
/// gradient arrives from several readers (folded into the backward operator for measured
/// operators, whose profile has no such step); `<name>/update` for every operator with weights,
/// reading their gradient. Backward FLOP follow operator_rule(); a measured operator's backward
/// takes its measured_backward_time_s. A Dropout that writes a mask keeps that alone, an Attention
/// that writes the logarithms of its sums (attribute log_sum_exp) all of its outputs. Gradients of
/// float8 tensors are bfloat16. Backward operators of a collective's members form a collective
/// `<name>/grad` of the opposite kind. Throws ArgumentError when the graph has backward operators
/// already.
Graph lower_to_training(const Graph& forward, const TrainingOptions& options);

}  // namespace trinity
