// PPO's objective against hand-computed values.
#include "learn/torch/agent_impl.h"

// LibTorch has a CHECK of its own, which ends the process.
#undef CHECK
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace trinity;

namespace {

torch::Tensor logs(std::vector<double> ratios, int64_t samples) {
  return torch::tensor(ratios, torch::kDouble).log().view({samples, -1});
}

double entry(const torch::Tensor& tensor, int64_t index) {
  return tensor.reshape(-1)[index].item<double>();
}

torch::Tensor slopes(const torch::Tensor& log_ratio, const torch::Tensor& advantage,
                     const torch::Tensor& weight) {
  const auto leaf = log_ratio.clone().requires_grad_();
  return torch::autograd::grad({clipped_objective(leaf, advantage, weight, 0.2, 2).value},
                               {leaf})[0];
}

const auto kAdvantage = [] { return torch::tensor({1.0, -2.0}, torch::kDouble).unsqueeze(1); };
const auto kAll = [] { return torch::ones({2}, torch::kDouble); };

}  // namespace

TEST_CASE("the clipped objective of hand-computed ratios, and its slopes") {
  const auto ratios = logs({1.5, 0.5, 1.1, 1.5, 0.5, 1.1}, 2);
  const auto objective = clipped_objective(ratios, kAdvantage(), kAll(), 0.2, 2);
  // min(r A, clip(r) A): 1.2, 0.5, 1.1; -3, -1.6, -2.2
  CHECK(objective.value.item<double>() == doctest::Approx((1.2 + 0.5 + 1.1 - 3 - 1.6 - 2.2) / 6));
  CHECK(objective.clipped == doctest::Approx(4.0 / 6));
  // r A where r counts, 0 where its clipped value does.
  const auto by_ratio = slopes(ratios, kAdvantage(), kAll());
  const double expected[] = {0, 0.5, 1.1, -3, 0, -2.2};
  for (int64_t i = 0; i < 6; ++i) CHECK(entry(by_ratio, i) == doctest::Approx(expected[i] / 6));
}

TEST_CASE("every action may have its own advantage") {
  const auto own = torch::tensor({1.0, -0.5, 2.0, 0.0}, torch::kDouble).view({2, 2});
  const auto ratios = logs({1.1, 1.025, 0.9, 0.95}, 2);
  CHECK(clipped_objective(ratios, own, kAll(), 0.2, 2).value.item<double>() ==
        doctest::Approx((1.1 - 0.5 * 1.025 + 2 * 0.9) / 4));
  CHECK(entry(slopes(ratios, own, kAll()), 3) == 0);
}

TEST_CASE("a sample that is left out changes neither value nor gradient") {
  const auto ratios = logs({1.1, 1.025, 4.5, 0.25}, 2);
  const auto first = torch::tensor({1.0, 0.0}, torch::kDouble);
  const auto both = clipped_objective(ratios, kAdvantage(), first, 0.2, 1);
  const auto one = clipped_objective(ratios.narrow(0, 0, 1), kAdvantage().narrow(0, 0, 1),
                                     first.narrow(0, 0, 1), 0.2, 1);
  CHECK(both.value.item<double>() == one.value.item<double>());
  CHECK(both.clipped == 0);
  const auto by_ratio = slopes(ratios, kAdvantage(), first);
  CHECK(entry(by_ratio, 0) != 0);
  CHECK(entry(by_ratio, 2) == 0);
  CHECK(entry(by_ratio, 3) == 0);
}

TEST_CASE("ratios of impossible actions stay finite") {
  const auto ratios = torch::full({2, 3}, 399.0, torch::kDouble);
  CHECK(
      std::isfinite(clipped_objective(ratios, kAdvantage(), kAll(), 0.2, 2).value.item<double>()));
  CHECK(slopes(ratios, kAdvantage(), kAll()).isfinite().all().item<bool>());
}
