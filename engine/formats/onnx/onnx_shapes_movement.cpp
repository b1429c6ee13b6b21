#include <algorithm>
#include <set>

#include "formats/onnx/onnx_shapes.h"

namespace trinity::onnx_import {
namespace {

/// A target may hold 0 (keep the input's extent, unless allowzero) and one -1 (what remains).
void reshape(View& view) {
  view.set_element(0, view.element(0));
  const auto target = view.list("shape", 1);
  const auto* x = view.shape(0);
  if (!target) return;
  const bool keeps = view.integer("allowzero", 0) == 0;
  Shape result = *target;
  int64_t rest = -1, product = 1;
  for (size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 0 && keeps) {
      if (!x) return;
      if (i >= x->size()) View::mismatch(fmt::format("a 0 at position {} of the new shape", i));
      result[i] = (*x)[i];
    }
    if (result[i] < -1 || (result[i] == -1 && rest >= 0))
      view.fail(fmt::format("new shape {}", describe(*target)));
    if (result[i] == -1)
      rest = static_cast<int64_t>(i);
    else
      product = saturated_product(product, result[i]);
  }
  if (!x && rest >= 0) return;
  const int64_t count = x ? element_count(*x) : product;
  if (rest >= 0) result[rest] = product > 0 ? count / product : 0;
  if (product == 0 ? count != 0 : rest >= 0 ? count % product != 0 : count != product)
    view.note(fmt::format("{} elements as {}", count, describe(*target)));
  view.set(0, std::move(result));
}

/// To a matrix; `axis` may equal the rank.
void flatten_rule(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0);
  if (!x) return;
  const int64_t given = view.integer("axis", 1), rank = static_cast<int64_t>(x->size());
  const size_t axis = given == rank ? x->size() : view.axis(given, x->size());
  Shape result = {1, 1};
  for (size_t i = 0; i < x->size(); ++i) result[i < axis ? 0 : 1] *= (*x)[i];
  view.set(0, std::move(result));
}

void squeeze(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0);
  const auto axes = view.list("axes", 1);
  if (!x || (!axes && view.has(1))) return;
  std::set<size_t> dropped;
  if (axes)
    for (const int64_t number : *axes) dropped.insert(view.axis(number, x->size()));
  Shape result;
  for (size_t i = 0; i < x->size(); ++i) {
    const bool drop = axes ? dropped.contains(i) : (*x)[i] == 1;
    if (drop && (*x)[i] != 1 && view.fits())
      view.note(fmt::format("axis {} of extent {}", i, (*x)[i]));
    if (!drop) result.push_back((*x)[i]);
  }
  view.set(0, std::move(result));
}

void unsqueeze(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0);
  const auto axes = view.list("axes", 1);
  if (!x || !axes) return;
  if (axes->size() > kMaxRank) view.fail("adds too many axes");
  const size_t rank = x->size() + axes->size();
  std::set<size_t> added;
  for (const int64_t number : *axes)
    if (!added.insert(view.axis(number, rank)).second)
      view.fail(fmt::format("adds axis {} twice", number));
  Shape result;
  for (size_t i = 0, from = 0; i < rank; ++i)
    result.push_back(added.contains(i) ? 1 : (*x)[from++]);
  view.set(0, std::move(result));
}

void transpose(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0);
  if (!x) return;
  Shape result(x->rbegin(), x->rend());
  if (const auto order = view.list("perm")) {
    std::set<size_t> seen;
    if (order->size() != x->size())
      View::mismatch(fmt::format("an order of {} axes for {}", order->size(), x->size()));
    for (size_t i = 0; i < x->size(); ++i) {
      const size_t axis = view.axis((*order)[i], x->size());
      if (!seen.insert(axis).second)
        view.fail(fmt::format("attribute 'perm' names axis {} twice", axis));
      result[i] = (*x)[axis];
    }
  }
  view.set(0, std::move(result));
}

void concat(View& view) {
  view.set_element(0, view.element(0));
  const auto* first = view.shape(0, 1);
  if (!first) return;
  const size_t axis = view.axis("axis", 1, first->size());
  Shape result = *first;
  for (size_t i = 1; i < view.arguments(); ++i) {
    const auto* next = view.shape(i);
    if (!next) return;
    if (next->size() != first->size())
      View::mismatch(fmt::format("shapes of {} and {} dimensions", first->size(), next->size()));
    for (size_t k = 0; k < result.size(); ++k)
      if (k != axis && (*next)[k] != result[k] && view.fits())
        view.note(fmt::format("{} beside {}", describe(result), describe(*next)));
    result[axis] = std::min(result[axis] + (*next)[axis], int64_t{1} << 60);
  }
  view.set(0, std::move(result));
}

/// Sizes of the parts, or equal parts, the last one smaller.
void split(View& view) {
  const size_t parts = view.outputs();
  for (size_t i = 0; i < parts; ++i) view.set_element(i, view.element(0));
  const auto* x = view.shape(0, 1);
  if (!x) return;
  const size_t axis = view.axis("axis", 0, x->size());
  const auto sizes = view.list("split", 1);
  if (!sizes && view.has(1)) return;
  if (sizes && sizes->size() != parts)
    View::mismatch(fmt::format("{} sizes for {} outputs", sizes->size(), parts));
  const auto count = static_cast<int64_t>(parts);
  const int64_t whole = (*x)[axis], each = (whole + count - 1) / count;
  for (size_t i = 0; i < parts; ++i) {
    Shape result = *x;
    const int64_t before = std::min(whole, each * static_cast<int64_t>(i));
    result[axis] = sizes ? (*sizes)[i] : std::min(each, whole - before);
    view.set(i, std::move(result));
  }
}

/// Extent of start : end : step over an axis, with NumPy's clamping.
int64_t slice_extent(int64_t extent, int64_t start, int64_t end, int64_t step) {
  const auto place = [&](int64_t at, int64_t low, int64_t high) {
    if (at < 0) at = at < -extent ? -1 : at + extent;
    return std::clamp(at, low, std::max(low, high));
  };
  if (step > 0) {
    const int64_t from = place(start < -extent ? 0 : start, 0, extent);
    const int64_t to = place(end < -extent ? 0 : end, 0, extent);
    return to <= from ? 0 : (to - from - 1) / step + 1;
  }
  const int64_t from = place(start, -1, extent - 1), to = place(end, -1, extent - 1);
  if (from <= to) return 0;
  return step == INT64_MIN ? 1 : (from - to - 1) / -step + 1;
}

/// Attributes (before opset 10), or arguments: data, starts, ends, axes, steps.
void slice(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0);
  const auto starts = view.list("starts", 1), ends = view.list("ends", 2);
  auto axes = view.list("axes", 3), steps = view.integers(4);
  if (!x || !starts || !ends || (view.has(3) && !axes) || (view.has(4) && !steps)) return;
  if (!axes) {
    axes.emplace();
    for (size_t i = 0; i < starts->size(); ++i) axes->push_back(static_cast<int64_t>(i));
  }
  if (!steps) steps = Shape(starts->size(), 1);
  if (ends->size() != starts->size() || axes->size() != starts->size() ||
      steps->size() != starts->size())
    View::mismatch(fmt::format("{} starts, {} ends, {} axes, {} steps", starts->size(),
                               ends->size(), axes->size(), steps->size()));
  Shape result = *x;
  for (size_t i = 0; i < starts->size(); ++i) {
    const size_t axis = view.axis((*axes)[i], x->size());
    if ((*steps)[i] == 0) view.fail("a step of 0");
    result[axis] = slice_extent((*x)[axis], (*starts)[i], (*ends)[i], (*steps)[i]);
  }
  view.set(0, std::move(result));
}

/// Only as a broadcast: a target may be smaller than the input.
void expand(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0);
  const auto target = view.integers(1);
  if (!x || !target) return;
  for (const int64_t extent : *target)
    if (extent < 0) View::mismatch(fmt::format("to shape {}", describe(*target)));
  view.set(0, broadcast(view, *x, *target));
}

void tile(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0);
  const auto repeats = view.integers(1);
  if (!x || !repeats) return;
  if (repeats->size() != x->size())
    View::mismatch(fmt::format("{} repeats for {} axes", repeats->size(), x->size()));
  Shape result = *x;
  for (size_t i = 0; i < result.size(); ++i) {
    if ((*repeats)[i] < 0) view.fail(fmt::format("repeats an axis {} times", (*repeats)[i]));
    result[i] = saturated_product(result[i], (*repeats)[i]);
  }
  view.set(0, std::move(result));
}

/// Attribute `pads` (`paddings` in opset 1), or arguments: data, pads, value, axes.
void pad(View& view) {
  view.set_element(0, view.element(0));
  const auto* x = view.shape(0);
  auto pads = view.list("pads", 1);
  if (!pads) pads = view.list("paddings");
  auto axes = view.integers(3);
  if (!x || !pads || (view.has(3) && !axes)) return;
  if (!axes) {
    axes.emplace();
    for (size_t i = 0; i < x->size(); ++i) axes->push_back(static_cast<int64_t>(i));
  }
  if (pads->size() != 2 * axes->size())
    View::mismatch(fmt::format("{} pads for {} axes", pads->size(), axes->size()));
  Shape result = *x;
  for (size_t i = 0; i < axes->size(); ++i) {
    const int64_t before = (*pads)[i], after = (*pads)[i + axes->size()];
    constexpr int64_t most = int64_t{1} << 50;
    if (std::min(before, after) < -most || std::max(before, after) > most)
      view.fail(fmt::format("pads of {} and {}", before, after));
    result[view.axis((*axes)[i], x->size())] += before + after;
  }
  view.set(0, std::move(result));
}

/// Blocks of b x b positions become channels, or the reverse.
void block_rule(View& view) {
  view.set_element(0, view.element(0));
  const int64_t block = view.integer("blocksize", 0);
  if (block < 1 || block > int64_t{1} << 20)
    view.fail(fmt::format("attribute 'blocksize' must lie between 1 and 2^20, got {}", block));
  const auto* x = view.shape(0, 4);
  if (!x) return;
  const int64_t area = block * block;
  if (view.node().type == "DepthToSpace")
    view.set(0, {(*x)[0], (*x)[1] / area, saturated_product((*x)[2], block),
                 saturated_product((*x)[3], block)});
  else
    view.set(0, {(*x)[0], saturated_product((*x)[1], area), (*x)[2] / block, (*x)[3] / block});
}

constexpr NamedRule kMovement[] = {
    {"Reshape", reshape},
    {"Flatten", flatten_rule},
    {"Squeeze", squeeze},
    {"Unsqueeze", unsqueeze},
    {"Transpose", transpose},
    {"Concat", concat},
    {"Split", split},
    {"Slice", slice},
    {"Expand", expand},
    {"Tile", tile},
    {"Pad", pad},
    {"DepthToSpace", block_rule},
    {"SpaceToDepth", block_rule},
};

}  // namespace

std::span<const NamedRule> movement_rules() { return kMovement; }

}  // namespace trinity::onnx_import
