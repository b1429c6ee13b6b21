#pragma once

#include "libtorch/torch.h"

namespace trinity {

struct Objective {
  torch::Tensor value;  ///< scalar, to be maximised
  double clipped = 0;   ///< share of ratios outside [1 - clip, 1 + clip]
};

/// PPO's clipped objective (eq. 14 of papers/notes.md "Trinity: equations"): the sum over samples
/// of `weight` [S] of the means over columns of min(r A, clip(r, 1 - eps, 1 + eps) A), divided by
/// `batch`, the number of samples of all processes. r is the exponential of `log_ratio` [S, n],
/// kept within +-20; `advantage` is [S, 1] or [S, n].
Objective clipped_objective(const torch::Tensor& log_ratio, const torch::Tensor& advantage,
                            const torch::Tensor& weight, double clip, double batch);

}  // namespace trinity
