#include <numeric>

#include "lua/bind_torch/tensor.h"

// Elementwise operations and reductions. Tensors of different dtypes are promoted as LibTorch does
// (a number never changes a floating dtype).

namespace trinity::lua {
namespace {

using at::Tensor;

template <Tensor (*F)(const Tensor&)>
int unary(lua_State* L) { return push_tensor(L, F(self(L))); }

/// Also serves operators, where either side may be the number.
template <Tensor (*F)(const Tensor&, const Tensor&)>
int binary(lua_State* L) {
  const auto a = operand_arg(L, 1, "tensor"), b = operand_arg(L, 2, "other");
  check_broadcast(a, b, 2, "other");
  return push_tensor(L, about(2, "other", [&] { return F(a, b); }));
}

Tensor add(const Tensor& a, const Tensor& b) { return at::add(a, b); }
Tensor sub(const Tensor& a, const Tensor& b) { return at::sub(a, b); }
Tensor mul(const Tensor& a, const Tensor& b) { return at::mul(a, b); }
Tensor div(const Tensor& a, const Tensor& b) { return at::div(a, b); }
Tensor pow(const Tensor& a, const Tensor& b) { return at::pow(a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return at::minimum(a, b); }
Tensor maximum(const Tensor& a, const Tensor& b) { return at::maximum(a, b); }
Tensor eq(const Tensor& a, const Tensor& b) { return at::eq(a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return at::ne(a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return at::lt(a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return at::le(a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return at::gt(a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return at::ge(a, b); }
Tensor gelu(const Tensor& x) { return at::gelu(x); }
Tensor softplus(const Tensor& x) { return at::softplus(x); }

int math_clamp(lua_State* L, const Tensor& x) {
  c10::optional<at::Scalar> low, high;
  if (!lua_isnoneornil(L, 2)) low = scalar_arg(L, 2, "low");
  if (!lua_isnoneornil(L, 3)) high = scalar_arg(L, 3, "high");
  if (!low && !high) throw WrongArgument(2, "low", "expected a number for low, high or both");
  return push_tensor(L, about(2, "low", [&] { return at::clamp(x, low, high); }));
}

const Tensor& mask_arg(lua_State* L, int index, const char* name) {
  const auto& mask = tensor_arg(L, index, name);
  if (mask.scalar_type() != at::kBool)
    throw WrongArgument(index, name, "expected a bool tensor, got " + describe_tensor(mask));
  return mask;
}

int math_masked_fill(lua_State* L, const Tensor& x) {
  const auto& mask = mask_arg(L, 2, "mask");
  check_broadcast(x, mask, 2, "mask");
  const auto value = scalar_arg(L, 3, "value");
  return push_tensor(L, about(3, "value", [&] { return at::masked_fill(x, mask, value); }));
}

/// The dimensions to reduce: nil for all, one, or a list without repeats.
std::vector<int64_t> dimensions_arg(lua_State* L, int index, const Tensor& x) {
  std::vector<int64_t> dims;
  if (lua_isnoneornil(L, index)) {
    dims.resize(static_cast<size_t>(x.dim()));
    std::iota(dims.begin(), dims.end(), 0);
  } else if (lua_type(L, index) == LUA_TTABLE) {
    for_each(L, index, [&](int) { dims.push_back(dimension_value(L, -1, x.dim(), index)); });
    if (dims.empty()) throw WrongArgument(index, "dimension", "expected a list that is not empty");
  } else {
    dims.push_back(dimension_arg(L, index, x.dim()));
  }
  return dims;
}

template <Tensor (*F)(const Tensor&, at::IntArrayRef, bool)>
int reduction(lua_State* L, const Tensor& x) {
  const auto dims = dimensions_arg(L, 2, x);
  const bool keep = flag_arg(L, 3, "keep");
  return push_tensor(L, about(2, "dimension", [&] { return F(x, dims, keep); }));
}

Tensor sum(const Tensor& x, at::IntArrayRef dims, bool keep) { return at::sum(x, dims, keep); }
Tensor mean(const Tensor& x, at::IntArrayRef dims, bool keep) { return at::mean(x, dims, keep); }
Tensor variance(const Tensor& x, at::IntArrayRef dims, bool keep) {
  return at::var(x, dims, true, keep);
}
Tensor deviation(const Tensor& x, at::IntArrayRef dims, bool keep) {
  return at::std(x, dims, true, keep);
}
Tensor norm(const Tensor& x, at::IntArrayRef dims, bool keep) { return at::norm(x, 2, dims, keep); }
Tensor logsumexp(const Tensor& x, at::IntArrayRef dims, bool keep) {
  return at::logsumexp(x, dims, keep);
}

int math_prod(lua_State* L, const Tensor& x) {
  if (lua_isnoneornil(L, 2)) return push_tensor(L, at::prod(x));
  return push_tensor(L, at::prod(x, dimension_arg(L, 2, x.dim()), flag_arg(L, 3, "keep")));
}

/// The extreme of all elements, or extremes along a dimension and where they are.
template <Tensor (*All)(const Tensor&),
          std::tuple<Tensor, Tensor> (*Along)(const Tensor&, int64_t, bool)>
int extreme(lua_State* L, const Tensor& x) {
  if (lua_isnoneornil(L, 2)) return push_tensor(L, All(x));
  const auto [values, indices] = Along(x, dimension_arg(L, 2, x.dim()), flag_arg(L, 3, "keep"));
  push_tensor(L, values);
  push_indices(L, indices);
  return 2;
}

constexpr auto kMax = extreme<at::max, at::max>;
constexpr auto kMin = extreme<at::min, at::min>;

template <Tensor (*F)(const Tensor&, c10::optional<int64_t>, bool)>
int extreme_index(lua_State* L, const Tensor& x) {
  c10::optional<int64_t> dimension;
  if (!lua_isnoneornil(L, 2)) dimension = dimension_arg(L, 2, x.dim());
  return push_indices(L, F(x, dimension, flag_arg(L, 3, "keep")));
}

template <Tensor (*F)(const Tensor&, int64_t)>
int along_last(lua_State* L, const Tensor& x) {
  const int64_t dimension = dimension_arg_or(L, 2, x.dim(), -1);
  return push_tensor(L, about(1, "tensor", [&] { return F(x, dimension); }));
}

Tensor softmax(const Tensor& x, int64_t d) { return at::softmax(x, d); }
Tensor log_softmax(const Tensor& x, int64_t d) { return at::log_softmax(x, d); }
Tensor cumsum(const Tensor& x, int64_t d) { return at::cumsum(x, d); }

/// In place only where the derivative of what came before cannot need the old values.
const Tensor& writable_self(lua_State* L) {
  const auto& x = self(L);
  if (x.requires_grad() && at::GradMode::is_enabled())
    throw WrongArgument(1, "tensor",
                        "changing a tensor that requires gradients: do it inside tensor.no_grad");
  return x;
}

int math_fill(lua_State* L) {
  const auto& x = writable_self(L);
  const auto value = scalar_arg(L, 2, "value");
  about(2, "value", [&] { return x.fill_(value); });
  lua_settop(L, 1);
  return 1;
}

template <void (*F)(const Tensor&, const Tensor&)>
int in_place(lua_State* L) {
  const auto& x = writable_self(L);
  const auto other = operand_arg(L, 2, "other");
  if (other.requires_grad() && at::GradMode::is_enabled())
    throw WrongArgument(2, "other", "requires gradients: detach() it, or use tensor.no_grad");
  check_broadcast(x, other, 2, "other");
  about(2, "other", [&] { return F(x, other); });
  lua_settop(L, 1);
  return 1;
}

void add_in_place(const Tensor& x, const Tensor& other) { x.add_(other); }
void mul_in_place(const Tensor& x, const Tensor& other) { x.mul_(other); }
void copy_in_place(const Tensor& x, const Tensor& other) { x.copy_(other); }

}  // namespace

const std::vector<luaL_Reg> kTensorMathMethods = {
    TRINITY_BIND("add", binary<add>, 2), TRINITY_BIND("sub", binary<sub>, 2), TRINITY_BIND("mul", binary<mul>, 2),
    TRINITY_BIND("div", binary<div>, 2), TRINITY_BIND("pow", binary<pow>, 2),
    TRINITY_BIND("minimum", binary<minimum>, 2), TRINITY_BIND("maximum", binary<maximum>, 2),
    TRINITY_BIND("eq", binary<eq>, 2), TRINITY_BIND("ne", binary<ne>, 2), TRINITY_BIND("lt", binary<lt>, 2),
    TRINITY_BIND("le", binary<le>, 2), TRINITY_BIND("gt", binary<gt>, 2), TRINITY_BIND("ge", binary<ge>, 2),
    TRINITY_BIND("neg", unary<at::neg>, 1), TRINITY_BIND("exp", unary<at::exp>, 1),
    TRINITY_BIND("log", unary<at::log>, 1), TRINITY_BIND("sqrt", unary<at::sqrt>, 1),
    TRINITY_BIND("abs", unary<at::abs>, 1), TRINITY_BIND("tanh", unary<at::tanh>, 1),
    TRINITY_BIND("sigmoid", unary<at::sigmoid>, 1), TRINITY_BIND("relu", unary<at::relu>, 1),
    TRINITY_BIND("gelu", unary<gelu>, 1), TRINITY_BIND("silu", unary<at::silu>, 1),
    TRINITY_BIND("softplus", unary<softplus>, 1), TRINITY_BIND("log_sigmoid", unary<at::log_sigmoid>, 1),
    TRINITY_BIND("sin", unary<at::sin>, 1), TRINITY_BIND("cos", unary<at::cos>, 1),
    TRINITY_BIND("clamp", math_clamp, 3), TRINITY_BIND("masked_fill", math_masked_fill, 3),
    TRINITY_BIND("fill_", math_fill, 2), TRINITY_BIND("copy_", in_place<copy_in_place>, 2),
    TRINITY_BIND("add_", in_place<add_in_place>, 2), TRINITY_BIND("mul_", in_place<mul_in_place>, 2)};

const std::vector<luaL_Reg> kTensorReductionMethods = {
    TRINITY_BIND("sum", reduction<sum>, 3), TRINITY_BIND("mean", reduction<mean>, 3),
    TRINITY_BIND("var", reduction<variance>, 3), TRINITY_BIND("std", reduction<deviation>, 3),
    TRINITY_BIND("norm", reduction<norm>, 3), TRINITY_BIND("logsumexp", reduction<logsumexp>, 3),
    TRINITY_BIND("prod", math_prod, 3), TRINITY_BIND("max", kMax, 3), TRINITY_BIND("min", kMin, 3),
    TRINITY_BIND("argmax", extreme_index<at::argmax>, 3), TRINITY_BIND("argmin", extreme_index<at::argmin>, 3),
    TRINITY_BIND("softmax", along_last<softmax>, 2), TRINITY_BIND("log_softmax", along_last<log_softmax>, 2),
    TRINITY_BIND("cumsum", along_last<cumsum>, 2)};

}  // namespace trinity::lua
