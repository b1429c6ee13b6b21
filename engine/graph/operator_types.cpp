#include "graph/operator_types.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "graph/graph.h"

namespace trinity {
namespace {

using F = OperatorRule::Flops;

constexpr OperatorRule kElementwise = {"", F::per_output, 1, 1, false, true, false};

/// Copies the part of its first input or table that its output contains.
constexpr OperatorRule gathering(const char* type, bool saves = true) {
  return {type, F::none, 0, 0, false, saves, false, false, false, true};
}
constexpr OperatorRule source(const char* type) {
  return {type, F::none, 0, 0, false, false, false, true};
}
constexpr OperatorRule matrix(const char* type, F flops, double backward = 2) {
  return {type, flops, 2, backward, true, true, false};
}
/// Copies elements; backward needs no forward tensors.
constexpr OperatorRule movement(const char* type) { return {type, F::none, 0, 0}; }
/// Element-wise; backward reads the input, the output, or neither.
constexpr OperatorRule from_input(const char* type, double factor = 1) {
  return {type, F::per_output, factor, 1, false, true, false};
}
constexpr OperatorRule from_output(const char* type, double factor = 1) {
  return {type, F::per_output, factor, 1, false, false, true};
}
constexpr OperatorRule from_neither(const char* type) { return {type, F::per_output, 1, 0}; }
constexpr OperatorRule reduction(const char* type, bool input = false) {
  return {type, F::per_input, 1, 1, false, input, false};
}
constexpr OperatorRule normalisation(const char* type) {
  return {type, F::per_output, 8, 1.5, false, true, false};
}

constexpr std::array kRules = {
    source("Input"),
    source("Variable"),
    source("Constant"),
    source("ConstantOfShape"),
    source("Shape"),
    source("Size"),
    source("Range"),
    source("Flatten"),
    source("Reshape"),
    source("Squeeze"),
    source("Unsqueeze"),
    source("Identity"),
    matrix("Conv", F::convolution),
    matrix("ConvInteger", F::convolution),
    matrix("ConvTranspose", F::transposed),
    matrix("Gemm", F::product),
    matrix("MatMul", F::product),
    matrix("MatMulInteger", F::product),
    matrix("Einsum", F::einsum),
    matrix("Attention", F::attention, 2.5),
    OperatorRule{"LSTM", F::recurrent, 2, 2, true, true, true},
    OperatorRule{"GRU", F::recurrent, 2, 2, true, true, true},
    OperatorRule{"RNN", F::recurrent, 2, 2, true, true, true},
    OperatorRule{"LSTMCell", F::recurrent, 2, 2, true, true, true},
    normalisation("BatchNormalization"),
    normalisation("LayerNormalization"),
    normalisation("InstanceNormalization"),
    normalisation("GroupNormalization"),
    normalisation("RMSNormalization"),
    from_input("LRN", 10),
    from_input("LpNormalization", 4),
    OperatorRule{"MaxPool", F::window, 1, 1, false, true, true},
    OperatorRule{"AveragePool", F::window, 1, 1},
    reduction("GlobalAveragePool"),
    reduction("GlobalMaxPool", true),
    OperatorRule{"Dropout", F::per_output, 2, 1, false, false, true},
    OperatorRule{"Add", F::per_output, 1, 0, false, false, false, false, true},
    OperatorRule{"Sum", F::per_output, 1, 0, false, false, false, false, true},
    from_neither("Sub"),
    from_neither("Neg"),
    from_neither("Mean"),
    from_neither("Not"),
    from_neither("And"),
    from_neither("Or"),
    from_neither("Xor"),
    from_neither("Equal"),
    from_neither("Less"),
    from_neither("LessOrEqual"),
    from_neither("Greater"),
    from_neither("GreaterOrEqual"),
    from_neither("Sign"),
    from_neither("Floor"),
    from_neither("Ceil"),
    from_neither("Round"),
    from_neither("Mod"),
    from_neither("IsNaN"),
    from_neither("Where"),
    OperatorRule{"Cast", F::per_output, 1, 0, false, false, false, false, true},
    from_neither("CastLike"),
    from_input("Mul"),
    from_input("Div"),
    from_input("Pow", 10),
    from_input("Log", 10),
    from_input("Abs"),
    from_input("Erf", 10),
    from_input("Gelu", 12),
    from_input("LeakyRelu"),
    from_input("PRelu", 2),
    from_input("HardSwish", 4),
    from_input("HardSigmoid", 3),
    from_input("Mish", 12),
    from_input("Swish", 6),
    from_input("SwiGLU", 7),
    from_input("GeGLU", 13),
    from_input("WeightedGelu", 13),
    from_input("Selu", 10),
    from_input("Celu", 10),
    from_input("Sin", 10),
    from_input("Cos", 10),
    from_input("Softplus", 10),
    from_input("Clip"),
    from_input("Min"),
    from_input("Max"),
    from_output("Relu"),
    from_output("Sigmoid", 4),
    from_output("Tanh", 6),
    from_output("Exp", 10),
    from_output("Elu", 10),
    from_output("Sqrt", 4),
    from_output("Reciprocal", 4),
    from_output("Softmax", 5),
    from_output("LogSoftmax", 5),
    OperatorRule{"RotaryEmbedding", F::per_output, 3, 1},
    OperatorRule{"SoftmaxCrossEntropyLoss", F::per_input, 5, 0.5, false, true, false},
    OperatorRule{"NegativeLogLikelihoodLoss", F::per_input, 1, 1},
    reduction("ReduceMean"),
    reduction("ReduceSum"),
    reduction("ReduceMax", true),
    reduction("ReduceMin", true),
    reduction("ReduceProd", true),
    reduction("ReduceL2", true),
    reduction("ReduceL1", true),
    reduction("ReduceLogSumExp", true),
    reduction("ReduceSumSquare", true),
    reduction("ArgMax"),
    reduction("ArgMin"),
    reduction("TopK"),
    reduction("CumSum"),
    reduction("NonZero"),
    movement("Concat"),
    movement("Split"),
    gathering("Slice", false),
    movement("Transpose"),
    movement("Pad"),
    movement("Expand"),
    movement("Tile"),
    movement("DepthToSpace"),
    movement("SpaceToDepth"),
    movement("Resize"),
    movement("Upsample"),
    movement("ReverseSequence"),
    movement("Trilu"),
    movement("OneHot"),
    movement("LatentKeyValue"),
    movement("ExpertDispatch"),
    movement("ExpertCombine"),
    movement("AllToAll"),
    movement("EyeLike"),
    movement("RandomUniformLike"),
    movement("RandomNormalLike"),
    movement("Bernoulli"),
    gathering("Gather"),
    gathering("GatherElements"),
    gathering("GatherND"),
    OperatorRule{"Scatter", F::none, 0, 0, false, true, false},
    OperatorRule{"ScatterElements", F::none, 0, 0, false, true, false},
    OperatorRule{"ScatterND", F::none, 0, 0, false, true, false},
    OperatorRule{"Update", F::none, 0, 0},
    // TensorFlow's types: scripts/studies/tensorflow states their FLOP.
    source("VariableV2"),
    source("Placeholder"),
    source("Const"),
    source("NoOp"),
    source("StopGradient"),
    source("PreventGradient"),
    source("ExpandDims"),
    source("ShapeN"),
    source("BroadcastGradientArgs"),
    source("ConcatOffset"),
    source("InvertPermutation"),
    source("FloorMod"),
    matrix("Conv2D", F::none),
    matrix("Conv2DBackpropInput", F::none),
    matrix("Conv2DBackpropFilter", F::none),
    matrix("DepthwiseConv2dNative", F::none),
    matrix("DepthwiseConv2dNativeBackpropInput", F::none),
    matrix("DepthwiseConv2dNativeBackpropFilter", F::none),
    matrix("BatchMatMulV2", F::none),
    normalisation("FusedBatchNormV3"),
    normalisation("FusedBatchNormGradV3"),
    OperatorRule{"AvgPool", F::window, 1, 1},
    from_neither("AddV2"),
    from_neither("AddN"),
    from_neither("BiasAdd"),
    from_neither("GreaterEqual"),
    from_neither("IsFinite"),
    from_neither("Select"),
    from_neither("RandomUniform"),
    from_input("RealDiv"),
    from_input("Square"),
    from_input("SquaredDifference", 2),
    from_input("Minimum"),
    from_input("Maximum"),
    from_output("Relu6"),
    from_output("Rsqrt", 4),
    reduction("L2Loss", true),
    reduction("UnsortedSegmentSum"),
    reduction("Unique"),
    OperatorRule{"SparseSoftmaxCrossEntropyWithLogits", F::per_input, 5, 0.5, false, true, false},
    movement("ConcatV2"),
    movement("SplitV"),
    movement("Pack"),
    movement("Unpack"),
    movement("Fill"),
    movement("ZerosLike"),
    movement("BroadcastTo"),
    gathering("GatherV2"),
    gathering("StridedSlice", false),
    movement("Assign"),
    from_neither("AssignSub"),
    movement("ScatterAdd"),
    movement("ScatterSub"),
    movement("ApplyGradientDescent"),
    movement("ApplyMomentum"),
    movement("ApplyAdam"),
    movement("SparseApplyMomentum"),
};

const std::unordered_map<std::string_view, const OperatorRule*>& rule_index() {
  static const auto index = [] {
    std::unordered_map<std::string_view, const OperatorRule*> made;
    for (const auto& rule : kRules) made.emplace(rule.type, &rule);
    return made;
  }();
  return index;
}

const OperatorRule* find_rule(std::string_view type) {
  const auto& index = rule_index();
  auto found = index.find(type);
  if (found == index.end() && type.ends_with("Grad"))
    found = index.find(type.substr(0, type.size() - 4));
  return found == index.end() ? nullptr : found->second;
}

double elements(std::span<const Tensor* const> tensors, size_t index) {
  return index < tensors.size() ? static_cast<double>(tensors[index]->elements()) : 0.0;
}

double extent(std::span<const Tensor* const> tensors, size_t index, size_t from_end) {
  if (index >= tensors.size() || tensors[index]->shape.size() < from_end) return 0;
  const auto& shape = tensors[index]->shape;
  return static_cast<double>(shape[shape.size() - from_end]);
}

/// Weight elements per extent of the first axis: number of terms of one output element of a
/// convolution (ONNX has output channels first), or number of uses of one input element of a
/// transposed one.
double reduced_by_weight(const Operator& op) {
  if (op.parameters.empty() || op.parameters[0].shape.empty()) return 0;
  return static_cast<double>(op.parameters[0].elements()) /
         static_cast<double>(op.parameters[0].shape[0]);
}

/// The reduced length of a matmul. The weights of Gemm and MatMul are matrices with the output's
/// last extent on one side; a weight on the left has the input's rows on the other.
double reduced_length(const Operator& op, std::span<const Tensor* const> inputs,
                      std::span<const Tensor* const> outputs) {
  const auto matrix = std::find_if(op.parameters.begin(), op.parameters.end(),
                                   [](const Parameter& p) { return p.shape.size() >= 2; });
  if (matrix == op.parameters.end()) {
    const bool vector = inputs.size() == 1 && !op.parameters.empty();
    if (vector) return static_cast<double>(op.parameters[0].elements());
    return extent(inputs, 0, integer_attribute(op.attributes, "transA", 0) != 0 ? 2 : 1);
  }
  const auto& shape = matrix->shape;
  const bool transposed = integer_attribute(op.attributes, "transB", 0) != 0;
  const auto columns = static_cast<double>(transposed ? shape.front() : shape.back());
  const auto rows = static_cast<double>(transposed ? shape.back() : shape[shape.size() - 2]);
  if (extent(outputs, 0, 1) == columns) return rows;
  return static_cast<double>(shape.back());  // the weight is on the left
}

double kernel_area(const Operator& op) {
  double area = 1;
  if (const auto* extents = find_attribute<std::vector<int64_t>>(op.attributes, "kernel_shape"))
    for (const int64_t side : *extents) area *= static_cast<double>(side);
  return area;
}

/// Positions times the elements of the matrices. If weights are stacked by direction, each position
/// is multiplied with all of them.
double recurrent_products(const Operator& op, std::span<const Tensor* const> inputs) {
  const double width = extent(inputs, 0, 1);
  if (width == 0) return 0;
  double matrices = 0;
  for (const auto& parameter : op.parameters)
    if (parameter.shape.size() > 2 || (op.type == "LSTMCell" && parameter.shape.size() == 2))
      matrices += static_cast<double>(parameter.elements());
  if (matrices == 0 && op.type == "LSTMCell") matrices = elements(inputs, 3);
  return elements(inputs, 0) / width * matrices;
}

/// The product of the extents of all letters of an Einsum's equation, over its inputs and then its
/// weights.
double einsum_extents(const Operator& op, std::span<const Tensor* const> inputs) {
  const auto* equation = find_attribute<std::string>(op.attributes, "equation");
  if (!equation) return 0;
  std::map<char, double> extents;
  size_t input = 0, axis = 0;
  for (const char letter : *equation) {
    if (letter == '-') break;
    if (letter == ',') ++input, axis = 0;
    const bool named = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    if (!named || input >= inputs.size() + op.parameters.size()) continue;
    const auto& shape =
        input < inputs.size() ? inputs[input]->shape : op.parameters[input - inputs.size()].shape;
    if (axis < shape.size()) extents[letter] = static_cast<double>(shape[axis++]);
  }
  double product = extents.empty() ? 0 : 1;
  for (const auto& [letter, length] : extents) product *= length;
  return product;
}

/// Number of key positions per query: all, or the positions of its window.
double seen_keys(const Operator& op, std::span<const Tensor* const> inputs) {
  const double keys = extent(inputs, 1, 2);
  const int64_t window = integer_attribute(op.attributes, "window", 0);
  return window > 0 ? std::min(keys, static_cast<double>(window)) : keys;
}

}  // namespace

/// Types that have been used in some graph.
const OperatorType::Known* OperatorType::find(std::string_view text) {
  static std::shared_mutex mutex;
  static std::unordered_map<std::string_view, std::unique_ptr<const Known>> all;
  {
    const std::shared_lock lock(mutex);
    if (const auto found = all.find(text); found != all.end()) return found->second.get();
  }
  const std::unique_lock lock(mutex);
  auto made = std::make_unique<const Known>(Known{std::string(text), find_rule(text)});
  const std::string_view kept = made->text;
  return all.emplace(kept, std::move(made)).first->second.get();
}

OperatorType::OperatorType(std::string_view text) : known_(text.empty() ? nullptr : find(text)) {}

const std::string& OperatorType::text() const {
  static const std::string kEmpty;
  return known_ ? known_->text : kEmpty;
}

const OperatorRule& operator_rule(const OperatorType& type) {
  return type.rule() ? *type.rule() : kElementwise;
}

bool is_elementwise(const OperatorType& type) {
  constexpr std::array<std::string_view, 9> kOverRows = {
      "Softmax",           "LogSoftmax",         "BatchNormalization",
      "LayerNormalization", "GroupNormalization", "InstanceNormalization",
      "RMSNormalization",  "LpNormalization",    "RotaryEmbedding"};
  const OperatorRule* rule = type.rule();
  return rule && rule->flops == F::per_output && !rule->matrix &&
         std::find(kOverRows.begin(), kOverRows.end(), rule->type) == kOverRows.end() &&
         std::string_view(rule->type) != "LRN";
}

bool has_operator_rule(const OperatorType& type) { return type.rule() != nullptr; }

std::vector<std::string> operator_types() {
  std::vector<std::string> types;
  for (const auto& rule : kRules) types.emplace_back(rule.type);
  return types;
}

/// True if a backward operator writes its gradient in place of its first input (attribute
/// `in_place`).
static bool overwrites(const Operator& op) {
  return op.phase == Phase::backward && integer_attribute(op.attributes, "in_place", 0) != 0;
}

int32_t overwritten(const Graph& graph, const Operator& op) {
  if (op.inputs.empty() || op.outputs.empty()) return -1;
  const auto bytes = [&](int32_t tensor) { return graph.tensor(tensor).bytes; };
  if (op.collective < 0) {
    if (!operator_rule(op.type).view && !overwrites(op)) return -1;
  } else {
    const auto filled = std::count_if(op.inputs.begin(), op.inputs.end(),
                                      [&](int32_t input) { return bytes(input) > 0; });
    if (filled != 1 || op.outputs.size() != 1) return -1;
  }
  const bool equal = bytes(op.inputs.front()) == bytes(op.outputs.front());
  return equal ? op.inputs.front() : -1;
}

bool is_variable(const Operator& op) { return op.type == "Variable" || op.type == "VariableV2"; }

bool is_depthwise(const Operator& op) {
  if (op.type == "ConvGrad") return integer_attribute(op.attributes, "depthwise", 0) != 0;
  return op.type == "Conv" && integer_attribute(op.attributes, "group", 1) > 1 &&
         !op.parameters.empty() && op.parameters[0].shape.size() >= 2 &&
         op.parameters[0].shape[1] == 1;
}

double forward_flops(const Operator& op, std::span<const Tensor* const> inputs,
                     std::span<const Tensor* const> outputs) {
  const auto& rule = operator_rule(op.type);
  switch (rule.flops) {
    case F::none:
      return 0;
    case F::per_output:
      return rule.factor * elements(outputs, 0);
    case F::per_input:
      return rule.factor * elements(inputs, 0);
    case F::window:
      return rule.factor * elements(outputs, 0) * kernel_area(op);
    case F::convolution:
      return rule.factor * elements(outputs, 0) * reduced_by_weight(op);
    case F::transposed:
      return rule.factor * elements(inputs, 0) * reduced_by_weight(op);
    case F::product:
      return rule.factor * elements(outputs, 0) * reduced_length(op, inputs, outputs);
    case F::recurrent:
      return rule.factor * recurrent_products(op, inputs);
    case F::einsum:
      return rule.factor * einsum_extents(op, inputs);
    case F::attention:
      return rule.factor * (elements(inputs, 0) + elements(outputs, 0)) * seen_keys(op, inputs);
  }
  return 0;
}

}  // namespace trinity
