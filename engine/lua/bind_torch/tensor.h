#pragma once

#include <string>
#include <vector>

#include "libtorch/torch.h"
#include "lua/host/bound.h"

// The vocabulary of the tensor bindings (bind_tensor*.cpp). A tensor in Lua is a handle of an
// at::Tensor. Scripts count dimensions, indices and categories from 1 (a dimension also from -1,
// the last, backwards); LibTorch from 0: the helpers below convert and check. Errors of LibTorch
// arrive as one line. Shapes that a script asks for have at most kMaxElements elements, and all
// tensors together take less memory than the machine has (see bind_tensor_memory.cpp).

namespace torch::optim {
class Optimizer;
}

namespace trinity::lua {

template <>
inline constexpr const char* kTypeName<at::Tensor> = "tensor";
template <>
inline constexpr const char* kTypeName<torch::optim::Optimizer> = "optimiser";

/// More elements than this no tensor of a script may have, views included.
inline constexpr int64_t kMaxElements = int64_t{1} << 31;
/// Deepest nesting of tables, and most dimensions.
inline constexpr int kMaxDimensions = 16;

/// "[2 x 3 float32]", as messages show a tensor.
std::string describe_tensor(const at::Tensor& x);
std::string describe_shape(at::IntArrayRef shape);

/// The tensor at `index`; throws WrongArgument for anything else and for a closed one.
inline const at::Tensor& tensor_arg(lua_State* L, int index, const char* name = "tensor") {
  return object_arg<at::Tensor>(L, index, name);
}
/// The object that a method is called on.
inline const at::Tensor& self(lua_State* L) { return tensor_arg(L, 1); }
/// Pushes a tensor; collects garbage first when native memory has grown much. Returns 1.
int push_tensor(lua_State* L, const at::Tensor& x);
/// Bound functions return tensors, lists and tuples of them.
template <>
inline void push(lua_State* L, const at::Tensor& x) {
  push_tensor(L, x);
}
/// A list of at least one tensor at `index`.
std::vector<at::Tensor> tensors_arg(lua_State* L, int index, const char* name);

/// A tensor, or a number as LibTorch's wrapped scalar (an integer keeps integer tensors integer).
at::Tensor operand_arg(lua_State* L, int index, const char* name);
at::Scalar scalar_arg(lua_State* L, int index, const char* name);
/// Throws WrongArgument(index, name) unless both shapes broadcast to one of kMaxElements at most.
void check_broadcast(const at::Tensor& a, const at::Tensor& b, int index, const char* name);

/// A dimension, 0-based, of a tensor with `dimensions` of them.
int64_t dimension_arg(lua_State* L, int index, int64_t dimensions, const char* name = "dimension");
/// The same for the value at stack place `at`, part of argument `index`.
int64_t dimension_value(lua_State* L, int at, int64_t dimensions, int index,
                        const char* name = "dimension");
/// The same, with a default (as a script would write it) for nil.
int64_t dimension_arg_or(lua_State* L, int index, int64_t dimensions, int64_t fallback,
                         const char* name = "dimension");
/// A shape: an integer or a list of integers from 0, at most kMaxElements elements; -1 is accepted
/// where `infer` says so.
std::vector<int64_t> shape_arg(lua_State* L, int index, const char* name, bool infer = false);
/// Throws WrongArgument(index, name) for more than kMaxElements elements.
void check_elements(at::IntArrayRef shape, int index, const char* name);
/// Indices 0-based: an int64 tensor or a list of integers, all from `least` to `count`.
at::Tensor indices_arg(lua_State* L, int index, const char* name, int64_t count, int64_t least = 1);
/// `true` or nil for false; throws for anything else.
bool flag_arg(lua_State* L, int index, const char* name, bool fallback = false);

at::ScalarType dtype_of(const std::string& name);
/// "float32", "float64", "int64", "bool"; LibTorch's own name for others.
std::string dtype_name(at::ScalarType dtype);
/// Throws ArgumentError for an unknown name or a device that is not there.
at::Device device_of(const std::string& name);

/// The options of a new tensor: { dtype =, device =, requires_grad = } at `index`, or nil.
struct TensorOptions {
  at::ScalarType dtype = at::kFloat;
  bool dtype_given = false;
  at::Device device = at::kCPU;
  bool requires_grad = false;
  at::TensorOptions cpu() const { return at::TensorOptions().dtype(dtype); }
};
TensorOptions options_arg(lua_State* L, int index, at::ScalarType fallback = at::kFloat);
/// Moves a tensor made on the CPU to the place that the options say, and pushes it. Returns 1.
int push_new(lua_State* L, at::Tensor x, const TensorOptions& options);

/// Runs `body`; what LibTorch refuses becomes one line about argument `index`.
template <class Body>
auto about(int index, const char* name, Body body) {
  try {
    return body();
  } catch (const Error&) {
    throw;  // ours
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw WrongArgument(index, name, text.substr(0, text.find('\n')));
  }
}

/// Bytes of all live tensors on the CPU, LibTorch's own included.
int64_t live_tensor_bytes();

/// The tables of the other files; open_tensor() (module.h) registers them.
extern const std::vector<luaL_Reg> kTensorMathMethods, kTensorReductionMethods, kTensorShapeMethods,
    kTensorGradientMethods, kTensorShapeFunctions, kTensorGradientFunctions,
    kTensorInternalFunctions, kTensorLayerFunctions, kTensorLossFunctions;
/// Adds the optimisers to the table on top of the stack, and registers their type.
void open_optimisers(lua_State* L);

}  // namespace trinity::lua
