#include <algorithm>
#include <array>

#include "formats/onnx/onnx_walk.h"

namespace trinity::onnx_import {
namespace {

/// Arguments that take weights, as bits by position, for types whose other arguments are settings,
/// statistics of the data or untrained tables. Types that are not listed take weights anywhere.
struct Positions {
  std::string_view type;
  uint32_t weights;
  bool quantised = false;  ///< also 8-bit weights
};
constexpr uint32_t at(uint32_t position) { return 1U << position; }
constexpr std::array kPositions = {
    Positions{"Attention", at(0) | at(1) | at(2)},
    Positions{"Bernoulli", 0},
    Positions{"CastLike", at(0)},
    Positions{"Clip", at(0)},
    Positions{"ConvInteger", at(1), true},
    Positions{"DequantizeLinear", at(0), true},
    Positions{"Dropout", at(0)},
    Positions{"Equal", 0},
    Positions{"GRU", at(1) | at(2) | at(3)},
    Positions{"Greater", 0},
    Positions{"GreaterOrEqual", 0},
    Positions{"GridSample", 0},
    Positions{"LSTM", at(1) | at(2) | at(3) | at(7)},
    Positions{"Less", 0},
    Positions{"LessOrEqual", 0},
    Positions{"MatMulInteger", at(0) | at(1), true},
    Positions{"Max", 0},
    Positions{"MaxRoiPool", 0},
    Positions{"Min", 0},
    Positions{"Mod", 0},
    Positions{"Multinomial", 0},
    Positions{"NegativeLogLikelihoodLoss", 0},
    Positions{"NonMaxSuppression", 0},
    Positions{"OneHot", 0},
    Positions{"Pad", at(0)},
    Positions{"Pow", at(0)},
    Positions{"QLinearConv", at(3) | at(8), true},
    Positions{"QLinearMatMul", at(0) | at(3), true},
    Positions{"QuantizeLinear", at(0)},
    Positions{"RNN", at(1) | at(2) | at(3)},
    Positions{"Range", 0},
    Positions{"Resize", at(0)},
    Positions{"RoiAlign", 0},
    Positions{"RotaryEmbedding", 0},
    Positions{"Scatter", 0},
    Positions{"ScatterElements", 0},
    Positions{"ScatterND", 0},
    Positions{"SoftmaxCrossEntropyLoss", 0},
    Positions{"TopK", 0},
    Positions{"Upsample", at(0)},
};

const Positions* positions_of(std::string_view type) {
  const auto found = std::lower_bound(
      kPositions.begin(), kPositions.end(), type,
      [](const Positions& entry, std::string_view wanted) { return entry.type < wanted; });
  return found != kPositions.end() && found->type == type ? &*found : nullptr;
}

/// PyTorch's exporter folds what it can into initializers, including masks and tables of rotary
/// embeddings. Parameters keep their path ("encoder.layer.0.bias"); folded values are named
/// `val_<n>` or after the operator ("unsqueeze_14"), without a dot. Such arrays and scalars are not
/// weights if they are factors, choices, or summands named `val_<n>`; nor are the initial values of
/// loops, and the ones and zeros that InstanceNormalization reads in place of a GroupNorm. (A
/// precomputed relative position bias or position embedding is a summand named after its operator.)
bool is_exporters_table(const Model& model, const Node& node, const Value& value) {
  if (model.producer != "pytorch" || value.name.find('.') != std::string_view::npos) return false;
  const bool made = value.name.starts_with("val_");
  if (node.type == "InstanceNormalization") return made;
  if (is_control_flow(node)) return true;
  if (is_vector(*value.shape) && element_count(*value.shape) != 1) return false;
  if (node.type == "Mul" || node.type == "Div" || node.type == "Where") return true;
  return (node.type == "Add" || node.type == "Sub") && made;
}

}  // namespace

bool reads_weight(const Model& model, const Node& node, size_t argument) {
  const int32_t id = node.inputs[argument];
  if (id < 0 || model.value(id).role != Role::weight) return false;
  const auto& value = model.value(id);
  const auto* positions = positions_of(node.type);
  if (!is_floating(value.element) && !(positions && positions->quantised)) return false;
  if (positions &&
      (argument >= 32 || (positions->weights & at(static_cast<uint32_t>(argument))) == 0))
    return false;
  return !is_exporters_table(model, node, value);
}

bool captures_weight(const Model& model, int32_t value) {
  return model.value(value).role == Role::weight && is_floating(model.value(value).element);
}

bool is_trainable(const Node& node, size_t argument, int32_t element) {
  if (!is_floating(element)) return false;
  return node.type != "BatchNormalization" || argument < 3;
}

}  // namespace trinity::onnx_import
