// The policy's own passes against LibTorch's operators and autograd, under every option that
// changes them.
#include <doctest/doctest.h>

#include <cmath>

#include "base/error.h"
#include "learn/agent_impl.h"
#include "support/build.h"
#include "support/needs_torch.h"

using namespace trinity;

namespace {

/// A layered random graph with several types and a colocated pair.
std::shared_ptr<const Problem> small_problem(int devices, int operators = 24) {
  test::GraphMaker make("small");
  RandomStream random(7, "small");
  for (int i = 0; i < operators; ++i) {
    const int op = make.op("op" + std::to_string(i), 1e-3 * (1 + random.uniform()));
    if (i > 0) make.edge(static_cast<int>(random.below(static_cast<uint64_t>(i))), op, 100000);
    if (i > 3) make.edge(i - 3, op, 50000);
  }
  make.colocate(2, 5);
  return std::make_shared<const Problem>(make.share(), test::uniform_cluster(devices, 1e9, 1e-6),
                                         SimulationRules{});
}

AgentOptions small_options() {
  AgentOptions options;
  options.hidden = 12;
  options.samples = 7;
  options.epochs = 3;
  options.groups = 9;
  options.features.node2vec.dimensions = 8;
  options.features.node2vec.walks_per_node = 2;
  return options;
}

std::vector<double> some_rewards(int32_t count) {
  std::vector<double> rewards;
  for (int32_t i = 0; i < count; ++i) rewards.push_back(std::sin(1.7 * i));
  return rewards;
}

/// Largest difference of two arrays, relative to the largest entry.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0, scale = 1e-12;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    scale = std::max(scale, std::abs(static_cast<double>(b[i])));
  }
  return most / scale;
}

/// One batch and one update by both implementations: actions, log-probabilities and gradients of
/// every epoch must agree.
void compare_with_torch(const AgentOptions& options, int devices) {
  const auto problem = small_problem(devices);
  ThreadPool pool(2);
  AgentOptions plain_options = options;
  plain_options.plain_torch = true;
  Agent::Impl own(problem, options, pool), plain(problem, plain_options, pool);
  own.sample();
  plain.sample();
  CHECK(own.group_of == plain.group_of);
  CHECK(own.devices == plain.devices);
  CHECK(distance(own.old_group, plain.old_group) < 1e-5);
  CHECK(distance(own.old_device, plain.old_device) < 1e-5);
  const std::vector<uint8_t> all(static_cast<size_t>(options.samples), 1);
  const auto rewards = some_rewards(options.samples);
  std::vector<double> advantage;
  for (const double reward : rewards) advantage.push_back(reward - 0.1);
  for (int32_t epoch = 0; epoch < 3; ++epoch) {
    UpdateReport first, second;
    own.epoch(epoch, advantage, all, first);
    plain.epoch(epoch, advantage, all, second);
    CHECK(distance(own.gradient, plain.gradient) < 2e-4);
    CHECK(first.gradient_norm == doctest::Approx(second.gradient_norm).epsilon(1e-4));
    CHECK(first.entropy_devices == doctest::Approx(second.entropy_devices).epsilon(1e-5));
    CHECK(first.entropy_groups == doctest::Approx(second.entropy_groups).epsilon(1e-5));
    CHECK(first.loss == doctest::Approx(second.loss).epsilon(1e-3));
    // Adam's first steps have the size of the rate whatever the gradient: go on from equal weights.
    plain.parameters.values = own.parameters.values;
    plain.adam = own.adam;
    plain.pack();
  }
}

}  // namespace

TEST_CASE("our passes equal LibTorch's operators and autograd" * test::needs_torch) {
  auto options = small_options();
  SUBCASE("defaults") {}
  SUBCASE("four devices, one group a unit") { options.groups = 4096; }
  SUBCASE("one group") { options.groups = 1; }
  SUBCASE("a start that knows nothing") {
    options.contiguity = options.switch_probability = 0;
    options.order_groups = false;
  }
  SUBCASE("the paper's features") {
    options.features.raw_output = options.features.adjacency_out = true;
    options.features.group_time = false;
  }
  SUBCASE("joint ratio") { options.ratio = Ratio::joint; }
  SUBCASE("ratios of groups") { options.ratio = Ratio::group_mean; }
  SUBCASE("dropout, a mask a batch") { options.dropout = 0.3; }
  SUBCASE("dropout, a mask a sample") {
    options.dropout = 0.3;
    options.dropout_mask = DropoutMask::sample;
  }
  SUBCASE("dropout, fresh masks") {
    options.dropout = 0.3;
    options.dropout_mask = DropoutMask::fresh;
  }
  SUBCASE("dropout while sampling only") {
    options.dropout = 0.3;
    options.dropout_mask = DropoutMask::off;
  }
  SUBCASE("the released code's networks and features") {
    const auto code = AgentOptions::code();
    options.linear_partition = true;
    options.temperature = options.tanh_constant = 1;
    options.features.type_index = options.features.scale_by_mean = true;
    options.features.group_counts = true;
    options.noise_amplitude = 0.1;
    options.noise_steps = 10;
    CHECK(code.linear_partition);
  }
  compare_with_torch(options, options.groups == 4096 ? 4 : 2);
}

TEST_CASE("an untrained schedule network leaves a device as often as it is told to") {
  const auto problem = small_problem(4);
  ThreadPool pool(1);
  auto options = small_options();
  options.switch_probability = 0.1;
  Agent::Impl agent(problem, options, pool);
  const float stay = *agent.parameters.data("schedule.stay");
  std::fill(agent.parameters.values.begin(), agent.parameters.values.end(), 0.0f);
  *agent.parameters.data("schedule.stay") = stay;
  agent.pack();
  agent.sample();
  const auto& pass = agent.passes[0];
  CHECK(std::exp(static_cast<double>(pass.log_probability[0])) == doctest::Approx(0.25));
  const auto next = static_cast<size_t>(4 + pass.devices[0]);
  CHECK(std::exp(static_cast<double>(pass.log_probability[next])) == doctest::Approx(0.9));
}

TEST_CASE("the learning rate decays in steps, the baseline moves as often as told") {
  const auto problem = small_problem(2);
  ThreadPool pool(1);
  auto options = small_options();
  options.learning_rate = 0.01;
  options.learning_rate_decay = 0.5;
  options.decay_after = 4;
  options.decay_every = 2;
  options.baseline_every_epoch = true;
  options.baseline_n = 3;
  Agent agent(problem, options, pool);
  std::vector<double> rates, zeros(7, 0.0), ones(7, 1.0);
  for (int i = 0; i < 4; ++i) {
    agent.sample();
    const auto report = agent.update(i == 0 ? zeros : ones);
    rates.push_back(report.learning_rate);
    // Three epochs a batch, each halving the way to the mean reward.
    if (i == 1) CHECK(report.baseline == doctest::Approx(1 - 1.0 / 8));
  }
  // The last epochs of the batches are gradient steps 3, 6, 9 and 12, after 2, 5, 8 and 11 others.
  CHECK(rates == std::vector<double>{0.01, 0.01, 0.0025, 0.00125});
}

TEST_CASE("failing samples are left out only after the steps that the option says") {
  const auto problem = small_problem(2);
  ThreadPool pool(1);
  auto options = small_options();
  options.exclude_failing_after = 3;
  Agent agent(problem, options, pool);
  std::vector<double> rewards(7, 1.0);
  rewards[2] = -20;
  std::vector<uint8_t> failing(7, 0);
  failing[2] = 1;
  agent.sample();
  CHECK(agent.update(rewards, failing).mean_reward == doctest::Approx(-2));
  agent.sample();
  CHECK(agent.update(rewards, failing).mean_reward == doctest::Approx(1));
  agent.sample();
  CHECK_THROWS_AS(agent.update(rewards, std::vector<uint8_t>(3, 0)), ArgumentError);
}

TEST_CASE("a policy draws what it imitates, and nearly") {
  const auto problem = small_problem(3, 60);
  ThreadPool pool(2);
  auto options = small_options();
  options.groups = 12;
  options.hidden = 32;
  Agent agent(problem, options, pool);
  std::vector<int32_t> target;
  for (int i = 0; i < 60; ++i) target.push_back(i == 5 ? 0 : (i / 7) % 3);
  const auto report = agent.imitate(target, {}, ImitationOptions{});
  CHECK(report.agreement > 0.99);
  CHECK(agent.greedy() == target);
  const auto drawn = agent.sample();
  double same = 0;
  for (size_t i = 0; i < drawn.size(); ++i) same += drawn[i] == target[i % 60] ? 1 : 0;
  CHECK(same / static_cast<double>(drawn.size()) > 0.75);
  agent.update(some_rewards(7));

  auto apart = target;
  apart[2] = 1;  // shares its device with operator 5
  CHECK_THROWS_WITH_AS(agent.imitate(apart, {}, {}), doctest::Contains("share a device"),
                       ArgumentError);
  target[0] = 3;
  CHECK_THROWS_AS(agent.imitate(target, {}, {}), ArgumentError);
  target.pop_back();
  CHECK_THROWS_AS(agent.imitate(target, {}, {}), ArgumentError);
}

TEST_CASE("several placements are imitated in proportion to their weights") {
  const auto problem = small_problem(2, 40);
  ThreadPool pool(2);
  auto options = small_options();
  options.hidden = 32;
  options.samples = 40;
  Agent agent(problem, options, pool);
  std::vector<int32_t> two;
  for (int i = 0; i < 40; ++i) two.push_back(i < 20 ? 0 : 1);
  for (int i = 0; i < 40; ++i) two.push_back(i < 20 ? 1 : 0);
  ImitationOptions how;
  how.steps = 80;
  agent.imitate(two, std::vector<double>{3, 1}, how);
  const auto drawn = agent.sample();
  int first = 0, either = 0;
  for (size_t s = 0; s < 40; ++s) {
    const auto sample = drawn.subspan(s * 40, 40);
    int like = 0;
    for (size_t i = 0; i < 40; ++i) like += sample[i] == two[i] ? 1 : 0;
    first += like > 30 ? 1 : 0;
    either += like > 30 || like < 10 ? 1 : 0;
  }
  CHECK(either > 25);
  CHECK(first > either / 2);
  CHECK(first < either);
}
