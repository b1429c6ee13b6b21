#include <algorithm>
#include <cmath>
#include <set>

#include "formats/onnx/onnx_literal.h"
#include "formats/onnx/onnx_shapes.h"

namespace trinity::onnx_import {
namespace {

using onnx::TensorProto;

void append(Shape& shape, const Shape& from, size_t first, size_t last) {
  shape.insert(shape.end(), from.begin() + static_cast<int64_t>(std::min(first, from.size())),
               from.begin() + static_cast<int64_t>(std::min(last, from.size())));
}

void gather(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0, 1);
  const auto* indices = view.shape(1);
  if (!x || !indices) return;
  const size_t axis = view.axis("axis", 0, x->size());
  Shape result(x->begin(), x->begin() + static_cast<int64_t>(axis));
  append(result, *indices, 0, indices->size());
  append(result, *x, axis + 1, x->size());
  view.set(0, std::move(result));
}

void gather_elements(View& view) {
  view.set_element(0, view.element(0));
  if (const auto* indices = view.shape(1)) view.set(0, *indices);
}

/// Indices [batch..., ..., k] point into the k axes after the batch's.
void gather_nd(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0, 1);
  const auto* indices = view.shape(1, 1);
  if (!x || !indices) return;
  const int64_t batch = view.integer("batch_dims", 0);
  const auto rank = static_cast<int64_t>(x->size());
  if (batch < 0 || batch > rank || indices->back() > rank - batch)
    View::mismatch(fmt::format("indices of {} axes after {} into {} dimensions", indices->back(),
                               batch, rank));
  Shape result(indices->begin(), indices->end() - 1);
  append(result, *x, static_cast<size_t>(batch + indices->back()), x->size());
  view.set(0, std::move(result));
}

/// Axes are an attribute or (opset 13, 18) an argument; none means all, or nothing at all with
/// noop_with_empty_axes.
void reduce(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0);
  const auto axes = view.list("axes", 1);
  if (!x || (!axes && view.has(1))) return;
  const bool keep = view.integer("keepdims", 1) != 0;
  const bool none = !axes || axes->empty();
  if (none && view.integer("noop_with_empty_axes", 0) != 0) return same_shape(view);
  std::set<size_t> reduced;
  if (axes)
    for (const int64_t number : *axes) reduced.insert(view.axis(number, x->size()));
  Shape result;
  for (size_t i = 0; i < x->size(); ++i) {
    if (!none && !reduced.contains(i))
      result.push_back((*x)[i]);
    else if (keep)
      result.push_back(1);
  }
  view.set(0, std::move(result));
}

void arg_reduce(View& view) {
  view.set_element(0, TensorProto::INT64);
  const auto* x = view.shape(0, 1);
  if (!x) return;
  const size_t axis = view.axis("axis", 0, x->size());
  Shape result = *x;
  result[axis] = 1;
  if (view.integer("keepdims", 1) == 0) result.erase(result.begin() + static_cast<int64_t>(axis));
  view.set(0, std::move(result));
}

void top_k(View& view) {
  view.set_element(0, view.element(0));
  view.set_element(1, TensorProto::INT64);
  const auto* x = view.shape(0, 1);
  if (!x) return;
  const size_t axis = view.axis("axis", -1, x->size());
  const auto count = view.integers(1);
  Shape result = *x;
  result[axis] = count && !count->empty() ? count->front() : view.integer("k", -1);
  if (result[axis] < 0) return;
  view.set(1, result);
  view.set(0, std::move(result));
}

void one_hot(View& view) {
  view.set_element(0, view.element(2));
  const auto* indices = view.shape(0);
  const auto depth = view.integers(1);
  if (!indices || !depth || depth->empty()) return;
  const size_t axis = view.axis("axis", -1, indices->size() + 1);
  Shape result = *indices;
  result.insert(result.begin() + static_cast<int64_t>(axis), depth->front());
  view.set(0, std::move(result));
}

void shape_rule_of_shape(View& view) {
  view.set_element(0, TensorProto::INT64);
  const auto* x = view.shape(0);
  if (!x) return;
  const auto rank = static_cast<int64_t>(x->size());
  const auto place = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = place(view.integer("start", 0)), end = place(view.integer("end", rank));
  view.set(0, {std::max<int64_t>(0, end - start)});
}

void size_rule(View& view) {
  view.set_element(0, TensorProto::INT64);
  view.set(0, {});
}

/// Of the matrices in the last two axes.
void determinant(View& view) {
  view.set_element(0, view.element(0));
  if (const auto* x = view.shape(0, 2)) view.set(0, Shape(x->begin(), x->end() - 2));
}

/// A value of rank 1 whose numbers are the shape.
void constant_of_shape(View& view) {
  const auto* value = view.node().attribute("value");
  view.set_element(0, value ? value->t().data_type() : int32_t{TensorProto::FLOAT});
  if (auto shape = view.integers(0)) view.set(0, std::move(*shape));
}

void constant(View&) {}  // see constant_value()

void range(View& view) {
  view.set_element(0, view.element(0));
  const auto* start = view.literal(0);
  const auto* limit = view.literal(1);
  const auto* delta = view.literal(2);
  for (const auto* number : {start, limit, delta})
    if (!number || number->numbers.size() != 1) return view.set(0, {kOpen});
  if (delta->numbers[0] == 0) view.fail("a range with a step of 0");
  const long double count = std::ceil((limit->numbers[0] - start->numbers[0]) / delta->numbers[0]);
  if (!(count <= 0x1p60L)) view.fail("a range without an end");
  view.set(0, {static_cast<int64_t>(std::max(0.0L, count))});
}

void non_zero(View& view) {
  view.set_element(0, TensorProto::INT64);
  const auto* x = view.shape(0);
  if (!x) return;
  const auto* literal = view.literal(0);
  const auto count = literal ? std::count_if(literal->numbers.begin(), literal->numbers.end(),
                                             [](long double number) { return number != 0; })
                             : kOpen;
  view.set(0, {static_cast<int64_t>(x->size()), count});
}

/// Keeps some slices along an axis, or some elements of the whole.
void compress(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0, 1);
  if (!x) return;
  Shape result = {0};
  size_t axis = 0;
  if (view.node().attribute("axis")) {
    result = *x;
    axis = view.axis("axis", 0, x->size());
  }
  result[axis] = kOpen;
  view.set(0, std::move(result));
}

/// Unique values along an axis (or of the whole), then three lists of indices and counts.
void unique(View& view) {
  compress(view);
  for (size_t i = 1; i < view.outputs(); ++i) {
    view.set_element(i, TensorProto::INT64);
    view.set(i, {kOpen});
  }
}

void non_max_suppression(View& view) {
  view.set_element(0, TensorProto::INT64);
  view.set(0, {kOpen, 3});
}

void random(View& view) {
  const auto element = view.integer("dtype", TensorProto::FLOAT);
  view.set_element(0, element > 0 && element < 100 ? static_cast<int32_t>(element) : 0);
  if (auto shape = view.list("shape")) view.set(0, std::move(*shape));
}

void multinomial(View& view) {
  const bool wide = view.integer("dtype", TensorProto::INT32) == TensorProto::INT64;
  view.set_element(0, wide ? TensorProto::INT64 : TensorProto::INT32);
  if (const auto* x = view.shape(0, 1)) view.set(0, {x->front(), view.integer("sample_size", 1)});
}

constexpr NamedRule kSelection[] = {
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"GatherND", gather_nd},
    {"ReduceMean", reduce},
    {"ReduceSum", reduce},
    {"ReduceMax", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceL1", reduce},
    {"ReduceL2", reduce},
    {"ReduceLogSum", reduce},
    {"ReduceLogSumExp", reduce},
    {"ReduceSumSquare", reduce},
    {"ArgMax", arg_reduce},
    {"ArgMin", arg_reduce},
    {"TopK", top_k},
    {"OneHot", one_hot},
    {"Shape", shape_rule_of_shape},
    {"Size", size_rule},
    {"Constant", constant},
    {"ConstantOfShape", constant_of_shape},
    {"Range", range},
    {"NonZero", non_zero},
    {"Compress", compress},
    {"Det", determinant},
    {"Unique", unique},
    {"NonMaxSuppression", non_max_suppression},
    {"RandomNormal", random},
    {"RandomUniform", random},
    {"Multinomial", multinomial},
};

}  // namespace

std::span<const NamedRule> selection_rules() { return kSelection; }

}  // namespace trinity::onnx_import
