#include "learn/move_network.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/index.h"

namespace trinity {
namespace {

std::vector<int32_t> checked(std::vector<int32_t> hidden) {
  if (hidden.size() > 8) throw ArgumentError("ranker: expected at most 8 hidden layers");
  for (const int32_t width : hidden)
    if (width < 1 || width > 1024)
      throw ArgumentError("ranker: expected hidden layers of 1 to 1024 units, got {}", width);
  return hidden;
}

constexpr int32_t kLanes = 8;  // partial sums, in a fixed order whatever the CPU's vectors

float dot(const float* a, const float* b, int32_t count) {
  float sums[kLanes] = {};
  int32_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int32_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

constexpr size_t kRows = 8;     // of a block: two vectors of every CPU, or one of a wide one
constexpr size_t kOutputs = 4;  // whose sums go on side by side

using Rows [[gnu::vector_size(sizeof(float) * kRows), gnu::aligned(4), gnu::may_alias]] = float;

/// Sums of kOutputs outputs for kRows rows, inputs in their order: [output][row] in `sums`, which
/// begin with the biases. Weights are [output][input], activations [input][stride]. The same bits
/// whatever the CPU's vectors: rows are separate, and terms are rounded before they are added.
[[gnu::target_clones("avx2", "default")]] void add_block(const float* weights, int32_t inputs,
                                                         const float* from, size_t stride,
                                                         float (&sums)[kOutputs][kRows]) {
  Rows by_output[kOutputs];
  for (size_t o = 0; o < kOutputs; ++o) by_output[o] = *reinterpret_cast<const Rows*>(sums[o]);
  for (int32_t i = 0; i < inputs; ++i, from += stride) {
    const Rows row = *reinterpret_cast<const Rows*>(from);
    for (size_t o = 0; o < kOutputs; ++o) by_output[o] += weights[at(inputs) * o + at(i)] * row;
  }
  for (size_t o = 0; o < kOutputs; ++o) *reinterpret_cast<Rows*>(sums[o]) = by_output[o];
}

/// to += factor x from.
void add(float factor, const float* from, int32_t count, float* to) {
  for (int32_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

}  // namespace

MoveNetwork::MoveNetwork(std::vector<int32_t> hidden, uint64_t seed, bool memory_features)
    : inputs_(memory_features ? kMoveFeatureCount : kStepFeatureCount),
      hidden_(checked(std::move(hidden))) {
  parameters_.add("shift", {inputs_});
  parameters_.add("scale", {inputs_});
  int32_t inputs = inputs_;
  for (size_t l = 0; l <= hidden_.size(); ++l) {
    const int32_t outputs = l < hidden_.size() ? hidden_[l] : 1;
    const auto name = fmt::format("layer{}", l + 1);
    parameters_.add(name + ".weight", {outputs, inputs});
    parameters_.add(name + ".bias", {outputs});
    layers_.push_back({inputs, outputs, parameters_.find(name + ".weight").offset,
                       parameters_.find(name + ".bias").offset});
    inputs = outputs;
  }
  parameters_.initialise("layer", seed);
  std::fill_n(parameters_.data("shift"), inputs_, 0.0f);
  std::fill_n(parameters_.data("scale"), inputs_, 1.0f);
  activations_.resize(layers_.size() + 1);
}

/// The activations of a layer's outputs, kOutputs x kRows at a time.
void MoveNetwork::pass(size_t l) {
  const auto& layer = layers_[l];
  const float* values = parameters_.values.data();
  const bool rectified = l + 1 < layers_.size();
  auto& to = activations_[l + 1];
  to.resize(at(layer.outputs) * stride_);
  const auto finish = [&](int32_t o, size_t row, float sum) {
    to[at(o) * stride_ + row] = rectified ? std::max(0.0f, sum) : sum;
  };
  const auto blocks = static_cast<int32_t>(kOutputs);
  for (size_t row = 0; row < stride_; row += kRows) {
    const float* from = activations_[l].data() + row;
    int32_t o = 0;
    for (; o + blocks <= layer.outputs; o += blocks) {
      float sums[kOutputs][kRows];
      for (size_t k = 0; k < kOutputs; ++k)
        std::fill_n(sums[k], kRows, values[at(layer.bias) + at(o) + k]);
      add_block(values + layer.weight + int64_t{o} * layer.inputs, layer.inputs, from, stride_,
                sums);
      for (size_t k = 0; k < kOutputs; ++k)
        for (size_t r = 0; r < kRows; ++r)
          finish(o + static_cast<int32_t>(k), row + r, sums[k][r]);
    }
    for (; o < layer.outputs; ++o)
      for (size_t r = 0; r < kRows; ++r) {
        float sum = values[layer.bias + o];
        for (int32_t i = 0; i < layer.inputs; ++i)
          sum += values[layer.weight + int64_t{o} * layer.inputs + i] * from[at(i) * stride_ + r];
        finish(o, row + r, sum);
      }
  }
}

void MoveNetwork::score(const float* features, int32_t count, float* scores) {
  rows_ = count;
  const auto n = (at(count) + kRows - 1) / kRows * kRows;
  stride_ = n;
  const float* shift = parameters_.data("shift");
  const float* scale = parameters_.data("scale");
  auto& first = activations_[0];
  first.assign(at(inputs_) * n, 0);
  for (size_t row = 0; row < at(count); ++row)
    for (size_t f = 0; f < at(inputs_); ++f)
      first[f * n + row] = (features[row * kMoveFeatures.size() + f] - shift[f]) * scale[f];
  for (size_t l = 0; l < layers_.size(); ++l) pass(l);
  std::copy_n(activations_.back().begin(), count, scores);
}

void MoveNetwork::add_gradient(const float* slopes, std::vector<float>& gradient) {
  const size_t n = stride_;  // rows after rows_ have slopes of 0
  std::vector<float> upper(slopes, slopes + rows_), lower;
  upper.resize(n, 0);
  for (size_t l = layers_.size(); l-- > 0;) {
    const auto& layer = layers_[l];
    const float* weights = parameters_.values.data() + layer.weight;
    const auto& from = activations_[l];
    lower.assign(at(layer.inputs) * n, 0);
    for (int32_t o = 0; o < layer.outputs; ++o) {
      const float* slope = upper.data() + at(o) * n;
      float* row = gradient.data() + layer.weight + int64_t{o} * layer.inputs;
      for (int32_t i = 0; i < layer.inputs; ++i)
        row[i] += dot(slope, from.data() + at(i) * n, rows_);
      for (size_t r = 0; r < n; ++r) gradient[layer.bias + o] += slope[r];
      for (int32_t i = 0; l > 0 && i < layer.inputs; ++i)
        add(weights[int64_t{o} * layer.inputs + i], slope, rows_, lower.data() + at(i) * n);
    }
    for (size_t k = 0; k < lower.size(); ++k)
      if (from[k] <= 0) lower[k] = 0;
    upper.swap(lower);
  }
}

void MoveNetwork::standardise(const float* rows, size_t count) {
  constexpr auto width = kMoveFeatures.size();
  for (size_t f = 0; f < at(inputs_); ++f) {
    double sum = 0, squares = 0;
    for (size_t row = 0; row < count; ++row) sum += double{rows[row * width + f]};
    const double mean = count > 0 ? sum / static_cast<double>(count) : 0;
    for (size_t row = 0; row < count; ++row) {
      const double off = double{rows[row * width + f]} - mean;
      squares += off * off;
    }
    const double deviation = count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0;
    parameters_.data("shift")[f] = static_cast<float>(mean);
    parameters_.data("scale")[f] = deviation > 1e-6 ? static_cast<float>(1 / deviation) : 1.0f;
  }
}

}  // namespace trinity
