#pragma once

#include "libtorch/torch.h"

namespace trinity {

/// exp(2 x), which additive_scores() needs of queries and keys; |x| beyond 21 counts as 21, so that
/// the product of two of them stays finite.
torch::Tensor doubled_exponential(const torch::Tensor& x);

/// Scores of additive attention, v . tanh(query_t + memory_j), as [S, T, K], of query [S, T, H],
/// memory [S, K, H], its doubled_exponential() and v [H]. On the processor without the intermediate
/// [S, T, K, H].
torch::Tensor additive_scores(const torch::Tensor& query, const torch::Tensor& memory,
                              const torch::Tensor& exponential, const torch::Tensor& v);

}  // namespace trinity
