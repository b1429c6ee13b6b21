#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "features/features.h"
#include "learn/parameters.h"
#include "learn/torch/recurrence.h"
#include "libtorch/torch.h"

namespace trinity {

/// The policy's weights: one tensor, of which autograd's leaves are views in the order and shapes
/// of Parameters, and Adam's moments. Not thread-safe.
class PolicyWeights {
 public:
  PolicyWeights(const Parameters& parameters, torch::Device device);

  const torch::Tensor& operator[](std::string_view name) const;
  /// Those whose name begins with `prefix`; they lie next to each other.
  std::vector<torch::Tensor> leaves(std::string_view prefix) const;
  /// The gradient of scalar sums of `outputs` times `factors` by leaves(prefix), flat. A weight
  /// that no output depends on has zeros.
  torch::Tensor gradient(std::string_view prefix, const torch::autograd::variable_list& outputs,
                         const torch::autograd::variable_list& factors) const;

  torch::Tensor values, first_moment, second_moment;
  int64_t steps = 0;  ///< of Adam
  /// One step of Adam (Kingma and Ba 2015; 0.9, 0.999, 1e-8) uphill.
  void ascend(const torch::Tensor& gradient, double rate);
  void forget_moments();

 private:
  std::vector<std::string> names_;
  std::vector<torch::Tensor> leaves_;
};

struct PartitionShape {
  int64_t units = 0;     ///< U
  int64_t types = 0;     ///< size of the vocabulary; 0: no embedding of types
  int64_t features = 0;  ///< columns of a unit's features
  int64_t groups = 0;    ///< K
  bool linear = false;   ///< one hidden layer of 64 without activation, as the released code has it
  static constexpr int64_t kTypeWidth = 20, kFirst = 64, kSecond = 128;
  int64_t type_width() const { return types > 0 ? kTypeWidth : 0; }
  int64_t last() const { return linear ? kFirst : kSecond; }
};

/// Adds the network's weights, names beginning with "partition.".
void add_partition_weights(const PartitionShape& shape, Parameters& parameters);

/// Log-probabilities of groups for every unit (papers/notes.md "Trinity: networks"): embedding of
/// the unit's type in addition to its features, hidden layers of 64 and 128 with ReLU, softmax. The
/// weights must outlive it. Not thread-safe.
class PartitionNet {
 public:
  PartitionNet(const PartitionShape& shape, const UnitFeatures& features,
               const PolicyWeights& weights);
  /// `mask` [U, 64] scales the first hidden layer (dropout); undefined: none. Returns [U, K].
  torch::Tensor forward(const torch::Tensor& mask) const;

  torch::Tensor prior;  ///< constant logits [U, K]; undefined: none

 private:
  const PartitionShape& shape_;
  const PolicyWeights& weights_;
  torch::Tensor types_, values_;
};

struct ScheduleShape {
  int64_t groups = 0;   ///< K, steps of encoder and decoder
  int64_t width = 0;    ///< W, columns of a group's embedding
  int64_t devices = 0;  ///< D
  int64_t hidden = 0;   ///< H, width of each direction of the encoder; the decoder's is 2H
  double temperature = 10, tanh_constant = 5;
  bool stays = false;  ///< a trainable term for the previous device
  int64_t layers = 1;  ///< of encoder and decoder
  static constexpr int64_t kDeviceWidth = 20;
  int64_t wide() const { return 2 * hidden; }
};

/// Adds the network's weights, names beginning with "schedule.".
void add_schedule_weights(const ScheduleShape& shape, Parameters& parameters);

/// Log-probabilities of devices for every group in order (papers/notes.md "Trinity: networks"):
/// bidirectional LSTM encoder over group embeddings, LSTM decoder fed with the previous device's
/// embedding, additive attention. S is the number of samples in the batch. The weights must outlive
/// it. Not thread-safe.
class ScheduleNet {
 public:
  ScheduleNet(const ScheduleShape& shape, const PolicyWeights& weights);

  struct Encoded {
    torch::Tensor memory, exponential;  ///< m_j = W1 h_j, its doubled_exponential() [S, K, 2H]
    std::vector<torch::Tensor> states, cells;  ///< the decoder's start, [1, S, 2H] per layer
    std::vector<LstmSteps> drawn;  ///< the decoder's layers for the devices that sample() drew
  };
  /// groups [K, S, W].
  Encoded encode(const torch::Tensor& groups) const;

  /// All steps at once for known devices [S, K] (int64), or the devices that sample() chose: logits u [S,
  /// K, D].
  torch::Tensor logits(const Encoded& encoded, const torch::Tensor& devices) const;
  /// Log-probabilities from logits with constant logits `prior` of the same shape.
  torch::Tensor log_probabilities(const torch::Tensor& logits, const torch::Tensor& prior) const;

  /// Samples devices step by step: choose(sample, step, row) gives a device by its log-probabilities
  /// [D]. prior [S, K, D]. Returns devices [S, K] (int64) and all log-probabilities [S, K, D].
  using Choose = std::function<int64_t(int64_t sample, int64_t step, const float* row)>;
  std::pair<torch::Tensor, torch::Tensor> sample(Encoded& encoded, const torch::Tensor& prior,
                                                 const Choose& choose) const;

 private:
  torch::Tensor gates(const torch::Tensor& x, const std::string& lstm) const;
  torch::Tensor recurrent(const std::string& lstm) const;
  torch::Tensor device_gates() const;
  torch::Tensor encode_layer(const torch::Tensor& x, const std::string& suffix,
                             Encoded& encoded) const;
  torch::Tensor attend(const torch::Tensor& hidden, const Encoded& encoded,
                       const torch::Tensor& previous) const;

  const ScheduleShape& shape_;
  const PolicyWeights& weights_;
  torch::Tensor previous_device_;  // one-hot rows [D + 1, D], zero for the start
};

}  // namespace trinity
