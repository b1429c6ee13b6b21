#include "learn/torch/networks.h"

#include <cmath>

#include "base/error.h"
#include "base/stop.h"
#include "learn/torch/attention.h"

namespace trinity {
namespace {

constexpr const char* decoders[] = {"decoder", "decoder_2"};  // by layer

void add_lstm(Parameters& parameters, const std::string& name, int64_t input, int64_t hidden) {
  parameters.add(name + ".recurrent", {4 * hidden, hidden});
  parameters.add(name + ".input.weight", {4 * hidden, input});
  parameters.add(name + ".input.bias", {4 * hidden});
}

}  // namespace

PolicyWeights::PolicyWeights(const Parameters& parameters, torch::Device device)
    : values(torch::tensor(parameters.values).to(device)) {
  forget_moments();
  for (const auto& weight : parameters.weights()) {
    names_.push_back(weight.name);
    leaves_.push_back(
        values.narrow(0, weight.offset, weight.count).view(weight.shape).detach().requires_grad_());
  }
}

const torch::Tensor& PolicyWeights::operator[](std::string_view name) const {
  for (size_t i = 0; i < names_.size(); ++i)
    if (names_[i] == name) return leaves_[i];
  throw Error("the policy has no weight '{}'", name);
}

std::vector<torch::Tensor> PolicyWeights::leaves(std::string_view prefix) const {
  std::vector<torch::Tensor> found;
  for (size_t i = 0; i < names_.size(); ++i)
    if (names_[i].starts_with(prefix)) found.push_back(leaves_[i]);
  return found;
}

torch::Tensor PolicyWeights::gradient(std::string_view prefix,
                                      const torch::autograd::variable_list& outputs,
                                      const torch::autograd::variable_list& factors) const {
  const auto inputs = leaves(prefix);
  auto gradients = torch::autograd::grad(outputs, inputs, factors, false, false, true);
  for (size_t i = 0; i < inputs.size(); ++i)
    gradients[i] = gradients[i].defined() ? gradients[i].reshape(-1)
                                          : torch::zeros(inputs[i].numel(), inputs[i].options());
  return torch::cat(gradients);
}

void PolicyWeights::ascend(const torch::Tensor& gradient, double rate) {
  ++steps;
  const auto t = static_cast<double>(steps);
  first_moment.mul_(0.9).add_(gradient, 0.1);
  second_moment.mul_(0.999).addcmul_(gradient, gradient, 0.001);
  const auto root = (second_moment / (1 - std::pow(0.999, t))).sqrt_().add_(1e-8);
  values.addcdiv_(first_moment, root, rate / (1 - std::pow(0.9, t)));
}

void PolicyWeights::forget_moments() {
  first_moment = torch::zeros_like(values);
  second_moment = torch::zeros_like(values);
  steps = 0;
}

void add_partition_weights(const PartitionShape& shape, Parameters& parameters) {
  constexpr int64_t first = PartitionShape::kFirst, second = PartitionShape::kSecond;
  if (shape.types > 0)
    parameters.add("partition.embedding.weight", {shape.types, PartitionShape::kTypeWidth});
  parameters.add("partition.first.weight", {first, shape.type_width() + shape.features});
  parameters.add("partition.first.bias", {first});
  if (!shape.linear) {
    parameters.add("partition.second.weight", {second, first});
    parameters.add("partition.second.bias", {second});
  }
  parameters.add("partition.out.weight", {shape.groups, shape.last()});
  parameters.add("partition.out.bias", {shape.groups});
}

PartitionNet::PartitionNet(const PartitionShape& shape, const UnitFeatures& features,
                           const PolicyWeights& weights)
    : shape_(shape),
      weights_(weights),
      types_(torch::tensor(features.type, torch::kLong).to(weights.values.device())),
      values_(torch::tensor(features.values)
                  .view({shape.units, shape.features})
                  .to(weights.values.device())) {}

torch::Tensor PartitionNet::forward(const torch::Tensor& mask) const {
  auto x = values_;
  const auto layer = [&](const char* weight, const char* bias) {
    x = torch::linear(x, weights_[weight], weights_[bias]);
  };
  if (shape_.types > 0)
    x = torch::cat({torch::embedding(weights_["partition.embedding.weight"], types_), x}, 1);
  layer("partition.first.weight", "partition.first.bias");
  if (!shape_.linear) x = torch::relu(x);
  if (mask.defined()) x = x * mask;
  if (!shape_.linear) {
    layer("partition.second.weight", "partition.second.bias");
    x = torch::relu(x);
  }
  layer("partition.out.weight", "partition.out.bias");
  return torch::log_softmax(prior.defined() ? x + prior : x, 1);
}

void add_schedule_weights(const ScheduleShape& shape, Parameters& parameters) {
  const int64_t wide = shape.wide();
  if (shape.stays) parameters.add("schedule.stay", {});
  add_lstm(parameters, "schedule.forward", shape.width, shape.hidden);
  add_lstm(parameters, "schedule.backward", shape.width, shape.hidden);
  add_lstm(parameters, "schedule.decoder", ScheduleShape::kDeviceWidth, wide);
  if (shape.layers > 1) {
    add_lstm(parameters, "schedule.forward_2", wide, shape.hidden);
    add_lstm(parameters, "schedule.backward_2", wide, shape.hidden);
    add_lstm(parameters, "schedule.decoder_2", wide, wide);
  }
  parameters.add("schedule.device_embedding.weight",
                 {shape.devices + 1, ScheduleShape::kDeviceWidth});
  parameters.add("schedule.memory.weight", {wide, wide});
  parameters.add("schedule.query.weight", {wide, wide});
  parameters.add("schedule.score.weight", {1, wide});
  parameters.add("schedule.out.weight", {shape.devices, 2 * wide});
}

ScheduleNet::ScheduleNet(const ScheduleShape& shape, const PolicyWeights& weights)
    : shape_(shape),
      weights_(weights),
      previous_device_(torch::eye(shape.devices + 1, shape.devices, weights.values.options())) {}

/// x [..., input] to gates [..., 4H] of an LSTM, before their recurrent part.
torch::Tensor ScheduleNet::gates(const torch::Tensor& x, const std::string& lstm) const {
  return torch::linear(x, weights_["schedule." + lstm + ".input.weight"],
                       weights_["schedule." + lstm + ".input.bias"]);
}

torch::Tensor ScheduleNet::recurrent(const std::string& lstm) const {
  return weights_["schedule." + lstm + ".recurrent"];
}

/// x [K, S, input] to hidden states [K, S, 2H] of both directions; adds the last ones to `encoded`.
torch::Tensor ScheduleNet::encode_layer(const torch::Tensor& x, const std::string& suffix,
                                        Encoded& encoded) const {
  const auto both =
      torch::stack({gates(x, "forward" + suffix), gates(x, "backward" + suffix).flip(0)});
  const auto zeros = torch::zeros({2, x.size(1), shape_.hidden}, x.options());
  const auto made =
      lstm(both, zeros, zeros,
           torch::stack({recurrent("forward" + suffix), recurrent("backward" + suffix)}));
  const auto &ahead = made[0][0], &back = made[0][1];
  encoded.states.push_back(torch::cat({ahead[-1], back[-1]}, 1).unsqueeze(0));
  encoded.cells.push_back(torch::cat({made[1][0], made[1][1]}, 1).unsqueeze(0));
  return torch::cat({ahead, back.flip(0)}, 2);
}

ScheduleNet::Encoded ScheduleNet::encode(const torch::Tensor& groups) const {
  Encoded encoded;
  auto x = encode_layer(groups, "", encoded);
  if (shape_.layers > 1) x = encode_layer(x, "_2", encoded);
  encoded.memory = torch::linear(x.transpose(0, 1), weights_["schedule.memory.weight"]);
  encoded.exponential = doubled_exponential(encoded.memory.detach());
  return encoded;
}

/// hidden [S, T, 2H] of the decoder and the devices before [S, T] to logits [S, T, D].
torch::Tensor ScheduleNet::attend(const torch::Tensor& hidden, const Encoded& encoded,
                                  const torch::Tensor& previous) const {
  const auto query = torch::linear(hidden, weights_["schedule.query.weight"]);
  const auto scores = additive_scores(query, encoded.memory, encoded.exponential,
                                      weights_["schedule.score.weight"].squeeze(0));
  const auto context = torch::bmm(torch::softmax(scores, 2), encoded.memory);
  const auto u = torch::linear(torch::cat({hidden, context}, 2), weights_["schedule.out.weight"]);
  if (!shape_.stays) return u;
  return u + weights_["schedule.stay"] * torch::embedding(previous_device_, previous);
}

/// Input of the decoder's first layer after each device, and at the start: [D + 1, 8H].
torch::Tensor ScheduleNet::device_gates() const {
  return gates(weights_["schedule.device_embedding.weight"], "decoder");
}

torch::Tensor ScheduleNet::logits(const Encoded& encoded, const torch::Tensor& devices) const {
  const auto start = torch::full({devices.size(0), 1}, shape_.devices, devices.options());
  const auto previous = torch::cat({start, devices.narrow(1, 0, devices.size(1) - 1)}, 1);
  auto hidden = torch::embedding(device_gates(), previous.t()).unsqueeze(0);
  for (size_t l = 0; l < encoded.states.size(); ++l)
    hidden = lstm(l == 0 ? hidden : gates(hidden, decoders[l]), encoded.states[l], encoded.cells[l],
                  recurrent(decoders[l]).unsqueeze(0),
                  encoded.drawn.empty() ? nullptr : &encoded.drawn[l])[0];
  return attend(hidden.squeeze(0).transpose(0, 1), encoded, previous);
}

torch::Tensor ScheduleNet::log_probabilities(const torch::Tensor& logits,
                                             const torch::Tensor& prior) const {
  const auto squashed = torch::tanh((logits + prior) / shape_.temperature);
  return torch::log_softmax(shape_.tanh_constant * squashed, -1);
}

std::pair<torch::Tensor, torch::Tensor> ScheduleNet::sample(Encoded& encoded,
                                                            const torch::Tensor& prior,
                                                            const Choose& choose) const {
  const torch::NoGradGuard no_grad;
  const int64_t samples = prior.size(0), steps = shape_.groups, width = shape_.wide();
  const auto table = double_cell_gate(device_gates());
  std::vector<torch::Tensor> states, cells, weights;
  for (size_t l = 0; l < encoded.states.size(); ++l) {
    states.push_back(encoded.states[l].detach());
    cells.push_back(encoded.cells[l].detach());
    weights.push_back(double_cell_gate(recurrent(decoders[l]).t().contiguous()));
    encoded.drawn.emplace_back(torch::empty({1, steps, samples, 4 * width}, table.options()));
  }
  const auto devices = torch::empty({samples, steps}, torch::kLong);
  const auto rows = torch::empty({samples, steps, shape_.devices}, torch::kFloat);
  auto previous = torch::full({samples}, shape_.devices, torch::kLong);
  for (int64_t t = 0; t < steps; ++t) {
    poll_stop();
    const auto before = previous.to(table.device());
    for (size_t l = 0; l < states.size(); ++l) {
      const auto x = l == 0 ? torch::embedding(table, before)
                            : double_cell_gate(gates(states[0][0], decoders[l]));
      auto g = encoded.drawn[l].gates[0][t];
      torch::addmm_out(g, x, states[l][0], weights[l]);
      std::tie(states[l], cells[l]) = encoded.drawn[l].step(t, cells[l]);
    }
    const auto u = attend(states.back()[0].unsqueeze(1), encoded, before.unsqueeze(1));
    rows.select(1, t).copy_(log_probabilities(u.squeeze(1), prior.select(1, t)));
    previous = torch::empty({samples}, torch::kLong);
    for (int64_t s = 0; s < samples; ++s)
      previous.data_ptr<int64_t>()[s] =
          choose(s, t, rows.data_ptr<float>() + (s * steps + t) * shape_.devices);
    devices.select(1, t).copy_(previous);
  }
  return {devices, rows};
}

}  // namespace trinity
