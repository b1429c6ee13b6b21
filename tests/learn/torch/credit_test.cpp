// Contributions of single choices, against simulations in which they differ; and a policy that
// learns from it.
#include "learn/credit.h"

#include <doctest/doctest.h>

#include <numeric>

#include "base/error.h"
#include "learn/torch/agent.h"
#include "support/two_chains.h"

using namespace trinity;

namespace {

double step_seconds(const Problem& problem, const std::vector<int32_t>& placement) {
  Simulator simulator(problem);
  Metrics metrics;
  simulator.run(placement, metrics);
  return metrics.step_time_s();
}

/// Rewards minus the step time by steps of `batches`; returns the last mean and the placements.
std::pair<double, std::vector<int32_t>> train_by_credit(
    const std::shared_ptr<const Problem>& problem, const AgentOptions& options, int batches,
    int threads) {
  ThreadPool pool(threads);
  Agent agent(problem, options, pool);
  double mean = 0;
  std::vector<int32_t> last;
  const auto n = static_cast<size_t>(problem->operators());
  const std::vector<RewardSlopes> slopes(static_cast<size_t>(options.samples), {-1, 0, 0});
  for (int batch = 0; batch < batches; ++batch) {
    const auto placements = agent.sample();
    last.assign(placements.begin(), placements.end());
    std::vector<double> rewards;
    for (size_t s = 0; s < slopes.size(); ++s)
      rewards.push_back(
          -step_seconds(*problem, {last.begin() + static_cast<std::ptrdiff_t>(s * n),
                                   last.begin() + static_cast<std::ptrdiff_t>((s + 1) * n)}));
    mean = std::accumulate(rewards.begin(), rewards.end(), 0.0) / options.samples;
    agent.update(rewards, {}, slopes);
  }
  return {-mean, last};
}

AgentOptions credit_options() {
  AgentOptions options;
  options.samples = 20;
  options.groups = 2;
  options.hidden = 16;
  options.contiguity = options.switch_probability = 0;
  options.action_credit = true;
  options.dealt = 0.98;
  options.schedule_learns = false;
  options.entropy_weight = 0.5;
  options.entropy_last = 0.01;
  options.entropy_updates = 60;
  return options;
}

}  // namespace

TEST_CASE("the change of a reward has the sign and about the size that a simulation gives") {
  const auto problem = test::two_chains(4);
  CreditEstimator estimator(*problem);
  // All on one device: moving a whole chain away saves nearly half of the step.
  const std::vector<int32_t> one(9, 0), chain_of = {0, 0, 0, 0, 1, 1, 1, 1, 2};
  estimator.observe(one);
  std::vector<double> change(6);
  estimator.changes(chain_of, {-1, 0, 0}, change);
  CHECK(change[0] == 0);
  CHECK(change[2] == 0);
  const std::vector<int32_t> split = {0, 0, 0, 0, 1, 1, 1, 1, 0};
  const double saved = step_seconds(*problem, one) - step_seconds(*problem, split);
  CHECK(saved > 3e-3);
  CHECK(change[1 * 2 + 1] == doctest::Approx(saved).epsilon(0.5));
  // From there, taking one operator of a chain across costs.
  estimator.observe(split);
  std::vector<int32_t> every(9);
  std::iota(every.begin(), every.end(), 0);
  change.assign(18, 0);
  estimator.changes(every, {-1, 0, 0}, change);
  for (const size_t op : {size_t{1}, size_t{2}}) {
    auto moved = split;
    moved[op] = 1;
    CHECK(step_seconds(*problem, moved) > step_seconds(*problem, split));
    CHECK(change[op * 2 + 1] < 0);
  }
}

TEST_CASE("traffic counts the copies that a move adds and saves, exactly on two devices") {
  const auto problem = test::two_chains(2);
  CreditEstimator estimator(*problem);
  const std::vector<int32_t> placement = {0, 1, 0, 0, 0};
  estimator.observe(placement);
  const std::vector<int32_t> every = {0, 1, 2, 3, 4};
  std::vector<double> change(10);
  estimator.changes(every, {0, -1, 0}, change);
  CHECK(change[1 * 2 + 0] == doctest::Approx(1000000));  // both of its copies are saved
  CHECK(change[0 * 2 + 1] == doctest::Approx(500000));   // the copy to it
  CHECK(change[2 * 2 + 1] == doctest::Approx(-500000));  // one is added
}

TEST_CASE("a policy that learns from what every action contributes finds both chains") {
  const auto problem = test::two_chains(4);
  const double optimum = step_seconds(*problem, {0, 0, 0, 0, 1, 1, 1, 1, 0});
  const auto [mean, last] = train_by_credit(problem, credit_options(), 120, 2);
  CHECK(mean < 1.25 * optimum);
  CHECK(train_by_credit(problem, credit_options(), 20, 1).second ==
        train_by_credit(problem, credit_options(), 20, 2).second);
}

TEST_CASE("credit of actions refuses what it cannot be") {
  const auto problem = test::two_chains(2);
  ThreadPool pool(1);
  auto options = credit_options();
  options.ratio = Ratio::joint;
  CHECK_THROWS_AS(Agent(problem, options, pool), ArgumentError);
  options = credit_options();
  Agent agent(problem, options, pool);
  agent.sample();
  CHECK_THROWS_AS(agent.update(std::vector<double>(20, 1.0)), ArgumentError);
}
