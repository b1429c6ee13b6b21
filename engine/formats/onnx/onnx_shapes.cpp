#include "formats/onnx/onnx_shapes.h"

#include <algorithm>

#include "formats/onnx/onnx_literal.h"

namespace trinity::onnx_import {
namespace {

using onnx::TensorProto;

constexpr int64_t kMaxSetting = int64_t{1} << 31;  // of strides, pads, kernels, ...

std::map<std::string_view, ShapeRule> all_rules() {
  std::map<std::string_view, ShapeRule> rules;
  for (const auto list : {elementwise_rules(), product_rules(), window_rules(), layer_rules(),
                          movement_rules(), selection_rules()})
    for (const auto& [type, rule] : list) rules.emplace(type, rule);
  return rules;
}

std::optional<Shape> broadcast_all(View& view) {
  std::optional<Shape> result;
  for (size_t i = 0; i < view.arguments(); ++i) {
    if (!view.has(i)) continue;
    const auto* shape = view.shape(i);
    if (!shape) return std::nullopt;
    result = result ? broadcast(view, *result, *shape) : *shape;
  }
  return result;
}

void broadcast_rule(View& view) {
  // Before opset 7, the second operand's axes could start at `axis`; the first has the shape.
  if (view.integer("broadcast", 0) != 0) return same_shape(view);
  if (auto shape = broadcast_all(view)) view.set(0, std::move(*shape));
}

void comparison(View& view) {
  view.set_element(0, TensorProto::BOOL);
  broadcast_rule(view);
}

void where(View& view) {
  view.set_element(0, view.element(1));
  broadcast_rule(view);
}

void test(View& view) {
  same_shape(view);
  view.set_element(0, TensorProto::BOOL);
}

void cast(View& view) {
  same_shape(view);
  const auto to = view.integer("to", 0);
  if (to > 0 && to < 100) view.set_element(0, static_cast<int32_t>(to));
}

void cast_like(View& view) {
  same_shape(view);
  view.set_element(0, view.element(1));
}

void dropout(View& view) {
  same_shape(view);
  if (view.outputs() < 2) return;
  view.set_element(1, view.opset() < 10 ? view.element(0) : int32_t{TensorProto::BOOL});
  if (const auto* shape = view.shape(0)) view.set(1, *shape);
}

void quantize(View& view) {
  same_shape(view);
  view.set_element(0, view.has(2) ? view.element(2) : int32_t{TensorProto::UINT8});
}

void dequantize(View& view) {
  same_shape(view);
  view.set_element(0, view.element(1));
}

void dynamic_quantize(View& view) {
  same_shape(view);
  view.set_element(0, TensorProto::UINT8);
  view.set_element(1, TensorProto::FLOAT);
  view.set_element(2, TensorProto::UINT8);
  view.set(1, {});
  view.set(2, {});
}

void like(View& view) {
  same_shape(view);
  if (const auto element = view.integer("dtype", 0); element > 0 && element < 100)
    view.set_element(0, static_cast<int32_t>(element));
}

constexpr NamedRule kElementwise[] = {
    {"Add", broadcast_rule},
    {"Sub", broadcast_rule},
    {"Mul", broadcast_rule},
    {"Div", broadcast_rule},
    {"Pow", broadcast_rule},
    {"Mod", broadcast_rule},
    {"Max", broadcast_rule},
    {"Min", broadcast_rule},
    {"Sum", broadcast_rule},
    {"Mean", broadcast_rule},
    {"BitShift", broadcast_rule},
    {"BitwiseAnd", broadcast_rule},
    {"BitwiseOr", broadcast_rule},
    {"BitwiseXor", broadcast_rule},
    {"And", comparison},
    {"Or", comparison},
    {"Xor", comparison},
    {"Equal", comparison},
    {"Less", comparison},
    {"LessOrEqual", comparison},
    {"Greater", comparison},
    {"GreaterOrEqual", comparison},
    {"Where", where},
    {"Not", test},
    {"IsNaN", test},
    {"IsInf", test},
    {"Cast", cast},
    {"BitCast", cast},
    {"CastLike", cast_like},
    {"Dropout", dropout},
    {"QuantizeLinear", quantize},
    {"DequantizeLinear", dequantize},
    {"DynamicQuantizeLinear", dynamic_quantize},
    {"EyeLike", like},
    {"RandomNormalLike", like},
    {"RandomUniformLike", like},
    {"Bernoulli", like},
    {"Abs", same_shape},
    {"Acos", same_shape},
    {"Acosh", same_shape},
    {"Asin", same_shape},
    {"Asinh", same_shape},
    {"Atan", same_shape},
    {"Atanh", same_shape},
    {"BitwiseNot", same_shape},
    {"Ceil", same_shape},
    {"Celu", same_shape},
    {"Clip", same_shape},
    {"Cos", same_shape},
    {"Cosh", same_shape},
    {"CumSum", same_shape},
    {"CumProd", same_shape},
    {"Elu", same_shape},
    {"Erf", same_shape},
    {"Exp", same_shape},
    {"Floor", same_shape},
    {"Gelu", same_shape},
    {"HardSigmoid", same_shape},
    {"HardSwish", same_shape},
    {"Hardmax", same_shape},
    {"Identity", same_shape},
    {"LRN", same_shape},
    {"LeakyRelu", same_shape},
    {"Log", same_shape},
    {"LogSoftmax", same_shape},
    {"LpNormalization", same_shape},
    {"MeanVarianceNormalization", same_shape},
    {"Mish", same_shape},
    {"Neg", same_shape},
    {"PRelu", same_shape},
    {"Reciprocal", same_shape},
    {"Relu", same_shape},
    {"ReverseSequence", same_shape},
    {"RotaryEmbedding", same_shape},
    {"Round", same_shape},
    {"Scatter", same_shape},
    {"ScatterElements", same_shape},
    {"ScatterND", same_shape},
    {"Selu", same_shape},
    {"Shrink", same_shape},
    {"Sigmoid", same_shape},
    {"Sign", same_shape},
    {"Sin", same_shape},
    {"Sinh", same_shape},
    {"Softmax", same_shape},
    {"Softplus", same_shape},
    {"Softsign", same_shape},
    {"Sqrt", same_shape},
    {"Swish", same_shape},
    {"Tan", same_shape},
    {"Tanh", same_shape},
    {"TensorScatter", same_shape},
    {"ThresholdedRelu", same_shape},
    {"Trilu", same_shape},
};

}  // namespace

std::span<const NamedRule> elementwise_rules() { return kElementwise; }

ShapeRule shape_rule(std::string_view type) {
  static const auto rules = all_rules();
  const auto found = rules.find(type);
  return found == rules.end() ? nullptr : found->second;
}

void same_shape(View& view) {
  view.set_element(0, view.element(0));
  if (const auto* shape = view.shape(0)) view.set(0, *shape);
}

Shape broadcast(View& view, const Shape& a, const Shape& b) {
  const auto& longer = a.size() >= b.size() ? a : b;
  const auto& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const int64_t x = longer[offset + i], y = shorter[i];
    result[offset + i] = x == 1 ? y : y == 1 ? x : std::max(x, y);
    if (x != y && x != 1 && y != 1 && view.fits())
      view.note(fmt::format("{} against {}", describe(a), describe(b)));
  }
  return result;
}

int64_t saturated_product(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? int64_t{1} << 60
                                                : std::min(product, int64_t{1} << 60);
}

bool View::has(size_t argument) const {
  return argument < arguments() && node_.inputs[argument] >= 0;
}

const Shape* View::shape(size_t argument) const {
  if (!has(argument)) return nullptr;
  const auto& shape = model_.value(node_.inputs[argument]).shape;
  return shape ? &*shape : nullptr;
}

const Shape* View::shape(size_t argument, size_t rank) const {
  const auto* known = shape(argument);
  if (known && known->size() < rank)
    mismatch(fmt::format("argument {} has shape {}, expected {} dimensions or more", argument,
                         describe(*known), rank));
  return known;
}

const Literal* View::literal(size_t argument) const {
  return has(argument) ? model_.value(node_.inputs[argument]).literal.get() : nullptr;
}

std::optional<Shape> View::integers(size_t argument) const {
  return integers_of(literal(argument));
}

int32_t View::element(size_t argument) const {
  return has(argument) ? model_.value(node_.inputs[argument]).element : 0;
}

int64_t View::integer(std::string_view name, int64_t fallback) const {
  const auto* attribute = node_.attribute(name);
  return attribute && attribute->has_i() ? attribute->i() : fallback;
}

std::string_view View::text(std::string_view name, std::string_view fallback) const {
  const auto* attribute = node_.attribute(name);
  return attribute && attribute->has_s() ? std::string_view(attribute->s()) : fallback;
}

std::optional<Shape> View::list(std::string_view name) const {
  const auto* attribute = node_.attribute(name);
  if (!attribute) return std::nullopt;
  return Shape(attribute->ints().begin(), attribute->ints().end());
}

std::optional<Shape> View::list(std::string_view name, size_t argument) const {
  auto numbers = list(name);
  return numbers ? numbers : integers(argument);
}

Shape View::list_of(std::string_view name, size_t count, int64_t least, int64_t fallback) const {
  const auto* attribute = node_.attribute(name);
  if (!attribute || attribute->ints_size() == 0) return Shape(count, fallback);
  if (static_cast<size_t>(attribute->ints_size()) != count)
    fail(fmt::format("attribute '{}' has {} numbers, expected {}", name, attribute->ints_size(),
                     count));
  for (const int64_t number : attribute->ints())
    if (number < least || number > kMaxSetting)
      fail(fmt::format("attribute '{}' must lie between {} and 2^31, got {}", name, least, number));
  return Shape(attribute->ints().begin(), attribute->ints().end());
}

size_t View::axis(std::string_view name, int64_t fallback, size_t rank) const {
  return axis(integer(name, fallback), rank);
}

size_t View::axis(int64_t number, size_t rank) const {
  const auto extents = static_cast<int64_t>(rank);
  if (number < -extents || number >= extents)
    fail(fmt::format("axis {} of a tensor with {} dimensions", number, rank));
  return static_cast<size_t>(number < 0 ? number + extents : number);
}

void View::set(size_t output, Shape shape) {
  if (output >= outputs() || node_.outputs[output] < 0) return;
  Shape least = shape;
  for (int64_t& extent : least) {
    if (extent == kOpen) extent = 1;
    if (extent < 0) mismatch(fmt::format("its output would be {}", describe(shape)));
  }
  if (const auto problem = shape_problem(least, elements_[output]); !problem.empty())
    fail(fmt::format("output {} {}", output, problem));
  shapes_[output] = std::move(shape);
}

void View::set_element(size_t output, int32_t element) {
  if (output < outputs()) elements_[output] = element;
}

}  // namespace trinity::onnx_import
