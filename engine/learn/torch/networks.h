#pragma once

#include "learn/partition_passes.h"
#include "learn/schedule_passes.h"
#include "learn/torch/lstm.h"
#include "libtorch/networks.h"

namespace trinity {

/// The networks on LibTorch's operators: for GPUs, and as the reference of partition_passes.h and
/// schedule_passes.h, whose weights have the same names and shapes.

/// Samples a group for every unit: embedding of the unit's type and its features, hidden layers
/// of 64 and 128 with ReLU, or one of 64 without, softmax over groups (papers/notes.md "Trinity:
/// networks"). Not thread-safe.
class PartitionNetImpl : public torch::nn::Module {
 public:
  explicit PartitionNetImpl(const PartitionShape& shape);
  /// types [units] int64, features [units, F]; `mask` [units, 64] scales the first hidden layer
  /// (dropout), `prior` [units, groups] is added to the logits; both may be undefined. Returns
  /// log-probabilities [units, groups].
  torch::Tensor forward(const torch::Tensor& types, const torch::Tensor& features,
                        const torch::Tensor& mask, const torch::Tensor& prior);

 private:
  torch::nn::Embedding embedding_{nullptr};
  torch::nn::Linear first_{nullptr}, second_{nullptr}, out_{nullptr};
};
TORCH_MODULE(PartitionNet);

/// Samples a device for every group in order: bidirectional LSTM encoder over group embeddings,
/// LSTM decoder fed with the previous device's embedding, additive attention (papers/notes.md
/// "Trinity: networks"). S is the number of samples in the batch, K of groups, H the width of one
/// encoder direction. Not thread-safe.
class ScheduleNetImpl : public torch::nn::Module {
 public:
  explicit ScheduleNetImpl(const ScheduleShape& shape);

  struct Encoded {
    torch::Tensor memory;       ///< m_j = W1 h_j, [S, K, 2H]
    torch::Tensor state, cell;  ///< the decoder's start, [S, layers x 2H]
  };
  Encoded encode(const torch::Tensor& groups);

  /// All steps at once for known devices [S, K]: log-probabilities [S, K, D]. `prior` [S, K, D] is
  /// added to the logits.
  torch::Tensor evaluate(const Encoded& encoded, const torch::Tensor& devices,
                         const torch::Tensor& prior);

  /// One step: previous devices [S] (D stands for "start"), state and cell are replaced, `prior`
  /// [S, D]. Returns log-probabilities [S, D].
  torch::Tensor step(const Encoded& encoded, const torch::Tensor& previous, torch::Tensor& state,
                     torch::Tensor& cell, const torch::Tensor& prior);
  int64_t start_symbol() const { return devices_; }

 private:
  torch::Tensor attend(const torch::Tensor& hidden, const torch::Tensor& memory,
                       const torch::Tensor& previous, const torch::Tensor& prior);

  /// One pass of the decoder's layers over x [T, S, input]; replaces state and cell.
  torch::Tensor decode(const torch::Tensor& x, torch::Tensor& state, torch::Tensor& cell);

  int64_t devices_;
  double temperature_, tanh_constant_;
  Lstm forward_{nullptr}, backward_{nullptr}, decoder_{nullptr};
  Lstm forward_2_{nullptr}, backward_2_{nullptr}, decoder_2_{nullptr};  // of two layers
  torch::nn::Embedding device_embedding_{nullptr};
  torch::nn::Linear memory_{nullptr}, query_{nullptr}, score_{nullptr}, out_{nullptr};
  torch::Tensor stay_, previous_device_;  // scalar; one-hot rows [D + 1, D], the last one zero
};
TORCH_MODULE(ScheduleNet);

}  // namespace trinity
