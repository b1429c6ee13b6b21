#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "graph/training.h"

namespace trinity::test {

/// Four layers of two products each, as a training step.
inline Graph layered_graph() {
  GraphBuilder builder("layered");
  const auto add = [&](const std::string& name, const char* type, std::vector<int32_t> inputs,
                       int64_t width, std::vector<int64_t> weight = {}) {
    Operator op;
    op.name = name;
    op.type = type;
    op.inputs = std::move(inputs);
    op.attributes["transB"] = int64_t{1};
    op.flops = weight.empty() ? 1e3 : 1e9;
    if (!weight.empty())
      op.parameters.push_back({"weight", std::move(weight), DType::float32, true});
    const int32_t id = builder.add_operator(std::move(op));
    Tensor tensor;
    tensor.shape = {8, width};
    tensor.gradient = std::string(type) != "Input";
    return builder.add_output(id, std::move(tensor));
  };
  int32_t x = add("x", "Input", {}, 16);
  for (int layer = 1; layer <= 4; ++layer) {
    const auto name = fmt::format("block_{}/", layer);
    x = add(name + "up", "Gemm", {x}, 32, {32, 16});
    x = add(name + "relu", "Relu", {x}, 32);
    x = add(name + "down", "Gemm", {x}, 16, {16, 32});
  }
  TrainingOptions options;
  options.optimiser = TrainingOptions::Optimiser::adam;
  return lower_to_training(builder.build(), options);
}

}  // namespace trinity::test
