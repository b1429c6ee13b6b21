#include <algorithm>
#include <cmath>

#include "formats/onnx/onnx_shapes.h"

namespace trinity::onnx_import {
namespace {

using onnx::TensorProto;

constexpr int64_t kMaxPad = int64_t{1} << 31;

/// How a window moves over the spatial axes, as attributes say it.
struct Window {
  Shape kernel, strides, dilations, pads;  // pads: begins, then ends
  std::string_view auto_pad;
  bool ceil = false;

  Window(const View& view, Shape extents)
      : kernel(std::move(extents)),
        strides(view.list_of("strides", kernel.size(), 1, 1)),
        dilations(view.list_of("dilations", kernel.size(), 1, 1)),
        pads(view.list_of("pads", 2 * kernel.size(), -kMaxPad, 0)),
        auto_pad(view.text("auto_pad", "NOTSET")),
        ceil(view.integer("ceil_mode", 0) != 0) {}

  bool same() const { return auto_pad.starts_with("SAME"); }
  /// Input positions that a window covers along an axis.
  int64_t reach(size_t axis) const {
    return saturated_product(dilations[axis], kernel[axis] - 1) + 1;
  }

  /// Output extent along an axis. Where rounding up would start a window beyond input and left
  /// padding, that window is left out, as in PyTorch.
  int64_t output(size_t axis, int64_t input) const {
    const int64_t stride = strides[axis];
    if (same()) return (input + stride - 1) / stride;
    const bool valid = auto_pad == "VALID";
    const int64_t before = valid ? 0 : pads[axis], after = valid ? 0 : pads[axis + kernel.size()];
    const int64_t room = input + before + after - reach(axis);
    if (room < 0) return -1;
    int64_t count = (room + (ceil ? stride - 1 : 0)) / stride + 1;
    if (ceil && (count - 1) * stride >= input + before) --count;
    return count;
  }
};

/// Spatial extents of a window: the attribute, or the weight's.
Shape kernel_of(const View& view, const Shape* weight, size_t spatial) {
  const bool given = view.node().attribute("kernel_shape") != nullptr;
  if (!given && !weight) View::mismatch("the kernel's shape is not known");
  const Shape fallback = weight
                             ? Shape(weight->end() - static_cast<int64_t>(spatial), weight->end())
                             : Shape(spatial, 1);
  if (!given) {
    for (const int64_t extent : fallback)
      if (extent < 1) View::mismatch("the kernel is empty");
    return fallback;
  }
  return view.list_of("kernel_shape", spatial, 1, 1);
}

int64_t group_of(const View& view) {
  const int64_t group = view.integer("group", 1);
  if (group < 1) view.fail(fmt::format("attribute 'group' must be at least 1, got {}", group));
  return group;
}

/// `data` and `weight` are the positions of the arguments.
void convolve(View& view, size_t data, size_t weight) {
  const auto* x = view.shape(data, 3);
  const auto* w = view.shape(weight, 3);
  const int64_t group = group_of(view);
  if (!x || !w) return;
  if (x->size() != w->size())
    View::mismatch(fmt::format("input of {} dimensions, weights of {}", x->size(), w->size()));
  if ((*x)[1] != saturated_product((*w)[1], group))
    view.note(
        fmt::format("{} input channels, weights for {} groups of {}", (*x)[1], group, (*w)[1]));
  const Window window(view, kernel_of(view, w, x->size() - 2));
  Shape result = {(*x)[0], (*w)[0]};
  for (size_t i = 2; i < x->size(); ++i) result.push_back(window.output(i - 2, (*x)[i]));
  view.set(0, std::move(result));
}

void conv(View& view) {
  view.set_element(0, view.element(0));
  convolve(view, 0, 1);
}

void conv_integer(View& view) {
  view.set_element(0, TensorProto::INT32);
  convolve(view, 0, 1);
}

void conv_quantised(View& view) {
  view.set_element(0, view.has(7) ? view.element(7) : view.element(0));
  convolve(view, 0, 3);
}

void conv_transpose(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0, 3);
  const auto* w = view.shape(1, 3);
  const int64_t group = group_of(view);
  if (!x || !w) return;
  if (x->size() != w->size())
    View::mismatch(fmt::format("input of {} dimensions, weights of {}", x->size(), w->size()));
  const size_t spatial = x->size() - 2;
  const Window window(view, kernel_of(view, w, spatial));
  const Shape added = view.list_of("output_padding", spatial, 0, 0);
  const Shape stated = view.list_of("output_shape", spatial, 1, 0);
  Shape result = {(*x)[0], saturated_product((*w)[1], group)};
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t input = (*x)[i + 2];
    const int64_t moved = saturated_product(window.strides[i], std::max<int64_t>(0, input - 1));
    const int64_t whole = moved + added[i] + window.reach(i);
    if (stated[i] > 0)
      result.push_back(stated[i]);
    else if (window.same())
      result.push_back(saturated_product(window.strides[i], input));
    else
      result.push_back(whole - window.pads[i] - window.pads[i + spatial]);
  }
  view.set(0, std::move(result));
}

void pool(View& view) {
  view.set_element(0, view.element(0));
  view.set_element(1, TensorProto::INT64);
  const auto* x = view.shape(0, 3);
  if (!x) return;
  const Window window(view, kernel_of(view, nullptr, x->size() - 2));
  Shape result = {(*x)[0], (*x)[1]};
  for (size_t i = 2; i < x->size(); ++i) result.push_back(window.output(i - 2, (*x)[i]));
  if (view.outputs() > 1) view.set(1, result);
  view.set(0, std::move(result));
}

void global_pool(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0, 2);
  if (!x) return;
  Shape result(x->size(), 1);
  result[0] = (*x)[0];
  result[1] = (*x)[1];
  view.set(0, std::move(result));
}

/// Both take regions [R, ...]; the output is [R, C, height, width].
void region_pool(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0, 4);
  const auto* regions = view.shape(1, 1);
  if (!x || !regions) return;
  const bool align = view.node().type == "RoiAlign";
  const Shape sides = align
                          ? Shape{view.integer("output_height", 1), view.integer("output_width", 1)}
                          : view.list_of("pooled_shape", 2, 1, 1);
  view.set(0, {(*regions)[0], (*x)[1], sides[0], sides[1]});
}

/// Grid [N, H, W, 2] (or [N, D, H, W, 3]) over an input [N, C, ...].
void grid_sample(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0, 3);
  const auto* grid = view.shape(1, 3);
  if (!x || !grid) return;
  Shape result = {(*x)[0], (*x)[1]};
  result.insert(result.end(), grid->begin() + 1, grid->end() - 1);
  view.set(0, std::move(result));
}

/// Argument 1 is the size of the image, [N, C, H, W] or [N, C, D, H, W]: a coordinate per position.
void affine_grid(View& view) {
  view.set_element(0, view.element(0));
  const auto size = view.integers(1);
  if (!size || size->size() < 4) return;
  Shape result = {size->front()};
  result.insert(result.end(), size->begin() + 2, size->end());
  result.push_back(static_cast<int64_t>(size->size()) - 2);
  view.set(0, std::move(result));
}

/// Arguments: columns [N, C * block elements, positions], the image's extents, the block's.
void column_to_image(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0, 2);
  const auto image = view.integers(1), block = view.integers(2);
  if (!x || !image || !block) return;
  int64_t area = 1;
  for (const int64_t extent : *block) area = saturated_product(area, extent);
  if (area < 1) view.fail(fmt::format("a block of {}", describe(*block)));
  Shape result = {(*x)[0], (*x)[1] / area};
  result.insert(result.end(), image->begin(), image->end());
  view.set(0, std::move(result));
}

/// An extent times a factor, rounded down.
int64_t scaled(const View& view, int64_t extent, long double factor) {
  if (!(factor > 0 && factor <= 0x1p31L))
    view.fail(
        fmt::format("scales must lie between 0 and 2^31, got {}", static_cast<double>(factor)));
  const long double result = std::floor(static_cast<long double>(extent) * factor);
  return result > 0x1p60L ? int64_t{1} << 60 : static_cast<int64_t>(result);
}

/// The axes that sizes and scales speak of: all, or attribute `axes`.
std::vector<size_t> resized_axes(const View& view, size_t rank) {
  std::vector<size_t> axes;
  if (const auto named = view.list("axes")) {
    if (named->size() > rank) view.fail("attribute 'axes' names more axes than there are");
    for (const int64_t number : *named) axes.push_back(view.axis(number, rank));
  } else {
    for (size_t i = 0; i < rank; ++i) axes.push_back(i);
  }
  return axes;
}

/// Sizes under a policy that keeps the aspect ratio: one factor for all axes.
void keep_aspect(const View& view, const Shape& input, const std::vector<size_t>& axes,
                 Shape& sizes) {
  const auto policy = view.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return;
  const bool larger = policy == "not_smaller";
  double factor = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (input[axes[i]] < 1) return;
    const double own = static_cast<double>(sizes[i]) / static_cast<double>(input[axes[i]]);
    factor = i == 0 ? own : larger ? std::max(factor, own) : std::min(factor, own);
  }
  for (size_t i = 0; i < axes.size(); ++i)
    sizes[i] = static_cast<int64_t>(
        std::min(0x1p60, std::round(factor * static_cast<double>(input[axes[i]]))));
}

void scale(View& view, const Shape& input, const std::vector<long double>& factors) {
  const auto axes = resized_axes(view, input.size());
  if (factors.size() != axes.size())
    View::mismatch(fmt::format("{} scales for {} axes", factors.size(), axes.size()));
  Shape result = input;
  for (size_t i = 0; i < axes.size(); ++i)
    result[axes[i]] = scaled(view, input[axes[i]], factors[i]);
  view.set(0, std::move(result));
}

/// Arguments: X, roi, scales, sizes; in opset 10: X, scales.
void resize(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0);
  if (!x) return;
  if (view.has(3)) {
    auto sizes = view.integers(3);
    if (!sizes) return;
    const auto axes = resized_axes(view, x->size());
    if (sizes->size() != axes.size())
      View::mismatch(fmt::format("{} sizes for {} axes", sizes->size(), axes.size()));
    keep_aspect(view, *x, axes, *sizes);
    Shape result = *x;
    for (size_t i = 0; i < axes.size(); ++i) result[axes[i]] = (*sizes)[i];
    view.set(0, std::move(result));
  } else if (const auto* factors = view.literal(view.opset() < 11 ? 1 : 2)) {
    scale(view, *x, factors->numbers);
  }
}

/// Scales are an attribute (opset 7) or an argument (opset 9).
void upsample(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0);
  if (!x) return;
  if (const auto* factors = view.literal(1)) return scale(view, *x, factors->numbers);
  const auto* attribute = view.node().attribute("scales");
  if (!attribute || attribute->floats_size() > static_cast<int>(kMaxRank)) return;
  scale(view, *x, {attribute->floats().begin(), attribute->floats().end()});
}

constexpr NamedRule kWindow[] = {
    {"Conv", conv},
    {"ConvInteger", conv_integer},
    {"QLinearConv", conv_quantised},
    {"DeformConv", conv},
    {"ConvTranspose", conv_transpose},
    {"MaxPool", pool},
    {"AveragePool", pool},
    {"LpPool", pool},
    {"GlobalAveragePool", global_pool},
    {"GlobalMaxPool", global_pool},
    {"GlobalLpPool", global_pool},
    {"MaxRoiPool", region_pool},
    {"RoiAlign", region_pool},
    {"GridSample", grid_sample},
    {"AffineGrid", affine_grid},
    {"Col2Im", column_to_image},
    {"Resize", resize},
    {"Upsample", upsample},
};

}  // namespace

std::span<const NamedRule> window_rules() { return kWindow; }

}  // namespace trinity::onnx_import
