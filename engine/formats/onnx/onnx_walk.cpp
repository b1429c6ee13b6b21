#include "formats/onnx/onnx_walk.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/error.h"
#include "base/stop.h"

namespace trinity::onnx_import {
namespace {

constexpr int32_t kMaxElement = 100;  // larger values are not ONNX types

/// True for nodes with different results in every run.
bool is_random(const Node& node) {
  constexpr std::array<std::string_view, 6> types = {"RandomNormal",     "RandomUniform",
                                                     "RandomNormalLike", "RandomUniformLike",
                                                     "Bernoulli",        "Multinomial"};
  return std::find(types.begin(), types.end(), node.type) != types.end();
}

/// Every node has one.
int32_t first_output(const Node& node) {
  return *std::find_if(node.outputs.begin(), node.outputs.end(),
                       [](int32_t id) { return id >= 0; });
}

class Walker {
 public:
  Walker(Model& model, Dimensions& dimensions) : model_(model), dimensions_(dimensions) {}

  void run() {
    for (const int32_t input : model_.inputs) enter(model_.value(input));
    for (size_t i = 0; i < model_.values.size(); ++i) weigh(static_cast<int32_t>(i));
    for (const auto& node : model_.nodes) read_outputs(node);
    complete_shapes(model_);
    StopPoll stop;
    for (auto& node : model_.nodes) {
      settle_outputs(node);
      assign_role(node);
      stop.step();
    }
  }

 private:
  void enter(Value& value) {
    const auto& tensor = value.declared->tensor_type();
    value.element = element_of(tensor.elem_type());
    if (tensor.has_shape())
      value.shape =
          dimensions_.input_shape(tensor.shape(), value.element,
                                  fmt::format("{}: input '{}'", model_.source, clip(value.name)));
  }

  static int32_t element_of(int32_t element) {
    return element > 0 && element < kMaxElement ? element : 0;
  }

  /// Marks initializers that may be weights.
  void weigh(int32_t id) {
    auto& value = model_.value(id);
    if (!value.initializer || value.shape->empty()) return;
    if (!is_floating(value.element) && !is_small_integer(value.element)) return;
    value.role = Role::weight;
    value.origin = id;
  }

  /// Reads the outputs' declared shapes; open dimensions are kOpen.
  void read_outputs(const Node& node) {
    for (const int32_t output : node.outputs) {
      if (output < 0) continue;
      auto& value = model_.value(output);
      if (node.type == "Constant") std::tie(value.element, value.shape) = constant_type(model_, node);
      if (node.type == "Constant" || !value.declared) continue;
      const auto& tensor = value.declared->tensor_type();
      value.element = element_of(tensor.elem_type());
      if (!tensor.has_shape()) continue;
      Shape shape;
      for (const auto& dimension : tensor.shape().dim())
        if (shape.size() <= kMaxRank) shape.push_back(dimensions_.known(dimension).value_or(kOpen));
      value.shape = std::move(shape);
    }
  }

  void settle_outputs(const Node& node) {
    for (const int32_t output : node.outputs) {
      if (output < 0 || !model_.value(output).shape) continue;
      auto& value = model_.value(output);
      for (int64_t& extent : *value.shape)
        if (extent == kOpen) extent = dimensions_.open();
      if (const auto problem = shape_problem(*value.shape, value.element); !problem.empty())
        model_.fail(node, fmt::format("value '{}' {}", clip(value.name), problem));
    }
  }

  void assign_role(Node& node) {
    if (node.type == "Identity" && names_weight(node)) return;
    if (node.type == "ConstantOfShape" && fills_weight(node)) return;
    if (!measures(node) && !reads_constants_only(node)) return;
    node.folded = true;
    for (const int32_t output : node.outputs)
      if (output >= 0) model_.value(output).role = Role::constant;
  }

  bool measures(const Node& node) const {
    return (node.type == "Shape" || node.type == "Size") && !node.inputs.empty() &&
           node.inputs[0] >= 0 && model_.value(node.inputs[0]).shape;
  }

  bool reads_constants_only(const Node& node) const {
    if (is_random(node) || is_control_flow(node)) return false;
    bool any = node.type == "Constant";
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] < 0) continue;
      any = true;
      if (model_.value(node.inputs[i]).role == Role::activation || reads_weight(model_, node, i))
        return false;
    }
    return any;
  }

  /// Exporters write Identity if several parameters are one initializer.
  bool names_weight(Node& node) {
    if (node.inputs.empty() || node.inputs[0] < 0 || node.outputs.size() != 1) return false;
    const auto& source = model_.value(node.inputs[0]);
    if (source.role != Role::weight) return false;
    auto& value = model_.value(first_output(node));
    value.role = Role::weight;
    value.origin = source.origin;
    value.shape = source.shape;
    value.element = source.element;
    node.folded = true;
    return true;
  }

  /// True for a stripped weight: ONNX's "light" models replace it by ConstantOfShape of an
  /// initializer.
  bool fills_weight(Node& node) {
    const int32_t output = node.outputs.front();
    if (node.inputs.empty() || node.inputs[0] < 0 || node.outputs.size() != 1) return false;
    auto& value = model_.value(output);
    if (!model_.value(node.inputs[0]).initializer || !value.shape || value.shape->empty() ||
        !is_floating(value.element))
      return false;
    value.role = Role::weight;
    value.origin = output;
    node.folded = true;
    return true;
  }

  Model& model_;
  Dimensions& dimensions_;
};

}  // namespace

void walk(Model& model, Dimensions& dimensions) { Walker(model, dimensions).run(); }

bool is_control_flow(const Node& node) {
  return node.type == "If" || node.type == "Loop" || node.type == "Scan";
}

}  // namespace trinity::onnx_import
