#pragma once

#include <span>

#include "graph/types.h"

namespace trinity {

/// What the training lowering and the cost model know of an operator type.
struct OperatorRule {
  const char* type;
  enum class Flops : uint8_t {
    none,         ///< moves data only
    per_output,   ///< `factor` per output element
    per_input,    ///< `factor` per element of the first input
    convolution,  ///< 2 x output elements x weight elements / output channels
    product,      ///< 2 x output elements x reduced length
    window,       ///< output elements x kernel area (pooling)
  } flops;
  double factor;           ///< see Flops
  double backward_factor;  ///< backward FLOP over forward FLOP, when the input needs a gradient
  bool matrix;             ///< runs at the device's matrix efficiency
  bool saves_input;        ///< its backward reads the forward inputs
  bool saves_output;       ///< its backward reads the forward outputs
  bool view = false;       ///< takes no time: a source of data or another shape of the same bytes
};

/// The rule of an operator type; types without one are element-wise: one FLOP per output element,
/// backward as costly, input kept. "Grad" types have the rule of their forward type.
const OperatorRule& operator_rule(std::string_view type);

/// FLOP of one forward run. A multiply-add counts as two.
double forward_flops(const Operator& op, std::span<const Tensor* const> inputs,
                     std::span<const Tensor* const> outputs);

}  // namespace trinity
