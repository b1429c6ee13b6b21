#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/types.h"
#include "libtorch/torch.h"

namespace trinity {

/// A seed for LibTorch's generators, of what is drawn in `what` ("weight", "data", ...) of
/// operator `name` at `index`.
uint64_t seed_of(uint64_t seed, const std::string& what, const std::string& name, int64_t index);

/// A weight as networks usually start: scales of 1 (the first weight of a normalisation, and
/// factors), biases of 0, else normal numbers whose variance is one over what an output sums up,
/// or two over it where the operator's attribute `start` is "he" (He et al. 2015, equation 10).
/// `first`: whether it is the operator's first. On the processor.
at::Tensor first_weight(const Parameter& parameter, uint64_t seed, const Operator& op, bool first);

/// Ones with probability `keep`, else zeros: of the block of a tensor `whole` that begins at
/// `begin` (both empty: all of it), in batch `batch`. An entry depends on `key` and on its number
/// among those of all batches alone.
at::Tensor drawn_mask(at::IntArrayRef shape, const std::vector<int64_t>& begin,
                      const std::vector<int64_t>& whole, double keep, uint64_t key, int64_t batch);

/// Numbers of a tensor of data, on the processor: real ones are uniform with mean 0 and variance
/// 1, whole ones (int64) uniform below `bound`. An entry along the first dimension, a sample,
/// depends on `key` and its number `first_sample + i` alone: a batch is its micro-batches, joined.
at::Tensor drawn_data(const Tensor& tensor, uint64_t key, int64_t first_sample, int64_t bound);

}  // namespace trinity
