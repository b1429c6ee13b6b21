#include <cmath>

#include "lua/bind/module.h"
#include "lua/bind_torch/open.h"
#include "lua/bind_torch/tensor.h"

// Tensors: making them, looking into them, changing dtype and device.

namespace trinity::lua {
namespace {

/// Reads nested lists of numbers (or of booleans) row by row.
class NestedReader {
 public:
  NestedReader(lua_State* L, int index) : L_(L), index_(index) {
    const int top = lua_gettop(L);
    for (lua_pushvalue(L, index); lua_type(L, -1) == LUA_TTABLE; lua_rawgeti(L, -1, 1)) {
      if (shape_.size() == kMaxDimensions)
        throw WrongArgument(index, "data", "nested deeper than {} lists", kMaxDimensions);
      shape_.push_back(static_cast<int64_t>(lua_objlen(L, -1)));
      if (shape_.back() == 0)
        throw WrongArgument(index, "data",
                            "expected numbers, got an empty list (see tensor.zeros)");
      luaL_checkstack(L, 4, "nested lists");
    }
    booleans_ = lua_type(L, -1) == LUA_TBOOLEAN;
    lua_settop(L, top);
    check_elements(shape_, index, "data");
    lua_pushvalue(L, index);
    read(0, "");
    lua_pop(L, 1);
  }

  bool booleans() const { return booleans_; }
  at::Tensor tensor(at::ScalarType dtype) {
    if (dtype == at::kLong || dtype == at::kBool) check_integers();
    return torch::from_blob(values_.data(), shape_, at::kDouble).to(dtype, false, true);
  }

 private:
  /// The value on top of the stack, which is at `where` ("row 2", "row 2, row 1").
  void read(size_t depth, const std::string& where) {
    if (depth == shape_.size()) return read_number(where);
    if (lua_type(L_, -1) != LUA_TTABLE)
      throw WrongArgument(index_, "data", where + " is a " + type_name(L_, -1) + ", not a list");
    const auto count = static_cast<int64_t>(lua_objlen(L_, -1));
    if (count != shape_[depth])
      throw WrongArgument(index_, "data", "{} has {} entries, expected {}", where, count, shape_[depth]);
    const bool last = depth + 1 == shape_.size();
    for (int64_t i = 1; i <= count; ++i) {
      lua_rawgeti(L_, -1, static_cast<int>(i));
      if (last && lua_type(L_, -1) == LUA_TNUMBER && !booleans_)
        values_.push_back(lua_tonumber(L_, -1));  // without making a text for the message
      else
        read(depth + 1,
             fmt::format("{}{}{} {}", where, where.empty() ? "" : ", ", last ? "entry" : "row", i));
      lua_pop(L_, 1);
    }
  }

  void read_number(const std::string& where) {
    const int type = lua_type(L_, -1);
    if (type != (booleans_ ? LUA_TBOOLEAN : LUA_TNUMBER))
      throw WrongArgument(index_, "data", "{}{}expected {}, got {}", where, where.empty() ? "" : ": ",
                          booleans_ ? "true or false" : "a number", type_name(L_, -1));
    values_.push_back(booleans_ ? lua_toboolean(L_, -1) : lua_tonumber(L_, -1));
  }

  void check_integers() const {
    for (const double value : values_)
      if (value != std::floor(value) || std::fabs(value) > 0x1p53)
        throw WrongArgument(index_, "data", "{} is not an integer", value);
  }

  lua_State* L_;
  int index_;
  bool booleans_ = false;
  std::vector<int64_t> shape_;
  std::vector<double> values_;
};

/// new(data, options): from nested lists, a number, or an array of the engine, copied.
int tensor_new(lua_State* L) {
  const auto copied = [&](const void* data, int32_t length, at::ScalarType from, at::ScalarType fallback) {
    const auto options = options_arg(L, 2, fallback);
    const auto view = torch::from_blob(const_cast<void*>(data), {length}, from);
    return push_new(L, view.to(options.dtype, false, true), options);
  };
  if (auto* doubles = find_struct<trinity_double_array>(L, 1, Magic::double_array))
    return copied(doubles + 1, doubles->length, at::kDouble, at::kDouble);
  if (auto* integers = find_struct<trinity_int32_array>(L, 1, Magic::int32_array))
    return copied(integers + 1, integers->length, at::kInt, at::kLong);
  if (auto* span = find_struct<trinity_int32_span>(L, 1, Magic::int32_span))
    return copied(span->data, span->length, at::kInt, at::kLong);
  const int type = lua_type(L, 1);
  if (type != LUA_TTABLE && type != LUA_TNUMBER && type != LUA_TBOOLEAN)
    throw WrongArgument(1, "data",
                        "expected nested lists, a number or an array, got " + type_name(L, 1));
  lua_settop(L, 2);
  NestedReader reader(L, 1);
  const auto options = options_arg(L, 2, reader.booleans() ? at::kBool : at::kFloat);
  return push_new(L, reader.tensor(options.dtype), options);
}

int tensor_zeros(lua_State* L) {
  const auto options = options_arg(L, 2);
  return push_new(L, at::zeros(shape_arg(L, 1, "shape"), options.cpu()), options);
}

int tensor_ones(lua_State* L) {
  const auto options = options_arg(L, 2);
  return push_new(L, at::ones(shape_arg(L, 1, "shape"), options.cpu()), options);
}

int tensor_full(lua_State* L) {
  const auto shape = shape_arg(L, 1, "shape");
  const bool boolean = lua_type(L, 2) == LUA_TBOOLEAN;
  const at::Scalar value =
      boolean ? at::Scalar(lua_toboolean(L, 2) != 0) : scalar_arg(L, 2, "value");
  const auto options = options_arg(L, 3, boolean ? at::kBool : at::kFloat);
  return about(2, "value",
               [&] { return push_new(L, at::full(shape, value, options.cpu()), options); });
}

/// arange(first, last, step, options): `last` included, as Lua's own loops do.
int tensor_arange(lua_State* L) {
  const double first = number_arg(L, 1, "first"), last = number_arg(L, 2, "last");
  const double step = lua_isnoneornil(L, 3) ? 1 : number_arg(L, 3, "step");
  const auto options = options_arg(L, 4);
  if (!std::isfinite(first)) throw WrongArgument(1, "first", "expected a finite number");
  if (!std::isfinite(last)) throw WrongArgument(2, "last", "expected a finite number");
  if (!std::isfinite(step) || step == 0)
    throw WrongArgument(3, "step", "expected a number that is finite and not 0");
  const double count = std::floor((last - first) / step) + 1;
  if (count > static_cast<double>(kMaxElements))
    throw WrongArgument(2, "last", "{:.4g} elements are more than 2^31", count);
  const auto indices = at::arange(std::max<int64_t>(0, static_cast<int64_t>(count)),
                                  at::TensorOptions().dtype(at::kDouble));
  return push_new(L, (indices * step + first).to(options.dtype), options);
}

int tensor_eye(lua_State* L) {
  const auto options = options_arg(L, 2);
  const auto n = integer_arg(L, 1, "n", 0, 46340);  // at most kMaxElements
  return push_new(L, at::eye(n, options.cpu()), options);
}

/// A tensor whose elements `draw` gives one by one.
template <class Draw>
int random_tensor(lua_State* L, int options_index, Draw draw) {
  const auto shape = shape_arg(L, 1, "shape");
  const auto options = options_arg(L, options_index);
  if (options.dtype != at::kFloat && options.dtype != at::kDouble)
    throw WrongArgument(options_index, "options", "dtype must be float32 or float64");
  auto x = at::empty(shape, options.cpu());
  const int64_t count = x.numel();
  if (options.dtype == at::kFloat) {
    auto* data = x.data_ptr<float>();
    for (int64_t i = 0; i < count; ++i) data[i] = static_cast<float>(draw());
  } else {
    auto* data = x.data_ptr<double>();
    for (int64_t i = 0; i < count; ++i) data[i] = draw();
  }
  return push_new(L, x, options);
}

/// uniform(shape, stream, low, high, options): in [low, high), by default [0, 1).
int tensor_uniform(lua_State* L) {
  auto& stream = object_arg<RandomStream>(L, 2, "stream");
  const double low = lua_isnoneornil(L, 3) ? 0 : number_arg(L, 3, "low");
  const double high = lua_isnoneornil(L, 4) ? 1 : number_arg(L, 4, "high");
  if (!std::isfinite(low) || !std::isfinite(high) || low > high)
    throw WrongArgument(3, "low", "expected low <= high, both finite, got [{}, {})", low, high);
  return random_tensor(L, 5, [&] { return low + (high - low) * stream.uniform(); });
}

int tensor_normal(lua_State* L) {
  auto& stream = object_arg<RandomStream>(L, 2, "stream");
  return random_tensor(L, 3, [&] { return stream.normal(); });
}

/// One category by inverse cumulative distribution from logits.
int64_t draw_category(const double* logits, int64_t count, int64_t row, RandomStream& stream) {
  double top = -INFINITY, total = 0;
  for (int64_t k = 0; k < count; ++k) {
    if (std::isnan(logits[k]) || logits[k] == INFINITY)
      throw WrongArgument(1, "logits", "row {}: expected numbers below infinity, got {}", row + 1, logits[k]);
    top = std::max(top, logits[k]);
  }
  if (top == -INFINITY)
    throw WrongArgument(1, "logits", "row {}: expected at least one category above -infinity", row + 1);
  for (int64_t k = 0; k < count; ++k) total += std::exp(logits[k] - top);
  double rest = stream.uniform() * total;
  int64_t last = 0;
  for (int64_t k = 0; k < count; ++k) {
    const double weight = std::exp(logits[k] - top);
    if (weight == 0) continue;
    if (rest < weight) return k;
    rest -= weight;
    last = k;
  }
  return last;  // rounding left a little over
}

/// categorical(logits, stream): log-probabilities, normalised or not, along the last dimension.
int tensor_categorical(lua_State* L) {
  const auto& given = tensor_arg(L, 1, "logits");
  auto& stream = object_arg<RandomStream>(L, 2, "stream");
  if (!given.is_floating_point())
    throw WrongArgument(1, "logits", "expected floating point, got " + describe_tensor(given));
  if (given.dim() == 0 || given.size(-1) == 0)
    throw WrongArgument(1, "logits",
                        "expected at least one category, got " + describe_tensor(given));
  const auto logits = given.detach().to(at::kCPU, at::kDouble).contiguous();
  const int64_t count = logits.size(-1), rows = logits.numel() / count;
  auto drawn = at::empty(logits.sizes().slice(0, static_cast<size_t>(logits.dim() - 1)),
                         at::TensorOptions().dtype(at::kLong));
  const auto* data = logits.data_ptr<double>();
  auto* out = drawn.data_ptr<int64_t>();
  for (int64_t row = 0; row < rows; ++row)
    out[row] = 1 + draw_category(data + row * count, count, row, stream);
  return push_tensor(L, drawn.to(given.device()));
}

int tensor_size(lua_State* L, const at::Tensor& x) {
  if (lua_isnoneornil(L, 2)) return push_numbers(L, x.sizes());
  if (x.dim() == 0) throw WrongArgument(2, "dimension", "expected a tensor with dimensions, got "
                                                        "a scalar");
  return push_results(L, x.size(dimension_arg(L, 2, x.dim())));
}

int64_t tensor_dim(const at::Tensor& x) { return x.dim(); }
int64_t tensor_numel(const at::Tensor& x) { return x.numel(); }
int64_t tensor_length(const at::Tensor& x) { return x.dim() == 0 ? 0 : x.size(0); }

/// item(): the one number (or boolean) of a tensor with one element.
int tensor_item(lua_State* L, const at::Tensor& x) {
  if (x.numel() != 1)
    throw WrongArgument(1, "tensor", "expected one element, got " + describe_tensor(x));
  return x.scalar_type() == at::kBool ? push_boolean(L, x.item<bool>()) : push_number(L, x.item<double>());
}

/// Pushes the elements of `x` from `data` on, of dimension `depth` and below, as nested lists.
void push_nested(lua_State* L, const at::Tensor& x, int64_t depth, const double*& data) {
  if (depth == x.dim()) {
    x.scalar_type() == at::kBool ? lua_pushboolean(L, *data != 0) : lua_pushnumber(L, *data);
    ++data;
    return;
  }
  luaL_checkstack(L, 4, "nested lists");
  lua_createtable(L, static_cast<int>(x.size(depth)), 0);
  for (int64_t i = 0; i < x.size(depth); ++i) {
    push_nested(L, x, depth + 1, data);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
}

at::Tensor as_doubles(const at::Tensor& x) {
  return x.detach().to(at::kCPU, at::kDouble).contiguous();
}

int tensor_totable(lua_State* L, const at::Tensor& x) {
  const auto values = as_doubles(x);
  const double* data = values.data_ptr<double>();
  push_nested(L, x, 0, data);
  return 1;
}

/// fill_array(tensor, array): all elements, row by row, into a double array of that length.
void tensor_fill_array(lua_State* L) {
  const auto values = as_doubles(tensor_arg(L, 1));
  const auto array = numbers_arg(L, 2, "array");
  if (static_cast<int64_t>(array.size()) != values.numel())
    throw WrongArgument(2, "array", "expected {} entries, got {}", values.numel(), array.size());
  std::copy_n(values.data_ptr<double>(), values.numel(), array.begin());
}

at::Tensor tensor_clone(const at::Tensor& x) { return x.clone(); }
at::Tensor tensor_detach(const at::Tensor& x) { return x.detach(); }
at::Tensor tensor_contiguous(const at::Tensor& x) { return x.contiguous(); }

/// to{dtype =, device =}; the same tensor where nothing changes.
int tensor_to(lua_State* L, const at::Tensor& x) {
  table_arg(L, 2, "options");
  Fields fields(L, 2, "options");
  const auto dtype = fields.string("dtype");
  const auto device = fields.string("device");
  fields.refuse_unknown();
  return push_tensor(L, x.to(device ? device_of(*device) : x.device(),
                             dtype ? dtype_of(*dtype) : x.scalar_type()));
}

auto tensor_dtype(const at::Tensor& x) { return dtype_name(x.scalar_type()); }
auto tensor_device(const at::Tensor& x) { return x.device().str(); }

int tensor_is_closed(lua_State* L) {
  void* memory = nullptr;
  if (type_name(L, 1) == kTypeName<at::Tensor>) memory = lua_touserdata(L, 1);
  return push_boolean(L, memory && !*static_cast<Handle<at::Tensor>*>(memory));
}

constexpr luaL_Reg kMethods[] = {
    TRINITY_BIND("size", tensor_size, 2), TRINITY_BIND("dim", tensor_dim, 1), TRINITY_BIND("numel", tensor_numel, 1),
    TRINITY_BIND("item", tensor_item, 1), TRINITY_BIND("totable", tensor_totable, 1),
    TRINITY_BIND("clone", tensor_clone, 1), TRINITY_BIND("detach", tensor_detach, 1),
    TRINITY_BIND("contiguous", tensor_contiguous, 1), TRINITY_BIND("to", tensor_to, 2)};

/// Functions that the Lua part turns into fields and operators; `start`, called once by it, counts memory from then on.
constexpr luaL_Reg kInternal[] = {
    TRINITY_BIND("dtype", tensor_dtype), TRINITY_BIND("device", tensor_device), TRINITY_BIND("length", tensor_length),
    TRINITY_BIND("is_closed", tensor_is_closed), TRINITY_BIND("fill_array", tensor_fill_array),
    TRINITY_BIND("start", count_tensor_memory)};

constexpr luaL_Reg kTensorFunctions[] = {
    TRINITY_BIND("new", tensor_new, 2), TRINITY_BIND("zeros", tensor_zeros, 2), TRINITY_BIND("ones", tensor_ones, 2),
    TRINITY_BIND("full", tensor_full, 3), TRINITY_BIND("arange", tensor_arange, 4),
    TRINITY_BIND("eye", tensor_eye, 2), TRINITY_BIND("uniform", tensor_uniform, 5),
    TRINITY_BIND("normal", tensor_normal, 3), TRINITY_BIND("categorical", tensor_categorical, 2),
    TRINITY_BIND("live_bytes", live_tensor_bytes, 0)};

/// Adds a table `name` of functions to the table on top of the stack.
void set_functions(lua_State* L, const char* name, const char* owner,
                   std::initializer_list<std::span<const luaL_Reg>> lists) {
  lua_newtable(L);
  for (const auto functions : lists) register_functions(L, functions, owner);
  lua_setfield(L, -2, name);
}

}  // namespace

void open_tensor(lua_State* L) {
  register_type<at::Tensor>(L, kMethods);
  lua_newtable(L);
  luaL_getmetatable(L, kTypeName<at::Tensor>);
  lua_getfield(L, -1, "__index");
  for (const auto* methods : {&kTensorMathMethods, &kTensorReductionMethods, &kTensorShapeMethods,
                              &kTensorGradientMethods})
    register_functions(L, *methods, kTypeName<at::Tensor>, true);
  lua_pop(L, 1);
  lua_setfield(L, -2, "class");  // the metatable, which the Lua part completes
  set_functions(L, "functions", "tensor",
                {kTensorFunctions, kTensorShapeFunctions, kTensorGradientFunctions});
  set_functions(L, "internal", "tensor", {kInternal, kTensorInternalFunctions});
  set_functions(L, "layers", "nn", {kTensorLayerFunctions, kTensorLossFunctions});
  lua_getfield(L, -1, "layers");
  open_optimisers(L);
  lua_pop(L, 1);
  lua_setfield(L, -2, "tensor");
}

}  // namespace trinity::lua
