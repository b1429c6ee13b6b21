#include "learn/ppo.h"

namespace trinity {

ClippedObjective clipped_objective(const torch::Tensor& log_probability, const torch::Tensor& old,
                                   const torch::Tensor& advantage, double clip) {
  const auto ratio = torch::exp(torch::clamp(log_probability - old, -20.0, 20.0));
  const auto bounded = torch::clamp(ratio, 1 - clip, 1 + clip);
  ClippedObjective objective;
  objective.value = torch::minimum(ratio * advantage, bounded * advantage).mean();
  torch::NoGradGuard no_grad;
  objective.clipped = ((ratio - 1).abs() > clip).to(torch::kFloat).mean();
  return objective;
}

}  // namespace trinity
