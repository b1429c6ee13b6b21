// The pieces of the policy against LibTorch's own, and against hand-computed values.
#include "learn/torch/attention.h"
#include "learn/torch/lstm.h"
#include "learn/torch/networks.h"

#include <torch/nn/modules/rnn.h>

// LibTorch has a CHECK of its own, which ends the process.
#undef CHECK
#include <doctest/doctest.h>

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

TEST_CASE("two layers: drawing step by step says what evaluating all steps at once does") {
  torch::manual_seed(3);
  ScheduleShape shape{5, 4, 3, 6};
  shape.layers = 2;
  ScheduleNet net(shape);
  {
    torch::NoGradGuard no_grad;
    for (auto& weight : net->parameters()) weight.normal_(0, 0.3);
  }
  const auto encoded = net->encode(torch::randn({2, 5, 4}));
  CHECK(encoded.state.size(1) == 2 * shape.wide());
  const auto devices = torch::randint(3, {2, 5}, torch::kLong), prior = torch::zeros({2, 5, 3});
  const auto all = net->evaluate(encoded, devices, prior);
  auto state = encoded.state, cell = encoded.cell;
  auto previous = torch::full({2}, net->start_symbol(), torch::kLong);
  for (int64_t t = 0; t < 5; ++t) {
    const auto rows = net->step(encoded, previous, state, cell, prior.select(1, t));
    CHECK(torch::allclose(rows, all.select(1, t), 1e-5, 1e-6));
    previous = devices.select(1, t);
  }
  // Both layers matter: the second one's weights have a gradient.
  all.gather(2, devices.unsqueeze(2)).sum().backward();
  for (const auto* name : {"decoder_2.recurrent", "forward_2.recurrent", "backward_2.input.weight"})
    CHECK(net->named_parameters()[name].grad().abs().sum().item<double>() > 0);
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
    ScheduleNet net(shape);
    {
      torch::NoGradGuard no_grad;
      for (auto& weight : net->parameters()) weight.uniform_(-1, 1);
    }
    auto prior = torch::full({1, 3, devices}, -1e6);
    prior.select(2, 0).fill_(1e6);
    const auto p = torch::exp(net->evaluate(net->encode(torch::zeros({1, 3, 4})),
                                            torch::zeros({1, 3}, torch::kLong), prior));
    for (int64_t step = 0; step < 3; ++step)
      CHECK(p[0][step][0].item<double>() == doctest::Approx(bound).epsilon(1e-3));
  }
}
