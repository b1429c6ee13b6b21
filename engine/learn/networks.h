#pragma once

#include <string_view>
#include <vector>

#include "base/random.h"
#include "learn/lstm.h"
#include "learn/torch.h"

namespace trinity {

/// Fills every parameter of a module from our own random stream, so that initial weights are the
/// same for every LibTorch: Glorot-uniform matrices, zero biases, LSTM forget gates biased to 1.
void initialise(torch::nn::Module& module, uint64_t seed, std::string_view name);

/// Draws a group for every unit: embedding of the unit's type beside its features, hidden layers
/// of 64 and 128 with ReLU, softmax over groups (papers.md 1.4).
class PartitionNetImpl : public torch::nn::Module {
 public:
  PartitionNetImpl(int64_t types, int64_t features, int64_t groups);
  /// types [units] int64, features [units, F]; `mask` [units, 64] scales the first hidden layer
  /// (dropout) and may be undefined. Returns log-probabilities [units, groups].
  torch::Tensor forward(const torch::Tensor& types, const torch::Tensor& features,
                        const torch::Tensor& mask);
  /// Adds -contiguity * (k * position - (g + 1/2))^2 to the logit of group g of k for a unit at
  /// `position` in (0, 1): untrained, neighbouring units then share groups.
  void start_contiguous(const std::vector<double>& position, double contiguity);
  static constexpr int64_t kHidden = 64;

 private:
  torch::nn::Embedding embedding_{nullptr};
  torch::nn::Linear first_{nullptr}, second_{nullptr}, out_{nullptr};
  torch::Tensor prior_;  // [units, groups], constant; undefined for none
};
TORCH_MODULE(PartitionNet);

/// Draws a device for every group in order: bidirectional LSTM encoder over group embeddings, LSTM
/// decoder fed with the previous device's embedding, additive attention (papers.md 1.4). S is the
/// number of samples in the batch, K of groups, H the width of one encoder direction.
class ScheduleNetImpl : public torch::nn::Module {
 public:
  ScheduleNetImpl(int64_t features, int64_t devices, int64_t hidden, double temperature,
                  double tanh_constant);
  /// Makes the untrained network choose the previous group's device again except with this
  /// probability, by a trainable term added to that device's logit. Not called: no such term.
  void start_staying(double switch_probability);

  struct Encoded {
    torch::Tensor memory;       ///< m_j = W1 h_j, [S, K, 2H]
    torch::Tensor state, cell;  ///< the decoder's start, [S, 2H]
  };
  Encoded encode(const torch::Tensor& groups);

  /// All steps at once for known devices [S, K]: log-probabilities [S, K, D].
  torch::Tensor evaluate(const Encoded& encoded, const torch::Tensor& devices);

  /// One step: previous devices [S] (D stands for "start"), state and cell are replaced. Returns
  /// log-probabilities [S, D].
  torch::Tensor step(const Encoded& encoded, const torch::Tensor& previous, torch::Tensor& state,
                     torch::Tensor& cell);
  int64_t start_symbol() const { return devices_; }

 private:
  torch::Tensor attend(const torch::Tensor& hidden, const torch::Tensor& memory,
                       const torch::Tensor& previous);

  int64_t devices_;
  double temperature_, tanh_constant_;
  Lstm forward_{nullptr}, backward_{nullptr}, decoder_{nullptr};
  torch::nn::Embedding device_embedding_{nullptr};
  torch::nn::Linear memory_{nullptr}, query_{nullptr}, score_{nullptr}, out_{nullptr};
  torch::Tensor stay_, previous_device_;  // scalar; one-hot rows [D + 1, D], the last one zero
};
TORCH_MODULE(ScheduleNet);

}  // namespace trinity
