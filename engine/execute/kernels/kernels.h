#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "execute/kernels/numbers.h"
#include "graph/types.h"
#include "libtorch/torch.h"

namespace trinity {

/// One forward run of an operator. Imported graphs lack operands that are equal in every step
/// (formats/onnx/onnx.h). Kernels derive them from shapes; otherwise a factor is 1, a term 0, an
/// exponent 2, a condition true, and a part begins where the whole does.
struct KernelCall {
  const Operator& op;
  std::vector<at::Tensor> inputs;             ///< in argument order
  std::vector<at::Tensor> parameters;         ///< its own weights, in order
  std::vector<std::vector<int64_t>> outputs;  ///< shapes
  uint64_t seed = 0;  ///< of this operator; randomness depends only on it and the sample
  int64_t batch = 0;  ///< index of the batch over all steps
  at::ScalarType real = at::kFloat;  ///< floating-point type

  /// Argument `i` of the ONNX operator: inputs, then its own weights, unless the attribute
  /// parameter_inputs gives their positions.
  const at::Tensor& argument(size_t i) const;
  bool has_argument(size_t i) const { return i < argument_count(); }
  size_t argument_count() const { return inputs.size() + parameters.size(); }
  /// Argument `i` as a bias: zero in parts that write further terms of one sum, but with a
  /// gradient.
  at::Tensor bias(size_t i) const;
  at::Tensor optional(size_t i) const;  ///< argument `i`; undefined if there is none
  std::vector<at::Tensor> arguments() const;
  const std::vector<int64_t>& output_shape(size_t i = 0) const;
  int64_t integer(const char* attribute, int64_t fallback) const;
  double number(const char* attribute, double fallback) const;
  std::string text(const char* attribute, const char* fallback) const;
  std::vector<int64_t> list(const char* attribute) const;  ///< empty if absent
};

/// Computes an operator's outputs with LibTorch operators, so that autograd works. May update
/// untrained weights (moving statistics) in place.
using Kernel = std::vector<at::Tensor> (*)(const KernelCall&);

/// The kernel of a forward type, ONNX's or one of operator_types.h; null: none.
Kernel find_kernel(const std::string& type);

/// Mask [queries, keys] of keys that causal queries at these positions do not see: later ones, and
/// all but the nearest `window` (0: no limit).
at::Tensor unseen_keys(const at::Tensor& positions, int64_t keys, int64_t window);

/// True if logits of a loss have their classes along the second dimension, not the last.
bool has_classes_second(const at::Tensor& logits, const at::Tensor& labels);

using KernelTable = std::map<std::string, Kernel>;
/// Element-wise arithmetic, comparisons, activations, and reductions.
void add_element_kernels(KernelTable& table);
/// Attention as one operator, and the steps of ring attention.
void add_attention_kernels(KernelTable& table);
/// Reshapes, slices and selections.
void add_movement_kernels(KernelTable& table);
/// LSTM and GRU over all steps, and one step of an LSTM.
void add_recurrent_kernels(KernelTable& table);

}  // namespace trinity
