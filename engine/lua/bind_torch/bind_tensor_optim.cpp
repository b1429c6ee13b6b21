#include <sstream>

#include "libtorch/optimisers.h"
#include "lua/bind_torch/tensor.h"

// LibTorch's optimisers. Their state comes out as one table of tensors a parameter.

namespace trinity::lua {
namespace {

using torch::optim::Adam;
using torch::optim::Optimizer;
using torch::optim::SGD;

std::vector<at::Tensor> parameters_arg(lua_State* L) {
  auto parameters = tensors_arg(L, 1, "parameters");
  for (size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i].is_leaf() || !parameters[i].requires_grad())
      throw WrongArgument(1, "parameters", "entry {} ({}) is not a parameter: it {}", i + 1,
                          describe_tensor(parameters[i]),
                          parameters[i].is_leaf() ? "requires no gradients" : "is the result of an operation");
  return parameters;
}

double from_zero(lua_State* L, int index, const char* name, double below = INFINITY) {
  const double value = number_arg(L, index, name);
  if (!(value >= 0 && value < below))
    throw WrongArgument(index, name,
                        below < INFINITY
                            ? fmt::format("expected 0 to below {}, got {}", below, value)
                            : fmt::format("expected 0 or more, got {}", value));
  return value;
}

/// adam(parameters, learning_rate, beta1, beta2, epsilon, weight_decay)
std::shared_ptr<Optimizer> optim_adam(lua_State* L) {
  auto parameters = parameters_arg(L);
  torch::optim::AdamOptions options(from_zero(L, 2, "learning_rate"));
  const double beta1 = from_zero(L, 3, "beta1", 1), beta2 = from_zero(L, 4, "beta2", 1);
  options.betas(std::make_tuple(beta1, beta2));
  options.eps(from_zero(L, 5, "epsilon")).weight_decay(from_zero(L, 6, "weight_decay"));
  return std::make_shared<Adam>(std::move(parameters), options);
}

/// sgd(parameters, learning_rate, momentum, weight_decay)
std::shared_ptr<Optimizer> optim_sgd(lua_State* L) {
  auto parameters = parameters_arg(L);
  torch::optim::SGDOptions options(from_zero(L, 2, "learning_rate"));
  options.momentum(from_zero(L, 3, "momentum", 1)).weight_decay(from_zero(L, 4, "weight_decay"));
  return std::make_shared<SGD>(std::move(parameters), options);
}

void optim_step(Optimizer& optimiser) { about(1, "optimiser", [&] { optimiser.step(); }); }

void optim_zero_grad(Optimizer& optimiser) {
  for (auto& group : optimiser.param_groups())
    for (auto& parameter : group.params()) parameter.mutable_grad().reset();
}

/// set_learning_rate(rate)
void optim_set_learning_rate(lua_State* L, Optimizer& optimiser) {
  const double rate = from_zero(L, 2, "rate");
  for (auto& group : optimiser.param_groups()) group.options().set_lr(rate);
}

/// The key by which LibTorch finds a parameter's state: its address, before 2.0 as a text.
template <class Key>
Key state_key(const at::Tensor& parameter) {
  auto* address = parameter.unsafeGetTensorImpl();
  if constexpr (std::is_same_v<Key, std::string>) {
    std::ostringstream text;
    text << address;
    return text.str();
  } else {
    return address;
  }
}

template <class States>
using KeyOf = typename std::decay_t<States>::key_type;

void set_tensor(lua_State* L, const char* name, const at::Tensor& x) {
  if (!x.defined()) return;
  push_tensor(L, x.detach().clone());
  lua_setfield(L, -2, name);
}

/// state() -> list, one table a parameter: {step, exp_avg, exp_avg_sq} of Adam, {momentum} of SGD;
/// empty before the first step.
int optim_state(lua_State* L, Optimizer& optimiser) {
  auto& states = optimiser.state();
  lua_newtable(L);
  int count = 0;
  for (const auto& parameter : optimiser.param_groups().at(0).params()) {
    lua_newtable(L);
    const auto found = states.find(state_key<KeyOf<decltype(states)>>(parameter));
    if (found != states.end()) {
      if (auto* adam = dynamic_cast<torch::optim::AdamParamState*>(found->second.get())) {
        set_field(L, "step", static_cast<double>(adam->step()));
        set_tensor(L, "exp_avg", adam->exp_avg());
        set_tensor(L, "exp_avg_sq", adam->exp_avg_sq());
      } else if (auto* sgd = dynamic_cast<torch::optim::SGDParamState*>(found->second.get())) {
        set_tensor(L, "momentum", sgd->momentum_buffer());
      }
    }
    lua_rawseti(L, -2, ++count);
  }
  return 1;
}

/// The field `name` of the table on top: a tensor shaped like the parameter.
at::Tensor state_tensor(lua_State* L, const char* name, const at::Tensor& parameter, int entry) {
  lua_getfield(L, -1, name);
  const auto where = fmt::format("entry {}: field '{}'", entry, name);
  if (type_name(L, -1) != kTypeName<at::Tensor>)
    throw WrongArgument(2, "state", where + ": expected a tensor, got " + type_name(L, -1));
  const auto x = tensor_arg(L, lua_gettop(L));
  if (x.sizes() != parameter.sizes())
    throw WrongArgument(2, "state", "{}: expected shape {}, got {}", where, describe_shape(parameter.sizes()),
                        describe_tensor(x));
  lua_pop(L, 1);
  return x.detach().to(parameter.device(), parameter.scalar_type()).clone();
}

/// The state that the table on top of the stack describes; none for an empty one.
std::unique_ptr<torch::optim::OptimizerParamState> read_state(lua_State* L, bool adam,
                                                              const at::Tensor& parameter,
                                                              int entry) {
  if (lua_type(L, -1) != LUA_TTABLE)
    throw WrongArgument(2, "state", "entry {}: expected a table, got {}", entry, type_name(L, -1));
  lua_pushnil(L);
  if (!lua_next(L, -2)) return nullptr;
  lua_pop(L, 2);
  if (!adam) {
    auto state = std::make_unique<torch::optim::SGDParamState>();
    state->momentum_buffer(state_tensor(L, "momentum", parameter, entry));
    return state;
  }
  lua_getfield(L, -1, "step");
  const double step = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : -1;
  lua_pop(L, 1);
  if (!(step >= 0 && step < 0x1p53))
    throw WrongArgument(2, "state", "entry {}: expected a count 'step'", entry);
  auto state = std::make_unique<torch::optim::AdamParamState>();
  state->step(static_cast<int64_t>(step));
  state->exp_avg(state_tensor(L, "exp_avg", parameter, entry));
  state->exp_avg_sq(state_tensor(L, "exp_avg_sq", parameter, entry));
  return state;
}

/// load_state(state): takes back what state() gave, all of it or nothing.
void optim_load_state(lua_State* L, Optimizer& optimiser, Table<"state">) {
  auto& parameters = optimiser.param_groups().at(0).params();
  if (lua_objlen(L, 2) != parameters.size())
    throw WrongArgument(2, "state", "expected {} entries, got {}", parameters.size(), lua_objlen(L, 2));
  const bool adam = dynamic_cast<Adam*>(&optimiser) != nullptr;
  std::vector<std::unique_ptr<torch::optim::OptimizerParamState>> read;
  for_each(L, 2, [&](int i) {
    read.push_back(read_state(L, adam, parameters[static_cast<size_t>(i) - 1], i));
  });
  auto& states = optimiser.state();
  for (size_t i = 0; i < read.size(); ++i) {
    const auto key = state_key<KeyOf<decltype(states)>>(parameters[i]);
    states.erase(key);
    if (read[i]) states[key] = std::move(read[i]);
  }
}

constexpr luaL_Reg kOptimMethods[] = {
    TRINITY_BIND("step", optim_step), TRINITY_BIND("zero_grad", optim_zero_grad),
    TRINITY_BIND("set_learning_rate", optim_set_learning_rate), TRINITY_BIND("state", optim_state),
    TRINITY_BIND("load_state", optim_load_state)};
constexpr luaL_Reg kOptimFunctions[] = {TRINITY_BIND("adam", optim_adam), TRINITY_BIND("sgd", optim_sgd)};

}  // namespace

void open_optimisers(lua_State* L) {
  register_functions(L, kOptimFunctions, "nn");
  register_type<Optimizer>(L, kOptimMethods);
}

}  // namespace trinity::lua
