#include "search/placement/mcmc.h"

#include <cmath>

#include "search/placement/search_options.h"

namespace trinity {
namespace {

McmcOptions checked(const McmcOptions& options) {
  const auto expect = [](bool good, const char* what) {
    if (!good) throw ArgumentError("mcmc: expected {}", what);
  };
  expect(options.evaluations >= 1, "at least 1 evaluation");
  each_mcmc_option(options, OptionRanges{});
  expect(options.value_per_ms > 0 && std::isfinite(options.value_per_ms),
         "a positive value per millisecond");
  return options;
}

}  // namespace

Mcmc::Mcmc(const PlacementSpace& space, const McmcOptions& options)
    : Searcher(space, options.starts),
      options_(checked(options)),
      random_(options_.seed, "mcmc"),
      chain_{options_.evaluations} {}

double Mcmc::time_ms(const Score& score) const {
  return score.value / options_.value_per_ms + static_cast<double>(score.excess_memory_bytes) / 1e6;
}

void Mcmc::propose(int32_t, std::vector<Assignment>& trials) {
  if (space().devices() < 2) return;
  if (chain_.alpha == 0) chain_.alpha = MarkovChain::scale(options_.alpha_per_ms, chain_.best_cost);
  chain_.begin_proposal();
  auto trial = chain_.state;
  auto& device = trial[random_.below(trial.size())];
  const auto other =
      static_cast<int32_t>(random_.below(static_cast<uint64_t>(space().devices()) - 1));
  device = other < device ? other : other + 1;
  threshold_ms_ = chain_.cost + chain_.most_increase(1 - random_.uniform());
  trials.push_back(std::move(trial));
}

/// No limit if no placement of this speed fits: a slower trial may fit.
double Mcmc::limit() const {
  const double limit = threshold_ms_ * options_.value_per_ms;
  const bool fits = best()->fits() && best()->value <= limit;
  return fits ? limit : std::numeric_limits<double>::infinity();
}

void Mcmc::learn(std::span<const Assignment> trials, std::span<const Score> scores) {
  for (size_t i = 0; i < trials.size(); ++i) {
    const double ms = time_ms(scores[i]);
    if (chain_.proposals > 0 && ms > threshold_ms_) continue;
    chain_.state = trials[i];
    chain_.cost = ms;
    chain_.changed();
  }
}

}  // namespace trinity
