#include <algorithm>
#include <cstring>

#include "formats/export/safetensors.h"
#include "lua/bind_torch/tensor.h"

// Gradients, and files of tensors.

namespace trinity::lua {
namespace {

/// backward(gradient, retain): adds derivatives to the grad of every leaf. `gradient` may be left
/// out for one element; `retain` keeps what a second backward() needs.
void grad_backward(lua_State* L, const at::Tensor& x) {
  if (!x.requires_grad())
    throw WrongArgument(1, "tensor", "nothing to differentiate: no input requires gradients");
  at::Tensor gradient;
  if (!lua_isnoneornil(L, 2)) {
    gradient = tensor_arg(L, 2, "gradient");
    if (gradient.sizes() != x.sizes())
      throw WrongArgument(2, "gradient", "expected shape {}, got {}", describe_shape(x.sizes()),
                          describe_tensor(gradient));
  } else if (x.numel() != 1) {
    throw WrongArgument(2, "gradient", "needed for more than one element, " + describe_tensor(x));
  }
  const bool retain = flag_arg(L, 3, "retain");
  about(1, "tensor", [&] { x.backward(gradient, retain); });
}

/// grad(y, inputs, options) -> derivatives of y (one element, or weighted by options.gradient).
std::vector<at::Tensor> grad_grad(lua_State* L) {
  const auto& y = tensor_arg(L, 1, "y");
  const auto inputs = tensors_arg(L, 2, "inputs");
  bool create_graph = false;
  std::vector<at::Tensor> weights;
  if (!lua_isnoneornil(L, 3)) {
    table_arg(L, 3, "options");
    Fields fields(L, 3, "options");
    create_graph = fields.boolean("create_graph", false);
    fields.push_any("gradient");
    if (!lua_isnil(L, -1)) weights.push_back(tensor_arg(L, lua_gettop(L), "gradient"));
    lua_pop(L, 1);
    fields.refuse_unknown();
  }
  if (weights.empty() && y.numel() != 1)
    throw WrongArgument(1, "y", "expected one element, got " + describe_tensor(y));
  if (!y.requires_grad())
    throw WrongArgument(1, "y", "nothing to differentiate: no input requires gradients");
  return about(2, "inputs", [&] {
    return torch::autograd::grad({y}, inputs, weights, create_graph, create_graph);
  });
}

/// no_grad(f, ...): calls f without recording for gradients, whatever way it ends.
int grad_no_grad(lua_State* L) {
  if (lua_type(L, 1) != LUA_TFUNCTION)
    throw WrongArgument(1, "f", "expected a function, got " + type_name(L, 1));
  const at::NoGradGuard guard;
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

std::optional<at::Tensor> grad_get(const at::Tensor& x) {
  return x.is_leaf() && x.grad().defined() ? std::optional(x.grad()) : std::nullopt;
}

bool grad_required(const at::Tensor& x) { return x.requires_grad(); }

/// requires_grad_(on): whether gradients are wanted for this leaf; returns the tensor.
int grad_require(lua_State* L, const at::Tensor& x) {
  const bool on = flag_arg(L, 2, "on", true);
  if (on && !x.is_floating_point())
    throw WrongArgument(1, "tensor",
                        "only floating point has gradients, not " + describe_tensor(x));
  if (!on && !x.is_leaf())
    throw WrongArgument(1, "tensor", "is the result of an operation: use detach()");
  x.set_requires_grad(on);
  lua_settop(L, 1);
  return 1;
}

void grad_zero(const at::Tensor& x) {
  if (x.is_leaf()) x.mutable_grad().reset();
}

/// set_data(tensor, other): the tensor takes over the other's values, dtype and device.
void grad_set_data(lua_State* L) {
  const auto& x = tensor_arg(L, 1);
  const auto& other = tensor_arg(L, 2, "other");
  if (x.sizes() != other.sizes())
    throw WrongArgument(2, "other", "expected shape {}, got {}", describe_shape(x.sizes()), describe_tensor(other));
  about(2, "other", [&] { x.set_data(other.detach().clone()); });
}

/// version(tensor): counts changes in place.
int64_t grad_version(const at::Tensor& x) { return x._version(); }

const std::vector<std::pair<std::string, at::ScalarType>> kFileDtypes = {
    {"F32", at::kFloat}, {"F64", at::kDouble}, {"I64", at::kLong}, {"BOOL", at::kBool}};

std::string file_dtype(const at::Tensor& x) {
  for (const auto& [name, dtype] : kFileDtypes)
    if (dtype == x.scalar_type()) return name;
  throw ArgumentError("cannot save a tensor of dtype " + dtype_name(x.scalar_type()));
}

/// write(path, names, tensors)
void file_write(lua_State* L, Text<"path"> path, Table<"names">) {
  auto tensors = tensors_arg(L, 3, "tensors");
  std::vector<SavedArray> arrays;
  for_each(L, 2, [&](int i) {
    auto& x = tensors.at(static_cast<size_t>(i) - 1);
    x = x.detach().to(at::kCPU).contiguous();
    arrays.push_back({string_arg(L, lua_gettop(L), "name"),
                      file_dtype(x),
                      x.sizes().vec(),
                      {static_cast<const char*>(x.data_ptr()), x.nbytes()}});
  });
  write_arrays(path, arrays, {});
}

/// read(path, hashed) -> names, tensors; `hashed`: refuses files that cannot tell whether they were
/// changed
auto file_read(lua_State* L) {
  const auto file = read_arrays(string_arg(L, 1, "path"), flag_arg(L, 2, "hashed"));
  std::vector<std::string> names;
  std::vector<at::Tensor> tensors;
  for (const auto& array : file.arrays) {
    const auto known = std::find_if(kFileDtypes.begin(), kFileDtypes.end(),
                                    [&](const auto& item) { return item.first == array.dtype; });
    auto x = at::empty(array.shape, at::TensorOptions().dtype(known->second));
    if (x.nbytes() > 0) std::memcpy(x.data_ptr(), array.bytes.data(), x.nbytes());
    tensors.push_back(std::move(x));
    names.push_back(array.name);
  }
  return std::tuple(std::move(names), std::move(tensors));
}

}  // namespace

const std::vector<luaL_Reg> kTensorGradientMethods = {
    TRINITY_BIND("backward", grad_backward, 3), TRINITY_BIND("requires_grad_", grad_require, 2),
    TRINITY_BIND("zero_grad", grad_zero, 1)};

const std::vector<luaL_Reg> kTensorGradientFunctions = {
    TRINITY_BIND("grad", grad_grad, 3), TRINITY_BIND("no_grad", grad_no_grad)};

const std::vector<luaL_Reg> kTensorInternalFunctions = {
    TRINITY_BIND("grad", grad_get), TRINITY_BIND("requires_grad", grad_required),
    TRINITY_BIND("set_data", grad_set_data), TRINITY_BIND("version", grad_version), TRINITY_BIND("write", file_write),
    TRINITY_BIND("read", file_read)};

}  // namespace trinity::lua
