#include "graph/operator_types.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "base/words.h"
#include "graph/graph.h"

namespace trinity {
namespace {

using F = OperatorRule::Flops;

/// Copies the part of its first input or table that its output contains.
constexpr OperatorRule gathering(bool saves = true) {
  return {F::none, 0, 0, false, saves, false, false, false, true};
}
constexpr OperatorRule matrix(F flops, double backward = 2) { return {flops, 2, backward, true, true}; }
/// Element-wise; backward reads the input, the output, or neither.
constexpr OperatorRule from_input(double factor = 1) { return {F::per_output, factor, 1, false, true}; }
constexpr OperatorRule from_output(double factor = 1) { return {F::per_output, factor, 1, false, false, true}; }
constexpr OperatorRule reduction(bool input = false) { return {F::per_input, 1, 1, false, input}; }
constexpr OperatorRule kElementwise = from_input(), kFromNeither = {F::per_output, 1, 0};
constexpr OperatorRule kNormalisation = {F::per_output, 8, 1.5, false, true};
constexpr OperatorRule kSource = {F::none, 0, 0, false, false, false, true};
/// Copies elements; backward needs no forward tensors.
constexpr OperatorRule kMovement = {F::none, 0, 0};

/// Rules and the types that have them.
constexpr std::pair<OperatorRule, std::string_view> kRules[] = {
    {kSource, "Input Variable Constant ConstantOfShape Shape Size Range Flatten Reshape Squeeze Unsqueeze Identity"},
    {matrix(F::convolution), "Conv ConvInteger"},
    {matrix(F::transposed), "ConvTranspose"},
    {matrix(F::product), "Gemm MatMul MatMulInteger"},
    {matrix(F::einsum), "Einsum"},
    {matrix(F::attention, 2.5), "Attention"},
    {OperatorRule{F::recurrent, 2, 2, true, true, true}, "LSTM GRU RNN LSTMCell"},
    {kNormalisation, "BatchNormalization LayerNormalization InstanceNormalization GroupNormalization "
        "RMSNormalization"},
    {from_input(10), "LRN"},
    {from_input(4), "LpNormalization"},
    {OperatorRule{F::window, 1, 1, false, true, true}, "MaxPool"},
    {OperatorRule{F::window, 1, 1}, "AveragePool"},
    {reduction(), "GlobalAveragePool"},
    {reduction(true), "GlobalMaxPool"},
    {OperatorRule{F::per_output, 2, 1, false, false, true}, "Dropout"},
    {OperatorRule{F::per_output, 1, 0, false, false, false, false, true}, "Add Sum"},
    {kFromNeither, "Sub Neg Mean Not And Or Xor Equal Less LessOrEqual Greater GreaterOrEqual Sign Floor Ceil Round "
        "Mod IsNaN Where"},
    {OperatorRule{F::per_output, 1, 0, false, false, false, false, true}, "Cast"},
    {kFromNeither, "CastLike"},
    {from_input(), "Mul Div"},
    {from_input(10), "Pow Log"},
    {from_input(), "Abs"},
    {from_input(10), "Erf"},
    {from_input(12), "Gelu"},
    {from_input(), "LeakyRelu"},
    {from_input(2), "PRelu"},
    {from_input(4), "HardSwish"},
    {from_input(3), "HardSigmoid"},
    {from_input(12), "Mish"},
    {from_input(6), "Swish"},
    {from_input(7), "SwiGLU"},
    {from_input(13), "GeGLU WeightedGelu"},
    {from_input(10), "Selu Celu Sin Cos Softplus"},
    {from_input(), "Clip Min Max"},
    {from_output(), "Relu"},
    {from_output(4), "Sigmoid"},
    {from_output(6), "Tanh"},
    {from_output(10), "Exp Elu"},
    {from_output(4), "Sqrt Reciprocal"},
    {from_output(5), "Softmax LogSoftmax"},
    {OperatorRule{F::per_output, 3, 1}, "RotaryEmbedding"},
    {OperatorRule{F::per_input, 5, 0.5, false, true, false}, "SoftmaxCrossEntropyLoss"},
    {OperatorRule{F::per_input, 1, 1}, "NegativeLogLikelihoodLoss"},
    {reduction(), "ReduceMean ReduceSum"},
    {reduction(true), "ReduceMax ReduceMin ReduceProd ReduceL2 ReduceL1 ReduceLogSumExp ReduceSumSquare"},
    {reduction(), "ArgMax ArgMin TopK CumSum NonZero"},
    {kMovement, "Concat Split"},
    {gathering(false), "Slice"},
    {kMovement, "Transpose Pad Expand Tile DepthToSpace SpaceToDepth Resize Upsample ReverseSequence Trilu OneHot "
        "LatentKeyValue ExpertDispatch ExpertCombine AllToAll EyeLike RandomUniformLike RandomNormalLike Bernoulli"},
    {gathering(), "Gather GatherElements GatherND"},
    {OperatorRule{F::none, 0, 0, false, true, false}, "Scatter ScatterElements ScatterND"},
    {OperatorRule{F::none, 0, 0}, "Update"},
    // TensorFlow's types: scripts/studies/tensorflow states their FLOP.
    {kSource, "VariableV2 Placeholder Const NoOp StopGradient PreventGradient ExpandDims ShapeN "
        "BroadcastGradientArgs ConcatOffset InvertPermutation FloorMod"},
    {matrix(F::none), "Conv2D Conv2DBackpropInput Conv2DBackpropFilter DepthwiseConv2dNative "
        "DepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropFilter BatchMatMulV2"},
    {kNormalisation, "FusedBatchNormV3 FusedBatchNormGradV3"},
    {OperatorRule{F::window, 1, 1}, "AvgPool"},
    {kFromNeither, "AddV2 AddN BiasAdd GreaterEqual IsFinite Select RandomUniform"},
    {from_input(), "RealDiv Square"},
    {from_input(2), "SquaredDifference"},
    {from_input(), "Minimum Maximum"},
    {from_output(), "Relu6"},
    {from_output(4), "Rsqrt"},
    {reduction(true), "L2Loss"},
    {reduction(), "UnsortedSegmentSum Unique"},
    {OperatorRule{F::per_input, 5, 0.5, false, true, false}, "SparseSoftmaxCrossEntropyWithLogits"},
    {kMovement, "ConcatV2 SplitV Pack Unpack Fill ZerosLike BroadcastTo"},
    {gathering(), "GatherV2"},
    {gathering(false), "StridedSlice"},
    {kMovement, "Assign"},
    {kFromNeither, "AssignSub"},
    {kMovement, "ScatterAdd ScatterSub ApplyGradientDescent ApplyMomentum ApplyAdam SparseApplyMomentum"},
};

const std::unordered_map<std::string_view, OperatorRule>& rule_index() {
  static const auto index = [] {
    std::unordered_map<std::string_view, OperatorRule> made;
    for (auto [rule, types] : kRules)
      for (const auto type : words_of(types)) made.emplace(rule.type = type, rule);
    return made;
  }();
  return index;
}

const OperatorRule* find_rule(std::string_view type) {
  const auto& index = rule_index();
  auto found = index.find(type);
  if (found == index.end() && type.ends_with("Grad"))
    found = index.find(type.substr(0, type.size() - 4));
  return found == index.end() ? nullptr : &found->second;
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
         rule->type != "LRN";
}

bool has_operator_rule(const OperatorType& type) { return type.rule() != nullptr; }

std::vector<std::string> operator_types() {
  std::vector<std::string> types;
  for (const auto& [rule, names] : kRules)
    for (const auto name : words_of(names)) types.emplace_back(name);
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
