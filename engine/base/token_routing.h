#pragma once

#include <algorithm>
#include <cstdint>

namespace trinity {

/// How the rows of an all-to-all follow from tokens: every token has one row for each of its experts, which are
/// uniformly random; `group_topk` of the groups of experts come first, then experts in them.
struct TokenRouting {
  static constexpr int64_t kMost = 512;  ///< of experts of a token and of groups

  int64_t experts = 0;    ///< of all members
  int64_t per_token = 0;  ///< experts of a token; 0: rows are no copies of tokens
  int64_t groups = 1;
  int64_t group_topk = 1;

  /// Mean number of `parts` equal parts of the experts that have at least one expert of a token. Groups count where
  /// parts consist of whole groups or groups of whole parts.
  double destinations(int64_t parts) const {
    const auto all = static_cast<double>(experts), count = static_cast<double>(parts);
    const bool whole = groups % parts == 0;
    if (groups <= 1 || (!whole && parts % groups != 0)) return count * (1 - none_of(all / count, all, per_token));
    const int64_t own = whole ? groups / parts : 1, others = groups - own;  // groups of a part, and elsewhere
    const double each = all / static_cast<double>(std::max(groups, parts));
    const double open = all * static_cast<double>(group_topk) / static_cast<double>(groups);
    double none = 0;
    const int64_t least = std::max<int64_t>(0, group_topk - others);
    double chance = least == 0 ? none_of(static_cast<double>(own), static_cast<double>(groups), group_topk)
                               : none_of(static_cast<double>(others), static_cast<double>(groups), own - least);
    for (int64_t chosen = least; chosen <= std::min(own, group_topk); ++chosen) {  // hypergeometric
      none += chance * none_of(static_cast<double>(chosen) * each, open, per_token);
      chance *= static_cast<double>((own - chosen) * (group_topk - chosen)) /
                static_cast<double>((chosen + 1) * (others - group_topk + chosen + 1));
    }
    return count * (1 - none);
  }

 private:
  /// Probability that none of `count` experts (or groups), out of `from`, are among `part` of them.
  static double none_of(double part, double from, int64_t count) {
    double none = 1;
    for (int64_t i = 0; i < count && none > 0; ++i) {
      const auto k = static_cast<double>(i);
      none *= std::max(0.0, from - part - k) / std::max(1.0, from - k);
    }
    return none;
  }
};

}  // namespace trinity
