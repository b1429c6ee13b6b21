#pragma once

#include "libtorch/torch.h"

namespace trinity {

/// Scores of additive attention: v . tanh(query_t + memory_j) for queries [S, T, H], memory
/// [S, K, H] and v [H], as [S, T, K]. The [S, T, K, H] intermediate is never stored: it is made one
/// query step at a time, in cache, and again in the backward pass.
torch::Tensor additive_scores(const torch::Tensor& query, const torch::Tensor& memory,
                              const torch::Tensor& v);

}  // namespace trinity
