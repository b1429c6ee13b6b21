#include "execute/kernels/kernels.h"

#include <algorithm>

#include "base/error.h"
#include "graph/iteration_space.h"

namespace trinity {

const at::Tensor& KernelCall::argument(size_t i) const {
  if (i >= argument_count())
    throw Error("operator {} ({}): expected more than {} arguments", op.name, op.type.text(), argument_count());
  if (!parameters.empty() && op.attributes.contains("parameter_inputs")) {
    const auto places = list("parameter_inputs");
    size_t before = 0;  // weights at lower positions
    for (size_t p = 0; p < places.size() && p < parameters.size(); ++p) {
      if (places[p] == static_cast<int64_t>(i)) return parameters[p];
      if (places[p] < static_cast<int64_t>(i)) ++before;
    }
    if (i - before < inputs.size()) return inputs[i - before];
    return parameters[i - inputs.size()];
  }
  return i < inputs.size() ? inputs[i] : parameters[i - inputs.size()];
}

at::Tensor KernelCall::bias(size_t i) const {
  const auto& value = argument(i);
  return integer("term", 0) > 0 ? value - value.detach() : value;
}

at::Tensor KernelCall::optional(size_t i) const { return has_argument(i) ? argument(i) : at::Tensor(); }

std::vector<at::Tensor> KernelCall::arguments() const {
  std::vector<at::Tensor> all;
  for (size_t i = 0; i < argument_count(); ++i) all.push_back(argument(i));
  return all;
}

const std::vector<int64_t>& KernelCall::output_shape(size_t i) const {
  if (i >= outputs.size())
    throw Error("operator {} ({}): expected more than {} outputs", op.name, op.type.text(), outputs.size());
  return outputs[i];
}

int64_t KernelCall::integer(const char* attribute, int64_t fallback) const {
  return integer_attribute(op.attributes, attribute, fallback);
}

double KernelCall::number(const char* attribute, double fallback) const {
  if (const auto* value = find_attribute<double>(op.attributes, attribute)) return *value;
  if (const auto* whole = find_attribute<int64_t>(op.attributes, attribute)) return static_cast<double>(*whole);
  return fallback;
}

std::string KernelCall::text(const char* attribute, const char* fallback) const {
  const auto* value = find_attribute<std::string>(op.attributes, attribute);
  return value ? *value : fallback;
}

std::vector<int64_t> KernelCall::list(const char* attribute) const {
  return integers_attribute(op, attribute);
}

namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

/// The window of a convolution or pool over images. Pads as in ONNX: [top, left, bottom, right].
struct Window {
  std::vector<int64_t> kernel, strides, dilations, before;
  bool symmetric = true;
  std::vector<int64_t> pads;  // in the order of at::constant_pad_nd

  explicit Window(const KernelCall& call)
      : kernel(call.list("kernel_shape")),
        strides(call.list("strides")),
        dilations(call.list("dilations")) {
    auto given = call.list("pads");
    if (strides.empty()) strides = {1, 1};
    if (dilations.empty()) dilations = {1, 1};
    if (given.size() < 4) given = automatic(call);
    before = {given[0], given[1]};
    symmetric = given[0] == given[2] && given[1] == given[3];
    pads = {given[1], given[3], given[0], given[2]};
  }

  /// auto_pad: as the output size requires; an odd pad is at the end, for SAME_LOWER at the
  /// beginning.
  std::vector<int64_t> automatic(const KernelCall& call) const {
    const auto mode = call.text("auto_pad", "NOTSET");
    std::vector<int64_t> found = {0, 0, 0, 0};
    if (!mode.starts_with("SAME") || kernel.size() != 2) return found;
    for (size_t d = 0; d < 2; ++d) {
      const int64_t in = call.inputs[0].size(static_cast<int64_t>(d) + 2);
      const int64_t reach = dilations[d] * (kernel[d] - 1) + 1;
      const int64_t total =
          std::max<int64_t>(0, (call.output_shape().at(d + 2) - 1) * strides[d] + reach - in);
      const int64_t less = total / 2, more = total - less;
      found[d] = mode == "SAME_LOWER" ? more : less;
      found[d + 2] = mode == "SAME_LOWER" ? less : more;
    }
    return found;
  }
};

/// One- and three-dimensional convolutions, padded equally on both sides.
Tensors other_conv(const KernelCall& call, const Tensor& bias) {
  const auto dimensions = static_cast<size_t>(call.inputs[0].dim() - 2);
  auto strides = call.list("strides"), dilations = call.list("dilations"), pads = call.list("pads");
  strides.resize(dimensions, 1);
  dilations.resize(dimensions, 1);
  pads.resize(dimensions, 0);
  const int64_t groups = call.integer("group", 1);
  const Tensor &x = call.inputs[0], &weight = call.argument(1);
  if (dimensions == 1) return {at::conv1d(x, weight, bias, strides, pads, dilations, groups)};
  if (dimensions == 3) return {at::conv3d(x, weight, bias, strides, pads, dilations, groups)};
  throw Error("operator {} (Conv): expected 1 to 3 spatial dimensions, got {}", call.op.name, dimensions);
}

Tensors conv(const KernelCall& call) {
  const Tensor bias = call.has_argument(2) ? call.bias(2) : Tensor();
  if (call.inputs[0].dim() != 4) return other_conv(call, bias);
  const Window window(call);
  const Tensor x =
      window.symmetric ? call.inputs[0] : at::constant_pad_nd(call.inputs[0], window.pads);
  const std::vector<int64_t> pads = window.symmetric ? window.before : std::vector<int64_t>{0, 0};
  return {at::conv2d(x, call.argument(1), bias, window.strides, pads, window.dilations,
                     call.integer("group", 1))};
}

Tensors transposed_conv(const KernelCall& call) {
  const Window window(call);
  const Tensor bias = call.optional(2);
  auto more = call.list("output_padding");
  more.resize(2, 0);
  return {at::conv_transpose2d(call.inputs[0], call.argument(1), bias, window.strides,
                               window.before, more, call.integer("group", 1), window.dilations)};
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
  // If padding does not count: average over the part of the window inside the image.
  const auto ones = at::constant_pad_nd(at::ones_like(call.inputs[0].slice(0, 0, 1)), window.pads);
  return {sum / at::avg_pool2d(ones, window.kernel, window.strides, {0, 0}, up)};
}

Tensors gemm(const KernelCall& call) {
  Tensor a = call.argument(0), b = call.argument(1);
  if (call.integer("transA", 0)) a = a.t();
  if (call.integer("transB", 0)) b = b.t();
  const double alpha = call.number("alpha", 1), beta = call.number("beta", 1);
  if (!call.has_argument(2)) return {alpha == 1 ? at::matmul(a, b) : at::matmul(a, b) * alpha};
  if (a.dim() != 2) return {at::matmul(a, b) * alpha + call.bias(2) * beta};
  return {at::addmm(call.bias(2), a, b, beta, alpha)};
}

/// Uses the batch's own statistics, as in training, and updates the moving ones. Scale is optional.
Tensors batch_normalization(const KernelCall& call) {
  bool imported = true;
  for (const auto& parameter : call.op.parameters) imported &= parameter.name != "mean";
  const auto weight = [&](const char* name, size_t argument) {
    for (size_t i = 0; i < call.parameters.size() && !imported; ++i)
      if (call.op.parameters[i].name == name) return call.parameters[i];
    return imported || call.parameters.empty() ? call.argument(argument) : Tensor();
  };
  return {at::batch_norm(call.inputs[0], weight("scale", 1), weight("bias", 2), weight("mean", 3),
                         weight("variance", 4), true, 1 - call.number("momentum", 0.9),
                         call.number("epsilon", 1e-5), false)};
}

Tensors layer_normalization(const KernelCall& call) {
  const Tensor& x = call.argument(0);
  const int64_t axis = call.integer("axis", -1), first = axis < 0 ? axis + x.dim() : axis;
  const Tensor bias = call.optional(2);
  return {at::layer_norm(x, x.sizes().slice(static_cast<size_t>(first)), call.argument(1), bias,
                         call.number("epsilon", 1e-5))};
}

/// y = x r w with r = 1 / sqrt(mean(x^2) + epsilon). A single autograd node that keeps only x and
/// r; LibTorch's operators would keep three tensors of x's size.
struct RootMeanSquare : torch::autograd::Function<RootMeanSquare> {
  using List = torch::autograd::variable_list;

  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        const Tensor& weight, int64_t axis, double epsilon) {
    const auto scale = at::rsqrt((x * x).mean(axis, true) + epsilon);
    context->save_for_backward({x, weight, scale});
    context->saved_data["axis"] = axis;
    return x * scale * weight;
  }

  static List backward(torch::autograd::AutogradContext* context, List gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &scale = saved[2];
    const auto axis = context->saved_data["axis"].toInt();
    const auto weighted = gradients[0] * weight;
    const auto drift = (weighted * x).mean(axis, true) * scale * scale * scale;
    const auto to_weight = (gradients[0] * x * scale).sum_to_size(weight.sizes());
    return {weighted * scale - x * drift, to_weight, Tensor(), Tensor()};
  }
};

Tensors rms_normalization(const KernelCall& call) {
  return {RootMeanSquare::apply(call.argument(0), call.argument(1), call.integer("axis", -1),
                                call.number("epsilon", 1e-5))};
}

Tensors softmax(const KernelCall& call) {
  Tensor x = call.inputs[0];
  if (call.integer("causal", 0)) {
    const int64_t rows = x.size(-2), columns = x.size(-1);
    const auto begin = call.list("block_begin"), whole = call.list("block_whole");
    const int64_t all = begin.empty() ? rows : whole.at(whole.size() - 2);
    const int64_t first = begin.empty() ? 0 : begin.at(begin.size() - 2);
    auto positions = at::arange(first, first + rows, x.options().dtype(at::kLong));
    // Rows of several heads that share keys are stacked: by position, or by head with all
    // positions.
    const int64_t together = call.integer("rows_of_position", 1);
    const bool shares = together == 1 && all > columns && all % columns == 0;
    positions = positions.div(together, "floor");
    positions = shares ? positions.remainder(columns) : positions + (columns - all / together);
    x = x.masked_fill(unseen_keys(positions, columns, call.integer("window", 0)), -1e9);
  }
  return {at::softmax(x, call.integer("axis", -1))};
}

/// The mean over rows of logsumexp(x) - x[label]. Keeps one number per row in addition to its
/// inputs, and makes its gradient in one tensor; LibTorch's loss needs two more of x's size.
struct MeanCrossEntropy : torch::autograd::Function<MeanCrossEntropy> {
  using List = torch::autograd::variable_list;

  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        const Tensor& labels) {
    const auto at_label = labels.unsqueeze(1), total = at::logsumexp(x, {1}, true);
    context->save_for_backward({x, at_label, total});
    return (total - x.gather(1, at_label)).mean();
  }

  static List backward(torch::autograd::AutogradContext* context, List gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &at_label = saved[1], &total = saved[2];
    auto gradient = (x - total).exp_();
    gradient.scatter_add_(1, at_label, at::full(at_label.sizes(), -1, x.options()));
    return {gradient.mul_(gradients[0] / x.size(0)), Tensor()};
  }
};

/// The mean over all labels; the class dimension is the one that labels lack.
Tensors cross_entropy(const KernelCall& call) {
  const Tensor &logits = call.inputs[0], &labels = call.inputs[1];
  const Tensor rows = has_classes_second(logits, labels) ? logits.movedim(1, -1) : logits;
  const auto flat = rows.reshape({-1, rows.size(-1)});
  const auto mean = MeanCrossEntropy::apply(flat, labels.reshape({-1})).reshape({1});
  const double share = call.number("mean_share", 1);
  return {share == 1 ? mean : mean * share};
}

Tensors dropout(const KernelCall& call) {
  const Tensor& x = call.inputs[0];
  const double keep = 1 - call.number("ratio", 0.5);
  if (keep <= 0) return {at::zeros_like(x)};
  const auto mask = drawn_mask(x.sizes(), call.list("block_begin"), call.list("block_whole"), keep,
                               call.seed, call.batch);
  return {x * mask.to(x.device(), x.scalar_type()) / keep};
}

/// RoPE: rotates pairs of halves of every head by angles with the given cosines and sines [length,
/// half] (RoFormer, without interleaving).
Tensors rotary_embedding(const KernelCall& call) {
  const Tensor& x = call.inputs[0];
  int64_t heads = call.integer("num_heads", 1);
  if (const auto whole = call.list("block_whole"); !whole.empty())
    heads = heads * x.size(2) / whole.back();
  const auto split = x.reshape({x.size(0), x.size(1), heads, 2, -1});
  const auto cosine = call.inputs[1].unsqueeze(1), sine = call.inputs[2].unsqueeze(1);
  const auto a = split.select(3, 0), b = split.select(3, 1);
  return {at::stack({a * cosine - b * sine, b * cosine + a * sine}, 3).reshape(x.sizes())};
}

/// A matrix for all heads is multiplied in one matmul over all rows; LibTorch would copy it per
/// head.
Tensors matrix_product(const KernelCall& call) {
  const Tensor &a = call.argument(0), &b = call.argument(1);
  if (a.dim() != 4 || b.dim() != 4 || b.size(1) != 1 || a.size(1) == 1) return {at::matmul(a, b)};
  const auto rows = at::matmul(a.flatten(1, 2), b.squeeze(1));
  return {rows.view({a.size(0), a.size(1), a.size(2), b.size(3)})};
}

Tensors einsum(const KernelCall& call) {
  return {at::einsum(call.text("equation", ""), call.arguments()).contiguous()};
}

std::vector<int64_t> spatial(const Tensor& x) {
  std::vector<int64_t> dimensions;
  for (int64_t d = 2; d < x.dim(); ++d) dimensions.push_back(d);
  return dimensions;
}

Tensors global_average_pool(const KernelCall& call) {
  return {call.inputs[0].mean(spatial(call.inputs[0]), true)};
}

Tensors global_max_pool(const KernelCall& call) {
  return {call.inputs[0].amax(spatial(call.inputs[0]), true)};
}

/// A view of the weights, so that each reader computes a gradient of its own.
Tensors variable(const KernelCall& call) {
  return {call.parameters.at(0).view_as(call.parameters[0])};
}

KernelTable make_table() {
  KernelTable table = {{"Conv", conv}, {"ConvTranspose", transposed_conv}, {"Gemm", gemm}, {"MaxPool", max_pool},
                       {"AveragePool", average_pool}, {"GlobalAveragePool", global_average_pool},
                       {"GlobalMaxPool", global_max_pool}, {"BatchNormalization", batch_normalization},
                       {"LayerNormalization", layer_normalization}, {"RMSNormalization", rms_normalization},
                       {"Softmax", softmax}, {"SoftmaxCrossEntropyLoss", cross_entropy}, {"Dropout", dropout},
                       {"MatMul", matrix_product}, {"Einsum", einsum}, {"RotaryEmbedding", rotary_embedding},
                       {"Variable", variable}};
  add_attention_kernels(table);
  add_element_kernels(table);
  add_movement_kernels(table);
  add_recurrent_kernels(table);
  return table;
}

}  // namespace

bool has_classes_second(const at::Tensor& logits, const at::Tensor& labels) {
  return labels.dim() > 1 && logits.dim() == labels.dim() + 1 && logits.size(1) != labels.size(1);
}

Kernel find_kernel(const std::string& type) {
  static const KernelTable kernels = make_table();
  const auto found = kernels.find(type);
  return found == kernels.end() ? nullptr : found->second;
}

}  // namespace trinity
