#include "learn/partition_passes.h"

#include <algorithm>

#include "base/stop.h"

namespace trinity {
namespace {

constexpr int64_t kFirst = PartitionShape::kFirst, kSecond = PartitionShape::kSecond;
constexpr int64_t kTypeWidth = PartitionShape::kTypeWidth;

/// Enough chunks for a machine of some cores, and not so small that packing shows.
constexpr int64_t kLeastChunk = 512, kMostChunks = 16;

}  // namespace

void add_partition_weights(const PartitionShape& shape, Parameters& parameters) {
  if (shape.types > 0)
    parameters.add("partition.embedding.weight", {shape.types, PartitionShape::kTypeWidth});
  parameters.add("partition.first.weight", {kFirst, shape.input()});
  parameters.add("partition.first.bias", {kFirst});
  if (!shape.linear) {
    parameters.add("partition.second.weight", {kSecond, kFirst});
    parameters.add("partition.second.bias", {kSecond});
  }
  parameters.add("partition.out.weight", {shape.groups, shape.last()});
  parameters.add("partition.out.bias", {shape.groups});
}

std::vector<float> contiguous_prior(std::span<const double> position, int64_t groups,
                                    double contiguity) {
  std::vector<float> prior;
  prior.reserve(position.size() * static_cast<size_t>(groups));
  for (const double at : position) {
    for (int64_t g = 0; g < groups; ++g) {
      const double away = at * static_cast<double>(groups) - (static_cast<double>(g) + 0.5);
      prior.push_back(static_cast<float>(-contiguity * away * away));
    }
  }
  return prior;
}

PartitionPasses::PartitionPasses(const PartitionShape& shape, const UnitFeatures& features,
                                 const Parameters& parameters)
    : shape_(shape),
      features_(features),
      kernels_(kernels()),
      first_weight_(parameters.find("partition.first.weight").offset),
      first_bias_(parameters.find("partition.first.bias").offset),
      out_weight_(parameters.find("partition.out.weight").offset),
      out_bias_(parameters.find("partition.out.bias").offset),
      weight_offset_(first_weight_) {
  if (shape.types > 0)
    weight_offset_ = embedding_ = parameters.find("partition.embedding.weight").offset;
  if (!shape.linear) {
    second_weight_ = parameters.find("partition.second.weight").offset;
    second_bias_ = parameters.find("partition.second.bias").offset;
  }
  weight_count_ = out_bias_ + shape.groups - weight_offset_;
  set_masks({});
}

void PartitionPasses::set_masks(std::vector<float> masks) {
  masks_ = std::move(masks);
  const int64_t mask = shape_.units * kFirst;
  copies_ = masks_.empty() ? 1 : static_cast<int64_t>(masks_.size()) / mask;
  const auto rows = static_cast<size_t>(copies_ * shape_.units);
  first_.resize(rows * kFirst);
  if (!shape_.linear) second_.resize(rows * kSecond);
  log_probability.resize(rows * static_cast<size_t>(shape_.groups));
  probability.resize(log_probability.size());
}

void PartitionPasses::pack(const float* weights) {
  const auto pack_into = [&](std::vector<float>& to, int64_t depth, int64_t columns,
                             const float* from, int64_t row, int64_t column) {
    to.resize(static_cast<size_t>(kernels_.packed_size(depth, columns)));
    kernels_.pack(depth, columns, from, row, column, to.data());
  };
  const float *first = weights + first_weight_, *out = weights + out_weight_;
  const int64_t input = shape_.input(), last = shape_.last(), types = shape_.type_width();
  pack_into(packed_first_, shape_.features, kFirst, first + types, 1, input);
  pack_into(packed_out_, last, shape_.groups, out, 1, last);
  pack_into(packed_out_back_, shape_.groups, last, out, last, 1);
  if (!shape_.linear) {
    pack_into(packed_second_, kFirst, kSecond, weights + second_weight_, 1, kFirst);
    pack_into(packed_second_back_, kSecond, kFirst, weights + second_weight_, kFirst, 1);
  }
  const int64_t kinds = std::max<int64_t>(1, shape_.types);
  type_part_.resize(static_cast<size_t>(kinds * kFirst));
  for (int64_t type = 0; type < kinds; ++type) {
    for (int64_t h = 0; h < kFirst; ++h) {
      float sum = weights[first_bias_ + h];
      for (int64_t i = 0; i < types; ++i)
        sum += first[h * input + i] * weights[embedding_ + type * kTypeWidth + i];
      type_part_[type * kFirst + h] = sum;
    }
  }
}

int PartitionPasses::chunks() const {
  const int64_t rows = copies_ * shape_.units;
  return static_cast<int>(std::clamp<int64_t>(rows / kLeastChunk, 1, kMostChunks));
}

PartitionPasses::Range PartitionPasses::range(int chunk) const {
  const int64_t rows = copies_ * shape_.units, first = rows * chunk / chunks();
  return {first, rows * (chunk + 1) / chunks() - first};
}

void PartitionPasses::first_layer(const Range& rows) {
  for (int64_t r = rows.first; r < rows.first + rows.count; ++r) {
    const float* start = type_part_.data() + (shape_.types > 0 ? type_of(r) : 0) * kFirst;
    std::copy(start, start + kFirst, first_.data() + r * kFirst);
  }
  // Rows of units lie in order, but a chunk may run on into the next copy of the units.
  for (int64_t r = rows.first; r < rows.first + rows.count;) {
    const int64_t end = std::min(rows.first + rows.count, (r / shape_.units + 1) * shape_.units);
    kernels_.multiply(end - r, kFirst, shape_.features, unit_row(r), shape_.features, 1,
                      packed_first_.data(), first_.data() + r * kFirst, kFirst);
    r = end;
  }
  float* first = first_.data() + rows.first * kFirst;
  if (!shape_.linear) kernels_.rectify(rows.count * kFirst, first);
  if (masks_.empty()) return;
  const float* mask = masks_.data() + rows.first * kFirst;
  for (int64_t i = 0; i < rows.count * kFirst; ++i) first[i] *= mask[i];
}

void PartitionPasses::upper_layers(const Range& rows, const float* weights) {
  const float* below = first_.data() + rows.first * kFirst;
  if (!shape_.linear) {
    float* second = second_.data() + rows.first * kSecond;
    const float* bias = weights + second_bias_;
    for (int64_t r = 0; r < rows.count; ++r) std::copy(bias, bias + kSecond, second + r * kSecond);
    kernels_.multiply(rows.count, kSecond, kFirst, below, kFirst, 1, packed_second_.data(), second,
                      kSecond);
    kernels_.rectify(rows.count * kSecond, second);
    below = second;
  }
  const int64_t k = shape_.groups, last = shape_.last();
  float* logits = log_probability.data() + rows.first * k;
  const float* bias = weights + out_bias_;
  for (int64_t r = 0; r < rows.count; ++r) {
    std::copy(bias, bias + k, logits + r * k);
    if (!prior.empty())
      kernels_.add(k, prior.data() + (rows.first + r) % shape_.units * k, logits + r * k);
  }
  kernels_.multiply(rows.count, k, last, below, last, 1, packed_out_.data(), logits, k);
  kernels_.log_softmax(rows.count, k, logits, probability.data() + rows.first * k);
}

void PartitionPasses::forward_chunk(int chunk, const float* weights) {
  poll_stop();
  const Range rows = range(chunk);
  first_layer(rows);
  upper_layers(rows, weights);
}

double PartitionPasses::entropy() const {
  double sum = 0;
  for (size_t i = 0; i < probability.size(); ++i)
    sum -= static_cast<double>(probability[i]) * static_cast<double>(log_probability[i]);
  return sum / static_cast<double>(copies_ * shape_.units);
}

void PartitionPasses::backward_logits(const Range& rows, std::span<const int32_t> group_of,
                                      std::span<const float> coefficient, float entropy_weight,
                                      std::vector<float>& logits) const {
  const int64_t k = shape_.groups, units = shape_.units;
  const auto samples = static_cast<int64_t>(group_of.size()) / units;
  logits.resize(static_cast<size_t>(rows.count * k));
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t r = rows.first + i, unit = r % units, copy = r / units;
    const int64_t first = copies_ == 1 ? 0 : copy, end = copies_ == 1 ? samples : copy + 1;
    const float *p = probability.data() + r * k, *logs = log_probability.data() + r * k;
    float* d = logits.data() + i * k;
    float entropy = 0, all = 0;
    for (int64_t g = 0; g < k; ++g) entropy -= p[g] * logs[g];
    for (int64_t s = first; s < end; ++s) all += coefficient[s * units + unit];
    for (int64_t g = 0; g < k; ++g) d[g] = -p[g] * (all + entropy_weight * (logs[g] + entropy));
    for (int64_t s = first; s < end; ++s) {
      const auto at = static_cast<size_t>(s * units + unit);
      d[group_of[at]] += coefficient[at];
    }
  }
}

void PartitionPasses::outer(const Range& rows, const std::vector<float>& d_rows, int64_t outputs,
                            const float* inputs, int64_t in, float* d_weight, int64_t stride,
                            float* d_bias, Scratch& scratch) const {
  scratch.transposed.resize(static_cast<size_t>(rows.count * outputs));
  scratch.packed.resize(static_cast<size_t>(kernels_.packed_size(rows.count, in)));
  kernels_.transpose(rows.count, outputs, d_rows.data(), outputs, scratch.transposed.data());
  kernels_.pack(rows.count, in, inputs, in, 1, scratch.packed.data());
  kernels_.multiply(outputs, in, rows.count, scratch.transposed.data(), rows.count, 1,
                    scratch.packed.data(), d_weight, stride);
  for (int64_t r = 0; d_bias && r < rows.count; ++r)
    kernels_.add(outputs, d_rows.data() + r * outputs, d_bias);
}

void PartitionPasses::backward_chunk(int chunk, const float* weights,
                                     std::span<const int32_t> group_of,
                                     std::span<const float> coefficient, float entropy_weight,
                                     float* gradients) {
  poll_stop();
  const Range rows = range(chunk);
  const int64_t k = shape_.groups, last = shape_.last(), n = rows.count;
  Scratch scratch;
  backward_logits(rows, group_of, coefficient, entropy_weight, scratch.logits);
  const float* first = first_.data() + rows.first * kFirst;
  const float* top = shape_.linear ? first : second_.data() + rows.first * kSecond;
  outer(rows, scratch.logits, k, top, last, at(gradients, out_weight_), last,
        at(gradients, out_bias_), scratch);
  auto& d_top = shape_.linear ? scratch.first : scratch.second;
  d_top.assign(static_cast<size_t>(n * last), 0.0f);
  kernels_.multiply(n, last, k, scratch.logits.data(), k, 1, packed_out_back_.data(), d_top.data(),
                    last);
  if (!shape_.linear) {
    kernels_.rectify_backward(n * kSecond, top, d_top.data());
    outer(rows, d_top, kSecond, first, kFirst, at(gradients, second_weight_), kFirst,
          at(gradients, second_bias_), scratch);
    scratch.first.assign(static_cast<size_t>(n * kFirst), 0.0f);
    kernels_.multiply(n, kFirst, kSecond, d_top.data(), kSecond, 1, packed_second_back_.data(),
                      scratch.first.data(), kFirst);
    kernels_.rectify_backward(n * kFirst, first, scratch.first.data());
  }
  if (!masks_.empty()) {
    const float* mask = masks_.data() + rows.first * kFirst;
    for (int64_t i = 0; i < n * kFirst; ++i) scratch.first[i] *= mask[i];
  }
  const int64_t input = shape_.input(), types = shape_.type_width();
  std::vector<float> inputs(static_cast<size_t>(n * shape_.features));
  for (int64_t i = 0; i < n; ++i)
    std::copy_n(unit_row(rows.first + i), shape_.features, inputs.data() + i * shape_.features);
  outer(rows, scratch.first, kFirst, inputs.data(), shape_.features,
        at(gradients, first_weight_) + types, input, at(gradients, first_bias_), scratch);
  if (types > 0) backward_types(rows, scratch.first, weights, gradients);
}

void PartitionPasses::backward_types(const Range& rows, const std::vector<float>& d_first,
                                     const float* weights, float* gradients) const {
  const int64_t input = shape_.input();
  std::vector<float> by_type(static_cast<size_t>(shape_.types * kFirst), 0.0f);
  for (int64_t i = 0; i < rows.count; ++i)
    kernels_.add(kFirst, d_first.data() + i * kFirst,
                 by_type.data() + type_of(rows.first + i) * kFirst);
  const float* first = weights + first_weight_;
  float* d_weight = at(gradients, first_weight_);
  for (int64_t type = 0; type < shape_.types; ++type) {
    const float* embedding = weights + embedding_ + type * kTypeWidth;
    float* d_embedding = at(gradients, embedding_) + type * kTypeWidth;
    for (int64_t h = 0; h < kFirst; ++h) {
      const float d = by_type[type * kFirst + h];
      if (d == 0) continue;
      for (int64_t i = 0; i < kTypeWidth; ++i) {
        d_weight[h * input + i] += d * embedding[i];
        d_embedding[i] += d * first[h * input + i];
      }
    }
  }
}

}  // namespace trinity
