#pragma once

#include "learn/torch.h"

namespace trinity {

/// The clipped surrogate of PPO for independent actions (papers.md eq. 14 with the reading of 1.9
/// item 13): the mean over actions of min(r A, clip(r, 1 - eps, 1 + eps) A), where every action
/// has its own ratio r = exp(log_probability - old). All tensors broadcast together; `advantage`
/// is one value per sample, [S, 1]. To be maximised. Log-ratios are clamped to +-20.
struct ClippedObjective {
  torch::Tensor value;    ///< scalar
  torch::Tensor clipped;  ///< scalar: share of actions whose ratio lies outside the range
};
ClippedObjective clipped_objective(const torch::Tensor& log_probability, const torch::Tensor& old,
                                   const torch::Tensor& advantage, double clip);

}  // namespace trinity
