#include "learn/torch/ppo.h"

namespace trinity {

Objective clipped_objective(const torch::Tensor& log_ratio, const torch::Tensor& advantage,
                            const torch::Tensor& weight, double clip, double batch) {
  const auto share = weight.unsqueeze(1) / (batch * static_cast<double>(log_ratio.size(1)));
  const auto ratio = log_ratio.clamp(-20, 20).exp();
  const auto term = torch::min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage);
  const auto outside = (ratio.detach() - 1).abs() > clip;
  return {(share * term).sum(), (share * outside).sum().item<double>()};
}

}  // namespace trinity
