#include "graph/operator_types.h"

#include <array>

namespace trinity {
namespace {

using F = OperatorRule::Flops;

constexpr OperatorRule kElementwise = {"", F::per_output, 1, 1, false, true, false};

constexpr std::array kRules = {
    // type, flops, factor, backward factor, matrix, saves input, saves output
    OperatorRule{"Input", F::none, 0, 0, false, false, false, true},
    OperatorRule{"Conv", F::convolution, 2, 2, true, true, false},
    OperatorRule{"Gemm", F::product, 2, 2, true, true, false},
    OperatorRule{"MatMul", F::product, 2, 2, true, true, false},
    OperatorRule{"LSTM", F::none, 0, 2, true, true, true},
    OperatorRule{"BatchNormalization", F::per_output, 8, 1.5, false, true, false},
    OperatorRule{"Relu", F::per_output, 1, 1, false, false, true},
    OperatorRule{"MaxPool", F::window, 1, 1, false, true, true},
    OperatorRule{"AveragePool", F::window, 1, 1, false, false, false},
    OperatorRule{"GlobalAveragePool", F::per_input, 1, 1, false, false, false},
    OperatorRule{"Dropout", F::per_output, 2, 1, false, false, true},
    OperatorRule{"Add", F::per_output, 1, 0, false, false, false},
    OperatorRule{"Concat", F::none, 0, 0, false, false, false},
    OperatorRule{"Flatten", F::none, 0, 0, false, false, false, true},
    OperatorRule{"Reshape", F::none, 0, 0, false, false, false, true},
    OperatorRule{"Softmax", F::per_output, 5, 1, false, false, true},
    OperatorRule{"SoftmaxCrossEntropyLoss", F::per_input, 5, 0.5, false, true, false},
    OperatorRule{"Gather", F::none, 0, 0, false, true, false},
};

double elements(std::span<const Tensor* const> tensors, size_t index) {
  return index < tensors.size() ? static_cast<double>(tensors[index]->elements()) : 0.0;
}

/// Weight elements that one output element is a sum over: those of the first parameter divided by
/// its first extent (ONNX keeps output channels first in Conv and Gemm with transB).
double reduced_by_weight(const Operator& op) {
  if (op.parameters.empty() || op.parameters[0].shape.empty()) return 0;
  return static_cast<double>(op.parameters[0].elements()) /
         static_cast<double>(op.parameters[0].shape[0]);
}

double kernel_area(const Operator& op) {
  const auto found = op.attributes.find("kernel_shape");
  if (found == op.attributes.end()) return 1;
  double area = 1;
  if (const auto* extents = std::get_if<std::vector<int64_t>>(&found->second))
    for (const int64_t extent : *extents) area *= static_cast<double>(extent);
  return area;
}

}  // namespace

const OperatorRule& operator_rule(std::string_view type) {
  if (type.ends_with("Grad")) type.remove_suffix(4);
  for (const auto& rule : kRules)
    if (type == rule.type) return rule;
  return kElementwise;
}

double forward_flops(const Operator& op, std::span<const Tensor* const> inputs,
                     std::span<const Tensor* const> outputs) {
  const auto& rule = operator_rule(op.type);
  switch (rule.flops) {
    case F::none:
      return 0;
    case F::per_output:
      return rule.factor * elements(outputs, 0);
    case F::per_input:
      return rule.factor * elements(inputs, 0);
    case F::window:
      return rule.factor * elements(outputs, 0) * kernel_area(op);
    case F::convolution:
      return rule.factor * elements(outputs, 0) * reduced_by_weight(op);
    case F::product: {
      if (!op.parameters.empty()) return rule.factor * elements(outputs, 0) * reduced_by_weight(op);
      const bool shaped = !inputs.empty() && !inputs[0]->shape.empty();
      return shaped
                 ? rule.factor * elements(outputs, 0) * static_cast<double>(inputs[0]->shape.back())
                 : 0;
    }
  }
  return 0;
}

}  // namespace trinity
