#include "formats/onnx/onnx_shapes.h"

namespace trinity::onnx_import {
namespace {

using onnx::TensorProto;

/// Argument 0 is [T, N, I] (layout 0) or [N, T, I]; outputs Y [T, D, N, H] (or [N, T, D, H]), Y_h
/// and Y_c [D, N, H] (or [N, D, H]).
void recurrent(View& view) {
  for (size_t i = 0; i < view.outputs(); ++i) view.set_element(i, view.element(0));
  const auto* x = view.shape(0, 3);
  const auto* recurrence = view.shape(2, 3);
  if (!x) return;
  const int64_t hidden = view.integer("hidden_size", recurrence ? recurrence->back() : 0);
  if (hidden < 1 && (recurrence || view.node().attribute("hidden_size")))
    view.fail(fmt::format("attribute 'hidden_size' must be at least 1, got {}", hidden));
  if (hidden < 1) return;
  const int64_t directions = view.text("direction", "forward") == "bidirectional" ? 2 : 1;
  const bool batch_first = view.integer("layout", 0) != 0;
  const int64_t steps = (*x)[batch_first ? 1 : 0], batch = (*x)[batch_first ? 0 : 1];
  view.set(0, batch_first ? Shape{batch, steps, directions, hidden}
                          : Shape{steps, directions, batch, hidden});
  for (size_t i = 1; i < view.outputs(); ++i)
    view.set(i, batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden});
}

/// Outputs beside the first are statistics, [C].
void batch_normalization(View& view) {
  same_shape(view);
  const auto* x = view.shape(0, 1);
  for (size_t i = 1; i < view.outputs(); ++i) {
    view.set_element(i, view.element(i));
    if (x) view.set(i, {x->size() < 2 ? 1 : (*x)[1]});
  }
}

/// Outputs beside the first: mean and inverse deviation, 1 along the normalised axes.
void layer_normalization(View& view) {
  same_shape(view);
  const auto* x = view.shape(0, 1);
  if (!x) return;
  const size_t axis = view.axis("axis", -1, x->size());
  Shape statistics = *x;
  for (size_t i = axis; i < statistics.size(); ++i) statistics[i] = 1;
  for (size_t i = 1; i < view.outputs(); ++i) {
    view.set_element(i, TensorProto::FLOAT);
    view.set(i, statistics);
  }
}

/// Losses: scores [N, C, ...], labels [N, ...]; a scalar unless reduction is "none".
void loss(View& view) {
  view.set_element(0, view.element(0));
  view.set_element(1, view.element(0));
  const auto* scores = view.shape(0);
  const auto* labels = view.shape(1);
  if (view.text("reduction", "mean") != "none")
    view.set(0, {});
  else if (labels)
    view.set(0, *labels);
  if (scores) view.set(1, *scores);
}

constexpr NamedRule kLayers[] = {
    {"LSTM", recurrent},
    {"GRU", recurrent},
    {"RNN", recurrent},
    {"BatchNormalization", batch_normalization},
    {"LayerNormalization", layer_normalization},
    {"InstanceNormalization", same_shape},
    {"GroupNormalization", same_shape},
    {"RMSNormalization", same_shape},
    {"SoftmaxCrossEntropyLoss", loss},
    {"NegativeLogLikelihoodLoss", loss},
};

}  // namespace

std::span<const NamedRule> layer_rules() { return kLayers; }

}  // namespace trinity::onnx_import
