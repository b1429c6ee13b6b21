#include "formats/onnx/onnx_walk.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/stop.h"
#include "formats/onnx/onnx_fold.h"
#include "formats/onnx/onnx_literal.h"
#include "formats/onnx/onnx_shapes.h"

namespace trinity::onnx_import {
namespace {

constexpr int32_t kMaxElement = 100;  // types beyond are not ONNX's

/// Makes other numbers at every run.
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

  Findings run() {
    for (const int32_t input : model_.inputs) enter(model_.value(input));
    for (size_t i = 0; i < model_.values.size(); ++i) weigh(static_cast<int32_t>(i));
    StopPoll stop;
    for (auto& node : model_.nodes) {
      visit(node);
      stop.step();
    }
    return std::move(findings_);
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

  /// Initializers that may be weights.
  void weigh(int32_t id) {
    auto& value = model_.value(id);
    if (!value.initializer || value.shape->empty()) return;
    if (!is_floating(value.element) && !is_small_integer(value.element)) return;
    value.role = Role::weight;
    value.origin = id;
  }

  void visit(Node& node) {
    if (node.type == "Constant") {
      take_constant(node);
    } else {
      infer(node);
    }
    if (node.standard()) fold_numbers(model_, node);
    assign_role(node);
  }

  void take_constant(Node& node) {
    auto constant = constant_value(model_, node);
    auto& value = model_.value(first_output(node));
    value.element = constant.element;
    value.shape = std::move(constant.shape);
    value.literal = std::move(constant.literal);
  }

  void infer(Node& node) {
    View view(model_, node);
    try {
      if (const auto rule = node.standard() ? shape_rule(node.type) : nullptr)
        rule(view);
      else if (node.type == "If")
        take_branch(view);
    } catch (const ShapeMismatch& mismatch) {
      note_mismatch(node, mismatch.text);
    }
    if (!view.fits()) note_mismatch(node, view.noted());
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] >= 0)
        settle(node, model_.value(node.outputs[i]), view.result(i), view.result_element(i));
  }

  void note_mismatch(const Node& node, const std::string& text) {
    findings_.mismatches.add(
        fmt::format("node '{}' ({}): {}", clip(node.name), clip(node.type), text));
  }

  /// An If's outputs have the shapes that its first branch declares.
  void take_branch(View& view) {
    const auto* branch = view.node().attribute("then_branch");
    if (!branch || static_cast<size_t>(branch->g().output_size()) != view.outputs()) return;
    for (size_t i = 0; i < view.outputs(); ++i) {
      const auto& tensor = branch->g().output(static_cast<int>(i)).type().tensor_type();
      view.set_element(i, element_of(tensor.elem_type()));
      Shape shape;
      bool known = tensor.has_shape();
      for (const auto& dimension : tensor.shape().dim()) {
        const auto extent =
            known && shape.size() < kMaxRank ? dimensions_.known(dimension) : std::nullopt;
        known = extent.has_value();
        shape.push_back(extent.value_or(0));
      }
      if (known) view.set(i, std::move(shape));
    }
  }

  void settle(const Node& node, Value& value, const std::optional<Shape>& inferred,
              int32_t element) {
    value.element = element;
    value.shape = inferred;
    if (value.declared && value.declared->has_tensor_type()) {
      const auto& tensor = value.declared->tensor_type();
      if (element_of(tensor.elem_type()) != 0) value.element = tensor.elem_type();
      if (tensor.has_shape()) value.shape = merge(value, tensor.shape(), inferred);
    }
    if (!value.shape) return;
    for (int64_t& extent : *value.shape)
      if (extent == kOpen) extent = dimensions_.open();
    if (const auto problem = shape_problem(*value.shape, value.element); !problem.empty())
      model_.fail(node, fmt::format("value '{}' {}", clip(value.name), problem));
  }

  /// What the file says, completed by what was inferred.
  Shape merge(const Value& value, const onnx::TensorShapeProto& declared,
              const std::optional<Shape>& inferred) {
    const auto rank = static_cast<size_t>(declared.dim_size());
    if (rank == 0 && inferred) return *inferred;  // some exporters mean "unknown"
    const bool comparable = inferred && inferred->size() == rank;
    Shape shape;
    bool differs = inferred && !comparable;
    for (size_t i = 0; i < std::min(rank, kMaxRank + 1); ++i) {
      const auto& dimension = declared.dim(static_cast<int>(i));
      const int64_t own = comparable ? (*inferred)[i] : kOpen;
      if (!dimension.has_dim_value() && own != kOpen)
        shape.push_back(own);
      else
        shape.push_back(dimensions_.known(dimension).value_or(kOpen));
      differs = differs || (own != kOpen && shape.back() != own);
    }
    if (differs)
      findings_.conflicts.add(fmt::format("value '{}': {} against {}", clip(value.name),
                                          describe(shape), describe(*inferred)));
    return shape;
  }

  void assign_role(Node& node) {
    const auto& first = model_.value(first_output(node));
    if (node.type == "Identity" && names_weight(node)) return;
    if (node.type == "ConstantOfShape" && fills_weight(node)) return;
    const bool measures = (node.type == "Shape" || node.type == "Size") && first.literal;
    if (!measures && !reads_constants_only(node)) return;
    node.folded = true;
    for (const int32_t output : node.outputs)
      if (output >= 0) model_.value(output).role = Role::constant;
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

  /// Exporters write Identity where several parameters are one initializer.
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

  /// A stripped weight: ONNX's "light" models put ConstantOfShape of an initializer in its place.
  bool fills_weight(Node& node) {
    const int32_t output = node.outputs.front();
    if (node.inputs.empty() || node.inputs[0] < 0 || node.outputs.size() != 1) return false;
    auto& value = model_.value(output);
    if (!model_.value(node.inputs[0]).initializer || !value.shape || value.shape->empty() ||
        !is_floating(value.element))
      return false;
    value.role = Role::weight;
    value.origin = output;
    value.literal = nullptr;
    node.folded = true;
    return true;
  }

  Model& model_;
  Dimensions& dimensions_;
  Findings findings_;
};

}  // namespace

Findings walk(Model& model, Dimensions& dimensions) { return Walker(model, dimensions).run(); }

bool is_control_flow(const Node& node) {
  return node.type == "If" || node.type == "Loop" || node.type == "Scan";
}

}  // namespace trinity::onnx_import
