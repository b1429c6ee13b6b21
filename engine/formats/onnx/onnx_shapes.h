#pragma once

#include <span>

#include "base/error.h"
#include "formats/onnx/onnx_model.h"

namespace trinity::onnx_import {

/// Thrown by a rule whose inputs do not fit together; the node's outputs stay without a shape. Not
/// an error of the file: sizes taken for open dimensions may not suit it.
struct ShapeMismatch {
  std::string text;
};

/// What a shape rule sees of a node, and where it puts its results. Arguments and outputs count
/// from 0. Attributes that no operator can mean (a stride of 0, an axis that the tensor does not
/// have) are a FileError naming the node.
class View {
 public:
  View(const Model& model, const Node& node)
      : model_(model),
        node_(node),
        shapes_(node.outputs.size()),
        elements_(node.outputs.size(), 0) {}

  const Node& node() const { return node_; }
  int64_t opset() const { return model_.opset; }
  size_t arguments() const { return node_.inputs.size(); }
  bool has(size_t argument) const;
  /// Null where the argument is left out or its shape is not known.
  const Shape* shape(size_t argument) const;
  /// Null where the numbers are not known.
  const Literal* literal(size_t argument) const;
  std::optional<Shape> integers(size_t argument) const;
  int32_t element(size_t argument) const;
  /// The shape, which must have at least `rank` dimensions, else a ShapeMismatch; null where not
  /// known.
  const Shape* shape(size_t argument, size_t rank) const;

  int64_t integer(std::string_view name, int64_t fallback) const;
  std::string_view text(std::string_view name, std::string_view fallback) const;
  /// A list of integers, or nothing where the attribute is absent.
  std::optional<Shape> list(std::string_view name) const;
  /// The same, from an attribute (older opsets) or an argument (newer ones).
  std::optional<Shape> list(std::string_view name, size_t argument) const;
  /// The same with `count` entries of at least `least` and at most 2^31; `fallback` for each where
  /// the attribute is absent.
  Shape list_of(std::string_view name, size_t count, int64_t least, int64_t fallback) const;
  /// Attribute `name` as an axis of a tensor of this rank, counted from the end where negative.
  size_t axis(std::string_view name, int64_t fallback, size_t rank) const;
  /// A number as an axis.
  size_t axis(int64_t number, size_t rank) const;
  size_t outputs() const { return node_.outputs.size(); }
  /// Ignored for outputs that the node leaves out. A negative extent but kOpen is a ShapeMismatch.
  void set(size_t output, Shape shape);
  void set_element(size_t output, int32_t element);
  const std::optional<Shape>& result(size_t output) const { return shapes_[output]; }
  int32_t result_element(size_t output) const { return elements_[output]; }

  /// Records that inputs do not fit; the rule goes on. Only the first text of a node is kept, so
  /// ask fits() before making another.
  void note(std::string text) { noted_ = std::move(text); }
  bool fits() const { return noted_.empty(); }
  const std::string& noted() const { return noted_; }
  [[noreturn]] static void mismatch(std::string text) { throw ShapeMismatch{std::move(text)}; }
  [[noreturn]] void fail(const std::string& what) const { model_.fail(node_, what); }

 private:
  const Model& model_;
  const Node& node_;
  std::vector<std::optional<Shape>> shapes_;
  std::vector<int32_t> elements_;
  std::string noted_;
};

using ShapeRule = void (*)(View&);

/// The rule of a type of ONNX's own domain, null where there is none. Rules follow ONNX up to opset
/// 23: attributes of older opsets and arguments of newer ones are both understood.
ShapeRule shape_rule(std::string_view type);

struct NamedRule {
  const char* type;
  ShapeRule rule;
};
std::span<const NamedRule> elementwise_rules();
std::span<const NamedRule> product_rules();    ///< matrix products, attention, Einsum
std::span<const NamedRule> window_rules();     ///< convolutions, pooling, resizing
std::span<const NamedRule> layer_rules();      ///< recurrence, normalisation, losses
std::span<const NamedRule> movement_rules();   ///< the same elements in another order
std::span<const NamedRule> selection_rules();  ///< gathering, reductions, constants

/// NumPy's broadcasting of two shapes; extents that fit neither way are noted, the larger one wins.
Shape broadcast(View& view, const Shape& a, const Shape& b);
/// a * b, or 2^60 where that is more (both not negative).
int64_t saturated_product(int64_t a, int64_t b);
/// Output 0 has the shape and type of argument 0.
void same_shape(View& view);

}  // namespace trinity::onnx_import
