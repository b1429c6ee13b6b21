#pragma once

#include "execute/kernels/kernels.h"

namespace trinity {

/// One LSTM step: x [N, I], h [N, H], c [N, H], weight [I + H, 4 H], bias [4 H] to h, c; gates in
/// the order i, o, f, c as in ONNX's LSTM.
std::vector<at::Tensor> lstm_cell_kernel(const KernelCall& call);

/// ONNX's LSTM with one or two directions: X, W [D, 4H, I], R [D, 4H, H], B [D, 8H] to Y and the
/// last h and c; layout 1 has the batch first.
std::vector<at::Tensor> lstm_kernel(const KernelCall& call);

/// ONNX's GRU with one or two directions: X, W [D, 3H, I], R [D, 3H, H], B [D, 6H] to Y and the
/// last h; gates in the order z, r, h.
std::vector<at::Tensor> gru_kernel(const KernelCall& call);

}  // namespace trinity
