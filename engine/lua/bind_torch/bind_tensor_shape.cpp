#include "lua/bind_torch/tensor.h"

// Matmuls, shapes, and reading and writing by index.

namespace trinity::lua {
namespace {

using at::Tensor;

int shape_matmul(lua_State* L, const Tensor& x) {
  const auto& y = tensor_arg(L, 2, "other");
  const auto inner = [](const Tensor& t, bool left) {
    return t.dim() == 0 ? -1 : t.dim() == 1 || left ? t.size(-1) : t.size(-2);
  };
  if (inner(x, true) != inner(y, false) || x.dim() == 0)
    throw WrongArgument(2, "other", "matmul: expected equal inner dimensions, got {} after {}",
                        describe_shape(y.sizes()), describe_shape(x.sizes()));
  return push_tensor(L, about(2, "other", [&] { return at::matmul(x, y); }));
}

int shape_bmm(lua_State* L, const Tensor& x) {
  const auto& y = tensor_arg(L, 2, "other");
  return push_tensor(L, about(2, "other", [&] { return at::bmm(x, y); }));
}

/// transpose(d1, d2); both may be left out for a matrix.
int shape_transpose(lua_State* L, const Tensor& x) {
  if (lua_isnoneornil(L, 2) && x.dim() == 2) return push_tensor(L, x.t());
  const int64_t first = dimension_arg(L, 2, x.dim(), "first");
  const int64_t second = dimension_arg(L, 3, x.dim(), "second");
  return push_tensor(L, x.dim() == 0 ? x : x.transpose(first, second));
}

int shape_permute(lua_State* L, const Tensor& x) {
  std::vector<int64_t> order = shape_arg(L, 2, "order");
  for (auto& d : order) {
    if (d < 1 || d > x.dim())
      throw WrongArgument(2, "order", "no dimension {} in {}", d, describe_tensor(x));
    --d;
  }
  return push_tensor(L, about(2, "order", [&] { return x.permute(order); }));
}

/// reshape(shape): one extent may be -1.
int shape_reshape(lua_State* L, const Tensor& x) {
  const auto shape = shape_arg(L, 2, "shape", true);
  return push_tensor(L, about(2, "shape", [&] { return x.reshape(shape); }));
}

int shape_flatten(lua_State* L) { return push_tensor(L, self(L).flatten()); }

int shape_expand(lua_State* L, const Tensor& x) {
  const auto shape = shape_arg(L, 2, "shape", true);
  return push_tensor(L, about(2, "shape", [&] {
    const auto y = x.expand(shape);
    check_elements(y.sizes(), 2, "shape");
    return y;
  }));
}

int shape_squeeze(lua_State* L, const Tensor& x) {
  if (lua_isnoneornil(L, 2)) return push_tensor(L, x.squeeze());
  const int64_t d = dimension_arg(L, 2, x.dim());
  return push_tensor(L, x.dim() == 0 ? x : x.squeeze(d));
}

int shape_unsqueeze(lua_State* L, const Tensor& x) {
  if (x.dim() >= kMaxDimensions)
    throw WrongArgument(1, "tensor", "has {} dimensions already", x.dim());
  return push_tensor(L, x.unsqueeze(dimension_arg(L, 2, x.dim() + 1)));
}

void need_dimensions(const Tensor& x) {
  if (x.dim() == 0) throw WrongArgument(1, "tensor", "expected a tensor with dimensions, got a "
                                                     "scalar");
}

/// narrow(d, first, count): a view of `count` entries from `first` on.
int shape_narrow(lua_State* L, const Tensor& x) {
  need_dimensions(x);
  const int64_t d = dimension_arg(L, 2, x.dim());
  const int64_t first = integer_arg(L, 3, "first", 1, x.size(d) + 1);
  const int64_t count = integer_arg(L, 4, "count", 0, x.size(d) - first + 1);
  return push_tensor(L, x.narrow(d, first - 1, count));
}

/// select(d, i): entry `i` (or -1 for the last) of a dimension, which goes away.
int shape_select(lua_State* L, const Tensor& x) {
  need_dimensions(x);
  const int64_t d = dimension_arg(L, 2, x.dim()), n = x.size(d);
  const int64_t at = integer_arg(L, 3, "index", -n, n);
  if (at == 0) throw WrongArgument(3, "index", "index 0 is outside 1 to {}", n);
  return push_tensor(L, x.select(d, at > 0 ? at - 1 : n + at));
}

int shape_index_select(lua_State* L, const Tensor& x) {
  need_dimensions(x);
  const int64_t d = dimension_arg(L, 2, x.dim());
  const auto index = indices_arg(L, 3, "index", x.size(d));
  return push_tensor(L, about(3, "index", [&] { return at::index_select(x, d, index); }));
}

int shape_gather(lua_State* L, const Tensor& x) {
  const int64_t d = dimension_arg(L, 2, x.dim());
  const auto index = indices_arg(L, 3, "index", x.dim() == 0 ? 1 : x.size(d));
  return push_tensor(L, about(3, "index", [&] { return at::gather(x, d, index); }));
}

int shape_scatter_add(lua_State* L, const Tensor& x) {
  const int64_t d = dimension_arg(L, 2, x.dim());
  const auto index = indices_arg(L, 3, "index", x.dim() == 0 ? 1 : x.size(d));
  const auto& source = tensor_arg(L, 4, "source");
  return push_tensor(L, about(4, "source", [&] { return at::scatter_add(x, d, index, source); }));
}

int shape_index_add(lua_State* L, const Tensor& x) {
  need_dimensions(x);
  const int64_t d = dimension_arg(L, 2, x.dim());
  const auto index = indices_arg(L, 3, "index", x.size(d));
  const auto& source = tensor_arg(L, 4, "source");
  return push_tensor(L, about(4, "source", [&] { return at::index_add(x, d, index, source); }));
}

std::vector<Tensor> shape_chunk(lua_State* L, const Tensor& x) {
  need_dimensions(x);
  const int64_t count = integer_arg(L, 2, "count", 1, 1000000);
  return x.chunk(count, dimension_arg_or(L, 3, x.dim(), 1));
}

/// sort(d, descending) -> values, indices. Equal values keep their order.
auto shape_sort(lua_State* L, const Tensor& x) {
  const int64_t d = dimension_arg_or(L, 2, x.dim(), -1);
  const auto [values, indices] = at::sort(x, c10::optional<bool>(true), d, flag_arg(L, 3, "descending"));
  return std::tuple(values, indices + 1);
}

/// topk(k, d) -> values, indices; largest first.
auto shape_topk(lua_State* L, const Tensor& x) {
  need_dimensions(x);
  const int64_t d = dimension_arg_or(L, 3, x.dim(), -1);
  const auto [values, indices] = at::topk(x, integer_arg(L, 2, "k", 0, x.size(d)), d);
  return std::tuple(values, indices + 1);
}

/// one_hot(count): from 1-based categories, a new last dimension of 0 and 1 in float32.
int shape_one_hot(lua_State* L, const Tensor& x) {
  const int64_t count = integer_arg(L, 2, "count", 1, kMaxElements);
  auto shape = x.sizes().vec();
  shape.push_back(count);
  check_elements(shape, 2, "count");
  const auto index = indices_arg(L, 1, "tensor", count);
  return push_tensor(
      L, at::zeros(shape, x.options().dtype(at::kFloat)).scatter_(-1, index.unsqueeze(-1), 1));
}

int shape_tril(lua_State* L, const Tensor& x) {
  const int64_t diagonal =
      lua_isnoneornil(L, 2) ? 0 : integer_arg(L, 2, "diagonal", -kMaxElements, kMaxElements);
  return push_tensor(L, about(1, "tensor", [&] { return at::tril(x, diagonal); }));
}

/// Throws unless the results stay below kMaxElements.
void check_total(const std::vector<Tensor>& list, int index, const char* name) {
  int64_t elements = 0;
  for (const auto& x : list) elements += x.numel();
  check_elements({elements}, index, name);
}

int shape_cat(lua_State* L) {
  const auto list = tensors_arg(L, 1, "tensors");
  const int64_t d = dimension_arg_or(L, 2, list[0].dim(), 1);
  check_total(list, 1, "tensors");
  return push_tensor(L, about(1, "tensors", [&] { return at::cat(list, d); }));
}

int shape_stack(lua_State* L) {
  const auto list = tensors_arg(L, 1, "tensors");
  const int64_t d = dimension_arg_or(L, 2, list[0].dim() + 1, 1);
  check_total(list, 1, "tensors");
  return push_tensor(L, about(1, "tensors", [&] { return at::stack(list, d); }));
}

/// where(condition, a, b): a where the condition holds, else b.
int shape_where(lua_State* L) {
  const auto& condition = tensor_arg(L, 1, "condition");
  if (condition.scalar_type() != at::kBool)
    throw WrongArgument(1, "condition",
                        "expected a bool tensor, got " + describe_tensor(condition));
  const auto a = operand_arg(L, 2, "a"), b = operand_arg(L, 3, "b");
  check_broadcast(condition, a, 2, "a");
  check_broadcast(condition, b, 3, "b");
  check_broadcast(a, b, 3, "b");
  const auto dtype = at::result_type(a, b);
  return push_tensor(L,
                     about(3, "b", [&] { return at::where(condition, a.to(dtype), b.to(dtype)); }));
}

}  // namespace

const std::vector<luaL_Reg> kTensorShapeMethods = {
    TRINITY_BIND("matmul", shape_matmul, 2), TRINITY_BIND("bmm", shape_bmm, 2),
    TRINITY_BIND("transpose", shape_transpose, 3), TRINITY_BIND("permute", shape_permute, 2),
    TRINITY_BIND("reshape", shape_reshape, 2), TRINITY_BIND("flatten", shape_flatten, 1),
    TRINITY_BIND("expand", shape_expand, 2), TRINITY_BIND("squeeze", shape_squeeze, 2),
    TRINITY_BIND("unsqueeze", shape_unsqueeze, 2), TRINITY_BIND("narrow", shape_narrow, 4),
    TRINITY_BIND("select", shape_select, 3), TRINITY_BIND("index_select", shape_index_select, 3),
    TRINITY_BIND("gather", shape_gather, 3), TRINITY_BIND("scatter_add", shape_scatter_add, 4),
    TRINITY_BIND("index_add", shape_index_add, 4), TRINITY_BIND("chunk", shape_chunk, 3),
    TRINITY_BIND("sort", shape_sort, 3), TRINITY_BIND("topk", shape_topk, 3),
    TRINITY_BIND("one_hot", shape_one_hot, 2), TRINITY_BIND("tril", shape_tril, 2)};

const std::vector<luaL_Reg> kTensorShapeFunctions = {
    TRINITY_BIND("cat", shape_cat, 2), TRINITY_BIND("stack", shape_stack, 2), TRINITY_BIND("where", shape_where, 3)};

}  // namespace trinity::lua
