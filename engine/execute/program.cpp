#include "execute/program.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.h"

namespace trinity {

Program::Program(std::shared_ptr<const Graph> graph) : graph_(std::move(graph)) {
  if (!graph_->collectives().empty())
    throw ArgumentError(
        fmt::format("graph {}: collectives cannot be executed, expected a graph of one replica",
                    graph_->name()));
  for (const auto& op : graph_->operators())
    if (op.type == "VariableV2")
      throw ArgumentError(
          fmt::format("graph {}: operations of granularity 'framework' say what they cost, not all "
                      "that they compute: execute the network with granularity = 'layer'",
                      graph_->name()));
  find_kernels();
  find_gradients();
}

bool Program::is_sum(int32_t op) const {
  const auto& of = graph_->op(op);
  return of.phase == Phase::backward && of.type == "Sum";
}

void Program::find_kernels() {
  std::set<std::string> unknown;
  for (int32_t id = 0; id < graph_->operator_count(); ++id) {
    const auto& op = graph_->op(id);
    const bool runs = (op.phase == Phase::forward && op.type != "Input") || is_sum(id);
    kernels_.push_back(runs ? find_kernel(op.type) : nullptr);
    if (runs && !kernels_.back()) unknown.insert(op.type);
    if (op.phase == Phase::forward && op.measured())
      throw ArgumentError(fmt::format(
          "graph {}: operator {} is known by its measured time alone and cannot be executed",
          graph_->name(), op.name));
  }
  if (!unknown.empty())
    throw ArgumentError(fmt::format("graph {}: no kernel for operator type{} {}", graph_->name(),
                                    unknown.size() > 1 ? "s" : "", fmt::join(unknown, ", ")));
}

/// Inputs that want a gradient, each once, in argument order.
std::vector<int32_t> Program::wanted_inputs(int32_t op) const {
  std::vector<int32_t> result;
  for (const int32_t input : graph_->op(op).inputs)
    if (wanted_[input] && std::find(result.begin(), result.end(), input) == result.end())
      result.push_back(input);
  return result;
}

void Program::find_gradients() {
  const auto operators = static_cast<size_t>(graph_->operator_count());
  gradients_.resize(operators);
  backward_.assign(operators, -1);
  wanted_.assign(graph_->tensors().size(), false);
  sum_of_.assign(graph_->tensors().size(), -1);
  for (int32_t id = 0; id < graph_->operator_count(); ++id) {
    const auto& op = graph_->op(id);
    if (is_sum(id))
      for (const int32_t part : op.inputs) sum_of_[part] = op.outputs[0];
    else if (op.phase == Phase::backward)
      backward_.at(static_cast<size_t>(op.forward)) = id;
    if (op.phase != Phase::forward) continue;
    bool wants = op.trainable_bytes() > 0;
    for (const int32_t input : op.inputs) wants = wants || wanted_[input];
    for (const int32_t output : op.outputs)
      wanted_[output] = wants && graph_->tensor(output).gradient;
  }
  std::vector<std::vector<int32_t>> arrived(graph_->tensors().size());
  for (int32_t id = graph_->operator_count() - 1; id >= 0; --id)
    if (graph_->op(id).phase == Phase::forward) find_gradient(id, arrived);
}

/// Walks as the lowering did: `arrived` are the gradients that readers contribute to a tensor.
void Program::find_gradient(int32_t forward, std::vector<std::vector<int32_t>>& arrived) {
  const auto& op = graph_->op(forward);
  std::vector<int32_t> outputs;
  int32_t passed = -1;
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    const auto& parts = arrived[op.outputs[i]];
    if (parts.empty()) continue;
    outputs.push_back(static_cast<int32_t>(i));
    passed = parts.size() == 1 ? parts[0] : sum_of_[parts[0]];
  }
  const int32_t id = backward_[forward];
  if (id < 0) {  // nothing is computed: the gradient goes on as it is
    if (!outputs.empty())
      for (const int32_t input : op.inputs)
        if (wanted_[input]) arrived[input].push_back(passed);
    return;
  }
  if (graph_->op(id).unit != op.unit)
    throw ArgumentError(
        fmt::format("graph {}: {} and its backward operator may lie apart, expected them in one "
                    "colocation unit",
                    graph_->name(), op.name));
  auto& gradient = gradients_[id];
  gradient = {std::move(outputs), wanted_inputs(forward), op.trainable_bytes() > 0};
  const auto& given = graph_->op(id).outputs;
  if (given.size() != gradient.inputs.size() + (gradient.weights ? 1 : 0))
    throw ArgumentError(fmt::format("graph {}: operator {} has {} outputs, expected {} gradients",
                                    graph_->name(), graph_->op(id).name, given.size(),
                                    gradient.inputs.size() + (gradient.weights ? 1 : 0)));
  for (size_t i = 0; i < gradient.inputs.size(); ++i)
    arrived[gradient.inputs[i]].push_back(given[i]);
}

int64_t Program::bound_of_reader(int32_t id, int32_t tensor) const {
  const auto& op = graph_->op(id);
  const auto shape = [&](size_t input) { return graph_->tensor(op.inputs[input]).shape; };
  constexpr int64_t any = std::numeric_limits<int64_t>::max();
  if (op.type == "Gather") {
    const auto data = op.parameters.empty() ? shape(0) : op.parameters[0].shape;
    const int64_t axis = integer_attribute(op.attributes, "axis", 0);
    return data.at(static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(data.size()) : axis));
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
  int64_t least = any;
  if (moves.contains(op.type) && op.phase == Phase::forward && tensor >= 0)
    for (const int32_t output : op.outputs) least = std::min(least, index_bound(output));
  return least;
}

int64_t Program::index_bound(int32_t tensor) const {
  int64_t least = std::numeric_limits<int64_t>::max();
  const int32_t producer = graph_->tensor(tensor).producer;
  const auto [edge, end] = boost::out_edges(producer, graph_->csr());
  for (auto e = edge; e != end; ++e) {
    if (graph_->csr()[*e].tensor != tensor) continue;
    const auto reader = static_cast<int32_t>(boost::target(*e, graph_->csr()));
    if (graph_->op(reader).phase == Phase::forward)
      least = std::min(least, bound_of_reader(reader, tensor));
  }
  return least;
}

}  // namespace trinity
