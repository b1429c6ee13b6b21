// Contributions of the actions of a batch to the rewards of their samples (credit.h).
#include <algorithm>
#include <cmath>

#include "base/stop.h"
#include "learn/torch/agent_impl.h"

namespace trinity {
namespace {

constexpr double kMost = 1.5;

/// To a root mean square of 1, none beyond kMost: a few units of a graph contribute far more than
/// all others, which would hardly move in comparison.
void normalise(std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  if (squares <= 0) return;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(values.size()));
  for (double& value : values) value = std::clamp(value * scale, -kMost, kMost);
}

}  // namespace

void Agent::Impl::assign_credit(std::span<const RewardSlopes> slopes) {
  group_credit.assign(group_of.size(), 0);
  device_credit.assign(devices.size(), 0);
  if (estimators.empty())
    for (size_t i = 0; i < shards.size(); ++i)
      estimators.push_back(std::make_unique<CreditEstimator>(*problem));
  pool.parallel_for(static_cast<int>(shards.size()), [&](int item, int) {
    const Shard& shard = shards[item];
    for (int64_t row = 0; row < shard.count; ++row) {
      poll_stop();
      credit_sample(shard, row, slopes[shard.first + row], *estimators[item]);
    }
  });
  normalise(group_credit);
  normalise(device_credit);
}

/// The credit of an action is the reward less what the policy expects with the action sampled again.
void Agent::Impl::credit_sample(const Shard& shard, int64_t row, const RewardSlopes& slopes,
                                CreditEstimator& estimator) {
  const auto count = deciding.size();
  const int64_t sample = shard.first + row;
  estimator.observe({placements.data() + static_cast<size_t>(sample) * count, count});
  credit_groups(sample, slopes, estimator);
  if (options.schedule_learns) credit_devices(shard, row, slopes, estimator);
}

/// Credit of the group of every unit, which takes the unit to the group's device.
void Agent::Impl::credit_groups(int64_t sample, const RewardSlopes& slopes,
                                CreditEstimator& estimator) {
  const auto n = static_cast<size_t>(units.size()), k = static_cast<size_t>(groups);
  const auto d = static_cast<size_t>(problem->devices()), s = static_cast<size_t>(sample);
  std::vector<double> change(n * d);
  estimator.changes(deciding, slopes, change);
  std::vector<int32_t> drawn(group_of.data() + s * n, group_of.data() + (s + 1) * n);
  const auto labels = order(drawn);
  std::vector<size_t> device_of(k);
  for (size_t i = 0; i < k; ++i) device_of[labels[i]] = static_cast<size_t>(devices[s * k + i]);
  for (size_t u = 0; u < n; ++u) {
    const float* chance = group_chances.data_ptr<float>() + u * k;
    double expected = 0;
    for (size_t g = 0; g < k; ++g)
      expected += static_cast<double>(chance[g]) * change[u * d + device_of[g]];
    group_credit[s * n + u] = -expected;
  }
}

/// Credit of the device of every group, which takes all members of the group along.
void Agent::Impl::credit_devices(const Shard& shard, int64_t row, const RewardSlopes& slopes,
                                 CreditEstimator& estimator) {
  const auto n = static_cast<size_t>(units.size()), k = static_cast<size_t>(groups);
  const auto d = static_cast<size_t>(problem->devices());
  const auto s = static_cast<size_t>(shard.first + row);
  std::vector<int32_t> block;
  for (const int32_t unit : deciding)
    block.push_back(ordered_group[s * n + static_cast<size_t>(unit)]);
  std::vector<double> change(k * d);
  estimator.changes(block, slopes, change);
  const auto chances = shard.rows[row].to(torch::kDouble).exp();
  for (size_t at = 0; at < k * d; ++at)
    device_credit[s * k + at / d] -= chances.data_ptr<double>()[at] * change[at];
}

}  // namespace trinity
