#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/types.h"
#include "libtorch/torch.h"

namespace trinity {

/// A seed for LibTorch's generators, for `what` ("weight", "data", ...) of operator `name` at
/// `index`.
uint64_t seed_of(uint64_t seed, const std::string& what, const std::string& name, int64_t index);

/// The initial value of a weight: scales (the first weight of a normalisation, and factors) are 1,
/// biases 0, other weights normal with variance 1 / fan-in, or 2 / fan-in if the operator's
/// attribute `start` is "he" (He et al. 2015, equation 10). `first`: it is the operator's first
/// weight. On the CPU.
at::Tensor first_weight(const Parameter& parameter, uint64_t seed, const Operator& op, bool first);

/// Ones with probability `keep`, else zeros, for the block at `begin` of a tensor of shape `whole`
/// (both empty: all of it), in batch `batch`. An entry depends only on `key` and its index over all
/// batches.
at::Tensor drawn_mask(at::IntArrayRef shape, const std::vector<int64_t>& begin,
                      const std::vector<int64_t>& whole, double keep, uint64_t key, int64_t batch);

/// Input data, on the CPU: floats are uniform with mean 0 and variance 1, integers (int64) uniform
/// below `bound`. An entry along the first dimension (a sample) depends only on `key` and its index
/// `first_sample + i`: a batch is the concatenation of its micro-batches.
at::Tensor drawn_data(const Tensor& tensor, uint64_t key, int64_t first_sample, int64_t bound);

}  // namespace trinity
