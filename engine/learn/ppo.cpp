#include "learn/ppo.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace trinity {
namespace {

struct Term {
  double value, slope;  ///< min(r A, clip(r) A) and its derivative by log r
  bool clipped;
};

Term clipped_term(double log_ratio, double advantage, double clip) {
  const double bounded = std::clamp(log_ratio, -20.0, 20.0), ratio = std::exp(bounded);
  const double free = ratio * advantage;
  const double fixed = std::clamp(ratio, 1 - clip, 1 + clip) * advantage;
  const bool outside = std::abs(ratio - 1) > clip;
  const bool moves = (!outside || free < fixed) && bounded == log_ratio;
  return {std::min(free, fixed), moves ? free : 0, outside};
}

double included(const Actions& actions, std::span<const uint8_t> weight) {
  if (actions.batch > 0) return actions.batch;
  return static_cast<double>(std::count(weight.begin(), weight.end(), uint8_t{1}));
}

}  // namespace

Objective clip_actions(const Actions& actions, std::span<const double> advantage,
                       std::span<const uint8_t> weight, double clip) {
  Objective objective;
  const double share =
      1 / std::max(1.0, included(actions, weight) * static_cast<double>(actions.count));
  size_t at = 0;
  for (size_t s = 0; s < advantage.size(); ++s) {
    for (int64_t i = 0; i < actions.count; ++i, ++at) {
      actions.coefficient[at] = 0;
      if (!weight[s]) continue;
      const double log_ratio =
          static_cast<double>(actions.log_probability[at]) - static_cast<double>(actions.old[at]);
      const double gain = actions.own_advantage.empty() ? advantage[s] : actions.own_advantage[at];
      // The ratio is exactly 1 in the first epoch, whose forward pass is the sampling's.
      const Term term =
          log_ratio == 0 ? Term{gain, gain, false} : clipped_term(log_ratio, gain, clip);
      actions.coefficient[at] = static_cast<float>(term.slope * share);
      objective.value += term.value * share;
      objective.clipped += term.clipped ? share : 0;
    }
  }
  return objective;
}

Objective clip_parts(const Actions& actions, std::span<const int32_t> part, int32_t parts,
                     std::span<const double> advantage, std::span<const uint8_t> weight,
                     double clip) {
  Objective objective;
  const auto count = static_cast<size_t>(actions.count);
  const double samples = std::max(1.0, included(actions, weight));
  for (size_t s = 0; s < advantage.size(); ++s) {
    std::vector<double> sum(static_cast<size_t>(parts), 0), members(sum), slope(sum);
    for (size_t at = s * count; at < (s + 1) * count; ++at) {
      sum[part[at]] +=
          static_cast<double>(actions.log_probability[at]) - static_cast<double>(actions.old[at]);
      members[part[at]] += 1;
    }
    const auto filled = static_cast<double>(
        std::count_if(members.begin(), members.end(), [](double m) { return m > 0; }));
    for (size_t p = 0; p < sum.size(); ++p) {
      if (members[p] == 0 || !weight[s]) continue;
      const double share = 1 / (filled * samples);
      const Term term = clipped_term(sum[p] / members[p], advantage[s], clip);
      slope[p] = term.slope * share / members[p];
      objective.value += term.value * share;
      objective.clipped += term.clipped ? share : 0;
    }
    for (size_t at = s * count; at < (s + 1) * count; ++at)
      actions.coefficient[at] = static_cast<float>(slope[part[at]]);
  }
  return objective;
}

Objective clip_jointly(const Actions& first, const Actions& second,
                       std::span<const double> advantage, std::span<const uint8_t> weight,
                       double clip) {
  Objective objective;
  const double share = 1 / std::max(1.0, included(first, weight));
  for (size_t s = 0; s < advantage.size(); ++s) {
    double log_ratio = 0;
    for (const Actions* actions : {&first, &second}) {
      const auto count = static_cast<size_t>(actions->count);
      for (size_t at = s * count; at < (s + 1) * count; ++at)
        log_ratio += static_cast<double>(actions->log_probability[at]) -
                     static_cast<double>(actions->old[at]);
    }
    Term term = clipped_term(log_ratio, advantage[s], clip);
    if (!weight[s]) term = {0, 0, false};
    for (const Actions* actions : {&first, &second}) {
      const auto count = static_cast<size_t>(actions->count);
      std::fill_n(actions->coefficient.begin() + static_cast<std::ptrdiff_t>(s * count), count,
                  static_cast<float>(term.slope * share));
    }
    objective.value += term.value * share;
    objective.clipped += term.clipped ? share : 0;
  }
  return objective;
}

}  // namespace trinity
