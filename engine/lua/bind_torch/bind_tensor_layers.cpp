#include "libtorch/optimisers.h"
#include "lua/bind/module.h"
#include "lua/bind_torch/tensor.h"

// Computation of layers (lib/trinity/nn). Functions have the names that users call, so that
// messages read "nn.linear: argument 1 ('x'): ...".

namespace trinity::lua {
namespace {

using at::Tensor;

/// An optional tensor.
Tensor tensor_or_none(lua_State* L, int index, const char* name) {
  return lua_isnoneornil(L, index) ? Tensor() : tensor_arg(L, index, name);
}

/// linear(x, weight, bias): x [..., inputs], weight [outputs, inputs].
int layer_linear(lua_State* L) {
  const auto &x = tensor_arg(L, 1, "x"), &weight = tensor_arg(L, 2, "weight");
  const auto bias = tensor_or_none(L, 3, "bias");
  if (weight.dim() != 2)
    throw WrongArgument(2, "weight", "expected a matrix, got " + describe_tensor(weight));
  if (x.dim() == 0 || x.size(-1) != weight.size(1))
    throw WrongArgument(1, "x", "expected a last dimension of {}, got {}", weight.size(1), describe_tensor(x));
  return push_tensor(L, about(1, "x", [&] { return at::linear(x, weight, bias); }));
}

/// embedding(indices, weight): 1-based indices of any shape; weight [count, size].
int layer_embedding(lua_State* L) {
  const auto& weight = tensor_arg(L, 2, "weight");
  if (weight.dim() != 2)
    throw WrongArgument(2, "weight", "expected a matrix, got " + describe_tensor(weight));
  const auto indices = indices_arg(L, 1, "indices", weight.size(0));
  return push_tensor(L, about(1, "indices", [&] { return at::embedding(weight, indices); }));
}

int layer_layer_norm(lua_State* L) {
  const auto &x = tensor_arg(L, 1, "x"), &weight = tensor_arg(L, 2, "weight");
  const auto& bias = tensor_arg(L, 3, "bias");
  const double epsilon = number_arg(L, 4, "epsilon");
  return push_tensor(
      L, about(1, "x", [&] { return at::layer_norm(x, weight.sizes(), weight, bias, epsilon); }));
}

/// dropout(x, p, stream): elements are zero with probability p, the others scaled by 1 / (1 - p).
int layer_dropout(lua_State* L) {
  const auto& x = tensor_arg(L, 1, "x");
  const double p = number_arg(L, 2, "p");
  auto& stream = object_arg<RandomStream>(L, 3, "stream");
  if (!(p >= 0 && p < 1)) throw WrongArgument(2, "p", "expected a number from 0, below 1");
  if (!x.is_floating_point())
    throw WrongArgument(1, "x", "expected floating point, got " + describe_tensor(x));
  auto mask = at::empty(x.sizes(), at::TensorOptions().dtype(at::kFloat));
  auto* data = mask.data_ptr<float>();
  const auto scale = static_cast<float>(1 / (1 - p));
  for (int64_t i = 0; i < mask.numel(); ++i) data[i] = stream.uniform() < p ? 0.0f : scale;
  return push_tensor(L, x * mask.to(x.device(), x.scalar_type()));
}

struct RecurrentArguments {
  std::vector<Tensor> weights;
  int64_t layers = 1;
  bool biases = true, bidirectional = false;
};

/// weights, layers, bidirectional from `index` on; x is [steps, samples, inputs].
RecurrentArguments recurrent_arguments(lua_State* L, int index) {
  RecurrentArguments a;
  a.weights = tensors_arg(L, index, "weights");
  a.layers = integer_arg(L, index + 1, "layers", 1, 1000);
  a.bidirectional = flag_arg(L, index + 2, "bidirectional");
  const int64_t directions = a.bidirectional ? 2 : 1;
  if (static_cast<int64_t>(a.weights.size()) != 4 * a.layers * directions)
    throw WrongArgument(index, "weights", "expected 4 for every layer and direction");
  const auto& x = tensor_arg(L, 1, "x");
  if (x.dim() != 3 || x.size(2) != a.weights[0].size(-1) || x.numel() == 0)
    throw WrongArgument(1, "x", "expected [steps x samples x {}], got {}", a.weights[0].size(-1), describe_tensor(x));
  return a;
}

/// lstm(x, hidden, cell, weights, layers, bidirectional) -> output, hidden, cell
auto layer_lstm(lua_State* L) {
  const auto& x = tensor_arg(L, 1, "x");
  const std::vector<Tensor> state = {tensor_arg(L, 2, "hidden"), tensor_arg(L, 3, "cell")};
  const auto a = recurrent_arguments(L, 4);
  return about(2, "state", [&] {
    return at::lstm(x, state, a.weights, true, a.layers, 0, false, a.bidirectional, false);
  });
}

/// gru(x, hidden, weights, layers, bidirectional) -> output, hidden
auto layer_gru(lua_State* L) {
  const auto &x = tensor_arg(L, 1, "x"), &state = tensor_arg(L, 2, "hidden");
  const auto a = recurrent_arguments(L, 3);
  return about(2, "state", [&] {
    return at::gru(x, state, a.weights, true, a.layers, 0, false, a.bidirectional, false);
  });
}

/// clip_grad_norm(parameters, max_norm) -> the norm before.
int layer_clip_grad_norm(lua_State* L) {
  const auto parameters = tensors_arg(L, 1, "parameters");
  const double limit = number_arg(L, 2, "max_norm");
  if (!(limit > 0)) throw WrongArgument(2, "max_norm", "expected a positive number");
  return push_number(L, torch::nn::utils::clip_grad_norm_(parameters, limit));
}

}  // namespace

const std::vector<luaL_Reg> kTensorLayerFunctions = {
    TRINITY_BIND("linear", layer_linear), TRINITY_BIND("embedding", layer_embedding),
    TRINITY_BIND("layer_norm", layer_layer_norm), TRINITY_BIND("dropout", layer_dropout),
    TRINITY_BIND("lstm", layer_lstm), TRINITY_BIND("gru", layer_gru),
    TRINITY_BIND("clip_grad_norm", layer_clip_grad_norm)};

}  // namespace trinity::lua
