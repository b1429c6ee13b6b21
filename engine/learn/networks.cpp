#include "learn/networks.h"

#include <cmath>

namespace trinity {

void initialise(torch::nn::Module& module, uint64_t seed, std::string_view name) {
  torch::NoGradGuard no_grad;
  uint64_t index = 0;
  for (auto& item : module.named_parameters()) {
    torch::Tensor& weight = item.value();
    RandomStream random(seed, name, index++);
    float* data = weight.data_ptr<float>();
    const int64_t count = weight.numel();
    if (weight.dim() < 2) {
      std::fill(data, data + count, 0.0f);
      // Gate order in LibTorch: input, forget, cell, output. One of the two biases suffices.
      if (item.key().find("bias_ih") != std::string::npos)
        std::fill(data + count / 4, data + count / 2, 1.0f);
      continue;
    }
    const double limit = std::sqrt(6.0 / static_cast<double>(weight.size(0) + weight.size(1)));
    for (int64_t i = 0; i < count; ++i)
      data[i] = static_cast<float>((2 * random.uniform() - 1) * limit);
  }
}

PartitionNetImpl::PartitionNetImpl(int64_t types, int64_t features, int64_t groups) {
  constexpr int64_t kTypeWidth = 20;
  embedding_ = register_module("embedding", torch::nn::Embedding(types, kTypeWidth));
  first_ = register_module("first", torch::nn::Linear(kTypeWidth + features, kHidden));
  second_ = register_module("second", torch::nn::Linear(kHidden, 128));
  out_ = register_module("out", torch::nn::Linear(128, groups));
}

torch::Tensor PartitionNetImpl::forward(const torch::Tensor& types, const torch::Tensor& features,
                                        const torch::Tensor& mask) {
  auto x = torch::relu(first_(torch::cat({embedding_(types), features}, 1)));
  if (mask.defined()) x = x * mask;
  return torch::log_softmax(out_(torch::relu(second_(x))), 1);
}

ScheduleNetImpl::ScheduleNetImpl(int64_t features, int64_t devices, int64_t hidden,
                                 double temperature, double tanh_constant)
    : devices_(devices), temperature_(temperature), tanh_constant_(tanh_constant) {
  constexpr int64_t kDeviceWidth = 20;
  const int64_t width = 2 * hidden;
  encoder_ = register_module(
      "encoder",
      torch::nn::LSTM(
          torch::nn::LSTMOptions(features, hidden).bidirectional(true).batch_first(true)));
  decoder_ = register_module(
      "decoder", torch::nn::LSTM(torch::nn::LSTMOptions(kDeviceWidth, width).batch_first(true)));
  device_embedding_ =
      register_module("device_embedding", torch::nn::Embedding(devices + 1, kDeviceWidth));
  const auto linear = [](int64_t from, int64_t to) {
    return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(false));
  };
  memory_ = register_module("memory", linear(width, width));
  query_ = register_module("query", linear(width, width));
  score_ = register_module("score", linear(width, 1));
  out_ = register_module("out", linear(2 * width, devices));
}

ScheduleNetImpl::Encoded ScheduleNetImpl::encode(const torch::Tensor& groups) {
  auto [hidden, last] = encoder_->forward(groups);
  const auto& [state, cell] = last;  // [2, S, H]: forward's end, backward's end
  return {memory_(hidden), torch::cat({state[0], state[1]}, 1), torch::cat({cell[0], cell[1]}, 1)};
}

/// hidden [S, T, 2H], memory [S, K, 2H] to log-probabilities [S, T, D].
torch::Tensor ScheduleNetImpl::attend(const torch::Tensor& hidden, const torch::Tensor& memory) {
  const auto mixed = torch::tanh(query_(hidden).unsqueeze(2) + memory.unsqueeze(1));
  const auto weights = torch::softmax(score_(mixed).squeeze(3), 2);
  const auto context = torch::bmm(weights, memory);
  const auto logits = out_(torch::cat({hidden, context}, 2));
  return torch::log_softmax(tanh_constant_ * torch::tanh(logits / temperature_), 2);
}

torch::Tensor ScheduleNetImpl::evaluate(const Encoded& encoded, const torch::Tensor& devices) {
  const auto start = torch::full({devices.size(0), 1}, devices_, torch::kLong);
  const auto previous = torch::cat({start, devices.slice(1, 0, devices.size(1) - 1)}, 1);
  const auto hidden =
      std::get<0>(decoder_->forward(device_embedding_(previous),
                                    std::make_tuple(encoded.state.unsqueeze(0),
                                                    encoded.cell.unsqueeze(0))));
  return attend(hidden, encoded.memory);
}

torch::Tensor ScheduleNetImpl::step(const Encoded& encoded, const torch::Tensor& previous,
                                    torch::Tensor& state, torch::Tensor& cell) {
  auto [hidden, last] =
      decoder_->forward(device_embedding_(previous).unsqueeze(1),
                        std::make_tuple(state.unsqueeze(0), cell.unsqueeze(0)));
  state = std::get<0>(last).squeeze(0);
  cell = std::get<1>(last).squeeze(0);
  return attend(hidden, encoded.memory).squeeze(1);
}

}  // namespace trinity
