#include "learn/networks.h"

#include <algorithm>
#include <cmath>

#include "learn/attention.h"

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
      // The bias of an LSTM's gates: input, forget, cell, output.
      if (item.key().ends_with("input.bias")) std::fill(data + count / 4, data + count / 2, 1.0f);
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
  auto logits = out_(torch::relu(second_(x)));
  if (prior_.defined()) logits = logits + prior_;
  return torch::log_softmax(logits, 1);
}

void PartitionNetImpl::start_contiguous(const std::vector<double>& position, double contiguity) {
  const int64_t groups = out_->weight.size(0);
  prior_ = torch::empty({static_cast<int64_t>(position.size()), groups});
  float* out = prior_.data_ptr<float>();
  for (const double at : position) {
    for (int64_t g = 0; g < groups; ++g) {
      const double away = at * static_cast<double>(groups) - (static_cast<double>(g) + 0.5);
      *out++ = static_cast<float>(-contiguity * away * away);
    }
  }
}

ScheduleNetImpl::ScheduleNetImpl(int64_t features, int64_t devices, int64_t hidden,
                                 double temperature, double tanh_constant)
    : devices_(devices), temperature_(temperature), tanh_constant_(tanh_constant) {
  constexpr int64_t kDeviceWidth = 20;
  const int64_t width = 2 * hidden;
  forward_ = register_module("forward", Lstm(features, hidden));
  backward_ = register_module("backward", Lstm(features, hidden));
  decoder_ = register_module("decoder", Lstm(kDeviceWidth, width));
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
  const auto x = groups.transpose(0, 1);  // [K, S, F]
  const auto zeros = torch::zeros({groups.size(0), forward_->hidden()});
  const auto ahead = forward_->forward(x, zeros, zeros);
  const auto back = backward_->forward(x.flip(0), zeros, zeros);
  const auto hidden = torch::cat({ahead.hidden, back.hidden.flip(0)}, 2).transpose(0, 1);
  const int64_t last = x.size(0) - 1;
  return {memory_(hidden), torch::cat({ahead.hidden[last], back.hidden[last]}, 1),
          torch::cat({ahead.cell, back.cell}, 1)};
}

void ScheduleNetImpl::start_staying(double switch_probability) {
  const double others = static_cast<double>(devices_ - 1);
  const double odds =
      std::log((1 - switch_probability) * std::max(1.0, others) / switch_probability);
  const double reach = std::clamp(odds / tanh_constant_, -0.999, 0.999);
  stay_ = register_parameter("stay", torch::full({}, temperature_ * std::atanh(reach)));
  previous_device_ = torch::cat({torch::eye(devices_), torch::zeros({1, devices_})}, 0);
}

/// hidden [S, T, 2H], memory [S, K, 2H], previous [S, T] to log-probabilities [S, T, D].
torch::Tensor ScheduleNetImpl::attend(const torch::Tensor& hidden, const torch::Tensor& memory,
                                      const torch::Tensor& previous) {
  const auto scores = additive_scores(query_(hidden), memory, score_->weight.squeeze(0));
  const auto weights = torch::softmax(scores, 2);
  const auto context = torch::bmm(weights, memory);
  auto logits = out_(torch::cat({hidden, context}, 2));
  if (stay_.defined()) logits = logits + stay_ * torch::embedding(previous_device_, previous);
  return torch::log_softmax(tanh_constant_ * torch::tanh(logits / temperature_), 2);
}

torch::Tensor ScheduleNetImpl::evaluate(const Encoded& encoded, const torch::Tensor& devices) {
  const auto start = torch::full({devices.size(0), 1}, devices_, torch::kLong);
  const auto previous = torch::cat({start, devices.slice(1, 0, devices.size(1) - 1)}, 1);
  const auto decoded =
      decoder_->forward(device_embedding_(previous).transpose(0, 1), encoded.state, encoded.cell);
  return attend(decoded.hidden.transpose(0, 1), encoded.memory, previous);
}

torch::Tensor ScheduleNetImpl::step(const Encoded& encoded, const torch::Tensor& previous,
                                    torch::Tensor& state, torch::Tensor& cell) {
  const auto decoded = decoder_->forward(device_embedding_(previous).unsqueeze(0), state, cell);
  state = decoded.hidden[0];
  cell = decoded.cell;
  return attend(state.unsqueeze(1), encoded.memory, previous.unsqueeze(1)).squeeze(1);
}

}  // namespace trinity
