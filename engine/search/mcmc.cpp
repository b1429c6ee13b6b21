#include "search/mcmc.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace trinity {
namespace {

McmcOptions checked(McmcOptions options, const PlacementSpace& space) {
  const auto expect = [](bool good, const char* what) {
    if (!good) throw ArgumentError(fmt::format("mcmc: expected {}", what));
  };
  expect(options.evaluations >= 1, "at least 1 evaluation");
  expect(options.alpha_per_ms >= 0 && std::isfinite(options.alpha_per_ms), "alpha of at least 0");
  expect(options.value_per_ms > 0 && std::isfinite(options.value_per_ms),
         "a positive value per millisecond");
  if (options.starts.empty()) options.starts.emplace_back(static_cast<size_t>(space.units()), 0);
  for (const auto& start : options.starts) space.check(start);
  return options;
}

}  // namespace

Mcmc::Mcmc(const PlacementSpace& space, McmcOptions options)
    : Searcher(space),
      options_(checked(std::move(options), space)),
      random_(options_.seed, "mcmc") {}

double Mcmc::time_ms(const Score& score) const {
  return score.value / options_.value_per_ms + static_cast<double>(score.excess_memory_bytes) / 1e6;
}

void Mcmc::propose(int32_t most, std::vector<Assignment>& trials) {
  if (started_ < options_.starts.size()) {
    while (static_cast<int32_t>(trials.size()) < most && started_ < options_.starts.size())
      trials.push_back(options_.starts[started_++]);
    return;
  }
  if (space().devices() < 2) return;
  if (options_.stop_early && 2 * (proposals_ - last_improvement_) > options_.evaluations) return;
  if (alpha_per_ms_ == 0) {
    const double start_ms = std::abs(fastest_ms_);
    alpha_per_ms_ = options_.alpha_per_ms > 0 ? options_.alpha_per_ms
                    : start_ms > 0            ? 100 / start_ms
                                              : 1;
  }
  const int64_t interval = std::clamp<int64_t>(options_.evaluations / 100, 1, 1000);
  if (proposals_++ % interval == 0) {
    state_ = fastest_;
    state_ms_ = fastest_ms_;
    state_fits_ = fastest_fits_;
  }
  auto trial = state_;
  auto& device = trial[random_.below(trial.size())];
  const auto other =
      static_cast<int32_t>(random_.below(static_cast<uint64_t>(space().devices()) - 1));
  device = other < device ? other : other + 1;
  threshold_ms_ = state_ms_ - std::log(1 - random_.uniform()) / alpha_per_ms_;
  trials.push_back(std::move(trial));
}

/// A start's own scores are needed, and beyond memory a slower trial may win by its excess.
double Mcmc::limit() const {
  if (proposals_ == 0 || !state_fits_) return std::numeric_limits<double>::infinity();
  return threshold_ms_ * options_.value_per_ms;
}

void Mcmc::learn(std::span<const Assignment> trials, std::span<const Score> scores) {
  for (size_t i = 0; i < trials.size(); ++i) {
    const double ms = time_ms(scores[i]);
    if (fastest_.empty() || ms < fastest_ms_) {
      fastest_ = trials[i];
      fastest_ms_ = ms;
      fastest_fits_ = scores[i].fits();
      last_improvement_ = proposals_;
    }
    if (proposals_ > 0 && ms <= threshold_ms_) {
      state_ = trials[i];
      state_ms_ = ms;
      state_fits_ = scores[i].fits();
    }
  }
}

}  // namespace trinity
