#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/types.h"

namespace trinity {

class Graph;

/// Properties of an operator type that the training lowering and the cost model use. Types are
/// ONNX's, plus:
///
///   - `Input`: a source of data; `Variable`: weights that several operators read;
///   - `SwiGLU`, `GeGLU`: gate, values and (for experts) one weight per row; output: the product of
///     activated gate and values;
///   - `WeightedGelu`: values and one weight per row;
///   - `LatentKeyValue`: keys and values of heads [N, T, A (n + v)] and the shared keys rotated by
///     RoPE [N, T, r] to keys [N, T, A (n + r)] and values [N, T, A v];
///   - `ExpertDispatch`: tokens [N, T, H], their weights and expert indices [N, T, k] to expert
///     rows [E, C, H] and row weights [E, C, 1]; `ExpertCombine`: back to [N, T, H];
///   - `AllToAll`: rows of all experts to rows of some experts from all ranks (graph/experts.h);
///   - `LSTMCell`: one LSTM step: x [N, I], h [N, H], c [N, H], weight [I + H, 4 H], bias [4 H] to
///     h, c;
///   - `Update`: an optimiser step; and TensorFlow's types (scripts/studies/tensorflow).
struct OperatorRule {
  enum class Flops : uint8_t {
    none,         ///< moves data only
    per_output,   ///< `factor` per output element
    per_input,    ///< `factor` per element of the first input
    convolution,  ///< 2 x output elements x weight elements / output channels
    transposed,   ///< 2 x input elements x weight elements / input channels
    product,      ///< 2 x output elements x reduced length
    window,       ///< output elements x kernel area (pooling)
    recurrent,    ///< 2 x positions x weight elements
    einsum,       ///< 2 x the product of all extents in the equation
    attention,    ///< 2 x (query + result elements) x key positions (at most `window`)
  } flops;
  double factor;           ///< for Flops
  double backward_factor;  ///< backward FLOP / forward FLOP if every operand needs a gradient
  bool matrix = false;     ///< runs at the device's matrix efficiency
  bool saves_input = false;   ///< its backward reads the forward inputs
  bool saves_output = false;  ///< its backward reads the forward outputs
  bool view = false;  ///< takes no time: a data source, a reshape, or shape arithmetic on the host
  bool passes = false;   ///< passes the gradient of its output to its inputs unmodified
  bool gathers = false;  ///< reads only as many bytes of inputs and weights as it writes
  std::string_view type = {};
};

/// The rule of an operator type. Types without one are element-wise: one FLOP per output element,
/// backward as expensive, input kept. "Grad" types have the rule of their forward type.
const OperatorRule& operator_rule(const OperatorType& type);

/// True if every output element depends only on the (broadcast) input elements at the same index;
/// compilers fuse such operators into one kernel. Gradients count as their type.
bool is_elementwise(const OperatorType& type);

/// True if the type has a rule of its own.
bool has_operator_rule(const OperatorType& type);
/// All types with a rule, in the table's order.
std::vector<std::string> operator_types();

/// The tensor that an operator's first output overwrites: the first input of a view or of a
/// backward operator with attribute `in_place` (losses of Megatron-LM and Transformer Engine), or
/// the only input of a collective's member (not counting tokens of 0 bytes); only if both have the
/// same size. -1: none.
int32_t overwritten(const Graph& graph, const Operator& op);
/// True if the operator is a Variable, whose output is its own weights.
bool is_variable(const Operator& op);
/// True for a convolution with one input channel per group (weights [C, 1, kh, kw]), and for its
/// gradient (attribute `depthwise`, set by the training lowering).
bool is_depthwise(const Operator& op);

/// FLOP of one forward run. A multiply-add counts as two.
double forward_flops(const Operator& op, std::span<const Tensor* const> inputs,
                     std::span<const Tensor* const> outputs);

}  // namespace trinity
