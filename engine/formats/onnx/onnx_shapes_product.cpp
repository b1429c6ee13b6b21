#include <algorithm>

#include "formats/onnx/onnx_shapes.h"

namespace trinity::onnx_import {
namespace {

using onnx::TensorProto;

/// [..., M, K] times [..., K, N] with NumPy's rules for vectors; `a` and `b` are the arguments.
void multiply(View& view, size_t a, size_t b) {
  const auto* left = view.shape(a, 1);
  const auto* right = view.shape(b, 1);
  if (!left || !right) return;
  const int64_t inner = right->size() == 1 ? right->front() : (*right)[right->size() - 2];
  if (left->back() != inner)
    view.note(fmt::format("{} times {}", describe(*left), describe(*right)));
  const auto batch = [](const Shape& shape) {
    return Shape(shape.begin(), shape.end() - (shape.size() < 2 ? 1 : 2));
  };
  Shape result = broadcast(view, batch(*left), batch(*right));
  if (left->size() > 1) result.push_back((*left)[left->size() - 2]);
  if (right->size() > 1) result.push_back(right->back());
  view.set(0, std::move(result));
}

void matmul(View& view) {
  view.set_element(0, view.element(0));
  multiply(view, 0, 1);
}

void matmul_integer(View& view) {
  view.set_element(0, TensorProto::INT32);
  multiply(view, 0, 1);
}

void matmul_quantised(View& view) {
  view.set_element(0, view.has(7) ? view.element(7) : view.element(0));
  multiply(view, 0, 3);
}

/// Opsets before 7 flatten a longer input to a matrix.
void gemm(View& view) {
  view.set_element(0, view.element(0));
  const auto* a = view.shape(0, 2);
  const auto* b = view.shape(1, 2);
  if (!a || !b) return;
  if (a->size() != 2 || b->size() != 2) View::mismatch("Gemm takes matrices");
  const bool turned_a = view.integer("transA", 0) != 0, turned_b = view.integer("transB", 0) != 0;
  const int64_t inner = (*a)[turned_a ? 0 : 1];
  if (inner != (*b)[turned_b ? 1 : 0])
    view.note(fmt::format("{} times {}", describe(*a), describe(*b)));
  view.set(0, {(*a)[turned_a ? 1 : 0], (*b)[turned_b ? 0 : 1]});
}

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// An Einsum's equation while it is read: extents by letter, and what "..." stands for.
struct Equation {
  std::map<char, int64_t> extents;
  std::map<char, int> uses;
  Shape dots;
  std::string letters(std::string_view term) const {
    std::string found;
    for (const char c : term)
      if (letter(c)) found.push_back(c);
    return found;
  }

  void term(View& view, std::string_view text, const Shape& shape) {
    const auto named = letters(text);
    const bool has_dots = text.find("...") != std::string_view::npos;
    if (named.size() > shape.size() || (!has_dots && named.size() != shape.size()))
      View::mismatch(fmt::format("equation term '{}' for shape {}", clip(text), describe(shape)));
    const size_t free = shape.size() - named.size();
    size_t at = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text.substr(i, 3) == "...") {
        const auto first = shape.begin() + static_cast<int64_t>(std::min(at, shape.size() - free));
        dots = broadcast(view, dots, Shape(first, first + static_cast<int64_t>(free)));
        at += free;
        i += 2;
      } else if (letter(text[i]) && at < shape.size()) {
        auto& extent = extents.try_emplace(text[i], 1).first->second;
        extent = std::max(extent, shape[at++]);
      }
    }
    for (const char c : named) ++uses[c];
  }

  Shape output(std::string_view text) const {
    Shape result;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text.substr(i, 3) == "...") {
        result.insert(result.end(), dots.begin(), dots.end());
        i += 2;
      } else if (letter(text[i])) {
        const auto found = extents.find(text[i]);
        if (found == extents.end()) View::mismatch("the equation's output has an unknown letter");
        result.push_back(found->second);
      }
    }
    return result;
  }

  /// Without an arrow: "..." and the letters that occur once, in alphabetical order.
  Shape implicit_output() const {
    Shape result = dots;
    for (const auto& [c, times] : uses)
      if (times == 1) result.push_back(extents.at(c));
    return result;
  }
};

void einsum(View& view) {
  view.set_element(0, view.element(0));
  auto text = view.text("equation", "");
  if (text.size() > 1024) view.fail("its equation has more than 1,024 characters");
  const auto arrow = text.find("->");
  auto inputs = text.substr(0, arrow);
  Equation equation;
  for (size_t i = 0; i < view.arguments(); ++i) {
    const auto* shape = view.shape(i);
    if (!shape) return;
    const auto comma = inputs.find(',');
    equation.term(view, inputs.substr(0, comma), *shape);
    inputs.remove_prefix(comma == std::string_view::npos ? inputs.size() : comma + 1);
  }
  view.set(0, arrow == std::string_view::npos ? equation.implicit_output()
                                              : equation.output(text.substr(arrow + 2)));
}

/// Heads, length and head size of an argument of Attention: [B, heads, S, D], or [B, S, heads * D]
/// with the number of heads in attribute `heads`.
struct Heads {
  int64_t count, length, size;
  Heads(const View& view, const Shape& shape, std::string_view heads) {
    if (shape.size() == 4) {
      count = shape[1];
      length = shape[2];
      size = shape[3];
      return;
    }
    count = view.integer(heads, 0);
    if (count < 1)
      view.fail(fmt::format("attribute '{}' must be at least 1, got {}", heads, count));
    length = shape[1];
    size = shape[2] / count;
  }
};

/// Opset 23. Arguments: Q, K, V, mask, past key, past value.
void attention(View& view) {
  for (size_t i = 0; i < 3; ++i) view.set_element(i, view.element(i));
  view.set_element(3, view.element(0));
  const auto* q = view.shape(0, 3);
  const auto* k = view.shape(1, 3);
  const auto* v = view.shape(2, 3);
  const auto* past = view.shape(4, 4);
  if (!q || !k || !v || (view.has(4) && !past)) return;
  if (std::max({q->size(), k->size(), v->size()}) > 4)
    View::mismatch("Attention takes 3 or 4 dimensions");
  const Heads queries(view, *q, "q_num_heads"), keys(view, *k, "kv_num_heads"),
      values(view, *v, "kv_num_heads");
  const int64_t batch = q->front();
  if (q->size() == 4)
    view.set(0, {batch, queries.count, queries.length, values.size});
  else
    view.set(0, {batch, queries.length, saturated_product(queries.count, values.size)});
  const int64_t total = keys.length + (past ? (*past)[2] : 0);
  view.set(1, {batch, keys.count, total, keys.size});
  view.set(2, {batch, values.count, total, values.size});
  view.set(3, {batch, queries.count, queries.length, total});
}

constexpr NamedRule kProducts[] = {
    {"MatMul", matmul},
    {"MatMulInteger", matmul_integer},
    {"QLinearMatMul", matmul_quantised},
    {"Gemm", gemm},
    {"Einsum", einsum},
    {"Attention", attention},
};

}  // namespace

std::span<const NamedRule> product_rules() { return kProducts; }

}  // namespace trinity::onnx_import
