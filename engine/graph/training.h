#pragma once

#include <optional>

#include "graph/graph.h"

namespace trinity {

/// How to turn a forward graph into the graph of one training step.
struct TrainingOptions {
  /// Which operators share a device. `forward`: backward and update operators follow their forward
  /// operator (TensorFlow's colocate_gradients_with_ops). `parameters`: only if the forward
  /// operator owns weights; other backward operators may be placed freely.
  enum class Colocate { forward, parameters } colocate = Colocate::forward;
  /// Optimiser state: sgd 0, momentum 1, adam 2 times the weight's bytes.
  enum class Optimiser { sgd, momentum, adam } optimiser = Optimiser::momentum;
  /// Type of weight gradients; none: the weights' type. (Megatron-LM accumulates gradients of
  /// bfloat16 weights in float32.)
  std::optional<DType> gradient = std::nullopt;
};

template <>
inline constexpr auto kWords<TrainingOptions::Colocate> = words("colocation", "forward", "parameters");
template <>
inline constexpr auto kWords<TrainingOptions::Optimiser> = words("optimiser", "sgd", "momentum", "adam");

/// Adds the backward pass and the updates to a forward graph. For every operator on a path to a
/// sink it adds
///
///   - a backward operator `<name>/grad` that reads the gradients of its outputs and the forward
///     tensors that its type needs, and writes the gradient of every input that needs one;
///   - `<name>/grad_sum` if a tensor's gradient arrives from several readers (part of the backward
///     operator for measured operators, whose profile has no such step);
///   - `<name>/update` for every operator with weights, which reads their gradient.
///
/// Backward FLOP follow operator_rule(); a measured operator's backward takes its
/// measured_backward_time_s. Backward keeps only the mask of a Dropout that writes one, and all
/// outputs of an Attention with attribute log_sum_exp. Gradients of float8 tensors are bfloat16.
/// Attribute own_products = 1: an element-wise operator's gradients are kernels of their own.
/// Backward operators of a collective's members form a collective `<name>/grad` of the opposite
/// kind. Throws ArgumentError if the graph already has backward operators.
Graph lower_to_training(const Graph& forward, const TrainingOptions& options);

/// A forward graph with one operator per layer that takes the time of its forward and backward pass
/// together, as Placeto's simulator reads a profile: measured times are summed, the loader time of
/// attribute `loader_time_s` is added, and operators keep their order in the file (attribute
/// `file_position`). Weights, outputs and readers are unchanged. Throws ArgumentError for a graph
/// with backward operators or collectives, and for an operator without measured times (it names
/// it).
Graph fold_backward(const Graph& forward);

}  // namespace trinity
