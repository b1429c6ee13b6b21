#pragma once

#include "libtorch/networks.h"

namespace trinity {

/// One direction of one LSTM layer, time first, without dropout. LibTorch's own layer adds up the
/// recurrent weight's gradient step by step, a pass over the whole matrix each; this one keeps the
/// gate gradients and multiplies once at the end: 2 times faster in training at 8 samples, 40 steps
/// and width 512 (tests/bench/bench_learn.cpp). Gate order: input, forget, cell, output.
/// Not thread-safe.
class LstmImpl : public torch::nn::Module {
 public:
  LstmImpl(int64_t input, int64_t hidden);

  struct Output {
    torch::Tensor hidden;  ///< every step, [T, S, H]
    torch::Tensor cell;    ///< after the last step, [S, H]
  };
  /// x [T, S, input], state and cell [S, H].
  Output forward(const torch::Tensor& x, const torch::Tensor& state, const torch::Tensor& cell);
  int64_t hidden() const { return recurrent_.size(1); }

 private:
  torch::nn::Linear input_{nullptr};  // also holds the bias
  torch::Tensor recurrent_;           // [4H, H]
};
TORCH_MODULE(Lstm);

}  // namespace trinity
