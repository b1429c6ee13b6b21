#include <numeric>

#include "lua/bind_torch/tensor.h"

// Elementwise operations and reductions. Tensors of different dtypes are promoted as LibTorch does
// (a number never changes a floating dtype).

namespace trinity::lua {
namespace {

using at::Tensor;

template <auto F>
Tensor unary(const Tensor& x) { return F(x); }

/// Also serves operators, where either side may be the number.
template <auto F>
Tensor binary(lua_State* L) {
  const auto a = operand_arg(L, 1, "tensor"), b = operand_arg(L, 2, "other");
  check_broadcast(a, b, 2, "other");
  return about(2, "other", [&] { return F(a, b); });
}

/// A function of LibTorch that has overloads or more parameters, as one of these alone.
#define TRINITY_TENSORS(F) [](const auto&... x) { return at::F(x...); }

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

template <auto F>
Tensor reduction(lua_State* L, const Tensor& x) {
  const auto dims = dimensions_arg(L, 2, x);
  const bool keep = flag_arg(L, 3, "keep");
  return about(2, "dimension", [&] { return F(x, at::IntArrayRef(dims), keep); });
}

constexpr auto kVariance = [](const Tensor& x, at::IntArrayRef d, bool keep) { return at::var(x, d, true, keep); };
constexpr auto kDeviation = [](const Tensor& x, at::IntArrayRef d, bool keep) { return at::std(x, d, true, keep); };
constexpr auto kNorm = [](const Tensor& x, at::IntArrayRef dims, bool keep) { return at::norm(x, 2, dims, keep); };

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
  return push_results(L, std::tuple(values, indices + 1));
}

constexpr auto kMax = extreme<at::max, at::max>;
constexpr auto kMin = extreme<at::min, at::min>;

template <Tensor (*F)(const Tensor&, c10::optional<int64_t>, bool)>
Tensor extreme_index(lua_State* L, const Tensor& x) {
  c10::optional<int64_t> dimension;
  if (!lua_isnoneornil(L, 2)) dimension = dimension_arg(L, 2, x.dim());
  return F(x, dimension, flag_arg(L, 3, "keep")) + 1;
}

template <auto F>
Tensor along_last(lua_State* L, const Tensor& x) {
  const int64_t dimension = dimension_arg_or(L, 2, x.dim(), -1);
  return about(1, "tensor", [&] { return F(x, dimension); });
}

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

template <auto F>
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

}  // namespace

const std::vector<luaL_Reg> kTensorMathMethods = {
    TRINITY_BIND("add", binary<TRINITY_TENSORS(add)>, 2), TRINITY_BIND("sub", binary<TRINITY_TENSORS(sub)>, 2),
    TRINITY_BIND("mul", binary<TRINITY_TENSORS(mul)>, 2), TRINITY_BIND("div", binary<TRINITY_TENSORS(div)>, 2),
    TRINITY_BIND("pow", binary<TRINITY_TENSORS(pow)>, 2), TRINITY_BIND("minimum", binary<TRINITY_TENSORS(minimum)>, 2),
    TRINITY_BIND("maximum", binary<TRINITY_TENSORS(maximum)>, 2), TRINITY_BIND("eq", binary<TRINITY_TENSORS(eq)>, 2),
    TRINITY_BIND("ne", binary<TRINITY_TENSORS(ne)>, 2), TRINITY_BIND("lt", binary<TRINITY_TENSORS(lt)>, 2),
    TRINITY_BIND("le", binary<TRINITY_TENSORS(le)>, 2), TRINITY_BIND("gt", binary<TRINITY_TENSORS(gt)>, 2),
    TRINITY_BIND("ge", binary<TRINITY_TENSORS(ge)>, 2), TRINITY_BIND("neg", unary<at::neg>, 1),
    TRINITY_BIND("exp", unary<at::exp>, 1), TRINITY_BIND("log", unary<at::log>, 1),
    TRINITY_BIND("sqrt", unary<at::sqrt>, 1), TRINITY_BIND("abs", unary<at::abs>, 1),
    TRINITY_BIND("tanh", unary<at::tanh>, 1), TRINITY_BIND("sigmoid", unary<at::sigmoid>, 1),
    TRINITY_BIND("relu", unary<at::relu>, 1), TRINITY_BIND("gelu", unary<TRINITY_TENSORS(gelu)>, 1),
    TRINITY_BIND("silu", unary<at::silu>, 1), TRINITY_BIND("softplus", unary<TRINITY_TENSORS(softplus)>, 1),
    TRINITY_BIND("log_sigmoid", unary<at::log_sigmoid>, 1), TRINITY_BIND("sin", unary<at::sin>, 1),
    TRINITY_BIND("cos", unary<at::cos>, 1), TRINITY_BIND("clamp", math_clamp, 3),
    TRINITY_BIND("masked_fill", math_masked_fill, 3), TRINITY_BIND("fill_", math_fill, 2),
    TRINITY_BIND("copy_", in_place<[](auto& x, auto& y) { x.copy_(y); }>, 2),
    TRINITY_BIND("add_", in_place<[](auto& x, auto& y) { x.add_(y); }>, 2),
    TRINITY_BIND("mul_", in_place<[](auto& x, auto& y) { x.mul_(y); }>, 2)};

const std::vector<luaL_Reg> kTensorReductionMethods = {
    TRINITY_BIND("sum", reduction<TRINITY_TENSORS(sum)>, 3), TRINITY_BIND("mean", reduction<TRINITY_TENSORS(mean)>, 3),
    TRINITY_BIND("var", reduction<kVariance>, 3), TRINITY_BIND("std", reduction<kDeviation>, 3),
    TRINITY_BIND("norm", reduction<kNorm>, 3), TRINITY_BIND("logsumexp", reduction<TRINITY_TENSORS(logsumexp)>, 3),
    TRINITY_BIND("prod", math_prod, 3), TRINITY_BIND("max", kMax, 3), TRINITY_BIND("min", kMin, 3),
    TRINITY_BIND("argmax", extreme_index<at::argmax>, 3), TRINITY_BIND("argmin", extreme_index<at::argmin>, 3),
    TRINITY_BIND("softmax", along_last<TRINITY_TENSORS(softmax)>, 2),
    TRINITY_BIND("log_softmax", along_last<TRINITY_TENSORS(log_softmax)>, 2),
    TRINITY_BIND("cumsum", along_last<TRINITY_TENSORS(cumsum)>, 2)};

}  // namespace trinity::lua
