#include "execute/kernels.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "execute/recurrent_kernels.h"

namespace trinity {

const at::Tensor& KernelCall::argument(size_t i) const {
  if (i < inputs.size()) return inputs[i];
  if (i - inputs.size() >= parameters.size())
    throw Error(fmt::format("operator {} ({}): expected more than {} arguments", op.name, op.type,
                            inputs.size() + parameters.size()));
  return parameters[i - inputs.size()];
}

int64_t KernelCall::integer(const char* attribute, int64_t fallback) const {
  return integer_attribute(op.attributes, attribute, fallback);
}

double KernelCall::number(const char* attribute, double fallback) const {
  const auto found = op.attributes.find(attribute);
  if (found == op.attributes.end()) return fallback;
  if (const auto* value = std::get_if<double>(&found->second)) return *value;
  if (const auto* whole = std::get_if<int64_t>(&found->second)) return static_cast<double>(*whole);
  return fallback;
}

std::string KernelCall::text(const char* attribute, const char* fallback) const {
  const auto found = op.attributes.find(attribute);
  if (found == op.attributes.end()) return fallback;
  const auto* value = std::get_if<std::string>(&found->second);
  return value ? *value : fallback;
}

std::vector<int64_t> KernelCall::list(const char* attribute) const {
  const auto found = op.attributes.find(attribute);
  if (found == op.attributes.end()) return {};
  if (const auto* value = std::get_if<std::vector<int64_t>>(&found->second)) return *value;
  if (const auto* whole = std::get_if<int64_t>(&found->second)) return {*whole};
  return {};
}

namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

/// Pads of the two spatial dimensions as ONNX has them: [top, left, bottom, right].
struct Window {
  std::vector<int64_t> kernel, strides, before;
  bool symmetric = true;
  std::vector<int64_t> pads;  // as at::constant_pad_nd takes them

  explicit Window(const KernelCall& call)
      : kernel(call.list("kernel_shape")), strides(call.list("strides")) {
    auto given = call.list("pads");
    if (strides.empty()) strides = {1, 1};
    if (given.size() < 4) given = {0, 0, 0, 0};
    before = {given[0], given[1]};
    symmetric = given[0] == given[2] && given[1] == given[3];
    pads = {given[1], given[3], given[0], given[2]};
  }
};

Tensors conv(const KernelCall& call) {
  const Window window(call);
  const auto dilations = call.list("dilations");
  const Tensor bias = call.has_argument(2) ? call.argument(2) : Tensor();
  const Tensor x =
      window.symmetric ? call.inputs[0] : at::constant_pad_nd(call.inputs[0], window.pads);
  const std::vector<int64_t> pads = window.symmetric ? window.before : std::vector<int64_t>{0, 0};
  return {at::conv2d(x, call.argument(1), bias, window.strides, pads,
                     dilations.empty() ? std::vector<int64_t>{1, 1} : dilations,
                     call.integer("group", 1))};
}

Tensors max_pool(const KernelCall& call) {
  const Window window(call);
  const bool up = call.integer("ceil_mode", 0) != 0;
  if (window.symmetric && window.before[0] * 2 <= window.kernel[0])
    return {
        at::max_pool2d(call.inputs[0], window.kernel, window.strides, window.before, {1, 1}, up)};
  const auto x = at::constant_pad_nd(call.inputs[0], window.pads, -1e30);
  return {at::max_pool2d(x, window.kernel, window.strides, {0, 0}, {1, 1}, up)};
}

Tensors average_pool(const KernelCall& call) {
  const Window window(call);
  const bool counts = call.integer("count_include_pad", 0) != 0;
  const bool up = call.integer("ceil_mode", 0) != 0;
  if (window.symmetric)
    return {
        at::avg_pool2d(call.inputs[0], window.kernel, window.strides, window.before, up, counts)};
  const auto x = at::constant_pad_nd(call.inputs[0], window.pads);
  auto sum = at::avg_pool2d(x, window.kernel, window.strides, {0, 0}, up);
  if (counts) return {sum};
  // Where padding does not count: over the share of the window that lies inside.
  const auto ones = at::constant_pad_nd(at::ones_like(call.inputs[0].slice(0, 0, 1)), window.pads);
  return {sum / at::avg_pool2d(ones, window.kernel, window.strides, {0, 0}, up)};
}

Tensors gemm(const KernelCall& call) {
  Tensor a = call.argument(0), b = call.argument(1);
  if (call.integer("transA", 0)) a = a.t();
  if (call.integer("transB", 0)) b = b.t();
  const double alpha = call.number("alpha", 1), beta = call.number("beta", 1);
  if (!call.has_argument(2)) return {alpha == 1 ? at::matmul(a, b) : at::matmul(a, b) * alpha};
  if (a.dim() != 2) return {at::matmul(a, b) * alpha + call.argument(2) * beta};
  return {at::addmm(call.argument(2), a, b, beta, alpha)};
}

/// Over the batch's own statistics, as training does; the moving ones follow. Some have no scale.
Tensors batch_normalization(const KernelCall& call) {
  const auto weight = [&](const char* name, size_t argument) {
    for (size_t i = 0; i < call.parameters.size(); ++i)
      if (call.op.parameters[i].name == name) return call.parameters[i];
    return call.parameters.empty() ? call.argument(argument) : Tensor();
  };
  return {at::batch_norm(call.inputs[0], weight("scale", 1), weight("bias", 2), weight("mean", 3),
                         weight("variance", 4), true, 1 - call.number("momentum", 0.9),
                         call.number("epsilon", 1e-5), false)};
}

Tensors layer_normalization(const KernelCall& call) {
  const Tensor& x = call.argument(0);
  const int64_t axis = call.integer("axis", -1), first = axis < 0 ? axis + x.dim() : axis;
  const Tensor bias = call.has_argument(2) ? call.argument(2) : Tensor();
  return {at::layer_norm(x, x.sizes().slice(static_cast<size_t>(first)), call.argument(1), bias,
                         call.number("epsilon", 1e-5))};
}

Tensors rms_normalization(const KernelCall& call) {
  const Tensor& x = call.argument(0);
  const auto square = (x * x).mean(call.integer("axis", -1), true);
  return {x * at::rsqrt(square + call.number("epsilon", 1e-5)) * call.argument(1)};
}

Tensors softmax(const KernelCall& call) {
  Tensor x = call.inputs[0];
  if (call.integer("causal", 0)) {
    const int64_t rows = x.size(-2), columns = x.size(-1);
    const auto ahead =
        at::ones({rows, columns}, x.options().dtype(at::kBool)).triu(columns - rows + 1);
    x = x.masked_fill(ahead, -1e9);
  }
  return {at::softmax(x, call.integer("axis", -1))};
}

/// The mean over all labels; classes lie along the dimension that labels lack.
Tensors cross_entropy(const KernelCall& call) {
  const Tensor &logits = call.inputs[0], &labels = call.inputs[1];
  const bool second =
      labels.dim() > 1 && logits.dim() == labels.dim() + 1 && logits.size(1) != labels.size(1);
  const Tensor rows = second ? logits.movedim(1, -1) : logits;
  const auto flat = rows.reshape({-1, rows.size(-1)});
  return {at::cross_entropy_loss(flat, labels.reshape({-1})).reshape({1})};
}

Tensors dropout(const KernelCall& call) {
  const Tensor& x = call.inputs[0];
  const double keep = 1 - call.number("ratio", 0.5);
  if (keep <= 0) return {at::zeros_like(x)};
  auto random = at::detail::createCPUGenerator(call.seed);
  const auto mask = at::bernoulli(at::full(x.sizes(), keep, at::kFloat), random);
  return {x * mask.to(x.device(), x.scalar_type()) / keep};
}

template <class Combine>
Tensor fold(const KernelCall& call, Combine combine) {
  Tensor result = call.argument(0);
  for (size_t i = 1; call.has_argument(i); ++i) result = combine(result, call.argument(i));
  return result;
}

Tensors add(const KernelCall& call) {
  return {fold(call, [](const Tensor& a, const Tensor& b) { return a + b; })};
}
Tensors multiply(const KernelCall& call) {
  return {fold(call, [](const Tensor& a, const Tensor& b) { return a * b; })};
}
Tensors mean(const KernelCall& call) {
  return {add(call)[0] / static_cast<double>(call.inputs.size() + call.parameters.size())};
}

Tensors reshape(const KernelCall& call) { return {call.inputs[0].reshape(call.output_shape)}; }

Tensors slice(const KernelCall& call) {
  const auto axes = call.list("axes"), starts = call.list("starts"), ends = call.list("ends");
  auto steps = call.list("steps");
  steps.resize(starts.size(), 1);
  Tensor x = call.inputs[0];
  for (size_t i = 0; i < starts.size(); ++i)
    x = x.slice(
        axes.empty() ? static_cast<int64_t>(i) : axes[i], starts[i],
        std::min<int64_t>(ends[i], x.size(axes.empty() ? static_cast<int64_t>(i) : axes[i])),
        steps[i]);
  return {x.contiguous()};
}

Tensors split(const KernelCall& call) {
  const auto sizes = call.list("split");
  const int64_t axis = call.integer("axis", 0);
  if (sizes.empty())
    return call.inputs[0].chunk(static_cast<int64_t>(call.op.outputs.size()), axis);
  Tensors parts = call.inputs[0].split_with_sizes(sizes, axis);
  for (auto& part : parts) part = part.contiguous();
  return parts;
}

/// ONNX lists the beginnings of all dimensions, then the ends; LibTorch the last dimension first.
Tensors pad(const KernelCall& call) {
  const auto given = call.list("pads");
  std::vector<int64_t> pads;
  for (size_t d = given.size() / 2; d-- > 0;) {
    pads.push_back(given[d]);
    pads.push_back(given[d + given.size() / 2]);
  }
  return {at::constant_pad_nd(call.inputs[0], pads)};
}

Tensors gather(const KernelCall& call) {
  // Data comes first for ONNX; an operator with its own table reads the numbers alone.
  const bool own = !call.parameters.empty();
  const Tensor& data = own ? call.parameters[0] : call.inputs[0];
  const Tensor& numbers = own ? call.inputs[0] : call.inputs[1];
  const int64_t axis = call.integer("axis", 0);
  auto shape = data.sizes().vec();
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, numbers.sizes().begin(), numbers.sizes().end());
  return {data.index_select(axis, numbers.reshape({-1})).reshape(shape)};
}

Tensors scatter_nd(const KernelCall& call) {
  const Tensor& rows = call.inputs[2];
  const int64_t width = call.inputs[0].size(-1);
  return {call.inputs[0].index_add(0, call.inputs[1].reshape({-1}), rows.reshape({-1, width}))};
}

Tensors one_hot(const KernelCall& call) {
  const auto dense = at::one_hot(call.inputs[0], call.integer("depth", 1)).to(at::kFloat);
  return {dense.movedim(-1, call.integer("axis", -1)).contiguous()};
}

Tensors top_k(const KernelCall& call) {
  const auto found = call.inputs[0].topk(call.integer("k", 1), call.integer("axis", -1));
  return {std::get<0>(found), std::get<1>(found)};
}

template <class Reduce>
Tensors reduce(const KernelCall& call, Reduce apply) {
  auto axes = call.list("axes");
  for (int64_t d = 0; axes.empty() && d < call.inputs[0].dim(); ++d) axes.push_back(d);
  return {apply(call.inputs[0], axes, call.integer("keepdims", 1) != 0)};
}

Tensors reduce_sum(const KernelCall& call) {
  return reduce(call, [](const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
    return x.sum(axes, keep);
  });
}
Tensors reduce_mean(const KernelCall& call) {
  return reduce(call, [](const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
    return x.mean(axes, keep);
  });
}
Tensors reduce_l2(const KernelCall& call) {
  return reduce(call, [](const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
    return (x * x).sum(axes, keep).sqrt();
  });
}

/// Pairs of halves of every head turned by the angles whose cosines and sines [length, half] are
/// given (RoFormer, without interleaving).
Tensors rotary_embedding(const KernelCall& call) {
  const Tensor& x = call.inputs[0];
  const int64_t heads = call.integer("num_heads", 1);
  const auto split = x.reshape({x.size(0), x.size(1), heads, 2, -1});
  const auto cosine = call.inputs[1].unsqueeze(1), sine = call.inputs[2].unsqueeze(1);
  const auto a = split.select(3, 0), b = split.select(3, 1);
  return {at::stack({a * cosine - b * sine, b * cosine + a * sine}, 3).reshape(x.sizes())};
}

Tensors resize(const KernelCall& call) {
  const auto& shape = call.output_shape;
  return {at::upsample_bilinear2d(call.inputs[0], {shape[2], shape[3]}, false)};
}

Tensors constant(const KernelCall& call) {
  return {at::full(call.output_shape.empty() ? std::vector<int64_t>{1} : call.output_shape,
                   call.number("value_float", 0), at::kFloat)};
}

const std::map<std::string, Kernel>& table() {
  static const std::map<std::string, Kernel> kernels = {
      {"Conv", conv},
      {"Gemm", gemm},
      {"MaxPool", max_pool},
      {"AveragePool", average_pool},
      {"GlobalAveragePool",
       [](const KernelCall& c) {
         return Tensors{c.inputs[0].mean(std::vector<int64_t>{2, 3}, true)};
       }},
      {"BatchNormalization", batch_normalization},
      {"LayerNormalization", layer_normalization},
      {"RMSNormalization", rms_normalization},
      {"Relu", [](const KernelCall& c) { return Tensors{at::relu(c.inputs[0])}; }},
      {"Tanh", [](const KernelCall& c) { return Tensors{at::tanh(c.inputs[0])}; }},
      {"Sigmoid", [](const KernelCall& c) { return Tensors{at::sigmoid(c.inputs[0])}; }},
      {"Swish", [](const KernelCall& c) { return Tensors{at::silu(c.inputs[0])}; }},
      {"Gelu",
       [](const KernelCall& c) {
         return Tensors{at::gelu(c.inputs[0], c.text("approximate", "none"))};
       }},
      {"Softmax", softmax},
      {"SoftmaxCrossEntropyLoss", cross_entropy},
      {"Dropout", dropout},
      {"MatMul",
       [](const KernelCall& c) { return Tensors{at::matmul(c.argument(0), c.argument(1))}; }},
      {"Einsum",
       [](const KernelCall& c) {
         std::vector<Tensor> operands = c.inputs;
         operands.insert(operands.end(), c.parameters.begin(), c.parameters.end());
         return Tensors{at::einsum(c.text("equation", ""), operands).contiguous()};
       }},
      {"Add", add},
      {"Sum", add},
      {"Mean", mean},
      {"Mul", multiply},
      {"Sub", [](const KernelCall& c) { return Tensors{c.argument(0) - c.argument(1)}; }},
      {"Div", [](const KernelCall& c) { return Tensors{c.argument(0) / c.argument(1)}; }},
      {"Concat",
       [](const KernelCall& c) { return Tensors{at::cat(c.inputs, c.integer("axis", 0))}; }},
      {"Split", split},
      {"Slice", slice},
      {"Pad", pad},
      {"Reshape", reshape},
      {"Flatten", reshape},
      {"Identity", reshape},
      {"Transpose",
       [](const KernelCall& c) {
         return Tensors{c.inputs[0].permute(c.list("perm")).contiguous()};
       }},
      {"Expand",
       [](const KernelCall& c) {
         return Tensors{c.inputs[0].expand(c.output_shape).contiguous()};
       }},
      {"Gather", gather},
      {"ScatterND", scatter_nd},
      {"OneHot", one_hot},
      {"TopK", top_k},
      {"ReduceSum", reduce_sum},
      {"ReduceMean", reduce_mean},
      {"ReduceL2", reduce_l2},
      {"RotaryEmbedding", rotary_embedding},
      {"Resize", resize},
      {"Constant", constant},
      // A view of the weights, not themselves: what reads them gets a gradient of its own.
      {"Variable",
       [](const KernelCall& c) { return Tensors{c.parameters[0].view_as(c.parameters[0])}; }},
      {"LSTM", lstm_kernel},
      {"LSTMCell", lstm_cell_kernel},
  };
  return kernels;
}

}  // namespace

Kernel find_kernel(const std::string& type) {
  const auto found = table().find(type);
  return found == table().end() ? nullptr : found->second;
}

std::vector<std::string> kernel_types() {
  std::vector<std::string> types;
  for (const auto& [type, kernel] : table()) types.push_back(type);
  return types;
}

}  // namespace trinity
