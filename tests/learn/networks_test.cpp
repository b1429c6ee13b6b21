// The pieces of the policy against LibTorch's own, and against hand-computed values.
#include "learn/networks.h"
#include "learn/attention.h"
#include "learn/ppo.h"

// LibTorch has a CHECK of its own, which ends the process.
#undef CHECK
#include <doctest/doctest.h>

#include <cmath>

using namespace trinity;

TEST_CASE("our LSTM equals LibTorch's, forward and gradients") {
  torch::manual_seed(1);
  const int64_t steps = 7, samples = 3, input = 5, hidden = 4;
  Lstm ours(input, hidden);
  torch::nn::LSTM theirs(torch::nn::LSTMOptions(input, hidden));
  {
    torch::NoGradGuard no_grad;
    auto named = theirs->named_parameters();
    auto own = ours->named_parameters();
    own["recurrent"].copy_(named["weight_hh_l0"]);
    own["input.weight"].copy_(named["weight_ih_l0"]);
    own["input.bias"].copy_(named["bias_ih_l0"] + named["bias_hh_l0"]);
  }
  auto x = torch::randn({steps, samples, input}), y = x.clone();
  auto state = torch::randn({samples, hidden}), cell = torch::randn({samples, hidden});
  x.set_requires_grad(true);
  y.set_requires_grad(true);
  const auto a = ours->forward(x, state, cell);
  const auto [b, last] = theirs->forward(y, std::make_tuple(state.unsqueeze(0), cell.unsqueeze(0)));
  CHECK(torch::allclose(a.hidden, b, 1e-5, 1e-6));
  CHECK(torch::allclose(a.cell, std::get<1>(last).squeeze(0), 1e-5, 1e-6));
  const auto weight = torch::randn({steps, samples, hidden});
  ((a.hidden * weight).sum() + a.cell.sum()).backward();
  ((b * weight).sum() + std::get<1>(last).sum()).backward();
  CHECK(torch::allclose(x.grad(), y.grad(), 1e-4, 1e-5));
  CHECK(torch::allclose(ours->named_parameters()["recurrent"].grad(),
                        theirs->named_parameters()["weight_hh_l0"].grad(), 1e-4, 1e-5));
  CHECK(torch::allclose(ours->named_parameters()["input.weight"].grad(),
                        theirs->named_parameters()["weight_ih_l0"].grad(), 1e-4, 1e-5));
}

TEST_CASE("attention scores equal the plain formula, forward and gradients") {
  torch::manual_seed(2);
  std::vector<torch::Tensor> ours, plain;
  for (auto shape : std::vector<std::vector<int64_t>>{{2, 3, 6}, {2, 5, 6}, {6}}) {
    ours.push_back(torch::randn(shape).set_requires_grad(true));
    plain.push_back(ours.back().detach().clone().set_requires_grad(true));
  }
  const auto weight = torch::randn({2, 3, 5});
  const auto a = additive_scores(ours[0], ours[1], ours[2]);
  const auto b =
      torch::matmul(torch::tanh(plain[0].unsqueeze(2) + plain[1].unsqueeze(1)), plain[2]);
  CHECK(torch::allclose(a, b, 1e-5, 1e-6));
  (a * weight).sum().backward();
  (b * weight).sum().backward();
  for (size_t i = 0; i < 3; ++i)
    CHECK(torch::allclose(ours[i].grad(), plain[i].grad(), 1e-4, 1e-5));
}

TEST_CASE("decoding step by step and all at once give the same probabilities") {
  for (const double switching : {0.0, 0.2}) {
    ScheduleNet net(6, 3, 8, 10.0, 5.0);
    initialise(*net, 3, "test");
    if (switching > 0) net->start_staying(switching);
    torch::NoGradGuard no_grad;
    const auto groups = torch::randn({2, 5, 6});
    const auto devices = torch::randint(0, 3, {2, 5}, torch::kLong);
    const auto encoded = net->encode(groups);
    const auto together = net->evaluate(encoded, devices);
    auto state = encoded.state, cell = encoded.cell;
    auto previous = torch::full({2}, net->start_symbol(), torch::kLong);
    for (int64_t t = 0; t < 5; ++t) {
      const auto step = net->step(encoded, previous, state, cell);
      CHECK(torch::allclose(step, together.select(1, t), 1e-5, 1e-6));
      previous = devices.select(1, t);
    }
  }
}

TEST_CASE("an untrained schedule network leaves a device as often as it is told to") {
  ScheduleNet net(6, 4, 8, 10.0, 5.0);
  {
    torch::NoGradGuard no_grad;
    for (auto& weight : net->parameters()) weight.zero_();
  }
  net->start_staying(0.1);
  torch::NoGradGuard no_grad;
  const auto rows =
      net->evaluate(net->encode(torch::randn({1, 3, 6})), torch::tensor({{2, 2, 2}}, torch::kLong))
          .exp();
  CHECK(rows[0][0][0].item<double>() == doctest::Approx(0.25));  // nothing before the first
  CHECK(rows[0][1][2].item<double>() == doctest::Approx(0.9));
}

/// papers.md 8.2: clipped logits bound the largest probability.
TEST_CASE("the tanh constant bounds probabilities as computed by hand") {
  for (const auto& [constant, devices, bound] : {std::tuple{5.0, 2, 0.99995},
                                                 {5.0, 4, 0.99986},
                                                 {5.0, 8, 0.99968},
                                                 {1.0, 2, 0.881},
                                                 {1.0, 4, 0.711},
                                                 {1.0, 8, 0.514}}) {
    auto logits = torch::full({devices}, -1e6);
    logits[0] = 1e6;
    const auto p = torch::softmax(constant * torch::tanh(logits / 10.0), 0);
    CHECK(p[0].item<double>() == doctest::Approx(bound).epsilon(1e-3));
  }
}

TEST_CASE("the clipped objective of hand-computed ratios") {
  // Ratios 1.5, 0.5, 1.1; advantages +1 for the first sample, -2 for the second.
  const auto old = torch::log(torch::tensor({{0.2, 0.4, 0.1}, {0.2, 0.4, 0.1}}));
  const auto now = torch::log(torch::tensor({{0.3, 0.2, 0.11}, {0.3, 0.2, 0.11}}));
  const auto advantage = torch::tensor({{1.0}, {-2.0}});
  const auto objective = clipped_objective(now, old, advantage, 0.2);
  // min(r A, clip(r) A): 1.2, 0.5, 1.1; -3, -1.6, -2.2
  CHECK(objective.value.item<double>() == doctest::Approx((1.2 + 0.5 + 1.1 - 3 - 1.6 - 2.2) / 6));
  CHECK(objective.clipped.item<double>() == doctest::Approx(4.0 / 6));
}

TEST_CASE("ratios of impossible actions stay finite") {
  const auto objective = clipped_objective(torch::full({2, 3}, -1.0), torch::full({2, 3}, -400.0),
                                           torch::tensor({{1.0}, {-1.0}}), 0.2);
  CHECK(std::isfinite(objective.value.item<double>()));
}
