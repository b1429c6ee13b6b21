// The pieces of the policy against LibTorch's own, and against hand-computed values.
#include "learn/torch/networks.h"
#include "learn/torch/attention.h"
#include "learn/torch/recurrence.h"

#include <torch/nn/modules/rnn.h>

#include <cmath>

// LibTorch has a CHECK of its own, which ends the process.
#undef CHECK
#include <doctest/doctest.h>

using namespace trinity;

namespace {

PolicyWeights random_weights(const ScheduleShape& shape, double deviation) {
  Parameters parameters;
  add_schedule_weights(shape, parameters);
  PolicyWeights weights(parameters, torch::kCPU);
  weights.values.normal_(0, deviation);
  return weights;
}

}  // namespace

TEST_CASE("our LSTM equals LibTorch's in two directions, forward and gradients") {
  torch::manual_seed(1);
  const int64_t steps = 7, samples = 3, input = 5, hidden = 4;
  torch::nn::LSTM theirs(torch::nn::LSTMOptions(input, hidden).bidirectional(true));
  auto named = theirs->named_parameters();
  const auto x = torch::randn({steps, samples, input}).requires_grad_();
  const auto state = torch::randn({2, samples, hidden}).requires_grad_();
  const auto cell = torch::randn({2, samples, hidden}).requires_grad_();
  const auto gates = [&](const torch::Tensor& from, const std::string& suffix) {
    return torch::linear(from, named["weight_ih_l0" + suffix],
                         named["bias_ih_l0" + suffix] + named["bias_hh_l0" + suffix]);
  };
  const auto ours = lstm(torch::stack({gates(x, ""), gates(x.flip(0), "_reverse")}), state, cell,
                         torch::stack({named["weight_hh_l0"], named["weight_hh_l0_reverse"]}));
  const auto both = torch::cat({ours[0][0], ours[0][1].flip(0)}, 2);
  const auto [expected, last] = theirs->forward(x, std::make_tuple(state, cell));
  CHECK(torch::allclose(both, expected, 1e-5, 1e-6));
  CHECK(torch::allclose(ours[1], std::get<1>(last), 1e-5, 1e-6));
  const auto weight = torch::randn_like(both), of_cell = torch::randn_like(ours[1]);
  const torch::autograd::variable_list inputs = {x,
                                                 state,
                                                 cell,
                                                 named["weight_hh_l0"],
                                                 named["weight_hh_l0_reverse"],
                                                 named["weight_ih_l0_reverse"]};
  const auto a = torch::autograd::grad({(both * weight).sum() + (ours[1] * of_cell).sum()}, inputs);
  const auto b = torch::autograd::grad(
      {(expected * weight).sum() + (std::get<1>(last) * of_cell).sum()}, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) CHECK(torch::allclose(a[i], b[i], 1e-4, 1e-5));
}

TEST_CASE("attention scores equal the plain formula, forward and gradients") {
  torch::manual_seed(2);
  for (const double size : {1.0, 5.0}) {  // the larger saturate
    torch::autograd::variable_list inputs;
    for (auto shape : std::vector<std::vector<int64_t>>{{2, 3, 6}, {2, 5, 6}, {6}})
      inputs.push_back((size * torch::randn(shape)).requires_grad_());
    const auto &query = inputs[0], &memory = inputs[1], &v = inputs[2];
    const auto a = additive_scores(query, memory, doubled_exponential(memory.detach()), v);
    const auto b = torch::matmul(torch::tanh(query.unsqueeze(2) + memory.unsqueeze(1)), v);
    CHECK(torch::allclose(a, b, 1e-5, 1e-5));
    const auto weight = torch::randn({2, 3, 5});
    const auto ours = torch::autograd::grad({(a * weight).sum()}, inputs);
    const auto plain = torch::autograd::grad({(b * weight).sum()}, inputs);
    for (size_t i = 0; i < 3; ++i) CHECK(torch::allclose(ours[i], plain[i], 1e-4, 2e-5));
  }
}

TEST_CASE("drawing step by step says what evaluating all steps at once does") {
  torch::manual_seed(3);
  for (const int64_t layers : {1, 2}) {
    ScheduleShape shape{5, 4, 3, 6};
    shape.layers = layers;
    shape.stays = true;
    const auto weights = random_weights(shape, 0.3);
    const ScheduleNet net(shape, weights);
    const auto groups = torch::randn({5, 2, 4});
    auto encoded = net.encode(groups);
    const auto prior = torch::randn({2, 5, 3});
    const auto [devices, rows] = net.sample(
        encoded, prior, [](int64_t s, int64_t t, const float*) { return (s + t * t) % 3; });
    CHECK(devices[1][2].item<int64_t>() == 2);
    const auto leaves = weights.leaves("schedule");
    torch::autograd::variable_list before;
    const auto again = net.encode(groups);
    for (const auto* from : {static_cast<const ScheduleNet::Encoded*>(&encoded), &again}) {
      const auto all = net.log_probabilities(net.logits(*from, devices), prior);
      CHECK(torch::allclose(rows, all, 1e-5, 1e-6));
      const auto slopes =
          torch::autograd::grad({all.gather(2, devices.unsqueeze(2)).sum()}, leaves);
      for (size_t i = 0; i < slopes.size(); ++i) {
        CHECK(slopes[i].abs().sum().item<double>() > 0);  // all weights matter
        if (!before.empty()) CHECK(torch::allclose(slopes[i], before[i], 1e-4, 1e-6));
      }
      before = slopes;
    }
  }
}

/// papers/notes.md "Trinity: equations": clipped logits bound the largest probability.
TEST_CASE("the tanh constant bounds probabilities as computed by hand") {
  for (const auto& [constant, devices, bound] : {std::tuple{5.0, 2, 0.99995},
                                                 {5.0, 4, 0.99986},
                                                 {5.0, 8, 0.99968},
                                                 {1.0, 2, 0.881},
                                                 {1.0, 4, 0.711},
                                                 {1.0, 8, 0.514}}) {
    ScheduleShape shape{.groups = 3, .width = 4, .devices = devices, .hidden = 2};
    shape.tanh_constant = constant;
    const auto weights = random_weights(shape, 0.5);
    const ScheduleNet net(shape, weights);
    auto prior = torch::full({1, 3, devices}, -1e6);
    prior.select(2, 0).fill_(1e6);
    const auto logits =
        net.logits(net.encode(torch::zeros({3, 1, 4})), torch::zeros({1, 3}, torch::kLong));
    const auto p = torch::exp(net.log_probabilities(logits, prior));
    for (int64_t step = 0; step < 3; ++step)
      CHECK(p[0][step][0].item<double>() == doctest::Approx(bound).epsilon(1e-3));
  }
}

TEST_CASE("Adam's steps follow its paper, uphill") {
  Parameters parameters;
  parameters.add("x", {9});
  PolicyWeights weights(parameters, torch::kCPU);
  std::vector<double> x(9, 0), first(9, 0), second(9, 0);
  for (int t = 1; t <= 5; ++t) {
    const auto gradient = torch::randn({9});
    weights.ascend(gradient, 0.01);
    for (int64_t i = 0; i < 9; ++i) {
      const double g = gradient[i].item<double>();
      first[i] = 0.9 * first[i] + 0.1 * g;
      second[i] = 0.999 * second[i] + 0.001 * g * g;
      x[i] += 0.01 * first[i] / (1 - std::pow(0.9, t)) /
              (std::sqrt(second[i] / (1 - std::pow(0.999, t))) + 1e-8);
      CHECK(weights["x"][i].item<double>() == doctest::Approx(x[i]).epsilon(1e-4));
    }
  }
}
