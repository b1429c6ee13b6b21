#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/training.h"

namespace trinity::test {

/// What a graph of layers has beside them.
struct LayeredOptions {
  bool mask = false;  ///< a source that all layers read
  /// A last product of an odd width and its loss, which devices cut in unequal parts.
  bool head = false;
};

/// Layers of two products each, as a training step. adapt: may change an operator before it is
/// added; residual: asked of every layer whether its input is added to its output.
inline Graph layered_graph(int layers = 4, const std::function<void(Operator&)>& adapt = {},
                           const std::function<bool()>& residual = {},
                           const LayeredOptions& options = {}) {
  GraphBuilder builder("layered");
  const auto add = [&](const std::string& name, const char* type, std::vector<int32_t> inputs,
                       std::vector<int64_t> shape, std::vector<int64_t> weight = {}) {
    Operator op;
    op.name = name;
    op.type = type;
    op.inputs = std::move(inputs);
    op.flops = weight.empty() ? 1e3 : 1e9;
    if (!weight.empty()) {
      op.attributes["transB"] = int64_t{1};
      op.parameters.push_back({"weight", std::move(weight), DType::float32, true});
    }
    if (adapt) adapt(op);
    const int32_t id = builder.add_operator(std::move(op));
    Tensor tensor;
    tensor.shape = std::move(shape);
    tensor.gradient = std::string(type) != "Input";
    return builder.add_output(id, std::move(tensor));
  };
  int32_t x = add("x", "Input", {}, {8, 16});
  const int32_t mask = options.mask ? add("mask", "Input", {}, {8, 32}) : -1;
  for (int layer = 1; layer <= layers; ++layer) {
    const auto name = fmt::format("block_{}/", layer);
    int32_t y = add(name + "up", "Gemm", {x}, {8, 32}, {32, 16});
    if (options.mask) y = add(name + "mask", "Mul", {y, mask}, {8, 32});
    y = add(name + "relu", "Relu", {y}, {8, 32});
    y = add(name + "down", "Gemm", {y}, {8, 16}, {16, 32});
    x = residual && residual() ? add(name + "sum", "Add", {x, y}, {8, 16}) : y;
  }
  if (options.head) {
    x = add("head", "Gemm", {x}, {8, 33}, {33, 16});
    add("loss", "SoftmaxCrossEntropyLoss", {x, add("labels", "Input", {}, {8})}, {1});
  }
  TrainingOptions training;
  training.optimiser = TrainingOptions::Optimiser::adam;
  return lower_to_training(builder.build(), training);
}

}  // namespace trinity::test
