#pragma once

#include <cstdint>
#include <string>

#include "graph/types.h"
#include "libtorch/torch.h"

namespace trinity {

/// A seed for LibTorch's generators, of what is drawn in `what` ("weight", "data", ...) of
/// operator `name` at `index`.
uint64_t seed_of(uint64_t seed, const std::string& what, const std::string& name, int64_t index);

/// A weight as networks usually start: scales of 1 (the first weight of a normalisation, and
/// factors), biases of 0, else normal numbers whose variance is one over what an output sums up.
/// On the processor.
at::Tensor first_weight(const Parameter& parameter, uint64_t seed, const Operator& op);

/// Numbers of a tensor of data, on the processor: real ones are uniform with mean 0 and variance
/// 1, whole ones (int64) uniform below `bound`. An entry along the first dimension, a sample,
/// depends on `key` and its number `first_sample + i` alone: a batch is its micro-batches, joined.
at::Tensor drawn_data(const Tensor& tensor, uint64_t key, int64_t first_sample, int64_t bound);

}  // namespace trinity
