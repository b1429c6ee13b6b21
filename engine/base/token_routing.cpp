#include "base/token_routing.h"

#include <algorithm>

namespace trinity {
namespace {

/// Probability that none of `count` experts, out of `from`, are among `part` of them.
double none_of(double part, double from, int64_t count) {
  double none = 1;
  for (int64_t i = 0; i < count; ++i) {
    const auto k = static_cast<double>(i);
    none *= std::max(0.0, from - part - k) / std::max(1.0, from - k);
  }
  return none;
}

double choices(int64_t of, int64_t count) {
  double all = of < count ? 0 : 1;
  for (int64_t i = 0; i < count && i < of; ++i) all *= static_cast<double>(of - i) / static_cast<double>(i + 1);
  return all;
}

}  // namespace

double TokenRouting::destinations(int64_t parts) const {
  const auto all = static_cast<double>(experts), count = static_cast<double>(parts);
  const bool whole = groups % parts == 0;
  if (groups <= 1 || (!whole && parts % groups != 0)) return count * (1 - none_of(all / count, all, per_token));
  const int64_t own = whole ? groups / parts : 1;  // groups of a part
  const double each = all / static_cast<double>(std::max(groups, parts));
  const double open = all * static_cast<double>(group_topk) / static_cast<double>(groups);
  double none = 0;
  for (int64_t chosen = 0; chosen <= std::min(own, group_topk); ++chosen)
    none += choices(own, chosen) * choices(groups - own, group_topk - chosen) / choices(groups, group_topk) *
            none_of(static_cast<double>(chosen) * each, open, per_token);
  return count * (1 - none);
}

}  // namespace trinity
