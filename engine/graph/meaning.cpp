#include "graph/meaning.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/index.h"
#include "graph/operator_types.h"

namespace trinity {
namespace {

bool is_sum(const Operator& op) { return op.phase == Phase::backward && op.type == "Sum"; }

/// Infers what the training lowering (graph/training.h) did.
class Meaning {
 public:
  explicit Meaning(const Graph& graph)
      : graph_(graph),
        gradients_(at(graph.operator_count())),
        backward_(at(graph.operator_count()), -1),
        wanted_(graph.tensors().size(), false),
        sum_of_(graph.tensors().size(), -1) {
    find_gradients();
  }

  Graph run() {
    GraphBuilder builder(graph_);
    for (int32_t id = 0; id < graph_.operator_count(); ++id) state(id, builder.op(id));
    return builder.build();
  }

 private:
  void state(int32_t id, Operator& op) const {
    op.attributes[kSource] = op.name;
    if (op.type == "Input" && !op.outputs.empty())
      op.attributes["index_bound"] = index_bound(graph_.op(id).outputs[0]);
    if (op.phase == Phase::update) op.attributes["optimiser"] = std::string(optimiser(op));
    if (op.phase != Phase::backward || is_sum(op)) return;
    op.attributes["gradient_outputs"] = gradients_[id].outputs;
    op.attributes["gradient_inputs"] = gradients_[id].inputs;
    op.attributes["gradient_weights"] = int64_t{gradients_[id].weights};
  }

  /// Inferred from its state: none, one or two numbers per weight, plus a float32 copy of
  /// half-precision weights.
  const char* optimiser(const Operator& update) const {
    if (update.forward < 0 || update.persistent_bytes == 0) return "sgd";
    const auto& forward = graph_.op(update.forward);
    int64_t copy = 0;
    for (const auto& parameter : forward.parameters)
      if (parameter.trainable && dtype_bytes(parameter.dtype) == 2)
        copy += parameter.elements() * dtype_bytes(DType::float32);
    const int64_t each = std::max<int64_t>(1, copy > 0 ? copy : forward.trainable_bytes());
    const int64_t states = (update.persistent_bytes - copy) / each;
    return states <= 0 ? "sgd" : states == 1 ? "momentum" : "adam";
  }

  void find_gradients() {
    for (int32_t id = 0; id < graph_.operator_count(); ++id) {
      const auto& op = graph_.op(id);
      if (is_sum(op))
        for (const int32_t part : op.inputs) sum_of_[part] = op.outputs[0];
      else if (op.phase == Phase::backward && op.forward >= 0)
        backward_[op.forward] = id;
      if (op.phase != Phase::forward) continue;
      bool wants = op.trainable_bytes() > 0;
      for (const int32_t input : op.inputs) wants = wants || wanted_[input];
      for (const int32_t output : op.outputs)
        wanted_[output] = wants && graph_.tensor(output).gradient;
    }
    std::vector<std::vector<int32_t>> arrived(graph_.tensors().size());
    for (int32_t id = graph_.operator_count() - 1; id >= 0; --id)
      if (graph_.op(id).phase == Phase::forward) find_gradient(id, arrived);
  }

  /// Inputs that need a gradient, each tensor once, in argument order.
  std::vector<int64_t> wanted_inputs(int32_t op) const {
    const auto& inputs = graph_.op(op).inputs;
    std::vector<int64_t> result;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto end = inputs.begin() + static_cast<std::ptrdiff_t>(i);
      if (wanted_[inputs[i]] && std::find(inputs.begin(), end, inputs[i]) == end)
        result.push_back(static_cast<int64_t>(i));
    }
    return result;
  }

  /// Traverses as the lowering did. `arrived`: gradients that readers contribute to a tensor.
  void find_gradient(int32_t forward, std::vector<std::vector<int32_t>>& arrived) {
    const auto& op = graph_.op(forward);
    std::vector<int64_t> outputs;
    int32_t passed = -1;
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const auto& parts = arrived[op.outputs[i]];
      if (parts.empty()) continue;
      outputs.push_back(static_cast<int64_t>(i));
      passed = parts.size() == 1 ? parts[0] : sum_of_[parts[0]];
    }
    const int32_t id = backward_[forward];
    if (id < 0) {  // no operator: the gradient is passed on unmodified
      if (!outputs.empty())
        for (const int32_t input : op.inputs)
          if (wanted_[input]) arrived[input].push_back(passed);
      return;
    }
    auto& gradient = gradients_[id];
    gradient = {std::move(outputs), wanted_inputs(forward), op.trainable_bytes() > 0};
    const auto& given = graph_.op(id).outputs;
    const size_t expected = gradient.inputs.size() + (gradient.weights ? 1 : 0);
    if (given.size() != expected)
      throw ArgumentError("graph {}: operator {} has {} outputs, expected {} gradients", graph_.name(),
                          graph_.op(id).name, given.size(), expected);
    for (size_t i = 0; i < gradient.inputs.size(); ++i)
      arrived[op.inputs[at(gradient.inputs[i])]].push_back(given[i]);
  }

  int64_t bound_of_reader(int32_t id, int32_t tensor) const {
    const auto& op = graph_.op(id);
    const auto shape = [&](size_t input) { return graph_.tensor(op.inputs[input]).shape; };
    if (op.type == "Gather") {
      const auto data = op.parameters.empty() ? shape(0) : op.parameters[0].shape;
      const int64_t axis = integer_attribute(op.attributes, "axis", 0);
      return data.at(at(axis < 0 ? axis + static_cast<int64_t>(data.size()) : axis));
    }
    if (op.type == "ScatterND") return shape(0).at(0);
    if (op.type == "SoftmaxCrossEntropyLoss") {
      const auto logits = shape(0), labels = shape(1);
      const bool second = labels.size() > 1 && logits.at(1) != labels[1];
      return second ? logits[1] : logits.back();
    }
    static const std::set<std::string> moves = {"Reshape", "Flatten",   "Slice",     "Split",
                                                "Concat",  "Expand",    "Transpose", "Identity",
                                                "Squeeze", "Unsqueeze", "Cast"};
    int64_t least = std::numeric_limits<int64_t>::max();
    if (moves.contains(op.type) && op.phase == Phase::forward && tensor >= 0)
      for (const int32_t output : op.outputs) least = std::min(least, index_bound(output));
    return least;
  }

  /// Minimum extent that any reader indexes with the integers of a tensor.
  int64_t index_bound(int32_t tensor) const {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const int32_t reader : graph_.readers_of(tensor))
      if (graph_.op(reader).phase == Phase::forward) least = std::min(least, bound_of_reader(reader, tensor));
    return least;
  }

  const Graph& graph_;
  std::vector<Gradient> gradients_;
  std::vector<int32_t> backward_;
  std::vector<bool> wanted_;     // [tensor]: a gradient flows to it
  std::vector<int32_t> sum_of_;  // [tensor that a sum reads]: the sum's output
};

}  // namespace

Graph state_meaning(const Graph& training) {
  if (!training.collectives().empty())
    throw ArgumentError("graph {}: collectives cannot be executed, expected a graph of one replica", training.name());
  for (const auto& op : training.operators()) {
    const bool again = op.phase == Phase::backward && op.forward >= 0 && !is_sum(op) &&
                       op.type == training.op(op.forward).type;
    if (again)
      throw ArgumentError("graph {}: operator {} is recomputed already; use recompute = 'full' of a strategy instead",
                          training.name(), op.name);
  }
  return Meaning(training).run();
}

bool has_meaning(const Graph& graph) {
  return std::any_of(graph.operators().begin(), graph.operators().end(),
                     [](const Operator& op) { return has_meaning(op); });
}

std::string text_attribute(const Operator& op, const std::string& name) {
  const auto* text = find_attribute<std::string>(op.attributes, name);
  return text ? *text : std::string();
}

std::vector<int64_t> list_attribute(const Operator& op, const std::string& name) {
  const auto* list = find_attribute<std::vector<int64_t>>(op.attributes, name);
  return list ? *list : std::vector<int64_t>();
}

double number_attribute(const Operator& op, const std::string& name, double fallback) {
  const auto* value = find_attribute<double>(op.attributes, name);
  return value ? *value : fallback;
}

}  // namespace trinity
