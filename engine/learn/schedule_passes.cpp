#include "learn/schedule_passes.h"

#include <algorithm>
#include <cmath>

#include "base/stop.h"

namespace trinity {
namespace {

void add_lstm(Parameters& parameters, const std::string& name, int64_t input, int64_t hidden) {
  parameters.add(name + ".recurrent", {4 * hidden, hidden});
  parameters.add(name + ".input.weight", {4 * hidden, input});
  parameters.add(name + ".input.bias", {4 * hidden});
}

}  // namespace

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

ScheduleLayout::ScheduleLayout(const ScheduleShape& shape, const Parameters& parameters) {
  const auto at = [&](const char* name) { return parameters.find(name).offset; };
  forward = {at("schedule.forward.input.weight"), at("schedule.forward.input.bias"),
             at("schedule.forward.recurrent")};
  backward = {at("schedule.backward.input.weight"), at("schedule.backward.input.bias"),
              at("schedule.backward.recurrent")};
  decoder = {at("schedule.decoder.input.weight"), at("schedule.decoder.input.bias"),
             at("schedule.decoder.recurrent")};
  device_embedding = at("schedule.device_embedding.weight");
  memory = at("schedule.memory.weight");
  query = at("schedule.query.weight");
  score = at("schedule.score.weight");
  out = at("schedule.out.weight");
  if (shape.stays) stay = at("schedule.stay");
}

PackedSchedule::PackedSchedule(const ScheduleShape& shape, const ScheduleLayout& layout)
    : shape_(shape), layout_(layout) {
  const int64_t h = shape.hidden, wide = shape.wide(), w = shape.width, d = shape.devices;
  const auto transposed = [&](std::vector<float>& to, int64_t in, int64_t out, int64_t offset,
                              int64_t stride) { add(to, in, out, offset, 1, stride); };
  const auto plain = [&](std::vector<float>& to, int64_t out, int64_t in, int64_t offset,
                         int64_t stride) { add(to, out, in, offset, stride, 1); };
  transposed(decoder_recurrent, wide, 4 * wide, layout.decoder.recurrent, wide);
  plain(decoder_recurrent_back, 4 * wide, wide, layout.decoder.recurrent, wide);
  transposed(forward_input, w, 4 * h, layout.forward.input, w);
  transposed(backward_input, w, 4 * h, layout.backward.input, w);
  transposed(forward_recurrent, h, 4 * h, layout.forward.recurrent, h);
  transposed(backward_recurrent, h, 4 * h, layout.backward.recurrent, h);
  plain(forward_recurrent_back, 4 * h, h, layout.forward.recurrent, h);
  plain(backward_recurrent_back, 4 * h, h, layout.backward.recurrent, h);
  transposed(memory, wide, wide, layout.memory, wide);
  plain(memory_back, wide, wide, layout.memory, wide);
  transposed(query, wide, wide, layout.query, wide);
  plain(query_back, wide, wide, layout.query, wide);
  transposed(out_state, wide, d, layout.out, 2 * wide);
  plain(out_state_back, d, wide, layout.out, 2 * wide);
  transposed(out_context, wide, d, layout.out + wide, 2 * wide);
  plain(out_context_back, d, wide, layout.out + wide, 2 * wide);
  device_gates.resize(static_cast<size_t>((d + 1) * 4 * wide));
}

void PackedSchedule::add(std::vector<float>& to, int64_t depth, int64_t columns, int64_t offset,
                         int64_t row, int64_t column) {
  to.resize(static_cast<size_t>(kernels().packed_size(depth, columns)));
  items_.push_back({&to, depth, columns, offset, row, column});
}

void PackedSchedule::pack_piece(int piece, const float* weights) {
  if (piece < static_cast<int>(items_.size())) {
    const auto& item = items_[piece];
    kernels().pack(item.depth, item.columns, weights + item.offset, item.row, item.column,
                   item.to->data());
    return;
  }
  constexpr int64_t in = ScheduleShape::kDeviceWidth;
  const float *input = weights + layout_.decoder.input, *bias = weights + layout_.decoder.bias;
  const int64_t gates = 4 * shape_.wide();
  float* out = device_gates.data();
  for (int64_t d = 0; d <= shape_.devices; ++d) {
    const float* embedding = weights + layout_.device_embedding + d * in;
    for (int64_t g = 0; g < gates; ++g) {
      float sum = bias[g];
      for (int64_t i = 0; i < in; ++i) sum += input[g * in + i] * embedding[i];
      *out++ = sum;
    }
  }
}

SchedulePasses::SchedulePasses(const ScheduleShape& shape, const ScheduleLayout& layout,
                               const PackedSchedule& packed, int64_t samples)
    : shape_(shape), layout_(layout), packed_(packed), kernels_(kernels()), samples_(samples) {
  const int64_t h = shape.hidden, wide = shape.wide(), k = shape.groups, n = samples;
  const auto size = [](Buffer& buffer, int64_t count) {
    buffer.resize(static_cast<size_t>(count), 0.0f);
  };
  size(x_, rows() * shape.width);
  size(prior_, rows() * shape.devices);
  size(zeros_, n * wide);
  for (Direction* direction : {&forward_, &backward_}) {
    size(direction->gates, rows() * 4 * h);
    size(direction->cell, rows() * h);
    size(direction->tanh_cell, rows() * h);
  }
  size(encoded_, rows() * wide);
  size(memory_, rows() * wide);
  size(memory_exponential_, rows() * wide);
  size(packed_memory_, n * kernels_.packed_size(k, wide));
  size(gates_, rows() * 4 * wide);
  size(hidden_, (rows() + n) * wide);
  size(cell_, (rows() + n) * wide);
  size(tanh_cell_, rows() * wide);
  size(query_, rows() * wide);
  size(weight_, rows() * k);
  size(context_, rows() * wide);
  size(squashed_, rows() * shape.devices);
  size(probability_, rows() * shape.devices);
  size(log_probability, rows() * shape.devices);
  size(taken, rows());
  devices.resize(static_cast<size_t>(rows()), 0);
}

void SchedulePasses::groups_changed() {
  sparse_x_.assign(rows(), shape_.width, x_.data());
  Buffer transposed(x_.size());
  kernels_.transpose(rows(), shape_.width, x_.data(), shape_.width, transposed.data());
  sparse_x_transposed_.assign(shape_.width, rows(), transposed.data());
}

void SchedulePasses::encode_direction(Direction& direction, const float* bias, const Buffer& input,
                                      const Buffer& recurrent, bool reverse) {
  const int64_t h = shape_.hidden, wide = shape_.wide(), k = shape_.groups, n = samples_;
  float* gates = direction.gates.data();
  for (int64_t r = 0; r < rows(); ++r) std::copy(bias, bias + 4 * h, gates + r * 4 * h);
  kernels_.multiply_sparse(4 * h, sparse_x_.view(), input.data(), gates, 4 * h);
  float* hidden = encoded_.data() + (reverse ? h : 0);
  for (int64_t i = 0; i < k; ++i) {
    poll_stop();
    const int64_t t = reverse ? k - 1 - i : i, before = reverse ? t + 1 : t - 1;
    float* g = gates + t * n * 4 * h;
    if (i > 0)
      kernels_.multiply(n, 4 * h, h, hidden + before * n * wide, wide, 1, recurrent.data(), g,
                        4 * h);
    const float* cell_before = i > 0 ? direction.cell.data() + before * n * h : zeros_.data();
    kernels_.cell_forward(n, h, g, cell_before, direction.cell.data() + t * n * h,
                          direction.tanh_cell.data() + t * n * h, hidden + t * n * wide, wide);
  }
}

void SchedulePasses::encode(const float* weights) {
  const int64_t wide = shape_.wide(), k = shape_.groups, n = samples_;
  encode_direction(forward_, weights + layout_.forward.bias, packed_.forward_input,
                   packed_.forward_recurrent, false);
  encode_direction(backward_, weights + layout_.backward.bias, packed_.backward_input,
                   packed_.backward_recurrent, true);
  std::fill(memory_.begin(), memory_.end(), 0.0f);
  const int64_t packed_size = kernels_.packed_size(k, wide);
  for (int64_t s = 0; s < n; ++s) {
    float* memory = memory_.data() + s * k * wide;
    kernels_.multiply(k, wide, wide, encoded_.data() + s * wide, n * wide, 1, packed_.memory.data(),
                      memory, wide);
    kernels_.pack(k, wide, memory, wide, 1, packed_memory_.data() + s * packed_size);
  }
  kernels_.doubled_exponential(rows() * wide, memory_.data(), memory_exponential_.data());
  start_decoder();
}

void SchedulePasses::start_decoder() {
  const int64_t h = shape_.hidden, wide = shape_.wide(), n = samples_;
  const int64_t last = (shape_.groups - 1) * n;
  for (int64_t s = 0; s < n; ++s) {
    const float *ahead = encoded_.data() + (last + s) * wide, *back = encoded_.data() + s * wide;
    std::copy(ahead, ahead + h, hidden_.data() + s * wide);
    std::copy(back + h, back + wide, hidden_.data() + s * wide + h);
    const float* cell = forward_.cell.data() + (last + s) * h;
    std::copy(cell, cell + h, cell_.data() + s * wide);
    cell = backward_.cell.data() + s * h;
    std::copy(cell, cell + h, cell_.data() + s * wide + h);
  }
}

void SchedulePasses::decode_step(int64_t t) {
  const int64_t wide = shape_.wide(), n = samples_;
  float* gates = gates_.data() + t * n * 4 * wide;
  for (int64_t s = 0; s < n; ++s) {
    const float* start = packed_.device_gates.data() + previous(s, t) * 4 * wide;
    std::copy(start, start + 4 * wide, gates + s * 4 * wide);
  }
  const int64_t at = t * n * wide, next = at + n * wide;
  kernels_.multiply(n, 4 * wide, wide, hidden_.data() + at, wide, 1,
                    packed_.decoder_recurrent.data(), gates, 4 * wide);
  kernels_.cell_forward(n, wide, gates, cell_.data() + at, cell_.data() + next,
                        tanh_cell_.data() + at, hidden_.data() + next, wide);
}

/// Attention of steps [first, first + count) of a sample whose queries are known; these become
/// their doubled exponentials.
void SchedulePasses::attend(const float* weights, int64_t sample, int64_t first, int64_t count) {
  const int64_t wide = shape_.wide(), k = shape_.groups;
  const int64_t at = sample * k + first;
  float *weight = weight_.data() + at * k, *context = context_.data() + at * wide;
  float* query = query_.data() + at * wide;
  kernels_.doubled_exponential(count * wide, query, query);
  kernels_.attention_scores(count, k, wide, query, memory_exponential_.data() + sample * k * wide,
                            weights + layout_.score, weight);
  kernels_.softmax(count, k, weight);
  std::fill(context, context + count * wide, 0.0f);
  kernels_.multiply(count, wide, k, weight, k, 1,
                    packed_memory_.data() + sample * kernels_.packed_size(k, wide), context, wide);
}

/// From states and contexts to log-probabilities.
void SchedulePasses::finish_logits(const float* weights, int64_t sample, int64_t first,
                                   int64_t count) {
  const int64_t wide = shape_.wide(), k = shape_.groups, d = shape_.devices, n = samples_;
  const int64_t at = sample * k + first;
  float *squashed = squashed_.data() + at * d, *row = log_probability.data() + at * d;
  std::copy_n(prior_.data() + at * d, count * d, squashed);
  if (shape_.stays)
    for (int64_t t = 0; t < count; ++t)
      if (previous(sample, first + t) < d)
        squashed[t * d + previous(sample, first + t)] += weights[layout_.stay];
  kernels_.multiply(count, d, wide, hidden_.data() + ((first + 1) * n + sample) * wide, n * wide, 1,
                    packed_.out_state.data(), squashed, d);
  kernels_.multiply(count, d, wide, context_.data() + at * wide, wide, 1,
                    packed_.out_context.data(), squashed, d);
  kernels_.scaled_tanh(count * d, static_cast<float>(1 / shape_.temperature), squashed);
  const auto constant = static_cast<float>(shape_.tanh_constant);
  for (int64_t i = 0; i < count * d; ++i) row[i] = constant * squashed[i];
  kernels_.log_softmax(count, d, row, probability_.data() + at * d);
}

void SchedulePasses::sample(const float* weights, const Choose& choose) {
  const int64_t wide = shape_.wide(), k = shape_.groups, d = shape_.devices, n = samples_;
  encode(weights);
  std::fill(query_.begin(), query_.end(), 0.0f);
  for (int64_t t = 0; t < k; ++t) {
    poll_stop();
    decode_step(t);
    kernels_.multiply(n, wide, wide, hidden_.data() + (t + 1) * n * wide, wide, 1,
                      packed_.query.data(), query_.data() + t * wide, k * wide);
    for (int64_t s = 0; s < n; ++s) {
      attend(weights, s, t, 1);
      finish_logits(weights, s, t, 1);
      const auto at = static_cast<size_t>(s * k + t);
      const float* row = log_probability.data() + at * static_cast<size_t>(d);
      devices[at] = choose(s, t, row);
      taken[at] = row[devices[at]];
    }
  }
}

void SchedulePasses::evaluate(const float* weights) {
  const int64_t wide = shape_.wide(), k = shape_.groups, d = shape_.devices, n = samples_;
  encode(weights);
  for (int64_t t = 0; t < k; ++t) {
    poll_stop();
    decode_step(t);
  }
  std::fill(query_.begin(), query_.end(), 0.0f);
  for (int64_t s = 0; s < n; ++s) {
    poll_stop();
    kernels_.multiply(k, wide, wide, hidden_.data() + (n + s) * wide, n * wide, 1,
                      packed_.query.data(), query_.data() + s * k * wide, wide);
    attend(weights, s, 0, k);
    finish_logits(weights, s, 0, k);
  }
  for (size_t at = 0; at < taken.size(); ++at)
    taken[at] = log_probability[at * static_cast<size_t>(d) + static_cast<size_t>(devices[at])];
}

std::vector<double> SchedulePasses::own_logits(int64_t sample) const {
  const int64_t count = shape_.groups * shape_.devices;
  std::vector<double> logits;
  for (int64_t i = sample * count; i < (sample + 1) * count; ++i) {
    const double squashed = std::clamp(static_cast<double>(squashed_[i]), -0.9999, 0.9999);
    logits.push_back(shape_.temperature * std::atanh(squashed) - static_cast<double>(prior_[i]));
  }
  return logits;
}

double SchedulePasses::entropy() const {
  double sum = 0;
  for (size_t i = 0; i < probability_.size(); ++i)
    sum -= static_cast<double>(probability_[i]) * static_cast<double>(log_probability[i]);
  return sum;
}

}  // namespace trinity
