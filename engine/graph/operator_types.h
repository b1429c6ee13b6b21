#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/types.h"

namespace trinity {

class Graph;

/// What the training lowering and the cost model know of an operator type. Types are ONNX's, with
/// these beside them: `Input` (a source of data), `Variable` (weights that several operators read),
/// `SwiGLU` and `GeGLU` (gate, values and, of experts, a weight a row, to the product of the gate's
/// activation with the values), `WeightedGelu` (values and a weight a row), `LatentKeyValue` (heads'
/// keys and values [N, T, A (n + v)] and the turned part of the keys [N, T, r] that they share to
/// keys [N, T, A (n + r)] and values [N, T, A v]), `ExpertDispatch` (tokens [N, T, H], their weights
/// and numbers [N, T, k] of experts to the experts' rows [E, C, H] and their weights [E, C, 1]),
/// `ExpertCombine` (back to [N, T, H]), `AllToAll` (rows of all experts to those of some, of all ranks; graph/experts.h),
/// `LSTMCell` (one step of an LSTM: x [N, I], h [N, H], c [N, H], weight [I + H, 4 H], bias [4 H]
/// to h, c), `Update` (an optimiser's step), and TensorFlow's (scripts/studies/tensorflow).
struct OperatorRule {
  const char* type;
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
    attention,    ///< 2 x (query + result elements) x key positions (of `window` at most)
  } flops;
  double factor;           ///< see Flops
  double backward_factor;  ///< backward FLOP over forward FLOP, when every operand wants a gradient
  bool matrix = false;     ///< runs at the device's matrix efficiency
  bool saves_input = false;   ///< its backward reads the forward inputs
  bool saves_output = false;  ///< its backward reads the forward outputs
  bool view = false;     ///< takes no time: a source of data, another shape of the same bytes, or
                         ///< work on shapes that the host does
  bool passes = false;   ///< hands the gradient of its output to its inputs as it is
  bool gathers = false;  ///< reads only as much of its inputs and weights as it writes
};

/// The rule of an operator type; types without one are element-wise: one FLOP per output element,
/// backward as costly, input kept. "Grad" types have the rule of their forward type.
const OperatorRule& operator_rule(const OperatorType& type);

/// Whether every element of its outputs is made of the elements at the same place of its inputs, or
/// of ones repeated there: what compilers join into one kernel. Gradients count as their type.
bool is_elementwise(const OperatorType& type);

/// Whether a type has a rule of its own.
bool has_operator_rule(const OperatorType& type);
/// All types that have one, in the table's order.
std::vector<std::string> operator_types();

/// The tensor in whose place an operator writes its first output: a view's first input, that of a
/// backward operator with attribute `in_place` (Megatron-LM's and Transformer Engine's losses), and that of
/// a member of a collective with one input besides those of no bytes, which are only waited for;
/// where both are equally large. -1: none.
int32_t overwritten(const Graph& graph, const Operator& op);
/// Whether the output of an operator is its own weights: a Variable.
bool is_variable(const Operator& op);
/// Whether a convolution has one input channel per group (its weights are [C, 1, kh, kw]), or is the
/// gradient of one (the training lowering gives it the attribute `depthwise`).
bool is_depthwise(const Operator& op);

/// FLOP of one forward run. A multiply-add counts as two.
double forward_flops(const Operator& op, std::span<const Tensor* const> inputs,
                     std::span<const Tensor* const> outputs);

}  // namespace trinity
