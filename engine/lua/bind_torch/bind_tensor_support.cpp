#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/words.h"
#include "lua/bind_torch/tensor.h"

namespace trinity::lua {
namespace {

constexpr const char* kDtypeNames[] = {"float32", "float64", "int64", "bool"};
constexpr at::ScalarType kDtypes[] = {at::kFloat, at::kDouble, at::kLong, at::kBool};

bool is_integer(double value) { return value == std::floor(value) && std::fabs(value) < 0x1p53; }

}  // namespace

std::string describe_shape(at::IntArrayRef shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), " x "));
}

std::string describe_tensor(const at::Tensor& x) {
  if (x.dim() == 0) return fmt::format("[{}]", dtype_name(x.scalar_type()));
  const auto shape = x.sizes();
  return fmt::format("[{} {}]", fmt::join(shape.begin(), shape.end(), " x "),
                     dtype_name(x.scalar_type()));
}

std::vector<at::Tensor> tensors_arg(lua_State* L, int index, const char* name) {
  if (lua_type(L, index) != LUA_TTABLE)
    throw WrongArgument(index, name, "expected a list of tensors, got " + type_name(L, index));
  std::vector<at::Tensor> list;
  for_each(L, index, [&](int i) {
    try {
      list.push_back(tensor_arg(L, lua_gettop(L)));
    } catch (const WrongArgument&) {
      const bool is_tensor = type_name(L, -1) == kTypeName<at::Tensor>;
      throw WrongArgument(index, name, "entry {}: expected a tensor, got {}", i,
                          is_tensor ? "a closed one" : type_name(L, -1));
    }
  });
  if (list.empty())
    throw WrongArgument(index, name, "expected a list of tensors, got an empty one");
  return list;
}

at::Scalar scalar_arg(lua_State* L, int index, const char* name) {
  const double value = number_arg(L, index, name);
  if (is_integer(value)) return at::Scalar(static_cast<int64_t>(value));
  return {value};
}

at::Tensor operand_arg(lua_State* L, int index, const char* name) {
  if (lua_type(L, index) == LUA_TNUMBER) {
    auto value = at::scalar_tensor(scalar_arg(L, index, name),
                                   is_integer(lua_tonumber(L, index)) ? at::kLong : at::kDouble);
    value.unsafeGetTensorImpl()->set_wrapped_number(true);
    return value;
  }
  if (lua_type(L, index) != LUA_TUSERDATA)
    throw WrongArgument(index, name, "expected a tensor or a number, got " + type_name(L, index));
  return tensor_arg(L, index, name);
}

void check_elements(at::IntArrayRef shape, int index, const char* name) {
  double elements = 1;
  for (const int64_t extent : shape) elements *= static_cast<double>(extent);
  if (elements > static_cast<double>(kMaxElements))
    throw WrongArgument(index, name, "a tensor of shape {} has {:.4g} elements, more than 2^31", describe_shape(shape),
                        elements);
}

void check_broadcast(const at::Tensor& a, const at::Tensor& b, int index, const char* name) {
  if (a.sizes() == b.sizes()) return;
  const auto dims = static_cast<size_t>(std::max(a.dim(), b.dim()));
  std::vector<int64_t> shape(dims);
  for (size_t i = 1; i <= dims; ++i) {
    const auto at = static_cast<int64_t>(i);
    const int64_t x = at <= a.dim() ? a.size(-at) : 1, y = at <= b.dim() ? b.size(-at) : 1;
    if (x != y && x != 1 && y != 1)
      throw WrongArgument(index, name, "shape {} does not broadcast with {}", describe_shape(b.sizes()),
                          describe_shape(a.sizes()));
    shape[dims - i] = x == 1 ? y : x;
  }
  check_elements(shape, index, name);
}

int64_t dimension_value(lua_State* L, int at, int64_t dimensions, int index, const char* name) {
  const double value = lua_type(L, at) == LUA_TNUMBER ? lua_tonumber(L, at) : 0;
  const auto count = static_cast<double>(std::max<int64_t>(dimensions, 1));
  if (!is_integer(value) || value == 0 || std::fabs(value) > count)
    throw WrongArgument(index, name, "expected a dimension from 1 to {} (or -{} to -1), got {}", count, count,
                        type_name(L, at));
  return static_cast<int64_t>(value < 0 ? value + count : value - 1);
}

int64_t dimension_arg(lua_State* L, int index, int64_t dimensions, const char* name) {
  return dimension_value(L, index, dimensions, index, name);
}

int64_t dimension_arg_or(lua_State* L, int index, int64_t dimensions, int64_t fallback,
                         const char* name) {
  if (!lua_isnoneornil(L, index)) return dimension_arg(L, index, dimensions, name);
  return fallback < 0 ? std::max<int64_t>(dimensions, 1) + fallback : fallback - 1;
}

std::vector<int64_t> shape_arg(lua_State* L, int index, const char* name, bool infer) {
  std::vector<int64_t> shape;
  const auto add = [&](int at, const std::string& where) {
    const double low = infer ? -1 : 0;
    const double extent = lua_type(L, at) == LUA_TNUMBER ? lua_tonumber(L, at) : NAN;
    if (!is_integer(extent) || extent < low)
      throw WrongArgument(index, name, "{}expected an integer from {}, got {}", where, low, type_name(L, at));
    shape.push_back(static_cast<int64_t>(extent));
  };
  if (lua_type(L, index) == LUA_TNUMBER) {
    add(index, "");
  } else {
    if (lua_type(L, index) != LUA_TTABLE)
      throw WrongArgument(index, name,
                          "expected a shape (a list of integers), got " + type_name(L, index));
    if (lua_objlen(L, index) > kMaxDimensions)
      throw WrongArgument(index, name, "more than {} dimensions", kMaxDimensions);
    for_each(L, index, [&](int i) { add(lua_gettop(L), fmt::format("entry {}: ", i)); });
  }
  std::vector<int64_t> known;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(known),
               [](int64_t extent) { return extent >= 0; });
  check_elements(known, index, name);
  return shape;
}

at::Tensor indices_arg(lua_State* L, int index, const char* name, int64_t count, int64_t least) {
  at::Tensor indices;
  if (lua_type(L, index) == LUA_TTABLE) {
    std::vector<int64_t> list;
    for_each(L, index, [&](int) {
      const double value = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0.5;
      if (!is_integer(value))
        throw WrongArgument(index, name,
                            "expected a list of integers, got one of " + type_name(L, -1));
      list.push_back(static_cast<int64_t>(value));
    });
    indices = torch::tensor(list, at::kLong);
  } else {
    indices = tensor_arg(L, index, name);
    if (indices.scalar_type() != at::kLong)
      throw WrongArgument(index, name,
                          "expected an int64 tensor of indices, got " + describe_tensor(indices));
  }
  if (indices.numel() == 0) return indices;
  for (const int64_t value : {indices.min().item<int64_t>(), indices.max().item<int64_t>()})
    if (value < least || value > count)
      throw WrongArgument(index, name, "index {} is outside {} to {}", value, least, count);
  return indices - 1;
}

bool flag_arg(lua_State* L, int index, const char* name, bool fallback) {
  if (lua_isnoneornil(L, index)) return fallback;
  if (lua_type(L, index) != LUA_TBOOLEAN)
    throw WrongArgument(index, name, "expected true or false, got " + type_name(L, index));
  return lua_toboolean(L, index) != 0;
}

at::ScalarType dtype_of(const std::string& name) { return kDtypes[parse_word("dtype", name, kDtypeNames)]; }

std::string dtype_name(at::ScalarType dtype) {
  const auto* found = std::find(std::begin(kDtypes), std::end(kDtypes), dtype);
  return found == std::end(kDtypes) ? at::toString(dtype) : kDtypeNames[found - std::begin(kDtypes)];
}

at::Device device_of(const std::string& name) {
  const bool numbered = name.size() > 5 && name.size() < 9 && name.starts_with("cuda:") &&
                        name.find_first_not_of("0123456789", 5) == std::string::npos;
  if (name == "cpu") return at::kCPU;
  if (name != "cuda" && !numbered)
    throw ArgumentError("unknown device '{}'{} (known: cpu, cuda, cuda:0, cuda:1, ...)", name,
                        suggestion(name, {"cpu", "cuda"}));
  const int count = torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0;
  const int ordinal = numbered ? std::stoi(name.substr(5)) : 0;
  if (ordinal >= count)
    throw ArgumentError("no device '{}': LibTorch sees {} CUDA devices", name, count);
  return {at::kCUDA, static_cast<c10::DeviceIndex>(ordinal)};
}

TensorOptions options_arg(lua_State* L, int index, at::ScalarType fallback) {
  TensorOptions options;
  options.dtype = fallback;
  if (lua_isnoneornil(L, index)) return options;
  if (lua_type(L, index) != LUA_TTABLE)
    throw WrongArgument(index, "options", "expected a table, got " + type_name(L, index));
  Fields fields(L, index, "options");
  if (const auto dtype = fields.string("dtype")) {
    options.dtype = dtype_of(*dtype);
    options.dtype_given = true;
  }
  options.device = device_of(fields.string("device", "cpu"));
  options.requires_grad = fields.boolean("requires_grad", false);
  fields.refuse_unknown();
  return options;
}

int push_new(lua_State* L, at::Tensor x, const TensorOptions& options) {
  if (options.device != at::Device(at::kCPU)) x = x.to(options.device);
  if (options.requires_grad) x.requires_grad_(true);
  return push_tensor(L, x);
}

}  // namespace trinity::lua
