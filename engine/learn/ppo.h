#pragma once

#include <cstdint>
#include <span>

namespace trinity {

/// The ratio in the clipped objective of PPO (eq. 14 of papers/notes.md "Trinity: equations").
enum class Ratio : uint8_t {
  action,      ///< every unit's group and every group's device has its own (the released code)
  group_mean,  ///< units: the exponential of the mean log-ratio of a group's members
  joint,       ///< one for all actions of a sample, as eq. 14 is written
};

/// The actions of one network in a batch: `count` each of the samples. All arrays are [samples,
/// count]; `coefficient` receives the gradient of the objective by every log-probability.
struct Actions {
  int64_t count = 0;
  std::span<const float> log_probability, old;
  std::span<float> coefficient;
  /// Samples that means are taken over, where other processes have the rest of the batch. 0: those
  /// here that count.
  double batch = 0;
  /// Per action its own advantage, instead of its sample's; empty for none.
  std::span<const double> own_advantage = {};
};

struct Objective {
  double value = 0;    ///< to be maximised
  double clipped = 0;  ///< share of ratios outside [1 - clip, 1 + clip]
};

/// The mean over samples and actions of min(r A, clip(r, 1 - eps, 1 + eps) A) with r =
/// exp(log_probability - old), log-ratios kept within +-20. A sample of `weight` 0 is left out.
Objective clip_actions(const Actions& actions, std::span<const double> advantage,
                       std::span<const uint8_t> weight, double clip);

/// The same with one ratio for all actions of a sample that share a part: `part` [samples, count]
/// below `parts`. The mean is taken over the parts that have actions.
Objective clip_parts(const Actions& actions, std::span<const int32_t> part, int32_t parts,
                     std::span<const double> advantage, std::span<const uint8_t> weight,
                     double clip);

/// The same with one ratio for all actions of a sample in both networks.
Objective clip_jointly(const Actions& first, const Actions& second,
                       std::span<const double> advantage, std::span<const uint8_t> weight,
                       double clip);

}  // namespace trinity
