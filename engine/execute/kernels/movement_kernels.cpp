#include <algorithm>

#include "base/error.h"
#include "execute/kernels/kernels.h"

namespace trinity {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

Tensors reshape(const KernelCall& call) { return {call.argument(0).reshape(call.output_shape())}; }

Tensors transpose(const KernelCall& call) {
  const Tensor& x = call.argument(0);
  auto order = call.list("perm");
  for (int64_t d = x.dim(); order.size() < static_cast<size_t>(x.dim());) order.push_back(--d);
  return {x.permute(order).contiguous()};
}

Tensors expand(const KernelCall& call) {
  return {call.argument(0).expand(call.output_shape()).contiguous()};
}

/// Joins blocks at their given starts; gaps are zero (padding).
Tensor joined_blocks(const KernelCall& call, const std::vector<int64_t>& begins) {
  Tensor whole = at::zeros(call.output_shape(), call.argument(0).options());
  const auto axes = call.output_shape().size();
  for (size_t i = 0; (i + 1) * axes <= begins.size(); ++i) {
    Tensor to = whole;
    const auto block = call.argument(i).sizes();
    for (size_t d = 0; d < axes; ++d)
      to = to.narrow(static_cast<int64_t>(d), begins[i * axes + d], block[d]);
    to.copy_(call.argument(i));
  }
  return whole;
}

Tensors concat(const KernelCall& call) {
  const auto begins = call.list("begins");
  if (!begins.empty()) return {joined_blocks(call, begins)};
  return {at::cat(call.arguments(), call.integer("axis", 0))};
}

/// The part of `x` with the given shape at its start.
Tensor first_part(Tensor x, const std::vector<int64_t>& shape) {
  for (size_t d = 0; d < shape.size() && d < static_cast<size_t>(x.dim()); ++d)
    if (x.size(static_cast<int64_t>(d)) > shape[d])
      x = x.narrow(static_cast<int64_t>(d), 0, shape[d]);
  return x;
}

Tensors slice(const KernelCall& call) {
  const auto axes = call.list("axes"), starts = call.list("starts"), ends = call.list("ends");
  if (starts.empty()) return {first_part(call.argument(0), call.output_shape()).contiguous()};
  auto steps = call.list("steps");
  steps.resize(starts.size(), 1);
  Tensor x = call.argument(0);
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = axes.empty() ? static_cast<int64_t>(i) : axes[i];
    x = x.slice(axis, starts[i], std::min<int64_t>(ends[i], x.size(axis)), steps[i]);
  }
  return {x.contiguous()};
}

/// Outputs may lack the split dimension; then parts are equal.
Tensors split(const KernelCall& call) {
  const Tensor& x = call.argument(0);
  const int64_t axis = call.integer("axis", 0);
  auto sizes = call.list("split");
  const bool keeps = call.output_shape().size() == static_cast<size_t>(x.dim());
  for (const auto& shape : call.outputs)
    if (sizes.size() < call.outputs.size())
      sizes.push_back(keeps ? shape.at(static_cast<size_t>(axis < 0 ? axis + x.dim() : axis)) : 1);
  Tensors parts = x.split_with_sizes(sizes, axis);
  for (auto& part : parts) part = part.contiguous();
  return parts;
}

/// ONNX lists the starts of all dimensions, then the ends; LibTorch the last dimension first.
Tensors pad(const KernelCall& call) {
  const auto given = call.list("pads");
  const Tensor& x = call.argument(0);
  std::vector<int64_t> pads;
  for (size_t d = static_cast<size_t>(x.dim()); d-- > 0;) {
    const int64_t missing = call.output_shape().at(d) - x.size(static_cast<int64_t>(d));
    pads.push_back(given.empty() ? 0 : given[d]);
    pads.push_back(given.empty() ? missing : given[d + given.size() / 2]);
  }
  return {at::constant_pad_nd(x, pads)};
}

/// Rows of a table. Indices computed from random data may exceed the table; they wrap around.
Tensor select_rows(const Tensor& data, int64_t axis, const Tensor& numbers) {
  const auto flat = numbers.reshape({-1}).to(at::kLong);
  try {
    return data.index_select(axis, flat);
  } catch (const c10::IndexError&) {
    return data.index_select(axis, flat.remainder(data.size(axis)));
  }
}

/// Rows that this part of a table has; zeros for rows of other parts.
Tensor rows_of_part(const KernelCall& call, const Tensor& data, int64_t axis,
                    const Tensor& numbers) {
  const auto begin = call.list(call.parameters.empty() ? "input_begin" : "weight0_begin");
  const int64_t first = begin.empty() ? 0 : begin.at(static_cast<size_t>(axis));
  const auto local = numbers.reshape({-1}).to(at::kLong) - first;
  const auto inside = local.ge(0).logical_and(local.lt(data.size(axis)));
  auto rows = data.index_select(axis, local.clamp(0, data.size(axis) - 1));
  std::vector<int64_t> shape(static_cast<size_t>(rows.dim()), 1);
  shape[static_cast<size_t>(axis)] = -1;
  return (rows * inside.to(rows.scalar_type()).reshape(shape)).reshape(call.output_shape());
}

Tensors gather(const KernelCall& call) {
  // ONNX has the data first; our own operators with a table read only indices.
  const bool own = !call.parameters.empty() && !call.inputs.empty();
  const Tensor& data = call.parameters.empty() ? call.inputs[0] : call.parameters[0];
  const bool has_numbers = own || call.inputs.size() > 1;
  const int64_t given = call.integer("axis", 0), axis = given < 0 ? given + data.dim() : given;
  const int64_t rows =
      c10::multiply_integers(call.output_shape()) * data.size(axis) / std::max<int64_t>(1, data.numel());
  const Tensor numbers = !has_numbers ? at::zeros({rows}, data.options().dtype(at::kLong))
                         : own        ? call.inputs[0]
                                      : call.inputs[1];
  if (call.op.attributes.contains("term")) return {rows_of_part(call, data, axis, numbers)};
  return {select_rows(data, axis, numbers).reshape(call.output_shape())};
}

/// Rows selected by index tuples; missing indices are 0.
Tensors gather_nd(const KernelCall& call) {
  const auto all = call.arguments();
  const Tensor* data = nullptr;
  const Tensor* numbers = nullptr;
  for (const auto& argument : all)
    (argument.is_floating_point() || !data ? data : numbers) = &argument;
  if (data == nullptr) throw Error("GatherND: expected a data input, got none");
  if (!numbers) {
    const int64_t rows = c10::multiply_integers(call.output_shape());
    const auto flat = data->reshape({-1});
    const auto first = at::arange(rows, data->options().dtype(at::kLong));
    return {select_rows(flat, 0, first.remainder(flat.numel())).reshape(call.output_shape())};
  }
  const int64_t depth = numbers->size(-1);
  int64_t rows = 1;
  for (int64_t d = 0; d < depth; ++d) rows *= data->size(d);
  auto shape = data->sizes().slice(static_cast<size_t>(depth)).vec();
  shape.insert(shape.begin(), rows);
  auto flat = at::zeros_like(numbers->select(-1, 0));
  for (int64_t d = 0; d < depth; ++d)
    flat = flat * data->size(d) + numbers->select(-1, d).remainder(data->size(d));
  return {select_rows(data->reshape(shape), 0, flat).reshape(call.output_shape())};
}

/// Adds rows to rows of a tensor. Without indices, updates are at the start.
Tensors scatter_nd(const KernelCall& call) {
  const auto& shape = call.output_shape();
  if (call.argument_count() == 3) {
    const Tensor& x = call.argument(0);
    const auto rows = call.argument(2).reshape({-1, x.size(-1)});
    return {x.index_add(0, call.argument(1).reshape({-1}).to(at::kLong), rows)};
  }
  Tensor whole, part;
  for (const auto& argument : call.arguments())
    (argument.sizes() == at::IntArrayRef(shape) && !whole.defined() ? whole : part) = argument;
  if (!whole.defined()) whole = at::zeros(shape, part.options());
  if (!part.defined() || part.numel() > whole.numel()) return {whole.clone()};
  const auto rest = whole.reshape({-1}).slice(0, part.numel());
  return {at::cat({part.reshape({-1}), rest}).reshape(shape)};
}

Tensors gather_elements(const KernelCall& call) {
  return {at::gather(call.argument(0), call.integer("axis", 0), call.argument(1))};
}

Tensors one_hot(const KernelCall& call) {
  const auto& shape = call.output_shape();
  const int64_t given = call.integer("axis", -1);
  const int64_t axis = given < 0 ? given + static_cast<int64_t>(shape.size()) : given;
  const int64_t depth = call.integer("depth", shape.at(static_cast<size_t>(axis)));
  const auto dense =
      at::one_hot(call.argument(0).to(at::kLong).remainder(depth), depth).to(call.real);
  return {dense.movedim(-1, axis).contiguous()};
}

Tensors top_k(const KernelCall& call) {
  const int64_t given = call.integer("axis", -1);
  const Tensor& x = call.argument(0);
  const auto axis = static_cast<size_t>(given < 0 ? given + x.dim() : given);
  const int64_t k = call.integer("k", call.output_shape().at(axis));
  const auto found = x.topk(k, given, call.integer("largest", 1) != 0);
  return {std::get<0>(found), std::get<1>(found)};
}

Tensors resize(const KernelCall& call) {
  const auto& shape = call.output_shape();
  const Tensor& x = call.argument(0);
  if (shape.size() != 4)
    throw Error("operator {} (Resize): expected images, got {} dimensions", call.op.name, shape.size());
  if (call.text("mode", "linear") == "nearest")
    return {at::upsample_nearest2d(x, {shape[2], shape[3]})};
  return {at::upsample_bilinear2d(x, {shape[2], shape[3]}, false)};
}

Tensors tile(const KernelCall& call) {
  std::vector<int64_t> repeats;
  const Tensor& x = call.argument(0);
  for (int64_t d = 0; d < x.dim(); ++d)
    repeats.push_back(call.output_shape().at(static_cast<size_t>(d)) / x.size(d));
  return {x.repeat(repeats)};
}

Tensors depth_to_space(const KernelCall& call) {
  return {at::pixel_shuffle(call.argument(0), call.integer("blocksize", 1))};
}

Tensors triangle(const KernelCall& call) {
  return {call.integer("upper", 1) != 0 ? at::triu(call.argument(0)) : at::tril(call.argument(0))};
}

Tensors constant(const KernelCall& call) {
  const auto& shape = call.output_shape();
  return {at::full(shape.empty() ? std::vector<int64_t>{1} : shape, call.number("value_float", 0),
                   call.real)};
}

}  // namespace

void add_movement_kernels(KernelTable& table) {
  for (const char* type : {"Reshape", "Flatten", "Identity", "Squeeze", "Unsqueeze"})
    table[type] = reshape;
  table.insert({{"Transpose", transpose}, {"Expand", expand}, {"Concat", concat}, {"Slice", slice}, {"Split", split},
                {"Pad", pad}, {"Gather", gather}, {"GatherND", gather_nd}, {"GatherElements", gather_elements},
                {"ScatterND", scatter_nd}, {"OneHot", one_hot}, {"TopK", top_k}, {"Resize", resize}, {"Tile", tile},
                {"DepthToSpace", depth_to_space}, {"Trilu", triangle}, {"Constant", constant}});
}

}  // namespace trinity
