// The policy's gradients, and what its options do.
#include "learn/torch/agent_impl.h"

// LibTorch has a CHECK of its own, which ends the process.
#undef CHECK
#include <doctest/doctest.h>

#include <cmath>

#include "base/error.h"
#include "support/build.h"

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

/// The objective that a gradient step raises, at the present weights.
double objective_of(Agent::Impl& agent, const torch::Tensor& advantage) {
  agent.weights_changed();
  agent.forward();
  const torch::NoGradGuard no_grad;
  const auto by_unit = agent.taken_groups(), by_group = agent.taken_devices();
  double devices_entropy = 0;
  for (const auto& shard : agent.shards)
    devices_entropy += entropy(shard.rows).item<double>() * static_cast<double>(shard.count);
  return agent.objective(by_unit, by_group, advantage, torch::ones_like(advantage))
             .value.item<double>() +
         agent.entropy_weight() *
             (entropy(agent.unit_rows).item<double>() + devices_entropy / agent.samples);
}

/// The gradient of an epoch against differences of the objective along it.
void check_gradient(const AgentOptions& options, int devices) {
  ThreadPool pool(2);
  Agent::Impl agent(small_problem(devices), options, pool);
  agent.sample();
  const auto advantage = torch::tensor(some_rewards(options.samples), torch::kDouble) - 0.1;
  UpdateReport report;
  for (int i = 0; i < 2; ++i) agent.epoch(advantage, torch::ones_like(advantage), report);
  const double loss = report.loss;
  const auto before = agent.weights.values.clone();
  agent.epoch(advantage, torch::ones_like(advantage), report);
  CHECK(report.loss != loss);
  const torch::NoGradGuard no_grad;
  agent.weights.values.copy_(before);
  CHECK(-report.loss == doctest::Approx(objective_of(agent, advantage)).epsilon(1e-6));
  for (const bool schedule : {false, true}) {  // half of the gradient each
    auto along = agent.gradient.clone();
    const int64_t split =
        agent.layout.find(schedule ? "partition.out.bias" : "schedule.forward.recurrent").offset;
    (schedule ? along.narrow(0, 0, split) : along.narrow(0, split, along.numel() - split)).zero_();
    const double length = along.norm().item<double>(), step = 2e-3 / length;
    CHECK(length > 1e-4);
    agent.weights.values.copy_(before + step * along);
    const double above = objective_of(agent, advantage);
    agent.weights.values.copy_(before - step * along);
    const double below = objective_of(agent, advantage);
    CHECK((above - below) / (2 * step) == doctest::Approx(length * length).epsilon(2e-2));
  }
}

}  // namespace

TEST_CASE("the gradient is the slope of the objective, under every option that changes it") {
  auto options = small_options();
  options.samples = 12;  // two shards
  SUBCASE("defaults") {}
  SUBCASE("four devices, one group a unit") { options.groups = 4096; }
  SUBCASE("a start that knows nothing") {
    options.contiguity = options.switch_probability = 0;
    options.order_groups = false;
  }
  SUBCASE("the paper's features, two layers") {
    options.features.raw_output = options.features.adjacency_out = true;
    options.features.group_time = false;
    options.layers = 2;
  }
  SUBCASE("joint ratio") {
    options.ratio = Ratio::joint;
    options.learning_rate = 1e-4;  // the ratio of a sample stays within its bounds
  }
  SUBCASE("dropout") { options.dropout = 0.3; }
  SUBCASE("the released code's networks and features") {
    options.linear_partition = true;
    options.temperature = options.tanh_constant = 1;
    options.features.type_index = options.features.scale_by_mean = true;
    options.features.group_counts = true;
    options.noise_amplitude = 0.1;
    options.noise_steps = 10;
  }
  check_gradient(options, options.groups == 4096 ? 4 : 2);
}

TEST_CASE("two layers imitate, too") {
  ThreadPool pool(1);
  auto options = small_options();
  options.layers = 2;
  Agent agent(small_problem(2), options, pool);
  std::vector<int32_t> target;
  for (int i = 0; i < 24; ++i) target.push_back(i < 12 ? 0 : 1);
  CHECK(agent.imitate(target, {}, ImitationOptions{}).agreement > 0.99);
}

TEST_CASE("an untrained schedule network leaves a device with the probability of its option") {
  const auto problem = small_problem(4);
  ThreadPool pool(1);
  auto options = small_options();
  options.switch_probability = 0.1;
  Agent::Impl agent(problem, options, pool);
  const torch::NoGradGuard no_grad;
  const auto stay = agent.weights["schedule.stay"].clone();
  agent.weights.values.zero_();
  agent.weights["schedule.stay"].copy_(stay);
  agent.sample();
  const auto chances = agent.shards[0].rows.exp();
  CHECK(chances[0][0][0].item<double>() == doctest::Approx(0.25));
  const auto first = agent.shards[0].devices[0][0].item<int64_t>();
  CHECK(chances[0][1][first].item<double>() == doctest::Approx(0.9));
}

TEST_CASE("the learning rate decays in steps, the baseline moves as often as its option says") {
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

TEST_CASE("a policy samples what it imitates, or nearly that") {
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
  CHECK_THROWS_WITH_AS(agent.imitate(apart, {}, {}), doctest::Contains("not on the device"),
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
