// The backward pass of the schedule network.
#include <algorithm>

#include "base/stop.h"
#include "learn/schedule_passes.h"

namespace trinity {
namespace {

void grow(std::vector<float>& buffer, int64_t count) {
  if (buffer.size() < static_cast<size_t>(count)) buffer.resize(static_cast<size_t>(count));
}

void clear(std::vector<float>& buffer, int64_t count) {
  buffer.assign(static_cast<size_t>(count), 0.0f);
}

}  // namespace

void SchedulePasses::backward(const float* weights, std::span<const float> coefficient, Bonus bonus,
                              float* gradients) {
  const int64_t wide = shape_.wide(), h = shape_.hidden, k = shape_.groups, n = samples_;
  clear(d_hidden_, rows() * wide);
  clear(d_encoded_, rows() * wide);
  grow(d_gates_, rows() * 4 * wide);
  grow(carry_, n * wide);
  grow(scratch_, k * kernels_.panel);
  for (Direction* direction : {&forward_, &backward_}) grow(direction->d_gates, rows() * 4 * h);
  grow(packed_rows_, std::max({kernels_.packed_size(rows(), wide), kernels_.packed_size(wide, k)}));
  grow(transposed_, std::max({rows() * 4 * wide, k * wide, shape_.width * 4 * h}));
  for (int64_t s = 0; s < n; ++s) {
    poll_stop();
    backward_sample(weights, s, coefficient.data() + s * k, bonus, gradients);
  }
  backward_decoder(weights, gradients);
  backward_direction(forward_, layout_.forward, packed_.forward_recurrent_back, false, gradients);
  backward_direction(backward_, layout_.backward, packed_.backward_recurrent_back, true, gradients);
}

void SchedulePasses::backward_sample(const float* weights, int64_t sample, const float* coefficient,
                                     Bonus bonus, float* gradients) {
  backward_logits(sample, coefficient, bonus, gradients);
  backward_out(sample, gradients);
  backward_attention(weights, sample, gradients);
  backward_query(sample, gradients);
  backward_memory(sample, gradients);
}

/// From the objective to the logits u, through log-softmax and C tanh(u / T).
void SchedulePasses::backward_logits(int64_t sample, const float* coefficient, Bonus bonus,
                                     float* gradients) {
  const int64_t k = shape_.groups, d = shape_.devices;
  grow(d_logit_, k * d);
  const auto slope = static_cast<float>(shape_.tanh_constant / shape_.temperature);
  for (int64_t t = 0; t < k; ++t) {
    const int64_t at = (sample * k + t) * d;
    const float *p = probability_.data() + at, *logs = log_probability.data() + at;
    const int32_t chosen = devices[sample * k + t];
    float entropy = 0;
    for (int64_t i = 0; i < d; ++i) entropy -= p[i] * logs[i];
    for (int64_t i = 0; i < d; ++i) {
      const float on_choice = coefficient[t] * ((i == chosen ? 1.0f : 0.0f) - p[i]);
      const float on_bonus = bonus.uniform * (1 / static_cast<float>(d) - p[i]) -
                             bonus.entropy * p[i] * (logs[i] + entropy);
      const float squashed = squashed_[at + i];
      d_logit_[t * d + i] = (on_choice + on_bonus) * slope * (1 - squashed * squashed);
    }
    if (shape_.stays && previous(sample, t) < d)
      gradients[layout_.stay] += d_logit_[t * d + previous(sample, t)];
  }
}

/// From the logits to states, contexts and the output layer. Leaves the sample's states packed.
void SchedulePasses::backward_out(int64_t sample, float* gradients) {
  const int64_t wide = shape_.wide(), k = shape_.groups, d = shape_.devices, n = samples_;
  const float* hidden = hidden_.data() + (n + sample) * wide;
  const float* context = context_.data() + sample * k * wide;
  float* out = gradients + layout_.out;
  kernels_.transpose(k, d, d_logit_.data(), d, transposed_.data());
  kernels_.pack(k, wide, context, wide, 1, packed_rows_.data());
  kernels_.multiply(d, wide, k, transposed_.data(), k, 1, packed_rows_.data(), out + wide,
                    2 * wide);
  kernels_.pack(k, wide, hidden, n * wide, 1, packed_rows_.data());
  kernels_.multiply(d, wide, k, transposed_.data(), k, 1, packed_rows_.data(), out, 2 * wide);
  clear(d_context_, k * wide);
  kernels_.multiply(k, wide, d, d_logit_.data(), d, 1, packed_.out_context_back.data(),
                    d_context_.data(), wide);
  kernels_.multiply(k, wide, d, d_logit_.data(), d, 1, packed_.out_state_back.data(),
                    d_hidden_.data() + sample * wide, n * wide);
}

/// From contexts to attention's weights, scores, queries and memory.
void SchedulePasses::backward_attention(const float* weights, int64_t sample, float* gradients) {
  const int64_t wide = shape_.wide(), k = shape_.groups;
  const float* memory = memory_.data() + sample * k * wide;
  const float* weight = weight_.data() + sample * k * k;
  Buffer& rows_packed = d_gates_;  // free until the decoder's turn
  grow(rows_packed, std::max(kernels_.packed_size(wide, k), kernels_.packed_size(k, wide)));
  kernels_.pack(wide, k, memory, 1, wide, rows_packed.data());
  clear(d_weight_, k * k);
  kernels_.multiply(k, k, wide, d_context_.data(), wide, 1, rows_packed.data(), d_weight_.data(),
                    k);
  clear(d_memory_, k * wide);
  kernels_.pack(k, wide, d_context_.data(), wide, 1, rows_packed.data());
  grow(transposed_, k * k);
  kernels_.transpose(k, k, weight, k, transposed_.data());
  kernels_.multiply(k, wide, k, transposed_.data(), k, 1, rows_packed.data(), d_memory_.data(),
                    wide);
  for (int64_t t = 0; t < k; ++t) {
    float* d_row = d_weight_.data() + t * k;
    const float* row = weight + t * k;
    float sum = 0;
    for (int64_t j = 0; j < k; ++j) sum += row[j] * d_row[j];
    for (int64_t j = 0; j < k; ++j) d_row[j] = row[j] * (d_row[j] - sum);
  }
  grow(d_query_, k * wide);
  kernels_.attention_backward(k, k, wide, query_.data() + sample * k * wide,
                              memory_exponential_.data() + sample * k * wide,
                              weights + layout_.score, d_weight_.data(), d_query_.data(),
                              d_memory_.data(), gradients + layout_.score, scratch_.data());
}

/// From queries to states and W2; packed_rows_ still holds the sample's states.
void SchedulePasses::backward_query(int64_t sample, float* gradients) {
  const int64_t wide = shape_.wide(), k = shape_.groups, n = samples_;
  kernels_.transpose(k, wide, d_query_.data(), wide, transposed_.data());
  kernels_.multiply(wide, wide, k, transposed_.data(), k, 1, packed_rows_.data(),
                    gradients + layout_.query, wide);
  kernels_.multiply(k, wide, wide, d_query_.data(), wide, 1, packed_.query_back.data(),
                    d_hidden_.data() + sample * wide, n * wide);
}

/// From the memory to the encoder's states and W1.
void SchedulePasses::backward_memory(int64_t sample, float* gradients) {
  const int64_t wide = shape_.wide(), k = shape_.groups, n = samples_;
  kernels_.pack(k, wide, encoded_.data() + sample * wide, n * wide, 1, packed_rows_.data());
  kernels_.transpose(k, wide, d_memory_.data(), wide, transposed_.data());
  kernels_.multiply(wide, wide, k, transposed_.data(), k, 1, packed_rows_.data(),
                    gradients + layout_.memory, wide);
  kernels_.multiply(k, wide, wide, d_memory_.data(), wide, 1, packed_.memory_back.data(),
                    d_encoded_.data() + sample * wide, n * wide);
}

void SchedulePasses::backward_decoder(const float* weights, float* gradients) {
  const int64_t wide = shape_.wide(), h = shape_.hidden, k = shape_.groups, n = samples_;
  grow(d_gates_, rows() * 4 * wide);
  clear(d_cell_, n * wide);
  for (int64_t t = k - 1; t >= 0; --t) {
    poll_stop();
    const int64_t at = t * n * wide;
    float* d_gates = d_gates_.data() + 4 * at;
    if (t + 1 < k)
      kernels_.multiply(n, wide, 4 * wide, d_gates + 4 * n * wide, 4 * wide, 1,
                        packed_.decoder_recurrent_back.data(), d_hidden_.data() + at, wide);
    kernels_.cell_backward(n, wide, gates_.data() + 4 * at, cell_.data() + at,
                           tanh_cell_.data() + at, d_hidden_.data() + at, d_cell_.data(), d_gates);
  }
  kernels_.transpose(rows(), 4 * wide, d_gates_.data(), 4 * wide, transposed_.data());
  kernels_.pack(rows(), wide, hidden_.data(), wide, 1, packed_rows_.data());
  kernels_.multiply(4 * wide, wide, rows(), transposed_.data(), rows(), 1, packed_rows_.data(),
                    gradients + layout_.decoder.recurrent, wide);
  backward_device_gates(weights, gradients);
  // The decoder starts from the encoder's last states, one of each direction.
  clear(carry_, n * wide);
  kernels_.multiply(n, wide, 4 * wide, d_gates_.data(), 4 * wide, 1,
                    packed_.decoder_recurrent_back.data(), carry_.data(), wide);
  const int64_t last = (k - 1) * n;
  for (int64_t s = 0; s < n; ++s) {
    kernels_.add(h, carry_.data() + s * wide, d_encoded_.data() + (last + s) * wide);
    kernels_.add(h, carry_.data() + s * wide + h, d_encoded_.data() + s * wide + h);
  }
}

/// From the decoder's gates to the embedding of devices and the input's weights.
void SchedulePasses::backward_device_gates(const float* weights, float* gradients) {
  constexpr int64_t in = ScheduleShape::kDeviceWidth;
  const int64_t gates = 4 * shape_.wide(), k = shape_.groups, n = samples_;
  clear(d_device_gates_, (shape_.devices + 1) * gates);
  for (int64_t t = 0; t < k; ++t)
    for (int64_t s = 0; s < n; ++s)
      kernels_.add(gates, d_gates_.data() + (t * n + s) * gates,
                   d_device_gates_.data() + previous(s, t) * gates);
  const float* input = weights + layout_.decoder.input;
  float* d_input = gradients + layout_.decoder.input;
  float* d_bias = gradients + layout_.decoder.bias;
  for (int64_t d = 0; d <= shape_.devices; ++d) {
    const float* d_row = d_device_gates_.data() + d * gates;
    const float* embedding = weights + layout_.device_embedding + d * in;
    float* d_embedding = gradients + layout_.device_embedding + d * in;
    for (int64_t g = 0; g < gates; ++g) {
      d_bias[g] += d_row[g];
      for (int64_t i = 0; i < in; ++i) {
        d_input[g * in + i] += d_row[g] * embedding[i];
        d_embedding[i] += d_row[g] * input[g * in + i];
      }
    }
  }
}

/// The gradient of an encoder's input weights. Embeddings are mostly zeros: transposed matmuls.
void SchedulePasses::backward_input(const Direction& direction, float* d_input) {
  const int64_t gates = 4 * shape_.hidden, w = shape_.width;
  grow(packed_rows_, kernels_.packed_size(rows(), gates));
  kernels_.pack(rows(), gates, direction.d_gates.data(), gates, 1, packed_rows_.data());
  clear(d_query_, w * gates);
  kernels_.multiply_sparse(gates, sparse_x_transposed_.view(), packed_rows_.data(), d_query_.data(),
                           gates);
  kernels_.transpose(w, gates, d_query_.data(), gates, transposed_.data());
  kernels_.add(gates * w, transposed_.data(), d_input);
}

void SchedulePasses::backward_direction(Direction& direction, const ScheduleLayout::Lstm& at,
                                        const Buffer& recurrent_back, bool reverse,
                                        float* gradients) {
  const int64_t h = shape_.hidden, wide = shape_.wide(), k = shape_.groups, n = samples_;
  const int64_t half = reverse ? h : 0;
  Buffer d_cell(static_cast<size_t>(n * h));
  for (int64_t s = 0; s < n; ++s)
    std::copy_n(d_cell_.data() + s * wide + half, h, d_cell.data() + s * h);
  for (int64_t i = k - 1; i >= 0; --i) {
    poll_stop();
    const int64_t t = reverse ? k - 1 - i : i, after = reverse ? t - 1 : t + 1;
    const int64_t before = reverse ? t + 1 : t - 1;
    for (int64_t s = 0; s < n; ++s)
      std::copy_n(d_encoded_.data() + (t * n + s) * wide + half, h, carry_.data() + s * h);
    float* d_gates = direction.d_gates.data();
    if (i + 1 < k)
      kernels_.multiply(n, h, 4 * h, d_gates + after * n * 4 * h, 4 * h, 1, recurrent_back.data(),
                        carry_.data(), h);
    kernels_.cell_backward(n, h, direction.gates.data() + t * n * 4 * h,
                           i > 0 ? direction.cell.data() + before * n * h : zeros_.data(),
                           direction.tanh_cell.data() + t * n * h, carry_.data(), d_cell.data(),
                           d_gates + t * n * 4 * h);
  }
  backward_input(direction, gradients + at.input);
  kernels_.transpose(rows(), 4 * h, direction.d_gates.data(), 4 * h, transposed_.data());
  for (int64_t r = 0; r < rows(); ++r)
    kernels_.add(4 * h, direction.d_gates.data() + r * 4 * h, gradients + at.bias);
  if (k == 1) return;
  // Gates of all steps but the first against the states of the steps before them.
  const int64_t depth = rows() - n;
  const float* states = encoded_.data() + half + (reverse ? n * wide : 0);
  kernels_.pack(depth, h, states, wide, 1, packed_rows_.data());
  kernels_.multiply(4 * h, h, depth, transposed_.data() + (reverse ? 0 : n), rows(), 1,
                    packed_rows_.data(), gradients + at.recurrent, h);
}

}  // namespace trinity
