#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "graph/training.h"

namespace trinity::test {

/// Builds graphs of operators with shapes; all but sources ("Input") have gradients.
class LayerMaker {
 public:
  /// adapt: may change an operator before it is added.
  explicit LayerMaker(std::string name, std::function<void(Operator&)> adapt = {})
      : builder(std::move(name)), adapt_(std::move(adapt)) {}

  /// Adds an operator with one output, which is returned, and a weight where its shape is given.
  int32_t add(const std::string& name, const char* type, std::vector<int32_t> inputs,
              std::vector<int64_t> shape, std::vector<int64_t> weight = {},
              Attributes attributes = {}) {
    Operator op;
    op.name = name;
    op.type = type;
    op.inputs = std::move(inputs);
    op.attributes = std::move(attributes);
    op.flops = weight.empty() ? 1e3 : 1e9;
    if (!weight.empty()) op.parameters.push_back({"weight", std::move(weight)});
    if (adapt_) adapt_(op);
    return output(builder.add_operator(std::move(op)), std::move(shape));
  }
  int32_t output(int32_t op, std::vector<int64_t> shape, DType dtype = DType::float32) {
    Tensor tensor;
    tensor.shape = std::move(shape);
    tensor.dtype = dtype;
    tensor.gradient = builder.op(op).type != "Input";
    return builder.add_output(op, std::move(tensor));
  }
  /// Adds an operator that gives `count` parts of a tensor along its first axis.
  std::vector<int32_t> split(const std::string& name, int32_t whole, int count,
                             const std::vector<int64_t>& shape) {
    Operator op;
    op.name = name;
    op.type = "Split";
    op.inputs = {whole};
    op.attributes = {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}};
    const int32_t id = builder.add_operator(std::move(op));
    std::vector<int32_t> parts;
    for (int part = 0; part < count; ++part) parts.push_back(output(id, shape));
    return parts;
  }
  /// The step that trains it.
  Graph train(TrainingOptions::Optimiser optimiser = TrainingOptions::Optimiser::momentum) {
    TrainingOptions options;
    options.optimiser = optimiser;
    return lower_to_training(builder.build(), options);
  }

  GraphBuilder builder;

 private:
  std::function<void(Operator&)> adapt_;
};

}  // namespace trinity::test
