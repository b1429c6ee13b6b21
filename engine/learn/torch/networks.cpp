#include "learn/torch/networks.h"

#include "learn/torch/attention.h"

namespace trinity {

PartitionNetImpl::PartitionNetImpl(const PartitionShape& shape) {
  using torch::nn::Linear;
  if (shape.types > 0)
    embedding_ =
        register_module("embedding", torch::nn::Embedding(shape.types, PartitionShape::kTypeWidth));
  first_ = register_module("first", Linear(shape.input(), PartitionShape::kFirst));
  if (!shape.linear)
    second_ = register_module("second", Linear(PartitionShape::kFirst, PartitionShape::kSecond));
  out_ = register_module("out", Linear(shape.last(), shape.groups));
}

torch::Tensor PartitionNetImpl::forward(const torch::Tensor& types, const torch::Tensor& features,
                                        const torch::Tensor& mask, const torch::Tensor& prior) {
  auto x = first_(embedding_ ? torch::cat({embedding_(types), features}, 1) : features);
  if (second_) x = torch::relu(x);
  if (mask.defined()) x = x * mask;
  if (second_) x = torch::relu(second_(x));
  auto logits = out_(x);
  if (prior.defined()) logits = logits + prior;
  return torch::log_softmax(logits, 1);
}

ScheduleNetImpl::ScheduleNetImpl(const ScheduleShape& shape)
    : devices_(shape.devices),
      temperature_(shape.temperature),
      tanh_constant_(shape.tanh_constant) {
  constexpr int64_t kDeviceWidth = ScheduleShape::kDeviceWidth;
  const int64_t width = shape.wide();
  forward_ = register_module("forward", Lstm(shape.width, shape.hidden));
  backward_ = register_module("backward", Lstm(shape.width, shape.hidden));
  decoder_ = register_module("decoder", Lstm(kDeviceWidth, width));
  if (shape.layers > 1) {
    forward_2_ = register_module("forward_2", Lstm(width, shape.hidden));
    backward_2_ = register_module("backward_2", Lstm(width, shape.hidden));
    decoder_2_ = register_module("decoder_2", Lstm(width, width));
  }
  device_embedding_ =
      register_module("device_embedding", torch::nn::Embedding(devices_ + 1, kDeviceWidth));
  const auto linear = [](int64_t from, int64_t to) {
    return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(false));
  };
  memory_ = register_module("memory", linear(width, width));
  query_ = register_module("query", linear(width, width));
  score_ = register_module("score", linear(width, 1));
  out_ = register_module("out", linear(2 * width, devices_));
  if (!shape.stays) return;
  stay_ = register_parameter("stay", torch::zeros({}));
  previous_device_ = register_buffer(
      "previous_device", torch::cat({torch::eye(devices_), torch::zeros({1, devices_})}, 0));
}

ScheduleNetImpl::Encoded ScheduleNetImpl::encode(const torch::Tensor& groups) {
  auto x = groups.transpose(0, 1);  // [K, S, F]
  const auto zeros = torch::zeros({groups.size(0), forward_->hidden()}, groups.options());
  std::vector<torch::Tensor> states, cells;
  const auto layer = [&](Lstm& forward, Lstm& backward) {
    const auto ahead = forward->forward(x, zeros, zeros);
    const auto back = backward->forward(x.flip(0), zeros, zeros);
    states.push_back(torch::cat({ahead.hidden[-1], back.hidden[-1]}, 1));
    cells.push_back(torch::cat({ahead.cell, back.cell}, 1));
    x = torch::cat({ahead.hidden, back.hidden.flip(0)}, 2);
  };
  layer(forward_, backward_);
  if (forward_2_) layer(forward_2_, backward_2_);
  return {memory_(x.transpose(0, 1)), torch::cat(states, 1), torch::cat(cells, 1)};
}

torch::Tensor ScheduleNetImpl::decode(const torch::Tensor& x, torch::Tensor& state,
                                      torch::Tensor& cell) {
  const int64_t width = decoder_->hidden();
  const auto part = [&](const torch::Tensor& all, int64_t layer) {
    return all.narrow(1, layer * width, width);
  };
  const auto first = decoder_->forward(x, part(state, 0), part(cell, 0));
  if (!decoder_2_) {
    state = first.hidden[-1];
    cell = first.cell;
    return first.hidden;
  }
  const auto second = decoder_2_->forward(first.hidden, part(state, 1), part(cell, 1));
  state = torch::cat({first.hidden[-1], second.hidden[-1]}, 1);
  cell = torch::cat({first.cell, second.cell}, 1);
  return second.hidden;
}

/// hidden [S, T, 2H], memory [S, K, 2H], previous [S, T] to log-probabilities [S, T, D].
torch::Tensor ScheduleNetImpl::attend(const torch::Tensor& hidden, const torch::Tensor& memory,
                                      const torch::Tensor& previous, const torch::Tensor& prior) {
  const auto scores = additive_scores(query_(hidden), memory, score_->weight.squeeze(0));
  const auto weights = torch::softmax(scores, 2);
  const auto context = torch::bmm(weights, memory);
  auto logits = out_(torch::cat({hidden, context}, 2)) + prior;
  if (stay_.defined()) logits = logits + stay_ * torch::embedding(previous_device_, previous);
  return torch::log_softmax(tanh_constant_ * torch::tanh(logits / temperature_), 2);
}

torch::Tensor ScheduleNetImpl::evaluate(const Encoded& encoded, const torch::Tensor& devices,
                                        const torch::Tensor& prior) {
  const auto start = torch::full({devices.size(0), 1}, devices_, devices.options());
  const auto previous = torch::cat({start, devices.slice(1, 0, devices.size(1) - 1)}, 1);
  auto state = encoded.state, cell = encoded.cell;
  const auto hidden = decode(device_embedding_(previous).transpose(0, 1), state, cell);
  return attend(hidden.transpose(0, 1), encoded.memory, previous, prior);
}

torch::Tensor ScheduleNetImpl::step(const Encoded& encoded, const torch::Tensor& previous,
                                    torch::Tensor& state, torch::Tensor& cell,
                                    const torch::Tensor& prior) {
  const auto hidden = decode(device_embedding_(previous).unsqueeze(0), state, cell);
  return attend(hidden.transpose(0, 1), encoded.memory, previous.unsqueeze(1), prior.unsqueeze(1))
      .squeeze(1);
}

}  // namespace trinity
