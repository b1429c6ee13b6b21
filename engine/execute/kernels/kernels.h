#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "execute/kernels/numbers.h"
#include "graph/types.h"
#include "libtorch/torch.h"

namespace trinity {

/// One forward run of an operator. Graphs that were imported have lost the operands that are the
/// same in every step (formats/onnx/onnx.h): what kernels need of them follows from shapes; else a
/// factor is 1, a term 0, an exponent 2, a condition true, and a part begins where the whole does.
struct KernelCall {
  const Operator& op;
  std::vector<at::Tensor> inputs;             ///< in the operator's argument order
  std::vector<at::Tensor> parameters;         ///< its own weights, in their order
  std::vector<std::vector<int64_t>> outputs;  ///< shapes
  uint64_t seed = 0;  ///< of this operator: what is random depends on this and the sample alone
  int64_t batch = 0;  ///< the number of the samples' batch among all of all steps
  at::ScalarType real = at::kFloat;  ///< of real numbers

  /// Argument `i` of the ONNX operator: the inputs, then the operator's own weights, unless the
  /// attribute parameter_inputs says where these stand.
  const at::Tensor& argument(size_t i) const;
  bool has_argument(size_t i) const { return i < argument_count(); }
  size_t argument_count() const { return inputs.size() + parameters.size(); }
  /// Argument `i` that is added to a sum of products: in parts that write further terms of one sum
  /// it counts nothing, but has a gradient.
  at::Tensor bias(size_t i) const;
  std::vector<at::Tensor> arguments() const;
  const std::vector<int64_t>& output_shape(size_t i = 0) const;
  int64_t integer(const char* attribute, int64_t fallback) const;
  double number(const char* attribute, double fallback) const;
  std::string text(const char* attribute, const char* fallback) const;
  std::vector<int64_t> list(const char* attribute) const;  ///< empty where there is none
};

/// Computes an operator's outputs with LibTorch's own operators, so that autograd follows. May
/// update weights that are not trainable (moving statistics) in place.
using Kernel = std::vector<at::Tensor> (*)(const KernelCall&);

/// The kernel of a forward type, ONNX's or one of operator_types.h; null where there is none.
Kernel find_kernel(const std::string& type);

/// Which keys [queries, keys] causal queries at these positions do not see: those behind them, and
/// all but the nearest `window` (0: none of these).
at::Tensor unseen_keys(const at::Tensor& positions, int64_t keys, int64_t window);

using KernelTable = std::map<std::string, Kernel>;
/// Numbers one by one: arithmetic, comparisons, activations, and reductions.
void add_element_kernels(KernelTable& table);
/// Attention as one operator, whole and in the steps of a ring.
void add_attention_kernels(KernelTable& table);
/// Other shapes, parts and selections of tensors.
void add_movement_kernels(KernelTable& table);

}  // namespace trinity
