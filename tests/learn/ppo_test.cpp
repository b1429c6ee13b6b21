// PPO's objective against hand-computed values, and its gradients against differences.
#include "learn/ppo.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

using namespace trinity;

namespace {

std::vector<float> logs(std::vector<double> values) {
  std::vector<float> result;
  for (const double value : values) result.push_back(static_cast<float>(std::log(value)));
  return result;
}

/// The coefficients are the objective's derivatives: checks them by central differences.
void check_gradient(std::vector<float> now, const std::vector<float>& coefficient,
                    const std::function<double(const std::vector<float>&)>& value) {
  for (size_t i = 0; i < now.size(); ++i) {
    const float kept = now[i];
    now[i] = kept + 1e-2f;
    const double above = value(now);
    now[i] = kept - 1e-2f;
    const double below = value(now);
    now[i] = kept;
    CHECK(static_cast<double>(coefficient[i]) ==
          doctest::Approx((above - below) / 2e-2).epsilon(2e-3));
  }
}

const std::vector<double> kAdvantage = {1.0, -2.0};
const std::vector<uint8_t> kAll = {1, 1};

}  // namespace

TEST_CASE("the clipped objective of hand-computed ratios") {
  // Ratios 1.5, 0.5, 1.1; advantages +1 for the first sample, -2 for the second.
  const auto old = logs({0.2, 0.4, 0.1, 0.2, 0.4, 0.1});
  const auto now = logs({0.3, 0.2, 0.11, 0.3, 0.2, 0.11});
  std::vector<float> coefficient(6);
  const auto objective = clip_actions({3, now, old, coefficient}, kAdvantage, kAll, 0.2);
  // min(r A, clip(r) A): 1.2, 0.5, 1.1; -3, -1.6, -2.2
  CHECK(objective.value == doctest::Approx((1.2 + 0.5 + 1.1 - 3 - 1.6 - 2.2) / 6));
  CHECK(objective.clipped == doctest::Approx(4.0 / 6));
  check_gradient(now, coefficient, [&](const std::vector<float>& at) {
    std::vector<float> unused(6);
    return clip_actions({3, at, old, unused}, kAdvantage, kAll, 0.2).value;
  });
}

TEST_CASE("every action may have its own advantage") {
  const auto old = logs({0.2, 0.4, 0.2, 0.4}), now = logs({0.22, 0.41, 0.18, 0.38});
  std::vector<float> coefficient(4);
  const std::vector<double> own = {1.0, -0.5, 2.0, 0.0};
  const Actions actions{2, now, old, coefficient, 0, own};
  const auto objective = clip_actions(actions, kAdvantage, kAll, 0.2);
  CHECK(objective.value == doctest::Approx((1.1 - 0.5 * 1.025 + 2 * 0.9) / 4).epsilon(1e-5));
  CHECK(coefficient[3] == 0);
  check_gradient(now, coefficient, [&](const std::vector<float>& at) {
    std::vector<float> unused(4);
    return clip_actions({2, at, old, unused, 0, own}, kAdvantage, kAll, 0.2).value;
  });
}

TEST_CASE("a sample that is left out changes neither value nor gradient") {
  const auto old = logs({0.2, 0.4, 0.2, 0.4}), now = logs({0.22, 0.41, 0.9, 0.1});
  std::vector<float> coefficient(4), alone(2);
  const std::vector<uint8_t> first = {1, 0};
  const auto both = clip_actions({2, now, old, coefficient}, kAdvantage, first, 0.2);
  const std::vector<float> now_alone(now.begin(), now.begin() + 2);
  const std::vector<float> old_alone(old.begin(), old.begin() + 2);
  const auto one = clip_actions({2, now_alone, old_alone, alone}, std::vector<double>{1.0},
                                std::vector<uint8_t>{1}, 0.2);
  CHECK(both.value == one.value);
  CHECK(std::vector<float>(coefficient.begin(), coefficient.begin() + 2) == alone);
  CHECK(coefficient[2] == 0);
  CHECK(coefficient[3] == 0);
}

TEST_CASE("one ratio for the members of a group: the exponential of their mean log-ratio") {
  const auto old = logs({0.2, 0.4, 0.1, 0.2, 0.4, 0.1});
  const auto now = logs({0.24, 0.36, 0.11, 0.24, 0.36, 0.11});
  const std::vector<int32_t> group = {0, 0, 1, 1, 1, 1};
  std::vector<float> coefficient(6);
  const auto objective = clip_parts({3, now, old, coefficient}, group, 3, kAdvantage, kAll, 0.2);
  const double pair = std::sqrt(1.2 * 0.9), three = std::cbrt(1.2 * 0.9 * 1.1);
  CHECK(objective.value == doctest::Approx(((pair + 1.1) / 2 - 2 * three) / 2));
  check_gradient(now, coefficient, [&](const std::vector<float>& at) {
    std::vector<float> unused(6);
    return clip_parts({3, at, old, unused}, group, 3, kAdvantage, kAll, 0.2).value;
  });
}

TEST_CASE("one ratio for all actions of both networks") {
  const auto old = logs({0.2, 0.4, 0.2, 0.4}), now = logs({0.21, 0.4, 0.2, 0.44});
  const auto old_device = logs({0.5, 0.5}), device = logs({0.52, 0.55});
  std::vector<float> coefficient(4), of_device(2);
  const auto objective = clip_jointly({2, now, old, coefficient},
                                      {1, device, old_device, of_device}, kAdvantage, kAll, 0.2);
  const double first = 1.05 * 1.04, second = 1.1 * 1.1;  // the second is clipped, but A < 0
  CHECK(objective.value == doctest::Approx((first - 2 * second) / 2));
  CHECK(objective.clipped == doctest::Approx(0.5));
  CHECK(static_cast<double>(of_device[0]) == doctest::Approx(first / 2));
  CHECK(static_cast<double>(coefficient[3]) == doctest::Approx(-second));
}

TEST_CASE("ratios of impossible actions stay finite") {
  const std::vector<float> now(6, -1.0f), old(6, -400.0f);
  std::vector<float> coefficient(6);
  const auto objective = clip_actions({3, now, old, coefficient}, kAdvantage, kAll, 0.2);
  CHECK(std::isfinite(objective.value));
  for (const float c : coefficient) CHECK(std::isfinite(c));
}
