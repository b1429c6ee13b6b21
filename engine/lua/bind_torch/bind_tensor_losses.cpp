#include "lua/bind_torch/tensor.h"

// Computation of losses. Functions have the names that users call, so that messages read "nn.mse:
// argument 2 ('y'): ...".

namespace trinity::lua {
namespace {

using at::Tensor;

enum class Reduce { mean, sum, none };

/// "mean" (the default), "sum" or "none" at `index`.
Reduce reduce_arg(lua_State* L, int index) {
  if (lua_isnoneornil(L, index)) return Reduce::mean;
  const auto name = string_arg(L, index, "reduction");
  if (name == "mean") return Reduce::mean;
  if (name == "sum") return Reduce::sum;
  if (name == "none") return Reduce::none;
  throw WrongArgument(index, "reduction", "unknown value '{}'{} (known: mean, none, sum)", name,
                      suggestion(name, {"mean", "none", "sum"}));
}

Tensor reduced(const Tensor& losses, Reduce how) {
  return how == Reduce::mean ? losses.mean() : how == Reduce::sum ? losses.sum() : losses;
}

/// Minus what `log_probabilities` [..., categories] say of 1-based targets [...].
int negative_log_likelihood(lua_State* L, const Tensor& log_probabilities) {
  const auto targets = indices_arg(L, 2, "targets", log_probabilities.size(-1));
  const auto shape = log_probabilities.sizes();
  if (targets.sizes() != shape.slice(0, shape.size() - 1))
    throw WrongArgument(2, "targets", "expected shape {}, got {}", describe_shape(shape.slice(0, shape.size() - 1)),
                        describe_shape(targets.sizes()));
  const auto how = reduce_arg(L, 3);
  const auto chosen = at::gather(log_probabilities, -1, targets.unsqueeze(-1)).squeeze(-1);
  return push_tensor(L, reduced(-chosen, how));
}

const Tensor& scores_arg(lua_State* L, const char* name) {
  const auto& x = tensor_arg(L, 1, name);
  if (x.dim() == 0 || !x.is_floating_point())
    throw WrongArgument(1, name,
                        "expected floating point [..., categories], got " + describe_tensor(x));
  return x;
}

int loss_cross_entropy(lua_State* L) {
  return negative_log_likelihood(L, at::log_softmax(scores_arg(L, "logits"), -1));
}

int loss_nll(lua_State* L) { return negative_log_likelihood(L, scores_arg(L, "log_probabilities")); }

/// Arguments 1 and 2, of one shape and of floating point.
struct Pair {
  const Tensor &x, &y;
};
Pair pair_arg(lua_State* L, const char* first, const char* second) {
  const Pair pair{tensor_arg(L, 1, first), tensor_arg(L, 2, second)};
  if (!pair.x.is_floating_point())
    throw WrongArgument(1, first, "expected floating point, got " + describe_tensor(pair.x));
  if (pair.x.sizes() != pair.y.sizes())
    throw WrongArgument(2, second, "expected shape {}, got {}", describe_shape(pair.x.sizes()),
                        describe_tensor(pair.y));
  return pair;
}

int loss_mse(lua_State* L) {
  const auto [x, y] = pair_arg(L, "x", "y");
  const auto difference = x - y;
  return push_tensor(L, reduced(difference * difference, reduce_arg(L, 3)));
}

}  // namespace

const std::vector<luaL_Reg> kTensorLossFunctions = {
    TRINITY_BIND("mse", loss_mse), TRINITY_BIND("cross_entropy", loss_cross_entropy), TRINITY_BIND("nll", loss_nll)};

}  // namespace trinity::lua
