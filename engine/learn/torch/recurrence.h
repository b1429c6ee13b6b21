#pragma once

#include <utility>

#include "libtorch/torch.h"

namespace trinity {

/// Doubles the third quarter of the last dimension in place: what LstmSteps expects of gates, and
/// of the columns of weights that lead to them.
torch::Tensor double_cell_gate(const torch::Tensor& gates);

/// Values of T steps of D independent LSTM recurrences that the backward pass needs.
struct LstmSteps {
  /// gates [D, T, S, 4H]: input, forget, cell (doubled), output.
  explicit LstmSteps(const torch::Tensor& gates_in);

  /// Step t from the cells before it [D, S, H]: the gates become their logistic functions. Returns
  /// the hidden state and the cell.
  std::pair<torch::Tensor, torch::Tensor> step(int64_t t, const torch::Tensor& cell) const;

  torch::Tensor gates, hidden, cells;  ///< the latter [D, T, S, H]
  torch::Tensor squashed;              ///< sigmoid(2 cell)
};

/// The recurrences as one node of autograd: gates hold input times weight plus bias and are
/// overwritten, state and cell [D, S, H], weight [D, 4H, H]. Returns the hidden states [D, T, S, H]
/// and the last cells [D, S, H]. `known`, if any, are the steps, computed before. The weight's
/// gradient is one matmul over all steps, and the slopes of all steps are computed before the loop
/// backwards.
torch::autograd::variable_list lstm(const torch::Tensor& gates, const torch::Tensor& state,
                                    const torch::Tensor& cell, const torch::Tensor& weight,
                                    const LstmSteps* known = nullptr);

}  // namespace trinity
