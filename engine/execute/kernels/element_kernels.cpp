#include <algorithm>
#include <cmath>

#include "execute/kernels/kernels.h"

namespace trinity {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

/// Combines the inputs from left to right; a single input is returned unmodified.
template <class F>
Tensors fold(const KernelCall& call, F combine) {
  Tensor result = call.argument(0);
  for (size_t i = 1; call.has_argument(i); ++i) result = combine(result, call.argument(i));
  return {result};
}

template <auto combine>
Tensors folded(const KernelCall& call) {
  return fold(call, combine);
}

/// The same in the shape of the output.
template <auto combine>
Tensors expanded(const KernelCall& call) {
  return {fold(call, combine)[0].expand(call.output_shape()).contiguous()};
}

/// A function of the first argument alone.
template <auto apply>
Tensors mapped(const KernelCall& call) {
  return {apply(call.argument(0))};
}

/// The second argument, or a scalar zero.
Tensor second(const KernelCall& call) {
  return call.has_argument(1) ? call.argument(1) : at::zeros({}, call.argument(0).options());
}

/// A comparison of two arguments.
template <auto compare>
Tensors compared(const KernelCall& call) {
  return {compare(call.argument(0), second(call))};
}

/// The sum from left to right. From the third term on it is in place if no gradient is needed, so
/// gradient sums hold only one tensor in addition to their terms.
Tensors sum_of(const KernelCall& call) {
  Tensor result = call.argument(0);
  for (size_t i = 1; call.has_argument(i); ++i) {
    const auto& next = call.argument(i);
    const bool own = i > 1 && result.sizes() == next.sizes() &&
                     result.scalar_type() == next.scalar_type() && !at::GradMode::is_enabled();
    result = own ? result.add_(next) : result + next;
  }
  return {result};
}

Tensors power(const KernelCall& call) {
  const Tensor& x = call.argument(0);
  return {call.has_argument(1) ? at::pow(x, call.argument(1)) : x * x};
}

Tensors hard_sigmoid(const KernelCall& call) {
  const double slope = call.number("alpha", 0.2), at_zero = call.number("beta", 0.5);
  return {at::clamp(call.argument(0) * slope + at_zero, 0, 1)};
}

Tensors clip(const KernelCall& call) {
  const Tensor& x = call.argument(0);
  const auto bound = [&](const char* name, size_t i) -> c10::optional<Tensor> {
    if (call.has_argument(i)) return call.argument(i);
    if (call.op.attributes.contains(name))
      return at::full({}, call.number(name, 0), x.options().requires_grad(false));
    return c10::nullopt;
  };
  const auto least = bound("min", 1), most = bound("max", 2);
  return {least || most ? at::clamp(x, least, most) : x.clone()};
}

Tensors where(const KernelCall& call) {
  const Tensor condition = call.argument(0).to(at::kBool);
  const Tensor zero = at::zeros({}, condition.options().dtype(call.real));
  const Tensor yes = call.has_argument(1) ? call.argument(1) : zero;
  const Tensor no = call.has_argument(2) ? call.argument(2) : zero.to(yes.scalar_type());
  return {at::where(condition, yes, no)};
}

/// ONNX's type codes: 1 float, 6 int32, 7 int64, 9 bool, 10 float16, 11 double, 16 bfloat16.
/// Everything here is computed in one floating-point type and int64.
Tensors cast(const KernelCall& call) {
  const int64_t to = call.integer("to", 1);
  const bool real = to == 1 || to == 10 || to == 11 || to == 16;
  const auto kind = to == 9 ? at::kBool : real ? call.real : at::kLong;
  return {call.argument(0).to(kind, false, true)};
}

/// Dimensions that a reduction removes: the attribute's, else the dimensions that are 1 or missing
/// in its output; if ambiguous, the last ones.
std::vector<int64_t> reduced_axes(const KernelCall& call) {
  auto axes = call.list("axes");
  const Tensor& x = call.argument(0);
  const auto& shape = call.output_shape();
  if (axes.empty() && call.has_argument(1) && !call.argument(1).is_floating_point())
    for (int64_t i = 0; i < call.argument(1).numel(); ++i)
      axes.push_back(call.argument(1).reshape({-1})[i].item<int64_t>());
  if (!axes.empty()) return axes;
  const bool keeps = call.integer("keepdims", 1) != 0;
  size_t next = 0;
  for (int64_t d = 0; d < x.dim(); ++d) {
    const bool same = next < shape.size() && shape[next] == x.size(d);
    if (!same) axes.push_back(d);
    if (same || keeps) ++next;
  }
  return axes;
}

using Axes = std::vector<int64_t>;

template <auto apply>
Tensors reduced(const KernelCall& call) {
  const auto axes = reduced_axes(call);
  if (axes.empty()) return {call.argument(0).clone()};
  return {apply(call.argument(0), axes, call.integer("keepdims", 1) != 0)};
}

Tensors arg_max(const KernelCall& call) {
  return {call.argument(0).argmax(call.integer("axis", 0), call.integer("keepdims", 1) != 0)};
}

Tensors cumulative_sum(const KernelCall& call) {
  const Tensor& x = call.argument(0);
  const int64_t axis = call.has_argument(1) ? call.argument(1).item<int64_t>() : x.dim() - 1;
  return {at::cumsum(x, axis)};
}

/// The middle of the range over an odd number of neighbouring channels (AlexNet).
Tensors local_response_normalization(const KernelCall& call) {
  const Tensor& x = call.argument(0);
  const int64_t size = call.integer("size", 5);
  const auto squares =
      at::constant_pad_nd((x * x).unsqueeze(1), {0, 0, 0, 0, (size - 1) / 2, size / 2});
  const auto sums = at::avg_pool3d(squares, {size, 1, 1}, {1, 1, 1}).squeeze(1);
  return {x / at::pow(sums * call.number("alpha", 1e-4) + call.number("bias", 1),
                      call.number("beta", 0.75))};
}

Tensors instance_normalization(const KernelCall& call) {
  return {at::instance_norm(call.argument(0), call.optional(1), call.optional(2), {}, {}, true, 0,
                            call.number("epsilon", 1e-5), false)};
}

Tensors group_normalization(const KernelCall& call) {
  return {at::group_norm(call.argument(0), call.integer("num_groups", 1), call.optional(1), call.optional(2),
                         call.number("epsilon", 1e-5), false)};
}

Tensors mean(const KernelCall& call) {
  const auto sum = fold(call, [](const Tensor& a, const Tensor& b) { return a + b; });
  return {sum[0] / static_cast<double>(call.argument_count())};
}

Tensors cast_like(const KernelCall& call) {
  const Tensor& x = call.argument(0);
  return {call.has_argument(1) ? x.to(call.argument(1).scalar_type(), false, true) : x.clone()};
}

Tensors prelu(const KernelCall& call) {
  const Tensor& x = call.argument(0);
  return {at::where(x > 0, x, x * call.argument(1))};
}

}  // namespace

void add_element_kernels(KernelTable& table) {
  table.insert({{"Abs", mapped<at::abs>}, {"Ceil", mapped<at::ceil>}, {"Cos", mapped<at::cos>},
                {"Erf", mapped<at::erf>}, {"Exp", mapped<at::exp>}, {"Floor", mapped<at::floor>},
                {"Log", mapped<at::log>}, {"Neg", mapped<at::neg>}, {"Reciprocal", mapped<at::reciprocal>},
                {"Sign", mapped<at::sign>}, {"Sin", mapped<at::sin>}, {"Sqrt", mapped<at::sqrt>},
                {"Relu", mapped<at::relu>}, {"Tanh", mapped<at::tanh>}, {"Sigmoid", mapped<at::sigmoid>},
                {"Swish", mapped<at::silu>}, {"HardSwish", mapped<at::hardswish>}, {"Mish", mapped<at::mish>},
                {"IsNaN", mapped<at::isnan>}, {"Not", mapped<at::logical_not>}});
  table.insert({{"Add", sum_of}, {"Sum", sum_of}, {"Mean", mean}, {"Pow", power}, {"Clip", clip},
                {"CumSum", cumulative_sum}, {"Where", where}, {"Cast", cast}, {"CastLike", cast_like}, {"PRelu", prelu},
                {"HardSigmoid", hard_sigmoid}, {"ArgMax", arg_max}, {"LRN", local_response_normalization},
                {"InstanceNormalization", instance_normalization}, {"GroupNormalization", group_normalization}});
  table["Sub"] = folded<[](const auto& a, const auto& b) { return a - b; }>;
  table["Mul"] = folded<[](const auto& a, const auto& b) { return a * b; }>;
  table["Div"] = folded<[](const auto& a, const auto& b) { return a / b; }>;
  table["Min"] = folded<at::minimum>;
  table["Max"] = folded<at::maximum>;
  table["And"] = expanded<at::logical_and>;
  table["Or"] = expanded<at::logical_or>;
  table["Equal"] = compared<[](const auto& a, const auto& b) { return a == b; }>;
  table["Greater"] = compared<[](const auto& a, const auto& b) { return (a > b); }>;
  table["GreaterOrEqual"] = compared<[](const auto& a, const auto& b) { return (a >= b); }>;
  table["Less"] = compared<[](const auto& a, const auto& b) { return a < b; }>;
  table["LessOrEqual"] = compared<[](const auto& a, const auto& b) { return a <= b; }>;
  table["Round"] = mapped<[](const auto& x) { return at::round(x); }>;
  table["Selu"] = mapped<[](const auto& x) { return at::selu(x); }>;
  table["Softplus"] = mapped<[](const auto& x) { return at::softplus(x); }>;
  table["Gelu"] = [](const KernelCall& c) { return Tensors{at::gelu(c.argument(0), c.text("approximate", "none"))}; };
  table["LeakyRelu"] = [](const KernelCall& c) {
    return Tensors{at::leaky_relu(c.argument(0), c.number("alpha", 0.01))};
  };
  table["Elu"] = [](const KernelCall& c) { return Tensors{at::elu(c.argument(0), c.number("alpha", 1))}; };
  table["LogSoftmax"] = [](const KernelCall& c) {
    return Tensors{at::log_softmax(c.argument(0), c.integer("axis", -1))};
  };
  table["ReduceSum"] = reduced<[](const auto& x, const Axes& axes, bool keep) { return x.sum(axes, keep); }>;
  table["ReduceMean"] = reduced<[](const auto& x, const Axes& axes, bool keep) { return x.mean(axes, keep); }>;
  table["ReduceMax"] = reduced<[](const auto& x, const Axes& axes, bool keep) { return x.amax(axes, keep); }>;
  table["ReduceMin"] = reduced<[](const auto& x, const Axes& axes, bool keep) { return x.amin(axes, keep); }>;
  table["ReduceL2"] =
      reduced<[](const auto& x, const Axes& axes, bool keep) { return (x * x).sum(axes, keep).sqrt(); }>;
}

}  // namespace trinity
